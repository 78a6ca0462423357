//===- BitArithmetic.h - Floats by their bits -------------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_BITARITHMETIC_H
#define STEPC_PASSES_KERNELS_BITARITHMETIC_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/bit.h"

namespace stepc::kernels {

/// Integer arithmetic on scalars or vectors of one shape.
struct Bits {
  mlir::PatternRewriter &b;
  mlir::Location loc;
  mlir::Type shape; // the float type that gives the shape

  mlir::Type withElement(mlir::Type element) const {
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(shape))
      return vector.clone(element);
    return element;
  }
  mlir::Type i32() const { return withElement(b.getI32Type()); }
  mlir::Value number(int64_t value) const {
    mlir::TypedAttr attribute = b.getI32IntegerAttr(int32_t(value));
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(i32()))
      attribute = mlir::DenseElementsAttr::get(vector, attribute);
    return mlir::arith::ConstantOp::create(b, loc, attribute);
  }
  mlir::Value bits(mlir::Value v) const { return mlir::arith::BitcastOp::create(b, loc, i32(), v); }
  mlir::Value real(mlir::Value v) const {
    return mlir::arith::BitcastOp::create(b, loc, withElement(b.getF32Type()), v);
  }
  mlir::Value both(mlir::Value v, int64_t m) const {
    return mlir::arith::AndIOp::create(b, loc, v, number(m));
  }
  mlir::Value either(mlir::Value v, mlir::Value w) const {
    return mlir::arith::OrIOp::create(b, loc, v, w);
  }
  mlir::Value left(mlir::Value v, int64_t n) const {
    return mlir::arith::ShLIOp::create(b, loc, v, number(n));
  }
  mlir::Value right(mlir::Value v, int64_t n) const {
    return mlir::arith::ShRUIOp::create(b, loc, v, number(n));
  }
  mlir::Value plus(mlir::Value v, mlir::Value w) const {
    return mlir::arith::AddIOp::create(b, loc, v, w);
  }
  mlir::Value less(mlir::Value v, int64_t n) const {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::ult, v, number(n));
  }
  /// Signed numbers, arithmetic shift.
  mlir::Value halved(mlir::Value v) const {
    return mlir::arith::ShRSIOp::create(b, loc, v, number(1));
  }
  mlir::Value minus(mlir::Value v, mlir::Value w) const {
    return mlir::arith::SubIOp::create(b, loc, v, w);
  }
  mlir::Value choose(mlir::Value c, mlir::Value v, mlir::Value w) const {
    return mlir::arith::SelectOp::create(b, loc, c, v, w);
  }

  mlir::Value constant(float value) const {
    return real(number(int32_t(llvm::bit_cast<uint32_t>(value))));
  }
  mlir::Value product(mlir::Value v, mlir::Value w) const {
    return mlir::arith::MulFOp::create(b, loc, v, w);
  }
  mlir::Value sum(mlir::Value v, mlir::Value w) const {
    return mlir::arith::AddFOp::create(b, loc, v, w);
  }
  /// v · w + u, rounded once.
  mlir::Value fused(mlir::Value v, mlir::Value w, mlir::Value u) const {
    return mlir::math::FmaOp::create(b, loc, v, w, u);
  }
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value v, mlir::Value w) const {
    return mlir::arith::CmpFOp::create(b, loc, predicate, v, w);
  }
  mlir::Value toInteger(mlir::Value v) const {
    return mlir::arith::FPToSIOp::create(b, loc, i32(), v);
  }
  mlir::Value toFloat(mlir::Value v) const {
    return mlir::arith::SIToFPOp::create(b, loc, withElement(b.getF32Type()), v);
  }
};

} // namespace stepc::kernels

#endif
