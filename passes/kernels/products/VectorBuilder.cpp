//===- VectorBuilder.cpp - Vectors of the storage types --------------------===//

#include "passes/kernels/products/VectorBuilder.h"
#include "stepc/kernel_abi.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace stepc::kernels {

Value VectorBuilder::quotient(Value a, int64_t b) {
  return b == 1 ? a : Value(arith::DivUIOp::create(*this, loc, a, constant(b)));
}
Value VectorBuilder::remainder(Value a, int64_t b) {
  return arith::RemUIOp::create(*this, loc, a, constant(b));
}
Value VectorBuilder::atMost(Value a, Value b) {
  return arith::CmpIOp::create(*this, loc, arith::CmpIPredicate::sle, a, b);
}

Value VectorBuilder::choose(Value condition, function_ref<Value()> then,
                            function_ref<Value()> otherwise) {
  return scf::IfOp::create(
             *this, loc, condition,
             [&](OpBuilder &, Location) { scf::YieldOp::create(*this, loc, then()); },
             [&](OpBuilder &, Location) { scf::YieldOp::create(*this, loc, otherwise()); })
      .getResult(0);
}

Value VectorBuilder::fold(Value first, Value last, int64_t step, Value start,
                          function_ref<Value(Value, Value)> body) {
  auto forOp = scf::ForOp::create(*this, loc, first, last, constant(step), ValueRange{start});
  InsertionGuard guard(*this);
  setInsertionPointToStart(forOp.getBody());
  Value next = body(forOp.getInductionVar(), forOp.getRegionIterArgs()[0]);
  scf::YieldOp::create(*this, loc, next);
  return forOp.getResult(0);
}

Value VectorBuilder::number(Type type, float value) {
  TypedAttr attr = getF32FloatAttr(value);
  if (auto vectorType = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vectorType, attr);
  return arith::ConstantOp::create(*this, loc, attr);
}

std::pair<Value, Value> VectorBuilder::factors(Value word) {
  static_assert(sizeof(stepc_factors) == 8 && offsetof(stepc_factors, beta) == 4);
  static_assert(sizeof(stepc_shift) == 8);
  Value both = LLVM::PtrToIntOp::create(*this, loc, getI64Type(), word);
  auto number = [&](Value bits) -> Value {
    Value low = arith::TruncIOp::create(*this, loc, getI32Type(), bits);
    return arith::BitcastOp::create(*this, loc, getF32Type(), low);
  };
  return {number(both), number(arith::ShRUIOp::create(*this, loc, both, constant(32)))};
}

Value VectorBuilder::scaled(Value x, Value factor) {
  if (auto type = dyn_cast<VectorType>(x.getType()))
    factor = broadcast(factor, type.getDimSize(0));
  return arith::MulFOp::create(*this, loc, x, factor);
}

/// A vector of `lanes` elements of a type, or the type itself if `lanes` is 0.
static Type lanesOf(Type type, int64_t lanes) {
  return lanes ? Type(VectorType::get({lanes}, type)) : type;
}

/// A splat of an integer constant, shaped like `type`.
static Value integer(VectorBuilder &builder, Type type, int64_t value) {
  TypedAttr attr = builder.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vectorType = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vectorType, attr);
  return arith::ConstantOp::create(builder, builder.loc, attr);
}

Value VectorBuilder::read(Type type, Value from, int64_t lanes, Value mask) {
  Type memory = memoryType(type), stored = lanesOf(memory, lanes);
  unsigned alignment = memory.getIntOrFloatBitWidth() / 8;
  Value bits;
  if (mask) {
    Value zero = LLVM::ZeroOp::create(*this, loc, stored);
    bits = LLVM::MaskedLoadOp::create(*this, loc, stored, from, mask, zero, alignment);
  } else {
    bits = load(stored, from, alignment);
  }
  return extend(type, bits);
}

/// The number of lanes of a vector, or 0 if the value is no vector.
static int64_t lanesIn(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  return type ? type.getDimSize(0) : 0;
}

Value VectorBuilder::extend(Type type, Value bits) {
  if (type.isF32())
    return bits;
  int64_t lanes = lanesIn(bits);
  Type wide = lanesOf(getF32Type(), lanes);
  if (type.isF16()) {
    Value half = arith::BitcastOp::create(*this, loc, lanesOf(type, lanes), bits);
    return arith::ExtFOp::create(*this, loc, wide, half);
  }
  Type integers = lanesOf(getI32Type(), lanes);
  Value high = arith::ShLIOp::create(*this, loc, arith::ExtUIOp::create(*this, loc, integers, bits),
                                     integer(*this, integers, 16));
  return arith::BitcastOp::create(*this, loc, wide, high);
}

