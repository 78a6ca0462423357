//===- NewtonSchulz.h - The forms of orthogonalize --------------*- C++ -*-===//
//
// Questions about optim.orthogonalize that both the language and the IR ask. This file uses C++ and LLVM's
// ADT alone, because front ends without MLIR use it.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_NEWTONSCHULZ_H
#define STEPC_DIALECTS_OPTIM_NEWTONSCHULZ_H

#include "runtime/model/Enum.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace stepc::plan {
/// The form of the iteration. It is no part of a plan, but IR text has its names as it has those of plans.
enum class Form : int64_t { Standard = 0, Gram = 1, Auto = 2 };
template <>
inline constexpr auto kNames<Form> = std::to_array<std::string_view>({"standard", "gram", "auto"});
} // namespace stepc::plan

namespace stepc::optim {
using plan::Form;

/// The coefficients (a, b, c) of one step.
using NewtonSchulzStep = std::array<double, 3>;

/// Whether blocks of rows × cols are computed in the Gram form. `auto` is this form if the longer side is at
/// least 1.5 times the shorter one.
bool isGramForm(Form form, int64_t rows, int64_t cols);
/// Why `auto` is the Gram form for blocks of rows × cols, or why not: "1022 / 256 = 3.99, at least 1.5".
std::string whyForm(int64_t rows, int64_t cols);

/// The first restart that is wrong of `steps` steps: below 1, not above the one before, or past the last step
/// but one. Returns the number of restarts if all are right.
size_t findWrongRestart(llvm::ArrayRef<int64_t> restarts, size_t steps);
/// Says what an error expects in place of the restart `wrong`, which findWrongRestart has found.
std::string expectedInPlaceOf(size_t wrong, llvm::ArrayRef<int64_t> restarts, size_t steps);

/// An upper bound of the absolute values of all elements that an iteration stores.
struct Growth {
  double bound = 0;
  size_t step = 0; ///< the first step that reaches the bound, from 1 on
};
/// The bound for all X whose Frobenius norm is 1 or less, in the form that is given (`auto` may be both). The
/// eigenvalues of R = X Xᵀ are in [0, 1], and an element of a symmetric matrix is at most its largest
/// eigenvalue. So the bounds are the largest values of polynomials of R in an interval, step by step.
///
/// The bound of the standard form is that of exact arithmetic. In the Gram form the rounding of a matrix
/// moves its eigenvalues, by 2^-10 of the largest at most, and each bound is multiplied by 65 / 64. An
/// eigenvalue of R that rounding has made negative grows with each further step of a run, so runs are short.
Growth boundOf(llvm::ArrayRef<NewtonSchulzStep> steps, Form form, llvm::ArrayRef<int64_t> restarts);

/// The largest finite f16.
inline constexpr double kLargestHalf = 65504;

} // namespace stepc::optim

#endif
