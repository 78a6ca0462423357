//===- TensorCoreOperand.cpp - An operand on its way to tensor cores -------===//

#include "passes/kernels/gpu/TensorCoreOperand.h"

using namespace mlir;

namespace stepc::kernels {

/// Lines and steps that a warp loads at once.
static constexpr int64_t kUnit = 16;

TensorCoreOperand::TensorCoreOperand(BlockBuilder &b, const Ring &ring, const Shape &shape,
                                     bool isLeft, Value base, Value line0, Value warpLine,
                                     int64_t warpLines)
    : b(b), ring(ring), shape(shape), isLeft(isLeft), base(base), line0(line0), warpLine(warpLine),
      warpLines(warpLines), perRow((shape.alongK ? ring.slab : ring.tile) / kEight) {
  if ((shape.alongK ? shape.k : shape.lines) % kEight == 0)
    isAligned = b.isMultiple(base, 16);
  memory = b.memory(b.getI16Type(), ring.stages * ring.elements());
  row = b.quotient(b.thread, perRow);
  access = b.remainder(b.thread, perRow);
  // Lane i has the address of row i % 8 of matrix i / 8. Two of four matrices lie side by side along k and
  // two along the lines, in the order in which the instruction wants them.
  Value lane = b.remainder(b.thread, kWarp);
  Value inMatrix = b.remainder(lane, kEight), matrix = b.quotient(lane, kEight);
  Value even = b.remainder(matrix, 2), upper = b.quotient(matrix, 2);
  if (warpLines < kUnit)
    upper = b.constant(0); // two matrices; the instruction ignores addresses of other lanes
  Value line = b.add(warpLine, b.mul(isLeft ? even : upper, kEight)), step = isLeft ? upper : even;
  matrixRow = shape.alongK ? b.add(line, inMatrix) : b.add(b.mul(step, kEight), inMatrix);
  matrixAccess = shape.alongK ? step : b.quotient(line, kEight);
}

/// Whether x is below a bound. Null if it always is: x runs through whole tiles or slabs of `step`, and the
/// bound is a multiple of `step`.
Value TensorCoreOperand::below(Value x, int64_t bound, int64_t step) {
  return bound % step == 0 ? Value() : b.below(x, bound);
}

/// The place of an access in its row. Accesses of a row are permuted by the row's number. So the eight
/// accesses that a warp makes at once, in consecutive rows, lie in different banks.
Value TensorCoreOperand::swizzled(Value row, Value access) {
  Value turn = perRow >= kEight ? b.remainder(row, kEight) : b.remainder(b.quotient(row, 2), 4);
  return arith::XOrIOp::create(b, b.loc, access, turn);
}

/// Loads eight elements. Elements past the ends are zeros.
Value TensorCoreOperand::oneByOne(Value from, Value line, Value step) {
  Type memoryType = b.getI16Type();
  SmallVector<Value> elements;
  for (int64_t i = 0; i < kEight; ++i) {
    Value isThere = both(below(shape.alongK ? line : b.add(line, i), shape.lines, ring.tile),
                         below(shape.alongK ? b.add(step, i) : step, shape.k, ring.slab));
    auto load = [&] { return b.load(memoryType, b.element(from, shape.type, i)); };
    auto zero = [&]() -> Value { return arith::ConstantIntOp::create(b, b.loc, 0, 16); };
    elements.push_back(isThere ? b.choose(isThere, load, zero) : load());
  }
  return vector::FromElementsOp::create(b, b.loc, VectorType::get({kEight}, memoryType), elements);
}

void TensorCoreOperand::copy(Value stage, Value step0) {
  int64_t rows = kThreads / perRow, count = ring.elements() / (kEight * kThreads);
  Value turned = b.mul(swizzled(row, access), kEight);
  auto each = [&](function_ref<void(Value to, Value from, Value line, Value step)> body) {
    for (int64_t i = 0; i < count; ++i) {
      // Rows of a thread are a multiple of eight apart, so all are permuted as the first one is.
      Value thisRow = b.add(row, i * rows), along = b.mul(access, kEight);
      Value line = b.add(line0, shape.alongK ? thisRow : along);
      Value step = b.add(step0, shape.alongK ? along : thisRow);
      Value index =
          shape.alongK ? b.add(b.mul(line, shape.k), step) : b.add(b.mul(step, shape.lines), line);
      Value at = b.add(stage, b.add(b.mul(thisRow, perRow * kEight), turned));
      body(b.address(memory, b.getI16Type(), at), b.element(base, shape.type, index), line, step);
    }
  };
  auto byThreads = [&] {
    each([&](Value to, Value from, Value line, Value step) {
      b.store(oneByOne(from, line, step), to, 16);
    });
  };
  if (!isAligned)
    return byThreads();
  auto byItself = [&] {
    each([&](Value to, Value from, Value line, Value step) {
      // Rows of the operand consist of whole accesses. So if the first element of an access exists, all do.
      b.copyAsync(to, from,
                  both(below(line, shape.lines, ring.tile), below(step, shape.k, ring.slab)));
    });
  };
  b.when(isAligned, byItself, byThreads);
}

SmallVector<SmallVector<Value>> TensorCoreOperand::fragments(Value stage, int64_t step) {
  SmallVector<SmallVector<Value>> result;
  for (int64_t line = 0; line < warpLines; line += kUnit) {
    // Rows further down are permuted as the first one is. Accesses along a row are permuted one by one.
    int64_t rows = shape.alongK ? line : step, accesses = (shape.alongK ? step : line) / kEight;
    Value turned = b.mul(swizzled(matrixRow, b.add(matrixAccess, accesses)), kEight);
    Value at = b.add(b.add(b.mul(matrixRow, perRow * kEight), turned), rows * perRow * kEight);
    Value from = b.address(memory, b.getI16Type(), b.add(stage, at));
    int64_t count = warpLines < kUnit ? 2 : 4;
    SmallVector<Value> words = b.loadMatrices(from, count, /*transposed=*/!shape.alongK);
    if (isLeft) {
      result.push_back(words);
      continue;
    }
    for (int64_t i = 0; i < count; i += 2)
      result.push_back({words[i], words[i + 1]});
  }
  return result;
}

} // namespace stepc::kernels