/// The upper halves of f32 rounded to nearest even, NaN as 0x7fc0. Integer arithmetic, because some
/// chips' own instruction flushes denormals.
static Value roundToBF16(VectorBuilder &builder, Value value) {
  Location loc = builder.loc;
  int64_t lanes = lanesIn(value);
  Type words = lanesOf(builder.getI32Type(), lanes), halves = lanesOf(builder.getI16Type(), lanes);
  Value bits = arith::BitcastOp::create(builder, loc, words, value);
  Value sixteen = integer(builder, words, 16);
  Value odd =
      arith::AndIOp::create(builder, loc, arith::ShRUIOp::create(builder, loc, bits, sixteen),
                            integer(builder, words, 1));
  Value up = arith::AddIOp::create(builder, loc, odd, integer(builder, words, 0x7fff));
  Value rounded =
      arith::ShRUIOp::create(builder, loc, arith::AddIOp::create(builder, loc, bits, up), sixteen);
  Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, value, value);
  Value result =
      arith::SelectOp::create(builder, loc, isNaN, integer(builder, words, 0x7fc0), rounded);
  return arith::TruncIOp::create(builder, loc, halves, result);
}

Value VectorBuilder::narrow(Type type, Value value) {
  if (type.isBF16())
    return roundToBF16(*this, value);
  if (type.isF32())
    return value;
  int64_t lanes = lanesIn(value);
  value = arith::TruncFOp::create(*this, loc, lanesOf(type, lanes), value);
  return arith::BitcastOp::create(*this, loc, lanesOf(getI16Type(), lanes), value);
}

void VectorBuilder::write(Type type, Value value, Value to, Value mask) {
  value = narrow(type, value);
  unsigned alignment = memoryType(type).getIntOrFloatBitWidth() / 8;
  if (mask)
    LLVM::MaskedStoreOp::create(*this, loc, value, to, mask, alignment);
  else
    store(value, to, alignment);
}

Value VectorBuilder::lanesBelow(Value first, Value last, int64_t lanes) {
  // Compares i32, so that a mask is one comparison of a register. Distances are clamped to 0 … lanes, so
  // that they fit.
  Value distance = smaller(sub(last, first), lanes);
  distance = larger(distance, constant(0));
  Type narrow = getI32Type(), type = VectorType::get({lanes}, narrow);
  Value bound = vector::BroadcastOp::create(*this, loc, type,
                                            arith::TruncIOp::create(*this, loc, narrow, distance));
  auto steps = llvm::to_vector(llvm::seq<int32_t>(0, lanes));
  Value index = arith::ConstantOp::create(*this, loc, cast<TypedAttr>(getI32VectorAttr(steps)));
  return arith::CmpIOp::create(*this, loc, arith::CmpIPredicate::slt, index, bound);
}

Value VectorBuilder::fusedOrNot(Value a, Value b, Value c, bool fused) {
  // Not vector.fma: it becomes llvm.fmuladd, which leaves the rounding to the chip.
  if (fused)
    return math::FmaOp::create(*this, loc, a, b, c);
  return arith::AddFOp::create(*this, loc, arith::MulFOp::create(*this, loc, a, b), c);
}

Value VectorBuilder::shuffle(Value a, Value b, function_ref<int64_t(int64_t)> lane) {
  SmallVector<int64_t> lanes;
  for (int64_t i = 0; i < cast<VectorType>(a.getType()).getDimSize(0); ++i)
    lanes.push_back(lane(i));
  return vector::ShuffleOp::create(*this, loc, a, b, lanes);
}

