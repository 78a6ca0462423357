//===- Types.h - What a value of the language is ---------------*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_TYPES_H
#define STEPC_FRONTENDS_LANGUAGE_TYPES_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace stepc::lang {

enum class Shape : uint8_t {
  Scalar, ///< f64, the same for a whole parameter: hyperparameters, `step`, ...
  One,    ///< One value computed from tensor elements; spelled `f32[]`.
  Rows,   ///< One value per row; spelled `f32[rows]`.
  Cols,   ///< One value per column; spelled `f32[cols]`.
  Full,   ///< Shaped like the parameter.
};

enum class ElementType : uint8_t { Invalid, F64, F32, BF16, F16, Condition };

/// What an expression computes. Scalars are F64 or Condition; all other shapes
/// are F32, BF16, F16 or Condition.
struct Type {
  Shape shape = Shape::Scalar;
  ElementType element = ElementType::Invalid;

  bool isValid() const { return element != ElementType::Invalid; }
  bool isCondition() const { return element == ElementType::Condition; }
  bool isScalar() const { return shape == Shape::Scalar; }
  bool operator==(const Type &) const = default;
};

/// `f32`, `bf16`, `f16`, `f64`, `condition`.
llvm::StringRef spell(ElementType element);
/// The element type of a tensor that `name` spells, or nothing.
std::optional<ElementType> parseElementType(llvm::StringRef name);
/// How messages name a shape, e.g. "one value per row".
llvm::StringRef describe(Shape shape);
/// How messages name a type: its shape, or "a condition".
llvm::StringRef describe(Type type);
/// The shape of an elementwise operation's result. Every shape broadcasts to
/// Full, Scalar and One broadcast to any; Rows with Cols gives Full.
Shape broadcast(Shape a, Shape b);

} // namespace stepc::lang

#endif
