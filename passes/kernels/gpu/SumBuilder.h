//===- SumBuilder.h - Exact sums by a GPU's threads -------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_GPU_SUMBUILDER_H
#define STEPC_PASSES_KERNELS_GPU_SUMBUILDER_H

#include "passes/kernels/gpu/BlockBuilder.h"
#include "runtime/sums/Accumulator.h"

namespace stepc::kernels {

/// Builds kernels that add up without losing a bit, as runtime/sums does on a CPU. A sweep splits terms into
/// integers of kWordBits bits below a common power of two (runtime/sums/Sweep.h). Sums have 32-bit digits
/// that are carried at the end alone. Until then a digit is an i64, to which fewer than 2^31 numbers of 32
/// bits are added.
class SumBuilder : public BlockBuilder {
public:
  SumBuilder(mlir::MLIRContext *context, mlir::Location loc, sums::Terms terms)
      : BlockBuilder(context, loc), terms(terms), kDigits(sums::digitsOf(terms)) {}

  //===--- integers and numbers ---===//
  Value word(int64_t value) { return mlir::arith::ConstantIntOp::create(*this, loc, value, 32); }
  Value integer(Value like, int64_t value) {
    return mlir::arith::ConstantOp::create(*this, loc, getIntegerAttr(like.getType(), value));
  }
  Value real(double value) {
    return mlir::arith::ConstantOp::create(*this, loc, getF64FloatAttr(value));
  }
  Value either(Value a, Value b) { return mlir::arith::OrIOp::create(*this, loc, a, b); }
  Value masked(Value a, int64_t mask) { return both(a, integer(a, mask)); }
  Value left(Value a, Value bits) { return mlir::arith::ShLIOp::create(*this, loc, a, bits); }
  Value left(Value a, int64_t bits) { return left(a, integer(a, bits)); }
  Value right(Value a, Value bits) { return mlir::arith::ShRUIOp::create(*this, loc, a, bits); }
  Value right(Value a, int64_t bits) { return right(a, integer(a, bits)); }
  Value signedRight(Value a, Value bits) {
    return mlir::arith::ShRSIOp::create(*this, loc, a, bits);
  }
  Value signedRight(Value a, int64_t bits) { return signedRight(a, integer(a, bits)); }
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, int64_t b) {
    return mlir::arith::CmpIOp::create(*this, loc, predicate, a, integer(a, b));
  }
  Value equal(Value a, int64_t b) { return compare(mlir::arith::CmpIPredicate::eq, a, b); }
  Value differs(Value a, int64_t b) { return compare(mlir::arith::CmpIPredicate::ne, a, b); }
  Value select(Value condition, Value a, Value b) {
    return mlir::arith::SelectOp::create(*this, loc, condition, a, b);
  }
  Value bits(mlir::Type type, Value a) {
    return mlir::arith::BitcastOp::create(*this, loc, type, a);
  }
  Value wide(Value a) { return mlir::arith::ExtUIOp::create(*this, loc, getI64Type(), a); }
  Value signedWide(Value a) { return mlir::arith::ExtSIOp::create(*this, loc, getI64Type(), a); }
  Value low(Value a) { return mlir::arith::TruncIOp::create(*this, loc, getI32Type(), a); }

  //===--- a warp ---===//
  /// Exchanges an i64 as `exchange` does.
  Value exchangeWide(Value x, int32_t lanes);
  using Combine = llvm::function_ref<Value(Value, Value)>;
  /// Combines the values of all lanes; every lane gets the result. The values are i32, or i64.
  Value overWarp(Value x, Combine combine);

  //===--- sums ---===//
  /// A sum that is under way: its digits, each an i64, and flags for what was not finite (Accumulator.h). A
  /// warp may share a sum. Then lane i has digit i.
  struct Sum {
    llvm::SmallVector<Value> digits;
    Value flags;
    llvm::SmallVector<Value> values() const {
      llvm::SmallVector<Value> all(digits);
      all.push_back(flags);
      return all;
    }
    static Sum of(mlir::ValueRange values) {
      return {llvm::to_vector(values.drop_back()), values.back()};
    }
  };
  /// A sum of nothing, of a warp or of a thread.
  Sum ofWarp() { return {{constant(0)}, word(0)}; }
  Sum ofThread() { return {llvm::SmallVector<Value>(kDigits, constant(0)), word(0)}; }
  /// Builds number i of some, as f32. Called several times.
  using NumberAt = llvm::function_ref<Value(Value)>;
  /// Adds `count` numbers of each lane of a warp. All lanes must come here.
  Sum addOfWarp(const Sum &sum, int64_t count, NumberAt number);
  /// Adds `count` numbers of a thread.
  Sum addOfThread(const Sum &sum, Value count, NumberAt number);
  /// The sum that a warp shares, for each lane.
  Sum spread(const Sum &sum);
  /// The digits, each an i32, of an Accumulator.
  llvm::SmallVector<Value> carried(const Sum &sum);
  /// The sum as f64, rounded once, from the digits of an Accumulator.
  Value total(mlir::ValueRange digits);

private:
  /// The parts of a term that a sweep takes, and what it leaves.
  struct Taken {
    llvm::SmallVector<Value> words;
    Value rest;
  };
  Value term(Value number);
  Taken take(Value scaled);
  /// The term behind `sweeps` sweeps, scaled for the next.
  Value skip(Value scaled, Value sweeps);
  Value magnitude(Value number);
  /// The power of two that terms of numbers up to this magnitude are below, and the factor that scales them.
  Value topOf(Value magnitude);
  Value scaleOf(Value top);
  /// Flags of a number that is not finite.
  Value flagOf(Value number);
  /// What word · 2^exponent adds to digit `digit`.
  Value pieceOf(Value word, Value exponent, Value digit);
  /// Takes `count` terms behind `sweeps` sweeps: the sums of their parts, and at the end bits that are 0 if
  /// nothing is left of any term.
  llvm::SmallVector<Value> takeAll(Value count, Value scale, Value sweeps, NumberAt number);
  Value topBehind(Value top, Value sweeps);
  Value anyBits(Value number);
  /// Whether another sweep follows.
  Value isLeft(Value rests, Value sweeps);

  /// More sweeps than any terms need: the bits of a sum are fewer than those of 8 sweeps.
  static constexpr int64_t kMostSweeps = 8;

  const sums::Terms terms;

public:
  const int kDigits;
};

} // namespace stepc::kernels

#endif
