//===- Builtins.h - The functions and coefficient sets ----------*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_BUILTINS_H
#define STEPC_FRONTENDS_LANGUAGE_BUILTINS_H

#include "frontends/language/AST.h"
#include "llvm/ADT/ArrayRef.h"

namespace stepc::lang {

/// How the arguments and the result of a function are checked.
enum class FunctionClass : uint8_t {
  Elementwise,   ///< Numbers of any shape; the result is their broadcast.
  Test,          ///< One number of any shape; the result is a condition of that shape.
  Select,        ///< A condition, then two numbers.
  Cast,          ///< A tensor and a dtype.
  Named,         ///< `momentum`, `decay`: tensors first, then scalars.
  Reduction,     ///< One tensor and the option `over`.
  Orthogonalize, ///< One full tensor and options.
  Transpose,     ///< One tensor.
  Identity,      ///< One size.
  SizeOf,        ///< One tensor; the result is a scalar.
  Uniform,       ///< Nothing; the result is a full tensor.
  Stochastic,    ///< One tensor; the whole right side of an assignment.
};

struct FunctionInfo {
  llvm::StringRef name;
  Function function;
  FunctionClass functionClass;
  unsigned argumentCount;
  /// Computes the function of constants. Null for functions of tensors.
  double (*fold)(llvm::ArrayRef<double> arguments) = nullptr;
  /// How many of the arguments are tensors; for functions of class Named.
  unsigned tensorCount = 0;
};

/// Whether all machines round a function of scalars alike, so that it gives them equal sizes and conditions.
inline bool isRoundedAlike(Function function) {
  return function != Function::Exp && function != Function::Log;
}

/// All functions. `max` has one entry, with Function::Max; analysis turns it into MaxOf.
llvm::ArrayRef<FunctionInfo> functions();
/// The function of that name. Null if there is none.
const FunctionInfo *findFunction(llvm::StringRef name);
/// The names of the arguments that functions of a class take by name.
llvm::ArrayRef<llvm::StringRef> optionsOf(FunctionClass functionClass);
/// The hint where a list stands in place of another value.
inline constexpr llvm::StringLiteral listHint =
    "only 'coefficients' and 'restarts' of 'orthogonalize' are lists";
/// Whether an argument that is given by name is a word, as in `over = rows`, and no value.
bool isWordOption(llvm::StringRef name);
/// The hint where a loop of another language stands.
inline constexpr llvm::StringLiteral kLoopHint =
    "operations are of all elements of a tensor; 'repeat 5 { ... }' repeats statements";
/// Statements that are planned and that this version refuses.
llvm::ArrayRef<llvm::StringRef> plannedStatements();

/// A named set of Newton-Schulz coefficients.
struct CoefficientSet {
  llvm::StringRef name;
  /// The coefficients (a, b, c) of the iteration's steps 1, 2, ...
  llvm::ArrayRef<std::array<double, 3>> steps;
  /// Whether the last entry repeats for further steps and any prefix is a valid
  /// choice. Otherwise the set has exactly `steps.size()` steps.
  bool isOpenEnded;
  unsigned defaultSteps;

  /// The coefficients of `count` steps. A safety factor s turns (a, b, c) into
  /// (a/s, b/s^3, c/s^5). The last entry, which repeats, stays as it is: there the
  /// singular values have converged to 1, and the factor would move them away.
  std::vector<std::array<double, 3>> take(unsigned count, double safety) const;
};

llvm::ArrayRef<CoefficientSet> coefficientSets();
const CoefficientSet *findCoefficientSet(llvm::StringRef name);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_BUILTINS_H
