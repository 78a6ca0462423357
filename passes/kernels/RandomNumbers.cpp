//===- RandomNumbers.cpp - Code that draws random numbers ------------------===//
//
// All operations are on integers but the last two, so every target gets the same bits.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/RandomNumbers.h"

#include "runtime/random/Philox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Words of 32 bits, or vectors of them.
class Words {
public:
  Words(OpBuilder &builder, Location loc, Type like) : builder(builder), loc(loc) {
    if (auto vector = dyn_cast<VectorType>(like))
      shape = llvm::to_vector(vector.getShape());
  }

  Type typeOf(Type element) const {
    return shape.empty() ? element : VectorType::get(shape, element);
  }
  Value constant(Type element, int64_t value) {
    TypedAttr number = builder.getIntegerAttr(element, value);
    if (!shape.empty())
      number = DenseElementsAttr::get(cast<ShapedType>(typeOf(element)), number);
    return arith::ConstantOp::create(builder, loc, number);
  }
  Value spread(Value scalar) {
    return shape.empty()
               ? scalar
               : vector::BroadcastOp::create(builder, loc, typeOf(scalar.getType()), scalar);
  }
  Value wide(Value word) { return arith::ExtUIOp::create(builder, loc, typeOf(i64()), word); }
  Value lower(Value word) { return arith::TruncIOp::create(builder, loc, typeOf(i32()), word); }
  Value upper(Value word) {
    return lower(arith::ShRUIOp::create(builder, loc, word, constant(i64(), 32)));
  }
  Value differ(Value a, Value b) { return arith::XOrIOp::create(builder, loc, a, b); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Type i32() { return builder.getI32Type(); }
  Type i64() { return builder.getI64Type(); }

  std::array<Value, 4> philox(std::array<Value, 4> counter, std::array<Value, 2> key) {
    for (int round = 0; round < random::kRounds; ++round) {
      std::array<Value, 2> product, keys;
      for (size_t i = 0; i < 2; ++i) {
        product[i] = arith::MulIOp::create(builder, loc, wide(counter[2 * i]),
                                           constant(i64(), random::kFactors[i]));
        // The key is one for all elements, so its sums are of scalars.
        Value growth = arith::ConstantOp::create(
            builder, loc, builder.getI32IntegerAttr(int32_t(uint32_t(round) * random::kGrowth[i])));
        keys[i] = spread(arith::AddIOp::create(builder, loc, key[i], growth));
      }
      counter = {differ(differ(upper(product[1]), counter[1]), keys[0]), lower(product[1]),
                 differ(differ(upper(product[0]), counter[3]), keys[1]), lower(product[0])};
    }
    return counter;
  }

private:
  OpBuilder &builder;
  Location loc;
  SmallVector<int64_t> shape;
};

} // namespace

Value emitSeed(OpBuilder &builder, Location loc, Value high, Value low) {
  Type i32 = builder.getI32Type();
  Value sixteen = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(16));
  Value upper = arith::ShLIOp::create(builder, loc,
                                      arith::FPToSIOp::create(builder, loc, i32, high), sixteen);
  return arith::OrIOp::create(builder, loc, upper, arith::FPToSIOp::create(builder, loc, i32, low));
}

Value emitNormal(OpBuilder &builder, Location loc, Value element, Value seed, Value key,
                 uint32_t call) {
  Words words(builder, loc, element.getType());
  Words scalars(builder, loc, key.getType());
  Type i32 = builder.getI32Type();
  // random::keyFor
  std::array<Value, 2> keys = {scalars.differ(seed, scalars.upper(key)), scalars.lower(key)};
  Value sum =
      words.constant(i32, random::kNormalMean - (random::kNormalMean << random::kUniformBits));
  for (uint32_t i = 0; i < random::kNormalCounters; ++i) {
    std::array<Value, 4> counter = {
        words.lower(element), words.upper(element), words.constant(i32, /*step=*/1),
        words.constant(i32, int32_t(random::kCountersOfCall * call + i))};
    for (Value word : words.philox(counter, keys)) {
      Value unused = words.constant(i32, 32 - random::kUniformBits);
      sum = words.add(sum, arith::ShRUIOp::create(builder, loc, word, unused));
    }
  }
  Type f32 = words.typeOf(builder.getF32Type());
  TypedAttr unit = builder.getF32FloatAttr(1.0f / (1 << random::kUniformBits));
  if (auto vector = dyn_cast<VectorType>(f32))
    unit = DenseElementsAttr::get(vector, unit);
  Value number = arith::SIToFPOp::create(builder, loc, f32, sum);
  return arith::MulFOp::create(builder, loc, number, arith::ConstantOp::create(builder, loc, unit));
}

} // namespace stepc::kernels
