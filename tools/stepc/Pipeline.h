//===- Pipeline.h - Down the ladder, from any level to any ------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_PIPELINE_H
#define STEPC_TOOLS_STEPC_PIPELINE_H

#include "tools/stepc/Options.h"
#include "tools/stepc/Report.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OwningOpRef.h"

namespace stepc::driver {

/// The ladder of docs/architecture.md.
enum class Level { Optim, Decided, Comm, Scheduled, Exec, Llvm };
llvm::StringRef name(Level level);
std::optional<Level> parseLevel(llvm::StringRef name);

/// The dialects of all levels.
void registerDialects(mlir::DialectRegistry &registry);

/// The level that the module says it is at; an error if it says none.
std::optional<Level> levelOf(mlir::ModuleOp module);

/// Lowers the module from its level to `level`, one pipeline per level. Beyond level scheduled it is for the
/// one target of the options, or the host. Options that an earlier level already answered are refused.
/// Returns an exit code; on failure an error was printed.
int lowerTo(mlir::ModuleOp module, Level level, const CompileOptions &options, Report &report);
/// Lowers the module to level llvm once per target. Levels that know of no target run once.
int lowerForTargets(mlir::OwningOpRef<mlir::ModuleOp> module, const CompileOptions &options,
                    Report &report,
                    llvm::SmallVectorImpl<mlir::OwningOpRef<mlir::ModuleOp>> &programs);

/// False, after an error, if several targets are given to a command that is for one; `what` names it.
bool expectOneTarget(const CompileOptions &options, llvm::StringRef what, Report &report);

/// Tells on standard error what is going on, once it takes long: at once on a terminal, otherwise after two
/// seconds.
class Progress {
public:
  explicit Progress(llvm::StringRef what);
  ~Progress();
  void stage(llvm::StringRef name);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace stepc::driver

#endif
