//===- Constants.h - What literals become -----------------------*- C++ -*-===//
//
// Private to this folder. Literals and scalars are f64; where they are stored
// or meet a tensor they are rounded to a smaller type, and may become zero or
// infinite there.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_LANGUAGE_CONSTANTS_H
#define STEPC_FRONTENDS_LANGUAGE_CONSTANTS_H

#include "frontends/language/AST.h"

namespace stepc::lang {

/// What a number loses when it is rounded to a type: nothing that matters
/// (subnormal numbers keep what bits they have), or its meaning.
enum class Loss : uint8_t { None, ToZero, ToInfinity, Infinite, NaN };
Loss lossIn(ElementType element, double value);

/// How a message goes on after "expected ... that f32 can hold, found": the
/// number as %g prints it, and what becomes of it.
std::string describeLoss(double value, Loss loss);
/// The number as %g prints it.
std::string spellNumber(double value);

/// The value of an operation or function of scalars whose operands are
/// constants, as the library computes it up to the last bit of `^`, `exp` and
/// `log`; otherwise nothing. The operands' constants are known.
std::optional<double> foldScalar(const Expr &expr);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_CONSTANTS_H
