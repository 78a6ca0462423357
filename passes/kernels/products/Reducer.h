//===- Reducer.h - Chains of a reduction ------------------------*- C++ -*-===//
//
// The parts of which kernels of #optim.block_reduce consist: chains of 16 partial results, and the way from a
// chain to a result.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_PRODUCTS_REDUCER_H
#define STEPC_PASSES_KERNELS_PRODUCTS_REDUCER_H

#include "dialects/exec/Exec.h"
#include "passes/kernels/products/VectorBuilder.h"
#include "runtime/interpret/Kernels.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <cmath>
#include <limits>

namespace stepc::kernels {

/// The number of partial results of a chain, which are interleaved. It is part of what a reduction means, on
/// every chip.
inline constexpr int64_t kPartials = 16;
/// A sum of squares between these bounds did not overflow, and lost less to underflow than to rounding.
/// Otherwise the squares are added up again, of numbers multiplied by 2^96 or 2^-96 (optim.reduce).
inline constexpr float kLeastSquares = 0x1p-70f, kMostSquares = 0x1p126f;
inline constexpr int kScale = 96;

struct Shape {
  mlir::Type type; ///< of the source; results are f32
  int64_t rows, cols;
};

/// A shape whose rows and columns the code learns when it runs.
struct ShapeValues {
  mlir::Type type;
  mlir::Value rows, cols;
};

/// The parameters of an exec.apply of #optim.block_reduce.
struct BlockReduction {
  explicit BlockReduction(exec::ApplyOp op)
      : function(llvm::cast<optim::BlockReduceAttr>(op.getFunction())),
        source(llvm::cast<exec::BatchAttr>(op.getSources()[0])), out(op.getOut()),
        loc(op.getLoc()) {}

  Shape shape() const { return {source.getType(), source.getRows(), source.getCols()}; }
  /// The shape of the result.
  interpret::Remains remains() const {
    if (out.getCols() != 1)
      return interpret::Remains::Columns;
    return out.getRows() == 1 ? interpret::Remains::One : interpret::Remains::Rows;
  }
  /// Whether several kernels reduce a block to one value, by way of partial results of rows in the scratch.
  /// If a block is not more than one item, one kernel is faster.
  bool isShared() const;
  /// The name of a kernel that does `what` of a reduction: letters, digits and _.
  std::string kernelName(llvm::StringRef what) const;
  /// The name of the function that all shapes share.
  std::string functionName(llvm::StringRef what) const { return nameOf(what, ""); }

  optim::BlockReduceAttr function;
  exec::BatchAttr source, out;
  mlir::Location loc;

private:
  /// The name for `what`, with `shape` in front of the type that the kernel reads.
  std::string nameOf(llvm::StringRef what, llvm::StringRef shape) const;
};

class Reducer {
public:
  Reducer(VectorBuilder &builder, optim::BlockReduceAttr function)
      : b(builder), kind(function.getKind()), isMax(kind == optim::Reduction::Max),
        exponent(int(function.getExponent())) {
    // Sums start at +0 and so never become -0: padding with the start value changes nothing.
    neutral = isMax ? -std::numeric_limits<float>::infinity() : 0.0f;
  }

  bool squares() const { return kind == optim::Reduction::Rms || kind == optim::Reduction::Norm; }
  mlir::Value combine(mlir::Value a, mlir::Value c) {
    if (isMax)
      return mlir::arith::MaximumFOp::create(b, b.loc, a, c);
    return mlir::arith::AddFOp::create(b, b.loc, a, c);
  }
  /// What an element of the source adds to a chain; `scale` multiplies it first.
  mlir::Value term(mlir::Value x, mlir::Value scale = {}) {
    if (!squares())
      return x;
    if (scale) {
      if (auto type = llvm::dyn_cast<mlir::VectorType>(x.getType());
          type && !llvm::isa<mlir::VectorType>(scale.getType()))
        scale = b.broadcast(scale, type.getDimSize(0));
      x = multiply(x, scale);
    }
    return multiply(x, x);
  }

  /// The results of chains. If sums of squares left their range, `again` adds up the squares of scaled
  /// elements (scaled by 1 in lanes whose sums did not). `any`: whether a condition holds for any thread that
  /// takes the same branch. Without `any`: for any lane of the vector.
  mlir::Value result(mlir::Value chain, mlir::OpFoldResult count,
                     llvm::function_ref<mlir::Value(mlir::Value scale)> again,
                     llvm::function_ref<mlir::Value(mlir::Value condition)> any = nullptr) {
    if (!squares())
      return finish(chain, count, {});
    auto [small, large] = outside(chain);
    mlir::Value left = either(small, large);
    return b.choose(
        any ? any(left) : anyLane(left),
        [&] {
          auto pick = [&](int onSmall, int otherwise, int onLarge) {
            mlir::Type type = chain.getType();
            mlir::Value rest = mlir::arith::SelectOp::create(b, b.loc, large, power(type, onLarge),
                                                             power(type, otherwise));
            return mlir::Value(
                mlir::arith::SelectOp::create(b, b.loc, small, power(type, onSmall), rest));
          };
          mlir::Value factor = pick(exponent - kScale, exponent, exponent + kScale);
          return finish(again(pick(kScale, 0, -kScale)), count, factor);
        },
        [&] { return finish(chain, count, power(chain.getType(), exponent)); });
  }
  /// Whether the squares of one chain left their range, and the factor by which to scale elements.
  std::pair<mlir::Value, mlir::Value> scaleOf(mlir::Value chain) {
    auto [small, large] = outside(chain);
    mlir::Value scale = mlir::arith::SelectOp::create(
        b, b.loc, small, power(chain.getType(), kScale), power(chain.getType(), -kScale));
    return {either(small, large), scale};
  }

