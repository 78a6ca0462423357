//===- Watch.h - Values of rules that stepc run prints ----------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_WATCH_H
#define STEPC_TOOLS_STEPC_WATCH_H

#include "frontends/manifest/Safetensors.h"
#include "runtime/plan/Plan.h"
#include "tools/stepc/Report.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::driver {

/// A named value of a rule that is printed after each step.
struct WatchedValue {
  std::string rule, name;
  /// The state that holds the value after a step. It is empty for the parameter, which holds itself.
  std::string state;
  bool isScalar = false, isCondition = false;
  /// RULE.NAME, as the user knows the rule.
  std::string fullName() const;
};
using WatchedValues = llvm::StringMap<std::vector<WatchedValue>>; // by rule

/// Finds the values whose NAME or RULE.NAME matches a pattern: gradients, lets, states and parameters, in
/// this order per rule. A gradient or let gets a state of its own, which the rule yields with the value. All
/// other values keep their bits, because bits do not depend on the plan. `module` must be at level optim and
/// just imported, so that its locations name the lets. Returns nothing after an error.
std::optional<WatchedValues> watchValues(mlir::ModuleOp module,
                                         llvm::ArrayRef<std::string> patterns, Report &report);
/// Whether a state was added by watchValues. Files of tensors never have such a state.
bool isWatchState(llvm::StringRef name);

/// Prints a value of a parameter after a step. Each matrix of a stack, and each block of a divided matrix, is
/// printed by itself. `values` are all elements, in the order of the tensor of this kind. Numbers are printed
/// with the fewest digits that give the same number of `type` again.
void printValue(llvm::raw_ostream &os, int64_t step, llvm::StringRef parameter,
                const WatchedValue &watched, const plan::Group &group, plan::ValueKind kind,
                manifest::TensorType type, llvm::ArrayRef<double> values);
/// Says that a parameter was not stepped, because the model skips the step or, if it does not, because the
/// parameter has no gradient.
void printSkipped(llvm::raw_ostream &os, int64_t step, llvm::StringRef parameter, bool skipsAll);

} // namespace stepc::driver

#endif
