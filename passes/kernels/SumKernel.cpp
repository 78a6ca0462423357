//===- SumKernel.cpp - Adding up contributions of ranks --------------------===//

#include "passes/kernels/SumKernel.h"

#include "passes/kernels/ChunkKernel.h"
#include "passes/kernels/CpuKernels.h"
#include "runtime/plan/Tables.h"
#include "runtime/sums/Parts.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {

std::string nameOf(exec::SumOp op) {
  std::string type;
  llvm::raw_string_ostream(type) << op.getType();
  if (std::optional<plan::Reduction> reduction = op.getReduction())
    return llvm::formatv("stepc_finish_{0}_of_{1}_in_{2}", plan::name(*reduction), op.getDivisor(),
                         sumsPerValue(op));
  return llvm::formatv("stepc_sum_{0}_by_{1}", type, op.getDivisor());
}

std::string nameOf(exec::CollectOp op) {
  return llvm::formatv("stepc_collect_{0}", plan::name(op.getReduction()));
}

int64_t sumsPerValue(exec::SumOp op) {
  return op.getTable().getElementBytes() / sums::bytesOf(*op.getReduction());
}

SumEmitter::SumEmitter(exec::SumOp op, KernelBuilder &b, Value rows, Value from, Value to,
                       Value item)
    : elementBytes(op.getType().getIntOrFloatBitWidth() / 8), b(b), rows(rows), from(from),
      element(op.getType()), divisor(op.getDivisor()) {
  constexpr int64_t words = sizeof(plan::SumRow) / sizeof(int64_t);
  storage = element.isF32() ? element : IntegerType::get(b.getContext(), 8 * elementBytes);
  sourceStorage = op.getReduction()
                      ? LLVM::LLVMArrayType::get(b.getI8Type(), op.getTable().getElementBytes())
                      : storage;
  row = b.address(rows, b.getI64Type(), b.mul(item, b.constant(words)));
  parameter = field(offsetof(plan::SumRow, parameter));
  rowCount = field(offsetof(plan::SumRow, rows));
  cols = field(offsetof(plan::SumRow, cols));
  source = field(offsetof(plan::SumRow, source));
  sourceStride = field(offsetof(plan::SumRow, sourceStride));
  targetStride = field(offsetof(plan::SumRow, targetStride));
  list = field(offsetof(plan::SumRow, list));
  count = field(offsetof(plan::SumRow, count));
  target = b.address(to, storage, field(offsetof(plan::SumRow, target)));
}

Value SumEmitter::field(size_t offset) {
  return b.load(b.getI64Type(), b.address(row, b.getI64Type(), int64_t(offset / sizeof(int64_t))));
}

Value SumEmitter::listed(Value number) {
  return b.address(rows, b.getI64Type(), b.add(list, number));
}

Value SumEmitter::contribution(Value number) {
  Value begin = b.load(b.getI64Type(), listed(number));
  return sourceOf(b.address(from, b.getI8Type(), begin));
}

Value SumEmitter::sourceAt(Value begin, Value line, Value column) {
  return b.address(begin, sourceStorage, b.add(b.mul(line, sourceStride), column));
}

Value SumEmitter::targetAt(Value line, Value column) {
  return b.address(target, storage, b.add(b.mul(line, targetStride), column));
}

void SumEmitter::emit(Value line, Value column, int64_t width, unsigned alignment) {
  Type f32 = b.getF32Type();
  if (width)
    f32 = VectorType::get(width, f32);
  auto load = [&](Value number) -> Value {
    Value loaded =
        loadElements(b, element, sourceAt(contribution(number), line, column), width, alignment);
    return element.isF32() ? loaded : arith::ExtFOp::create(b, b.loc, f32, loaded);
  };
  Value first = load(b.constant(0));
  auto others =
      scf::ForOp::create(b, b.loc, b.constant(1), count, b.constant(1), ValueRange{first});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(others.getBody());
    Value sum = arith::AddFOp::create(b, b.loc, others.getRegionIterArgs()[0],
                                      load(others.getInductionVar()));
    scf::YieldOp::create(b, b.loc, sum);
  }
  Value sum = others.getResult(0);
  if (divisor > 1) {
    Value by = arith::ConstantOp::create(b, b.loc, b.getF32FloatAttr(float(divisor)));
    if (width)
      by = vector::BroadcastOp::create(b, b.loc, f32, by);
    sum = arith::DivFOp::create(b, b.loc, sum, by);
  }
  if (!element.isF32()) {
    Type rounded = width ? Type(VectorType::get(width, element)) : element;
    sum = arith::TruncFOp::create(b, b.loc, rounded, sum);
  }
  storeElements(b, element, sum, targetAt(line, column), width, alignment);
}

