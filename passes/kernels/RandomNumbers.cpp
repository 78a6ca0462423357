//===- RandomNumbers.cpp - Code that draws random numbers ------------------===//
//
// All operations are on integers but the last two of a number, so every target gets the same bits.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/RandomNumbers.h"

#include "runtime/random/Philox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Words of 32 bits, or vectors of them.
class Words {
public:
  /// With `hasWideLanes` Philox keeps words in lanes of 64 bits, of which the upper halves mean nothing: a
  /// CPU's vectors multiply the lower halves of such lanes. A GPU has registers of 32 bits.
  Words(OpBuilder &builder, Location loc, Type like, bool hasWideLanes = false)
      : builder(builder), loc(loc), hasWideLanes(hasWideLanes) {
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
  Value upper(Value word) { return lower(shifted(word, 32)); }
  Value shifted(Value word, unsigned bits) {
    return arith::ShRUIOp::create(builder, loc, word,
                                  constant(getElementTypeOrSelf(word.getType()), bits));
  }
  Value differ(Value a, Value b) { return arith::XOrIOp::create(builder, loc, a, b); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Type i32() { return builder.getI32Type(); }
  Type i64() { return builder.getI64Type(); }

  std::array<Value, 4> philox(std::array<Value, 4> counter, std::array<Value, 2> key) {
    Value mask = hasWideLanes ? constant(i64(), 0xFFFFFFFF) : Value();
    auto word = [&](Value of) { return hasWideLanes ? of : lower(of); };
    if (hasWideLanes)
      for (Value &each : counter)
        each = wide(each);
    for (int round = 0; round < random::kRounds; ++round) {
      std::array<Value, 2> product, keys;
      for (size_t i = 0; i < 2; ++i) {
        Value from = counter[2 * i];
        from =
            hasWideLanes ? arith::AndIOp::create(builder, loc, from, mask).getResult() : wide(from);
        product[i] =
            arith::MulIOp::create(builder, loc, from, constant(i64(), random::kFactors[i]));
        // The key is one for all elements, so its sums are of scalars.
        Value growth = arith::ConstantOp::create(
            builder, loc, builder.getI32IntegerAttr(int32_t(uint32_t(round) * random::kGrowth[i])));
        Value grown = arith::AddIOp::create(builder, loc, key[i], growth);
        if (hasWideLanes)
          grown = arith::ExtUIOp::create(builder, loc, i64(), grown);
        keys[i] = spread(grown);
      }
      auto mixed = [&](size_t i, Value with) {
        return differ(differ(word(shifted(product[i], 32)), with), keys[1 - i]);
      };
      counter = {mixed(1, counter[1]), word(product[1]), mixed(0, counter[3]), word(product[0])};
    }
    if (hasWideLanes)
      for (Value &each : counter)
        each = lower(each);
    return counter;
  }

  /// random::keyFor
  std::array<Value, 2> keys(const DrawOperands &operands) {
    Words scalars(builder, loc, operands.key.getType());
    Value seed = scalars.joined(operands.high, operands.low);
    return {scalars.differ(seed, scalars.upper(operands.key)), scalars.lower(operands.key)};
  }
  /// A word from its halves, scalars of f32.
  Value joined(Value high, Value low) {
    auto whole = [&](Value half) { return arith::FPToSIOp::create(builder, loc, i32(), half); };
    Value upper = arith::ShLIOp::create(builder, loc, whole(high), constant(i32(), 16));
    return arith::OrIOp::create(builder, loc, upper, whole(low));
  }
  /// The four words of each position, an i64, and counter, an i32.
  std::array<Value, 4> drawn(Value position, const DrawOperands &operands, Value counter) {
    Value step = spread(Words(builder, loc, i32()).joined(operands.stepHigh, operands.stepLow));
    return philox({lower(position), upper(position), step, counter}, keys(operands));
  }
  /// Integers in units of 2^-bits, as numbers.
  Value scaled(Value sum, int bits) {
    Type f32 = typeOf(builder.getF32Type());
    TypedAttr unit = builder.getF32FloatAttr(1.0f / float(1 << bits));
    if (auto vector = dyn_cast<VectorType>(f32))
      unit = DenseElementsAttr::get(vector, unit);
    Value number = arith::SIToFPOp::create(builder, loc, f32, sum);
    return arith::MulFOp::create(builder, loc, number,
                                 arith::ConstantOp::create(builder, loc, unit));
  }
  OpBuilder &builder;
  Location loc;

private:
  bool hasWideLanes;
  SmallVector<int64_t> shape;
};

/// Whether elements are a vector of a CPU's kernel. A GPU's kernels have vectors of 8 elements.
bool isOfCpu(Value element) {
  auto vector = dyn_cast<VectorType>(element.getType());
  return vector && vector.getNumElements() >= 16;
}

/// The first counter of a call.
int32_t counterOf(uint32_t call) { return int32_t(random::kCountersOfCall * call); }

Value emitNormal(Words &words, Value element, const DrawOperands &operands, uint32_t call) {
  Value sum = words.constant(words.i32(),
                             random::kNormalMean - (random::kNormalMean << random::kUniformBits));
  for (int32_t i = 0; i < random::kNormalCounters; ++i)
    for (Value word :
         words.drawn(element, operands, words.constant(words.i32(), counterOf(call) + i)))
      sum = words.add(sum, words.shifted(word, 32 - random::kUniformBits));
  return words.scaled(sum, random::kUniformBits);
}

/// The bits of uniform numbers.
class UniformBits {
public:
  UniformBits(OpBuilder &builder, Location loc, plan::Draw draw, Value element,
              const DrawOperands &operands)
      : b(builder), loc(loc), draw(draw), element(element), operands(operands),
        words(builder, loc, element.getType(), isOfCpu(element)) {}

  /// If a vector begins with the first element of a counter, each counter is computed once for the elements
  /// that share it, and those of these calls are one vector.
  SmallVector<Value> emit(ArrayRef<uint32_t> calls, bool isAligned) {
    auto vector = dyn_cast<VectorType>(element.getType());
    if (!vector || vector.getNumElements() % sharing != 0)
      return emitOfEach(calls);
    Value first = vector::ExtractOp::create(b, loc, element, int64_t(0));
    if (isAligned)
      return emitShared(calls, first, vector.getNumElements() / sharing);
    Value number = arith::AndIOp::create(b, loc, first, number64(sharing - 1));
    Value isShared = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, number64(0));
    SmallVector<Type> types(calls.size(), words.typeOf(words.i32()));
    auto choice = scf::IfOp::create(b, loc, types, isShared, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    scf::YieldOp::create(b, loc, emitShared(calls, first, vector.getNumElements() / sharing));
    b.setInsertionPointToStart(choice.elseBlock());
    scf::YieldOp::create(b, loc, emitOfEach(calls));
    return choice.getResults();
  }

private:
  Value number64(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  }
  Value vectorOf(Type element, int64_t lanes, function_ref<int64_t(int64_t)> value) {
    auto type = VectorType::get(lanes, element);
    SmallVector<Attribute> values;
    for (int64_t lane = 0; lane < lanes; ++lane)
      values.push_back(b.getIntegerAttr(element, value(lane)));
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, values));
  }
  Value alternate(Value even, Value odd) { return vector::InterleaveOp::create(b, loc, even, odd); }

