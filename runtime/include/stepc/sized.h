//===- sized.h - Structs of the C interface, in C++ --------------*- C++ -*-===//
#ifndef STEPC_SIZED_H
#define STEPC_SIZED_H

#include "stepc/stepc.h"

namespace stepc {

/// Makes a struct of stepc.h or transport.h: all zero, with its struct_size set.
template <typename Struct> Struct sized() {
  Struct made{};
  made.struct_size = sizeof(Struct);
  return made;
}

} // namespace stepc

#endif
