//===- Sanitizer.h - Instrumented libraries ---------------------*- C++ -*-===//
#ifndef STEPC_PASSES_CODEGEN_SANITIZER_H
#define STEPC_PASSES_CODEGEN_SANITIZER_H

namespace stepc::codegen {

/// What the generated functions are instrumented with; the program that loads the library must
/// be built with the same.
enum class Sanitizer { None, Address, Thread };

} // namespace stepc::codegen

#endif