  /// For `count` counters of each call, from that of the element `first`.
  SmallVector<Value> emitShared(ArrayRef<uint32_t> calls, Value first, int64_t count) {
    // A CPU computes whole vectors, some lanes of which nobody reads.
    bool isCpu = isOfCpu(element);
    int64_t lanes = count * int64_t(calls.size());
    lanes = isCpu ? std::max<int64_t>(4, int64_t(llvm::PowerOf2Ceil(uint64_t(lanes)))) : lanes;
    Value offsets = vectorOf(words.i64(), lanes, [&](int64_t lane) { return lane % count; });
    Value counters = vectorOf(words.i32(), lanes, [&](int64_t lane) {
      return counterOf(calls[std::min(size_t(lane / count), calls.size() - 1)]);
    });
    Value begin = arith::ShRUIOp::create(b, loc, first, number64(llvm::Log2_32(sharing)));
    Value position = arith::AddIOp::create(
        b, loc, vector::BroadcastOp::create(b, loc, offsets.getType(), begin), offsets);
    std::array<Value, 4> drawn =
        Words(b, loc, offsets.getType(), isCpu).drawn(position, operands, counters);
    SmallVector<Value> bits;
    for (size_t call = 0; call < calls.size(); ++call) {
      auto part = [&](Value of) -> Value {
        return vector::ExtractStridedSliceOp::create(b, loc, of, int64_t(call) * count, count,
                                                     int64_t(1));
      };
      Value even = alternate(part(drawn[0]), part(drawn[2])),
            odd = alternate(part(drawn[1]), part(drawn[3])), all = alternate(even, odd);
      bits.push_back(random::perWord(draw) == 1 ? upperBits(all)
                                                : alternate(lowerHalf(all), upperBits(all)));
    }
    return bits;
  }

