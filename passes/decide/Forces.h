//===- Forces.h - Strategies that the user forces ---------------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_FORCES_H
#define STEPC_PASSES_DECIDE_FORCES_H

#include "dialects/optim/Optim.h"

namespace stepc::decide {

/// In the metadata of a diagnostic: an option that the user gave is wrong, not an input file.
inline constexpr llvm::StringLiteral kUsageErrorMark = "stepc.usage";
/// Adds kUsageErrorMark to a diagnostic and returns the diagnostic.
mlir::InFlightDiagnostic blameOptions(mlir::InFlightDiagnostic diagnostic);

/// The option PATTERN=STRATEGY: parameters whose names match the pattern get the strategy.
struct Force {
  NamePattern pattern;
  optim::StrategyAttrInterface strategy;
  bool matched = false; ///< some parameter's name or alias matched
  bool applied = false; ///< … and the rule of such a parameter has matrix operations
};

/// Parses forces. Emits an error at the module, marked by blameOptions, if a text is ill-formed.
mlir::FailureOr<std::vector<Force>> parseForces(mlir::ModuleOp module,
                                                llvm::ArrayRef<std::string> texts);

/// The last force that matches a parameter, or null. Marks all forces that match. `matrix` says that the
/// parameter's rule has matrix operations.
Force *lastMatch(std::vector<Force> &forces, optim::ParameterOp parameter, bool matrix);

} // namespace stepc::decide

#endif
