//===- Codegen.h - From the LLVM dialect to a shared library ----*- C++ -*-===//
//
// The last rungs: a module at level llvm becomes object code for its chip. Object code of one or more
// targets becomes, with the runtime archive, a shared library, its header and its plans in JSON.
// Equal modules give equal bytes: no paths, times or build ids enter.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_CODEGEN_CODEGEN_H
#define STEPC_PASSES_CODEGEN_CODEGEN_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/codegen/Sanitizer.h"
#include "runtime/plan/Plan.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace stepc::codegen {

struct CodegenOptions {
  Sanitizer sanitizer = Sanitizer::None;
  /// In less than half of the time, code that steps more slowly, with the same bits.
  bool isQuick = false;
  /// Text of the optimized LLVM IR or assembly instead of object code; for people.
  enum class Output { Object, Assembly, LlvmIr } output = Output::Object;
};

/// Object code of a module at level llvm, for the chip that its plan names. No
/// floating-point operation is fused, reordered or estimated. Emits an error when it fails.
mlir::FailureOr<std::vector<char>> emitObject(mlir::ModuleOp module,
                                              const CodegenOptions &options = {});

/// The archives that libraries are linked with. The runtime's is in $STEPC_RUNTIME_DIR, otherwise in ../lib
/// beside the folder of `executable`; for instrumented code it is the instrumented one. The C++ library's is
/// always in ../lib.
llvm::Expected<std::vector<std::string>> findRuntimeArchives(llvm::StringRef executable,
                                                             Sanitizer sanitizer = Sanitizer::None);

/// What a library has for one target: its plan, and the object code of its module.
struct Program {
  plan::Plan plan;
  std::vector<char> object;
};

/// Object code of what a library has once: the table of its programs, and `<name>_library`.
llvm::Expected<std::vector<char>> emitTable(llvm::ArrayRef<Program> programs);

/// Links programs, one for each target (programKey), and the runtime into a shared library that
/// exports `stepc_library_table` and `<name>_library`. LLVM's linker is part of the compiler: no other
/// program is called, and nothing of a toolchain is read. The libraries of C are those of this machine.
llvm::Error linkLibrary(llvm::ArrayRef<Program> programs, llvm::ArrayRef<std::string> archives,
                        llvm::StringRef path, Sanitizer sanitizer = Sanitizer::None);

/// The C header of a library: its entry, and constants for parameters, routes and hyperparameters, which
/// are the same in all of its programs.
std::string makeHeader(llvm::ArrayRef<Program> programs);
llvm::Error writeHeader(llvm::ArrayRef<Program> programs, llvm::StringRef path);

/// The plan for people and tools (docs: stepc-plan version 3); ends in a line feed.
std::string planToJson(const plan::Plan &plan);

} // namespace stepc::codegen

#endif
