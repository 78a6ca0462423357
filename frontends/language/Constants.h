//===- Constants.h - What literals become -----------------------*- C++ -*-===//
//
// Private to this folder. Literals and scalars are f64. When they are stored or
// meet a tensor, they are rounded to a smaller type, and may become zero or
// infinite.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_LANGUAGE_CONSTANTS_H
#define STEPC_FRONTENDS_LANGUAGE_CONSTANTS_H

#include "frontends/language/AST.h"

namespace stepc::lang {

/// How rounding to a type damages a number. None: it does not, except that
/// subnormal numbers lose bits. Infinite and NaN: the number was infinite or NaN
/// before.
enum class Loss : uint8_t { None, ToZero, ToInfinity, Infinite, NaN };
Loss lossIn(ElementType element, double value);

/// The end of a message "expected ... that f32 can hold, found ...": the number
/// as %g prints it, and what it is rounded to.
std::string describeLoss(double value, Loss loss);
/// The number as %g prints it.
std::string spellNumber(double value);

/// The value of a scalar operation or function if its operands are constants;
/// otherwise nothing. It is the value that the library computes, except for the
/// last bit of `^`, `exp` and `log`. Operands must have their `constant` set.
std::optional<double> foldScalar(const Expr &expr);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_CONSTANTS_H