  /// Adds partial results j and j + 8, then j and j + 4, and so on to one number.
  mlir::Value pairwise(mlir::Value partials) {
    for (int64_t half = kPartials / 2; half >= 1; half /= 2) {
      auto part = [&](int64_t first) -> mlir::Value {
        return mlir::vector::ShuffleOp::create(b, b.loc, partials, partials,
                                               llvm::to_vector(llvm::seq(first, first + half)));
      };
      partials = combine(part(0), part(half));
    }
    return mlir::vector::ExtractOp::create(b, b.loc, partials, 0);
  }

  /// Allocates the memory that line() and block() use. The builder must stand in the entry block.
  void begin() {
    tail = b.stack(kPartials);
    b.write(b.getF32Type(), b.number(b.vector(kPartials), neutral), tail);
    partials = b.stack(kPartials);
  }
  /// The chain of one line: `count` neighbouring elements. `raw` elements are results of chains, so they are
  /// added as they are.
  mlir::Value line(mlir::Type type, mlir::Value from, mlir::Value count, bool raw,
                   mlir::Value scale = {}) {
    auto termOf = [&](mlir::Value x) { return raw ? x : term(x, scale); };
    mlir::Value whole = b.mul(b.quotient(count, kPartials), kPartials);
    mlir::Value sum = b.fold(
        b.constant(0), whole, kPartials, b.number(b.vector(kPartials), neutral),
        [&](mlir::Value i, mlir::Value partials) {
          return combine(partials, termOf(b.read(type, b.element(from, type, i), kPartials)));
        });
    sum = b.choose(
        b.atMost(count, whole), [&] { return sum; },
        [&] {
          b.loop(whole, count, 1, [&](mlir::Value i) {
            b.store(termOf(b.read(type, b.element(from, type, i), 0)),
                    b.element(tail, b.getF32Type(), b.sub(i, whole)));
          });
          return combine(sum, b.read(b.getF32Type(), tail, kPartials));
        });
    return pairwise(sum);
  }
  /// The chain over the results of the chains of a block's rows.
  mlir::Value block(const ShapeValues &shape, mlir::Value source, mlir::Value slot,
                    mlir::Value scale = {}) {
    mlir::Type f32 = b.getF32Type();
    b.write(f32, b.number(b.vector(kPartials), neutral), partials);
    b.loop(b.constant(0), shape.rows, 1, [&](mlir::Value row) {
      mlir::Value at = b.element(partials, f32, b.remainder(row, kPartials));
      mlir::Value from = rowOf(shape, source, slot, row);
      b.store(combine(b.load(f32, at), line(shape.type, from, shape.cols, false, scale)), at);
    });
    return pairwise(b.read(f32, partials, kPartials));
  }
  /// The address of a row of a slot's block. `shape` is a Shape or ShapeValues.
  template <typename OfShape>
  mlir::Value rowOf(const OfShape &shape, mlir::Value source, mlir::Value slot, mlir::Value row) {
    mlir::Value line = b.add(b.mul(slot, shape.rows), row);
    return b.element(source, shape.type, b.mul(line, shape.cols));
  }

  VectorBuilder &b;
  optim::Reduction kind;
  bool isMax;
  int exponent; ///< a result of squares is multiplied by 2 to this power
  float neutral;

private:
  mlir::Value multiply(mlir::Value a, mlir::Value c) {
    return mlir::arith::MulFOp::create(b, b.loc, a, c);
  }
  mlir::Value either(mlir::Value a, mlir::Value c) {
    return mlir::arith::OrIOp::create(b, b.loc, a, c);
  }
  mlir::Value power(mlir::Type type, int exponent) {
    return b.number(type, std::ldexp(1.0f, exponent));
  }
  /// Whether a chain's result is too small, and whether it is too large. NaN is neither.
  std::pair<mlir::Value, mlir::Value> outside(mlir::Value chain) {
    auto compare = [&](mlir::arith::CmpFPredicate predicate, float bound) {
      return mlir::arith::CmpFOp::create(b, b.loc, predicate, chain,
                                         b.number(chain.getType(), bound));
    };
    return {compare(mlir::arith::CmpFPredicate::OLT, kLeastSquares),
            compare(mlir::arith::CmpFPredicate::OGT, kMostSquares)};
  }
  mlir::Value anyLane(mlir::Value lanes) {
    if (!llvm::isa<mlir::VectorType>(lanes.getType()))
      return lanes;
    return mlir::vector::ReductionOp::create(b, b.loc, mlir::vector::CombiningKind::OR, lanes);
  }
  /// The count as f32 (or a vector of it), rounded to nearest, ties to even.
  mlir::Value asFloat(mlir::Type type, mlir::OpFoldResult count) {
    if (auto known = mlir::getConstantIntValue(count))
      return b.number(type, float(*known));
    mlir::Value number =
        mlir::arith::SIToFPOp::create(b, b.loc, b.getF32Type(), llvm::cast<mlir::Value>(count));
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(type))
      return b.broadcast(number, vector.getDimSize(0));
    return number;
  }
  mlir::Value finish(mlir::Value x, mlir::OpFoldResult count, mlir::Value factor) {
    if (kind == optim::Reduction::Mean || kind == optim::Reduction::Rms)
      x = mlir::arith::DivFOp::create(b, b.loc, x, asFloat(x.getType(), count));
    if (!squares())
      return x;
    x = mlir::math::SqrtOp::create(b, b.loc, x);
    return multiply(x, factor);
  }

  mlir::Value tail, partials;
};

} // namespace stepc::kernels

#endif
