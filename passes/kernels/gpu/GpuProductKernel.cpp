//===- GpuProductKernel.cpp - exec.product by a GPU's blocks ---------------===//
//
// A block makes a square tile of the result. Of both operands a slab stands in its memory, and the next
// is on its way; a thread keeps its part of the tile in registers over the whole k. An element is one
// chain of fused multiply-adds wherever it lands.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/gpu/ProductOperand.h"
#include "passes/kernels/products/ProductKernels.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

class Emitter {
public:
  Emitter(exec::ProductOp op, BlockBuilder &b)
      : op(op), b(b), m(op.getSizes()[0]), n(op.getSizes()[1]), k(op.getSizes()[2]), cut(m, n),
        alpha(float(op.getAlpha().convertToDouble())), beta(float(op.getBeta().convertToDouble())),
        out(op.getOut().getType()), isSymmetric(op.getSymmetric()), f32(b.getF32Type()) {
    if (op.getAddend())
      addend = op.getAddend()->getType();
  }

  std::string name() {
    auto operand = [&](Type type, bool transposed) {
      return typeName(type) + (transposed ? "t" : "");
    };
    std::string text =
        llvm::formatv("stepc_product_{0}x{1}x{2}_{3}_{4}_{5}{6}_{7:x-}", m, n, k,
                      operand(op.getLhs().getType(), op.getTransposeLhs()),
                      operand(op.getRhs().getType(), op.getTransposeRhs()), typeName(out),
                      isSymmetric ? "_symmetric" : "", llvm::bit_cast<uint32_t>(alpha));
    if (addend)
      text += llvm::formatv("_{0}_{1:x-}", typeName(addend), llvm::bit_cast<uint32_t>(beta));
    return text;
  }
  int64_t blocksPerSlot() const {
    int64_t down = ceilDivide(m, cut.tile);
    return isSymmetric ? down * (down + 1) / 2 : down * ceilDivide(n, cut.tile);
  }
  unsigned buffers() const { return kRhs + (addend ? 3 : 2); }

  void emit() {
    auto [tileRow, tileColumn] = place();
    row0 = b.mul(tileRow, cut.tile);
    column0 = b.mul(tileColumn, cut.tile);
    // Of a warp, 4 by 8 threads: what they store is whole sectors, in the mirrored half, too.
    Value warp = b.quotient(b.thread, kWarp), lane = b.remainder(b.thread, kWarp);
    threadRow = b.mul(b.add(b.mul(b.quotient(warp, 2), 4), b.quotient(lane, 8)), cut.group);
    threadColumn = b.mul(b.add(b.mul(b.remainder(warp, 2), 8), b.remainder(lane, 8)), cut.group);
    finish(accumulate(), tileRow, tileColumn);
  }

private:
  Value pointer(unsigned index) { return b.function.getArgument(index); }
  Value all(ArrayRef<Value> conditions) {
    Value result;
    for (Value condition : conditions)
      if (condition)
        result = result ? b.both(result, condition) : condition;
    return result;
  }

