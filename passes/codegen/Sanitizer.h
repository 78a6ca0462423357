//===- Sanitizer.h - Instrumented libraries ---------------------*- C++ -*-===//
#ifndef STEPC_PASSES_CODEGEN_SANITIZER_H
#define STEPC_PASSES_CODEGEN_SANITIZER_H

namespace stepc::codegen {

/// The sanitizer with which generated functions are instrumented. The program that loads the library must be
/// built with the same sanitizer.
enum class Sanitizer { None, Address, Thread };

} // namespace stepc::codegen

#endif
