//===- BitArithmetic.h - Floats by their bits -------------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_BITARITHMETIC_H
#define STEPC_PASSES_KERNELS_BITARITHMETIC_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/bit.h"

namespace stepc::kernels {

/// Builds arithmetic on integers and floats of one width, on scalars or on vectors of one shape.
struct Bits {
  mlir::PatternRewriter &b;
  mlir::Location loc;
  mlir::Type shape;  // the float type that gives the shape
  bool wide = false; // f64 and i64; otherwise f32 and i32
  bool fuses = true; // for f64: whether the chip has a fused multiply-add

  mlir::Type withElement(mlir::Type element) const {
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(shape))
      return vector.clone(element);
    return element;
  }
  mlir::Type integers() const { return withElement(b.getIntegerType(wide ? 64 : 32)); }
  mlir::Type floats() const { return withElement(wide ? b.getF64Type() : b.getF32Type()); }
  mlir::Value splat(mlir::Type type, mlir::TypedAttr attribute) const {
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(type))
      attribute = mlir::DenseElementsAttr::get(vector, attribute);
    return mlir::arith::ConstantOp::create(b, loc, attribute);
  }
  mlir::Value number(int64_t value) const {
    unsigned width = wide ? 64 : 32;
    llvm::APInt bits(width, uint64_t(value), /*isSigned=*/true, /*implicitTrunc=*/true);
    return splat(integers(), b.getIntegerAttr(b.getIntegerType(width), bits));
  }
  mlir::Value bits(mlir::Value v) const {
    return mlir::arith::BitcastOp::create(b, loc, integers(), v);
  }
  mlir::Value real(mlir::Value v) const {
    return mlir::arith::BitcastOp::create(b, loc, floats(), v);
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
  /// Half of a signed number, rounded down (an arithmetic shift).
  mlir::Value halved(mlir::Value v) const {
    return mlir::arith::ShRSIOp::create(b, loc, v, number(1));
  }
  mlir::Value minus(mlir::Value v, mlir::Value w) const {
    return mlir::arith::SubIOp::create(b, loc, v, w);
  }
  mlir::Value choose(mlir::Value c, mlir::Value v, mlir::Value w) const {
    return mlir::arith::SelectOp::create(b, loc, c, v, w);
  }

  mlir::Value constant(double value) const {
    return splat(floats(), b.getFloatAttr(getElementTypeOrSelf(floats()), value));
  }
  mlir::Value product(mlir::Value v, mlir::Value w) const {
    return mlir::arith::MulFOp::create(b, loc, v, w);
  }
  mlir::Value sum(mlir::Value v, mlir::Value w) const {
    return mlir::arith::AddFOp::create(b, loc, v, w);
  }
  mlir::Value difference(mlir::Value v, mlir::Value w) const {
    return mlir::arith::SubFOp::create(b, loc, v, w);
  }
  mlir::Value negative(mlir::Value v) const { return mlir::arith::NegFOp::create(b, loc, v); }
  mlir::Value absolute(mlir::Value v) const { return mlir::math::AbsFOp::create(b, loc, v); }
  /// v · w + u, rounded once.
  mlir::Value fused(mlir::Value v, mlir::Value w, mlir::Value u) const {
    return mlir::math::FmaOp::create(b, loc, v, w, u);
  }
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value v, mlir::Value w) const {
    return mlir::arith::CmpFOp::create(b, loc, predicate, v, w);
  }
  mlir::Value toInteger(mlir::Value v) const {
    return mlir::arith::FPToSIOp::create(b, loc, integers(), v);
  }
  mlir::Value toFloat(mlir::Value v) const {
    return mlir::arith::SIToFPOp::create(b, loc, floats(), v);
  }
};

} // namespace stepc::kernels

#endif