SmallVector<Value> VectorBuilder::transpose(ArrayRef<Value> rows) {
  // Steps that are one x86 instruction each: unpack single numbers, then pairs, inside 128-bit
  // quarters; then whole quarters.
  int64_t lanes = rows.size();
  SmallVector<Value> pairs, fours(lanes), result(lanes);
  for (int64_t i = 0; i < lanes; i += 2)
    for (int64_t high : {0, 1})
      pairs.push_back(shuffle(rows[i], rows[i + 1], [&](int64_t l) {
        return (l & ~3) + high * 2 + (l & 3) / 2 + (l & 1) * lanes;
      }));
  for (int64_t i = 0; i < lanes; i += 4)
    for (int64_t c = 0; c < 4; ++c)
      fours[i + c] = shuffle(pairs[i + c / 2], pairs[i + c / 2 + 2], [&](int64_t l) {
        return (l & ~3) + (c & 1) * 2 + (l & 1) + (l & 2) / 2 * lanes;
      });
  // fours[4g + c] holds in quarter q column 4q + c of rows 4g … 4g + 3.
  if (lanes == 4)
    return fours;
  if (lanes == 8) {
    for (int64_t c = 0; c < 4; ++c)
      for (int64_t q : {0, 1})
        result[4 * q + c] = shuffle(fours[c], fours[4 + c],
                                    [&](int64_t l) { return (l & 3) + 4 * q + l / 4 * lanes; });
    return result;
  }
  assert(lanes == 16 && "vectors of 128, 256 or 512 bits");
  auto quarters = [&](Value a, Value b, int64_t odd) {
    return shuffle(
        a, b, [&](int64_t l) { return (l & 3) + 4 * (odd + 2 * (l / 4 & 1)) + l / 8 * lanes; });
  };
  for (int64_t c = 0; c < 4; ++c)
    for (int64_t odd : {0, 1}) {
      Value low = quarters(fours[c], fours[4 + c], odd),
            high = quarters(fours[8 + c], fours[12 + c], odd);
      for (int64_t half : {0, 1})
        result[4 * (odd + 2 * half) + c] = quarters(low, high, half);
    }
  return result;
}

Value VectorBuilder::slice(Value vector, int64_t first, int64_t lanes) {
  return vector::ShuffleOp::create(*this, loc, vector, vector,
                                   llvm::to_vector(llvm::seq<int64_t>(first, first + lanes)));
}

Value VectorBuilder::stack(int64_t elements) {
  return LLVM::AllocaOp::create(*this, loc, pointer, getF32Type(), constant(elements), 64);
}

LLVM::LLVMFuncOp findKernel(SymbolTable &symbols, StringRef name) {
  return symbols.lookup<LLVM::LLVMFuncOp>(name);
}

/// The number of shapes that get a copy of a function of all shapes, with their numbers as constants.
constexpr int64_t kCopies = 8;

LLVM::LLVMFuncOp kernelOfShape(SymbolTable &symbols, StringRef name, StringRef shared,
                               ArrayRef<int64_t> numbers, Location loc,
                               function_ref<void(VectorBuilder &, LLVM::LLVMFuncOp)> emit) {
  if (auto known = findKernel(symbols, name))
    return known;
  LLVM::LLVMFuncOp body = findKernel(symbols, shared);
  VectorBuilder b(symbols.getOp()->getContext(), loc);
  SmallVector<Type> types{b.pointer, b.getI64Type(), b.getI64Type()};
  if (!body) {
    SmallVector<Type> all(types);
    all.append(numbers.size(), b.getI64Type());
    body = startKernel(symbols, shared, all, b);
    emit(b, body);
  } else if (!body.isNoInline()) {
    auto known = SymbolTable::getSymbolUses(body, symbols.getOp());
    body.setNoInline(!known || llvm::range_size(*known) >= kCopies);
  }
  LLVM::LLVMFuncOp kernel = startKernel(symbols, name, types, b);
  SmallVector<Value> arguments(kernel.getArguments());
  for (int64_t number : numbers)
    arguments.push_back(b.constant(number));
  auto call = LLVM::CallOp::create(b, loc, body, arguments);
  call.setAlwaysInline(!body.isNoInline());
  return kernel;
}

LLVM::LLVMFuncOp startKernel(SymbolTable &symbols, StringRef name, ArrayRef<Type> arguments,
                             VectorBuilder &builder) {
  builder.setInsertionPointToEnd(cast<ModuleOp>(symbols.getOp()).getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), arguments);
  auto kernel =
      LLVM::LLVMFuncOp::create(builder, builder.loc, name, type, LLVM::Linkage::Internal, true);
  symbols.insert(kernel);
  builder.setInsertionPointToStart(kernel.addEntryBlock(builder));
  builder.setInsertionPoint(LLVM::ReturnOp::create(builder, builder.loc, ValueRange{}));
  return kernel;
}

} // namespace stepc::kernels
