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

/// The level that the module's attribute names. Nothing, after an error, if it names none.
std::optional<Level> levelOf(mlir::ModuleOp module);

/// Lowers the module from its level to `level`, by one pipeline per level. Levels after scheduled are for the
/// one target of the options, or for the host. Options that an earlier level has answered already are
/// refused. Returns an exit code; after a failure an error was printed.
int lowerTo(mlir::ModuleOp module, Level level, const CompileOptions &options, Report &report);
/// Lowers the module to level llvm once per target. Levels that know of no target run once.
int lowerForTargets(mlir::OwningOpRef<mlir::ModuleOp> module, const CompileOptions &options,
                    Report &report,
                    llvm::SmallVectorImpl<mlir::OwningOpRef<mlir::ModuleOp>> &programs);

/// Returns false, after an error, if several targets are given. `what` names the command, which is for one
/// target.
bool expectOneTarget(const CompileOptions &options, llvm::StringRef what, Report &report);

/// Says on standard error what a command is doing, once it takes long: after 0.3 seconds on a terminal,
/// otherwise after two seconds.
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