  /// Row and column of the block's tile among tiles; of a symmetric result not above the diagonal.
  std::pair<Value, Value> place() {
    int64_t across = ceilDivide(n, cut.tile);
    if (!isSymmetric)
      return {b.quotient(b.item, across), b.remainder(b.item, across)};
    // Row i has i + 1 tiles: walk down.
    Type i64 = b.getI64Type();
    auto inRegion = [&](ValueRange state, function_ref<void()> body) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(state[0].getParentBlock());
      body();
    };
    auto walk = scf::WhileOp::create(
        b, b.loc, TypeRange{i64, i64}, ValueRange{b.constant(0), b.item},
        [&](OpBuilder &, Location, ValueRange state) {
          inRegion(state,
                   [&] { scf::ConditionOp::create(b, b.loc, b.below(state[0], state[1]), state); });
        },
        [&](OpBuilder &, Location, ValueRange state) {
          inRegion(state, [&] {
            Value next = b.add(state[0], 1);
            scf::YieldOp::create(b, b.loc, ValueRange{next, b.sub(state[1], next)});
          });
        });
    return {walk.getResult(0), walk.getResult(1)};
  }

  //===--- sums ---===//

  ProductOperand operand(exec::BatchAttr batch, unsigned argument, int64_t lines, bool alongK,
                         Value line0, float neutral) {
    Value base = b.element(pointer(argument), batch.getType(), b.mul(b.slot, lines * k));
    return {b, cut, {batch.getType(), lines, k, alongK, neutral}, base, line0};
  }

  /// The sums after the steps of a slab; of each row of the thread, its groups of columns.
  SmallVector<Value> multiply(ProductOperand &left, ProductOperand &right, Value offset,
                              ValueRange sums) {
    constexpr int64_t kUnroll = 8;
    auto loop = scf::ForOp::create(b, b.loc, b.constant(0), b.constant(cut.slab),
                                   b.constant(kUnroll), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next(loop.getRegionIterArgs());
    for (int64_t u = 0; u < kUnroll; ++u) {
      Value step = b.add(loop.getInductionVar(), u);
      Value at = b.add(offset, b.mul(step, cut.pitch()));
      SmallVector<Value> rows = left.groups(at, threadRow);
      SmallVector<Value> columns = right.groups(at, threadColumn);
      for (int64_t i = 0; i < cut.perThread(); ++i) {
        Value x = vector::ExtractOp::create(b, b.loc, rows[i / cut.group], i % cut.group);
        Value row = b.broadcast(x, cut.group);
        for (int64_t g = 0; g < cut.groups; ++g) {
          Value &sum = next[i * cut.groups + g];
          sum = b.fusedOrNot(row, columns[g], sum, /*fused=*/true);
        }
      }
    }
    scf::YieldOp::create(b, b.loc, next);
    return llvm::to_vector_of<Value>(loop.getResults());
  }

  SmallVector<Value> accumulate() {
    SmallVector<Value> sums(cut.perThread() * cut.groups, b.number(b.vector(cut.group), 0.0f));
    if (k == 0)
      return sums;
    // Past the last step the product is -0, which changes no sum: +0 times -0.
    ProductOperand left = operand(op.getLhs(), kLhs, m, !op.getTransposeLhs(), row0, 0.0f);
    ProductOperand right = operand(op.getRhs(), kRhs, n, op.getTransposeRhs(), column0, -0.0f);
    for (ProductOperand *each : {&left, &right})
      each->keep(b.constant(0), each->fetch(b.constant(0)));
    b.barrier();
    int64_t slabs = ceilDivide(k, cut.slab);
    auto offsetOf = [&](Value slab) { return b.mul(b.remainder(slab, 2), cut.slabElements()); };
    if (slabs > 1) {
      auto loop =
          scf::ForOp::create(b, b.loc, b.constant(0), b.constant(slabs - 1), b.constant(1), sums);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value slab = loop.getInductionVar(), following = b.add(slab, 1);
      Value step0 = b.mul(following, cut.slab);
      SmallVector<Value> nextLeft = left.fetch(step0), nextRight = right.fetch(step0);
      SmallVector<Value> next = multiply(left, right, offsetOf(slab), loop.getRegionIterArgs());
      // Nobody reads the other slab: all have left it at the last barrier.
      left.keep(offsetOf(following), nextLeft);
      right.keep(offsetOf(following), nextRight);
      b.barrier();
      scf::YieldOp::create(b, b.loc, next);
      sums = llvm::to_vector_of<Value>(loop.getResults());
    }
    return multiply(left, right, b.constant((slabs - 1) % 2 * cut.slabElements()), sums);
  }

  //===--- the epilogue ---===//

  Value scaled(Value x, float factor) {
    return factor == 1.0f
               ? x
               : Value(arith::MulFOp::create(b, b.loc, x, b.number(x.getType(), factor)));
  }
  /// Of a number or a vector; `term` null without an addend.
  Value result(Value sum, Value term) {
    sum = scaled(sum, alpha);
    return term ? Value(arith::AddFOp::create(b, b.loc, sum, scaled(term, beta))) : sum;
  }
  Value at(Value base, Type type, Value row, Value column) {
    return b.element(base, type, b.add(b.mul(row, n), column));
  }
  Value row(int64_t i) { return b.add(b.add(row0, threadRow), cut.inTile(i)); }
  /// The first column of a group.
  Value column(int64_t g) { return b.add(b.add(column0, threadColumn), cut.inTile(g * cut.group)); }

  void finish(ArrayRef<Value> sums, Value tileRow, Value tileColumn) {
    Value block = b.mul(b.slot, m * n);
    outBase = b.element(pointer(buffers() - 1), out, block);
    if (addend)
      addendBase = b.element(pointer(kRhs + 1), addend, block);
    if (n % cut.group != 0 || (isSymmetric && m <= cut.tile))
      return oneByOne(sums);
    auto widthOf = [&](Type type) { return cut.group * type.getIntOrFloatBitWidth() / 8; };
    auto fits = [&](Value first, int64_t extent) {
      return extent % cut.tile ? b.below(first, extent - cut.tile + 1) : Value();
    };
    Value offDiagonal = isSymmetric ? b.below(tileColumn, tileRow) : Value();
    Value isWhole = all({b.isMultiple(outBase, widthOf(out)),
                         addend ? b.isMultiple(addendBase, widthOf(addend)) : Value(),
                         fits(row0, m), fits(column0, n), offDiagonal});
    b.when(isWhole, [&] { whole(sums); }, [&] { oneByOne(sums); });
  }

  /// A tile that is there, groups at a time; its mirror from the same registers.
  void whole(ArrayRef<Value> sums) {
    unsigned outWidth = unsigned(cut.group * out.getIntOrFloatBitWidth() / 8);
    SmallVector<Value> results;
    for (int64_t i = 0; i < cut.perThread(); ++i)
      for (int64_t g = 0; g < cut.groups; ++g) {
        Value term;
        if (addend) {
          Value bits = b.load(VectorType::get({cut.group}, b.memoryType(addend)),
                              at(addendBase, addend, row(i), column(g)),
                              unsigned(cut.group * addend.getIntOrFloatBitWidth() / 8));
          term = b.extend(addend, bits);
        }
        Value value = b.narrow(out, result(sums[i * cut.groups + g], term));
        b.store(value, at(outBase, out, row(i), column(g)), outWidth);
        results.push_back(value);
      }
    if (!isSymmetric)
      return;
    auto type = cast<VectorType>(results.front().getType());
    for (int64_t g = 0; g < cut.groups; ++g)
      for (int64_t c = 0; c < cut.group; ++c)
        for (int64_t i = 0; i < cut.perThread(); i += cut.group) {
          SmallVector<Value> line;
          for (int64_t r = i; r < i + cut.group; ++r)
            line.push_back(vector::ExtractOp::create(b, b.loc, results[r * cut.groups + g], c));
          b.store(vector::FromElementsOp::create(b, b.loc, type, line),
                  at(outBase, out, b.add(column(g), c), row(i)), outWidth);
        }
  }

  /// Of a tile at an edge or on the diagonal each element that is there.
  void oneByOne(ArrayRef<Value> sums) {
    for (int64_t i = 0; i < cut.perThread(); ++i)
      for (int64_t g = 0; g < cut.groups; ++g)
        for (int64_t c = 0; c < cut.group; ++c) {
          Value r = row(i), col = b.add(column(g), c);
          // Of a symmetric one rows end with the diagonal.
          Value rowEnds =
              isSymmetric
                  ? Value(arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::sle, col, r))
                  : b.below(col, n);
          b.when(b.both(b.below(r, m), rowEnds), [&] {
            Value sum = vector::ExtractOp::create(b, b.loc, sums[i * cut.groups + g], c);
            Value term = addend ? b.read(addend, at(addendBase, addend, r, col), 0) : Value();
            Value value = result(sum, term);
            b.write(out, value, at(outBase, out, r, col));
            if (isSymmetric)
              b.write(out, value, at(outBase, out, col, r));
          });
        }
  }

  exec::ProductOp op;
  BlockBuilder &b;
  int64_t m, n, k;
  Cut cut;
  float alpha, beta;
  Type out, addend;
  bool isSymmetric;
  Type f32;
  Value row0, column0;           ///< of the tile
  Value threadRow, threadColumn; ///< of the thread in it
  Value outBase, addendBase;     ///< of the slot
};

} // namespace

GpuKernels addGpuProductKernels(gpu::GPUModuleOp code, exec::ProductOp op) {
  BlockBuilder b(op.getContext(), op.getLoc());
  Emitter emitter(op, b);
  if (emitter.blocksPerSlot() == 0)
    return {};
  std::string name = emitter.name();
  auto known = code.lookupSymbol<gpu::GPUFuncOp>(name);
  if (!known) {
    b.begin(code, name, emitter.buffers(), emitter.blocksPerSlot());
    emitter.emit();
    known = b.function;
  }
  return {{known, emitter.blocksPerSlot()}};
}

} // namespace stepc::kernels
