//===- Types.h - What a value of the language is ---------------*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_TYPES_H
#define STEPC_FRONTENDS_LANGUAGE_TYPES_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace stepc::lang {

/// How many rows or columns a value has: a number, or a size of the parameter's matrix. Sizes are compared as
/// names: rows are never cols, not even of a square matrix.
struct Size {
  enum class Of : uint8_t { Number, Rows, Cols, Let };
  Of of = Of::Number;
  int64_t number = 1;
  llvm::StringRef name = {}; ///< of the `let` that computes it, in the source's text

  static const Size One, Rows, Cols;
  /// The largest number.
  static constexpr int64_t most = int64_t(1) << 20;
  bool operator==(const Size &) const = default;
};
inline constexpr Size Size::One{};
inline constexpr Size Size::Rows{Size::Of::Rows};
inline constexpr Size Size::Cols{Size::Of::Cols};
/// `rows`, `cols`, the name of a `let` or the number.
std::string spell(Size size);

/// A scalar (f64, the same for a whole parameter: hyperparameters, `step`, …) or the sizes of a tensor.
struct Shape {
  bool isTensor = false;
  Size rows = {}, cols = {};

  static const Shape Scalar;
  static const Shape One;  ///< One value computed from tensor elements; spelled `f32[]`.
  static const Shape Rows; ///< One value per row; spelled `f32[rows]`.
  static const Shape Cols; ///< One value per column; spelled `f32[cols]`.
  static const Shape Full; ///< Shaped like the parameter.
  static constexpr Shape of(Size rows, Size cols) { return {true, rows, cols}; }

  Shape transposed() const { return {isTensor, cols, rows}; }
  /// Whether it is a tensor of several values, and one with several rows and several columns.
  bool hasSeveral() const { return rows != Size::One || cols != Size::One; }
  bool isMatrix() const { return rows != Size::One && cols != Size::One; }
  /// Whether it is full, rows, cols or one, as values on the shards of parameters are.
  bool isOfParameter() const {
    return isTensor && (rows == Size::One || rows == Size::Rows) &&
           (cols == Size::One || cols == Size::Cols);
  }
  bool operator==(const Shape &) const = default;
};
inline constexpr Shape Shape::Scalar{};
inline constexpr Shape Shape::One{true};
inline constexpr Shape Shape::Rows{true, Size::Rows, Size::One};
inline constexpr Shape Shape::Cols{true, Size::One, Size::Cols};
inline constexpr Shape Shape::Full{true, Size::Rows, Size::Cols};

enum class ElementType : uint8_t { Invalid, F64, F32, BF16, F16, Condition };

/// What an expression computes. Scalars are F64 or Condition; all other shapes
/// are F32, BF16, F16 or Condition.
struct Type {
  Shape shape = {};
  ElementType element = ElementType::Invalid;

  bool isValid() const { return element != ElementType::Invalid; }
  bool isCondition() const { return element == ElementType::Condition; }
  bool isScalar() const { return !shape.isTensor; }
  bool operator==(const Type &) const = default;
};

/// `f32`, `bf16`, `f16`, `f64`, `condition`.
llvm::StringRef spell(ElementType element);
/// The element type of a tensor that `name` spells, or nothing.
std::optional<ElementType> parseElementType(llvm::StringRef name);
/// How messages name a shape: "one value per row", "a matrix of rows × rows".
std::string describe(Shape shape);
/// How messages name a type: its shape, or "a condition".
std::string describe(Type type);
/// The shape of an elementwise operation's result. A scalar, one row and one column broadcast to any number.
/// Nothing if the values have different sizes.
std::optional<Shape> broadcast(Shape a, Shape b);

} // namespace stepc::lang

#endif