  /// The counters are those of the elements, and of each only one number is taken.
  SmallVector<Value> emitOfEach(ArrayRef<uint32_t> calls) {
    Value position = words.shifted(element, llvm::Log2_32(sharing));
    auto constant = [&](int32_t value) { return words.constant(words.i32(), value); };
    auto choose = [&](Value number, int32_t which, Value yes, Value no) -> Value {
      Value isIt = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, constant(which));
      return arith::SelectOp::create(b, loc, isIt, yes, no);
    };
    Value number =
        arith::AndIOp::create(b, loc, words.lower(element), constant(int32_t(sharing - 1)));
    SmallVector<Value> bits;
    for (uint32_t call : calls) {
      std::array<Value, 4> drawn = words.drawn(position, operands, constant(counterOf(call)));
      bool isWhole = random::perWord(draw) == 1;
      Value which = isWhole ? number : words.shifted(number, 1), taken = drawn[0];
      for (int32_t i = 1; i < random::kWords; ++i)
        taken = choose(which, i, drawn[size_t(i)], taken);
      if (isWhole) {
        bits.push_back(upperBits(taken));
        continue;
      }
      Value half = arith::AndIOp::create(b, loc, number, constant(1));
      bits.push_back(choose(half, 0, lowerHalf(taken), upperBits(taken)));
    }
    return bits;
  }

  Value upperBits(Value word) {
    return Words(b, loc, word.getType()).shifted(word, unsigned(32 - random::bitsOf(draw)));
  }
  Value lowerHalf(Value word) {
    return arith::AndIOp::create(b, loc, word,
                                 Words(b, loc, word.getType()).constant(words.i32(), 0xFFFF));
  }

  OpBuilder &b;
  Location loc;
  plan::Draw draw;
  Value element;
  const DrawOperands &operands;
  Words words;
  int64_t sharing = random::sharing(draw);
};

/// The integer of which Words::scaled made a number of 16 bits. Null for other values.
Value integerOf(Value number) {
  auto scaled = number.getDefiningOp<arith::MulFOp>();
  auto integer = scaled ? scaled.getLhs().getDefiningOp<arith::SIToFPOp>() : arith::SIToFPOp();
  FloatAttr unit;
  bool isUnit = integer && matchPattern(scaled.getRhs(), m_Constant(&unit));
  if (DenseElementsAttr units;
      integer && !isUnit && matchPattern(scaled.getRhs(), m_Constant(&units)) && units.isSplat()) {
    unit = units.getSplatValue<FloatAttr>();
    isUnit = true;
  }
  bool isOurs = isUnit && unit.getValueAsDouble() == 0x1p-16 &&
                getElementTypeOrSelf(integer.getIn()).isInteger(32);
  return isOurs ? integer.getIn() : Value();
}

} // namespace

DrawOperands operandsOf(optim::RandomOp op, function_ref<Value(Value)> given) {
  return {given(op.getHigh()),
          given(op.getLow()),
          given(op.getStepHigh()),
          given(op.getStepLow()),
          op.getCondition() ? given(op.getCondition()) : Value(),
          given(op.getKey())};
}

size_t callsAtOnce(plan::Draw draw, Value element) {
  constexpr int64_t kLanes = 8; // of 64 bits
  if (draw == plan::Draw::Normal || !isOfCpu(element))
    return 1;
  int64_t counters = cast<VectorType>(element.getType()).getNumElements() / random::sharing(draw);
  return size_t(std::max<int64_t>(1, kLanes / counters));
}

SmallVector<Value> emitNumbers(OpBuilder &builder, Location loc, plan::Draw draw, Value element,
                               const DrawOperands &operands, ArrayRef<uint32_t> calls,
                               bool isAligned) {
  Words words(builder, loc, element.getType(), isOfCpu(element));
  SmallVector<Value> numbers;
  if (draw == plan::Draw::Normal) {
    for (uint32_t call : calls)
      numbers.push_back(emitNormal(words, element, operands, call));
    return numbers;
  }
  for (Value bits : UniformBits(builder, loc, draw, element, operands).emit(calls, isAligned))
    numbers.push_back(words.scaled(bits, random::bitsOf(draw)));
  return numbers;
}

Value emitStochastic(OpBuilder &builder, Location loc, Value source, Value uniform) {
  Words words(builder, loc, source.getType());
  Type i32 = words.typeOf(words.i32());
  Value half = integerOf(uniform);
  if (!half) {
    TypedAttr scale = builder.getF32FloatAttr(0x1p16f);
    if (auto vector = dyn_cast<VectorType>(source.getType()))
      scale = DenseElementsAttr::get(vector, scale);
    Value scaled = arith::MulFOp::create(builder, loc, uniform,
                                         arith::ConstantOp::create(builder, loc, scale));
    half = arith::FPToSIOp::create(builder, loc, i32, scaled);
  }
  Value bits = arith::BitcastOp::create(builder, loc, i32, source);
  // A carry into the upper bits moves the number away from zero. The lower bits of infinity are 0, so nothing
  // carries there.
  Value carried = words.add(bits, half);
  Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, source, source);
  Value nan = words.constant(words.i32(), 0x7FC00000);
  Value chosen = arith::SelectOp::create(builder, loc, isNaN, nan, carried);
  Value rounded = arith::TruncIOp::create(builder, loc, words.typeOf(builder.getI16Type()),
                                          words.shifted(chosen, 16));
  return arith::BitcastOp::create(builder, loc, words.typeOf(builder.getBF16Type()), rounded);
}

} // namespace stepc::kernels
