//===- Reduce.cpp - Kernels of #optim.block_reduce --------------------------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/products/VectorBuilder.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {

sums::BlockReduction reductionOf(exec::ApplyOp op) {
  auto function = cast<optim::BlockReduceAttr>(op.getFunction());
  auto source = cast<exec::BatchAttr>(op.getSources()[0]);
  exec::BatchAttr out = op.getOut();
  sums::BlockReduction reduction;
  reduction.kind = function.getKind();
  reduction.exponent = function.getExponent();
  reduction.remains = out.getCols() != 1   ? sums::Remains::Columns
                      : out.getRows() != 1 ? sums::Remains::Rows
                                           : sums::Remains::One;
  reduction.type = *optim::toPlan(source.getType());
  reduction.rows = source.getRows();
  reduction.cols = source.getCols();
  return reduction;
}

std::string kernelName(const sums::BlockReduction &reduction, sums::Phase phase) {
  const auto &[kind, exponent, remains, type, rows, cols] = reduction;
  std::string name =
      llvm::formatv("stepc_reduce_{0}_{1}_{2}_{3}x{4}_{5}", plan::name(kind), plan::name(remains),
                    plan::name(phase), rows, cols, plan::name(type));
  if (exponent != 0)
    name += llvm::formatv("_{0}{1}", exponent < 0 ? "m" : "p", std::abs(exponent));
  return name;
}

int64_t ReduceKernels::scratchBytesPerBlock(exec::ApplyOp op) const {
  sums::BlockReduction reduction = reductionOf(op);
  return reduction.hasParts() ? reduction.parts() * sums::kPartBytes : 0;
}

/// The kernel of a phase, which calls the runtime. A sum does not depend on how a chip computes it.
static LLVM::LLVMFuncOp kernelOfPhase(SymbolTable &symbols, const sums::BlockReduction &reduction,
                                      sums::Phase phase, Location loc) {
  std::string name = kernelName(reduction, phase);
  if (auto known = findKernel(symbols, name))
    return known;
  auto module = cast<ModuleOp>(symbols.getOp());
  VectorBuilder b(module.getContext(), loc);
  Type i64 = b.getI64Type();
  LLVM::LLVMFuncOp kernel = startKernel(symbols, name, {b.pointer, i64, i64}, b);
  SmallVector<Value> arguments;
  auto give = [&](StringRef, const auto &value) {
    arguments.push_back(b.constant(static_cast<int64_t>(value)));
  };
  sums::BlockReduction::fields(reduction, give);
  give("phase", phase);
  llvm::append_range(arguments, kernel.getArguments());
  LLVM::LLVMFuncOp reduce =
      declare(module, "stepc_rt_reduce", LLVM::LLVMVoidType::get(b.getContext()),
              llvm::to_vector(ValueRange(arguments).getTypes()));
  LLVM::CallOp::create(b, loc, reduce, arguments);
  return kernel;
}

Kernels ReduceKernels::onCpu(SymbolTable &symbols, exec::ApplyOp op) const {
  sums::BlockReduction reduction = reductionOf(op);
  Kernels kernels;
  for (sums::Phase phase : reduction.phases())
    if (int64_t items = reduction.items(phase))
      kernels.push_back({kernelOfPhase(symbols, reduction, phase, op.getLoc()), items});
  return kernels;
}

BlockKernels::Interpreted ReduceKernels::interpreted(exec::ApplyOp op) const {
  interpret::ReduceKernel record{reductionOf(op)};
  return {{kernelName(record.reduction, sums::Phase::Whole), record}, record.itemsPerBlock()};
}

} // namespace stepc::kernels
