//===- InProcess.h - Ranks that are threads of one process -------*- C++ -*-===//
//
// For tests, sanitizers and `stepc run`. A receiver copies from the sender's buffer:
// a message is done when both sides have started it and the receiver has looked.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_TRANSPORTS_INPROCESS_H
#define STEPC_RUNTIME_TRANSPORTS_INPROCESS_H

#include "stepc/transport.h"

namespace stepc::runtime {

/// Fills `size` transports of one world, which stand struct_size of the first apart. Each is used
/// by one thread at a time and gives its rank back in `destroy`; the world goes with the last. May
/// throw std::bad_alloc.
void inProcessWorld(int32_t size, stepc_transport *transports);

} // namespace stepc::runtime

#endif
