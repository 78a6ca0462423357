//===- Forces.h - Strategies that the user forces ---------------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_FORCES_H
#define STEPC_PASSES_DECIDE_FORCES_H

#include "dialects/optim/Optim.h"

namespace stepc::decide {

/// In the metadata of a diagnostic: an option that the user gave is wrong, not an input file.
inline constexpr llvm::StringLiteral kUsageErrorMark = "stepc.usage";
/// Marks a diagnostic so.
mlir::InFlightDiagnostic blameOptions(mlir::InFlightDiagnostic diagnostic);

/// PATTERN=STRATEGY.
struct Force {
  NamePattern pattern;
  optim::StrategyAttrInterface strategy;
  bool matched = false; ///< some parameter's name or alias matched
  bool applied = false; ///< … of a parameter whose rule has matrix operations
};

/// Parses forces; an ill-formed one is an error at the module, marked by blameOptions.
mlir::FailureOr<std::vector<Force>> parseForces(mlir::ModuleOp module,
                                                llvm::ArrayRef<std::string> texts);

/// The last force that matches a parameter, or null; marks all that match. `matrix`: the
/// parameter's rule has matrix operations.
Force *lastMatch(std::vector<Force> &forces, optim::ParameterOp parameter, bool matrix);

} // namespace stepc::decide

#endif