/// Calls the runtime for each run of values.
static void emitFinish(exec::SumOp op, KernelBuilder &b, SumEmitter &sum, Value from) {
  Value zero = b.constant(0);
  b.loop(zero, sum.rowCount, 1, [&](Value line) {
    SmallVector<Value> arguments = {b.constant(int64_t(*op.getReduction())),
                                    b.constant(int64_t(op.getDivisor())),
                                    b.constant(sumsPerValue(op)),
                                    sum.listed(zero),
                                    sum.count,
                                    sum.sourceAt(sum.sourceOf(from), line, zero),
                                    sum.cols,
                                    sum.targetAt(line, zero)};
    auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
    LLVM::LLVMFuncOp finish =
        declare(module, "stepc_rt_finish_sums", LLVM::LLVMVoidType::get(b.getContext()),
                llvm::to_vector(ValueRange(arguments).getTypes()));
    LLVM::CallOp::create(b, b.loc, finish, arguments);
  });
}

LLVM::LLVMFuncOp addCpuCollectKernel(SymbolTable &symbols, exec::CollectOp op) {
  if (auto known = symbols.lookup<LLVM::LLVMFuncOp>(nameOf(op)))
    return known;
  KernelBuilder b(op.getContext(), op.getLoc());
  auto module = cast<ModuleOp>(symbols.getOp());
  LLVM::LLVMFuncOp made = beginKernel(module, nameOf(op), b);
  Value list = made.getArgument(0);
  b.loop(made.getArgument(1), made.getArgument(2), 1, [&](Value) {
    SmallVector<Value> arguments = {b.constant(int64_t(op.getReduction())), b.argument(list, 0),
                                    b.argument(list, 1), b.argument(list, 3), b.argument(list, 2)};
    LLVM::LLVMFuncOp collect =
        declare(module, "stepc_rt_collect_sums", LLVM::LLVMVoidType::get(b.getContext()),
                llvm::to_vector(ValueRange(arguments).getTypes()));
    LLVM::CallOp::create(b, b.loc, collect, arguments);
  });
  symbols.insert(made);
  return made;
}

LLVM::LLVMFuncOp addCpuSumKernel(SymbolTable &symbols, exec::SumOp op) {
  if (auto known = symbols.lookup<LLVM::LLVMFuncOp>(nameOf(op)))
    return known;
  constexpr int64_t kWidth = 16; // as in kernels of stages
  KernelBuilder b(op.getContext(), op.getLoc());
  LLVM::LLVMFuncOp made = beginKernel(cast<ModuleOp>(symbols.getOp()), nameOf(op), b);
  Value list = made.getArgument(0);
  Value rows = b.argument(list, 0), from = b.argument(list, 1), to = b.argument(list, 2);
  b.loop(made.getArgument(1), made.getArgument(2), 1, [&](Value item) {
    SumEmitter sum(op, b, rows, from, to, item);
    if (op.getReduction())
      return emitFinish(op, b, sum, from);
    Value zero = b.constant(0);
    Value whole = arith::AndIOp::create(b, b.loc, sum.cols, b.constant(-kWidth));
    b.loop(zero, sum.rowCount, 1, [&](Value line) {
      b.loop(zero, whole, kWidth, [&](Value column) { sum.emit(line, column, kWidth); });
      b.loop(whole, sum.cols, 1, [&](Value column) { sum.emit(line, column, 0); });
    });
  });
  symbols.insert(made);
  return made;
}

} // namespace stepc::kernels
