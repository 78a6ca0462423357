//===- ProductOperand.cpp - An operand in a block's memory -----------------===//

#include "passes/kernels/gpu/ProductOperand.h"

using namespace mlir;

namespace stepc::kernels {

/// Bytes of one access, if the base and all strides are aligned for it.
static constexpr int64_t kAccess = 16;

ProductOperand::ProductOperand(BlockBuilder &b, const Cut &cut, const Shape &shape, Value base,
                               Value line0)
    : b(b), cut(cut), shape(shape), base(base), line0(line0) {
  int64_t bytes = shape.type.getIntOrFloatBitWidth() / 8, elements = cut.tile * cut.slab;
  width = std::min(kAccess / bytes, elements / kThreads);
  across = (shape.alongK ? cut.slab : cut.tile) / width;
  count = elements / (width * kThreads);
  inRun = b.mul(b.remainder(b.thread, across), width);
  run = b.quotient(b.thread, across);
  int64_t stride = shape.alongK ? shape.k : shape.lines;
  if (stride % width == 0)
    isAligned = b.isMultiple(base, width * bytes);
  memory = b.memory(b.getF32Type(), 2 * cut.slabElements());
}

SmallVector<Value> ProductOperand::fetch(Value step0) {
  SmallVector<Value> fetched;
  for (int64_t i = 0; i < count; ++i) {
    Value other = b.add(run, i * (kThreads / across));
    Value line = b.add(line0, shape.alongK ? other : inRun);
    Value step = b.add(step0, shape.alongK ? inRun : other);
    fetched.push_back(fetch(line, step));
  }
  return fetched;
}

Value ProductOperand::fetch(Value line, Value step) {
  bool lineEnds = shape.lines % cut.tile != 0, stepEnds = shape.k % cut.slab != 0;
  Value at =
      shape.alongK ? b.add(b.mul(line, shape.k), step) : b.add(b.mul(step, shape.lines), line);
  Value from = b.element(base, shape.type, at);
  Type memoryType = b.memoryType(shape.type);
  auto type = VectorType::get({width}, memoryType);
  auto oneByOne = [&]() -> Value {
    Value neutral = b.narrow(shape.type, b.number(b.getF32Type(), shape.neutral));
    SmallVector<Value> elements;
    for (int64_t i = 0; i < width; ++i) {
      Value isThere =
          both(lineEnds ? b.below(shape.alongK ? line : b.add(line, i), shape.lines) : Value(),
               stepEnds ? b.below(shape.alongK ? b.add(step, i) : step, shape.k) : Value());
      // Volatile if there is also a branch with whole accesses. Otherwise LLVM merges both branches into one
      // load of a vector that has the alignment of a single element, and the access of 16 bytes is lost.
      auto load = [&]() -> Value {
        return LLVM::LoadOp::create(b, b.loc, memoryType, b.element(from, shape.type, i),
                                    unsigned(memoryType.getIntOrFloatBitWidth() / 8),
                                    /*isVolatile=*/bool(isAligned));
      };
      elements.push_back(isThere ? b.choose(isThere, load, [&] { return neutral; }) : load());
    }
    return vector::FromElementsOp::create(b, b.loc, type, elements);
  };
  if (!isAligned)
    return oneByOne();
  // Runs consist of whole accesses. So if the first element of an access exists, all do.
  Value isWhole = both(isAligned, both(lineEnds ? b.below(line, shape.lines) : Value(),
                                       stepEnds ? b.below(step, shape.k) : Value()));
  unsigned bytes = width * shape.type.getIntOrFloatBitWidth() / 8;
  return b.choose(isWhole, [&] { return b.load(type, from, bytes); }, oneByOne);
}

void ProductOperand::keep(Value offset, ArrayRef<Value> fetched) {
  Type f32 = b.getF32Type();
  for (auto [i, bits] : llvm::enumerate(fetched)) {
    Value values = b.extend(shape.type, bits);
    Value other = b.add(run, int64_t(i) * (kThreads / across));
    Value line = shape.alongK ? other : inRun, step = shape.alongK ? inRun : other;
    Value to = b.address(memory, f32, b.add(offset, b.add(b.mul(step, cut.pitch()), line)));
    if (shape.alongK) {
      for (int64_t j = 0; j < width; ++j)
        b.store(vector::ExtractOp::create(b, b.loc, values, j), b.address(to, f32, j * cut.pitch()),
                4);
      continue;
    }
    for (int64_t j = 0; j < width; j += 4)
      b.store(b.slice(values, j, 4), b.address(to, f32, j), kAccess);
  }
}

SmallVector<Value> ProductOperand::groups(Value at, Value line) {
  SmallVector<Value> made;
  for (int64_t g = 0; g < cut.groups; ++g) {
    Value from = b.add(at, b.add(line, cut.inTile(g * cut.group)));
    made.push_back(b.load(b.vector(cut.group), b.address(memory, b.getF32Type(), from),
                          unsigned(cut.group * 4)));
  }
  return made;
}

} // namespace stepc::kernels
