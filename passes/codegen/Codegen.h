//===- Codegen.h - From the LLVM dialect to a shared library ----*- C++ -*-===//
//
// The last steps of a compilation. A module at level llvm becomes object code for its chip. Object code of
// one or more targets and the runtime archive become a shared library, with a header and plans in JSON. Equal
// modules give equal bytes: outputs contain no paths, times or build ids.
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
  /// Compiles in less than half of the time. The code runs more slowly and gives the same bits.
  bool isQuick = false;
  /// Whether emitObject returns object code or, for people, the text of the assembly or of the optimized LLVM
  /// IR.
  enum class Output { Object, Assembly, LlvmIr } output = Output::Object;
};

/// Object code of a module at level llvm, for the chip that its plan names. No floating-point operation is
/// fused, reordered or estimated. Emits an error if it fails.
mlir::FailureOr<std::vector<char>> emitObject(mlir::ModuleOp module,
                                              const CodegenOptions &options = {});

/// The paths of the archives that libraries are linked with: stepc's runtime (instrumented, if `sanitizer`
/// says so) and a C++ library. The runtime is looked for in $STEPC_RUNTIME_DIR, or in ../lib beside the
/// folder of `executable` if that variable is not set. The C++ library is always looked for in this ../lib.
llvm::Expected<std::vector<std::string>> findRuntimeArchives(llvm::StringRef executable,
                                                             Sanitizer sanitizer = Sanitizer::None);

/// A library's program for one target: its plan, and the object code of its module.
struct Program {
  plan::Plan plan;
  std::vector<char> object;
};

/// Object code that a library has once, for all targets: the table of its programs, and the function
/// `<name>_library`. Fails if two programs are for one target.
llvm::Expected<std::vector<char>> emitTable(llvm::ArrayRef<Program> programs);

/// Links programs, one for each target (programKey), and the runtime into a shared library that
/// exports `stepc_library_table` and `<name>_library`. LLVM's linker is part of the compiler: this calls no
/// other program and reads no toolchain. It links with the C libraries (libc, libm, the loader) of this
/// machine.
llvm::Error linkLibrary(llvm::ArrayRef<Program> programs, llvm::ArrayRef<std::string> archives,
                        llvm::StringRef path, Sanitizer sanitizer = Sanitizer::None);

/// The C header of a library: the function `<name>_library`, and constants for parameters, routes and
/// hyperparameters. These are the same in all programs of the library.
std::string makeHeader(llvm::ArrayRef<Program> programs);
llvm::Error writeHeader(llvm::ArrayRef<Program> programs, llvm::StringRef path);

/// The plan as JSON for people and tools (docs/json.md: stepc-plan version 3). Ends in a line feed.
std::string planToJson(const plan::Plan &plan);

} // namespace stepc::codegen

#endif
