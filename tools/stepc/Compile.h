//===- Compile.h - From level llvm to the files of a library ----*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_COMPILE_H
#define STEPC_TOOLS_STEPC_COMPILE_H

#include "tools/stepc/Files.h"
#include "tools/stepc/Options.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace stepc::driver {

/// Adds lib<name>.so, <name>.h and <name>.json to `files`, which the caller must commit. `modules` are at
/// level llvm, one per target. Plans of further targets are <name>.cpu.json, <name>.cuda.sm_90a.json and so
/// on. Returns an exit code; after a failure an error was printed.
int makeLibrary(llvm::ArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> modules,
                const CompileOptions &options, OutputFiles &files, Report &report);

} // namespace stepc::driver

#endif
