//===- InterpretTarget.cpp - Kernels that the runtime interprets -------------===//
//
// No code is generated. Results have the bits of the processor that the chip names: its order in products,
// and its expansions of functions and conversions.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/SumKernel.h"
#include "passes/kernels/Target.h"
#include "passes/kernels/interpret/Records.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

class InterpretTarget : public Target {
public:
  InterpretTarget(std::string chip, std::unique_ptr<Target> host)
      : Target(std::move(chip)), host(std::move(host)) {}

  int64_t chunkElements() const override { return host->chunkElements(); }
  exec::Accumulation accumulation(Type lhs, Type rhs) const override {
    return host->accumulation(lhs, rhs);
  }
  ProductTile productTile(const cost::BlockProduct &product,
                          exec::Accumulation accumulation) const override {
    return host->productTile(product, accumulation);
  }
  int64_t scratchBytesPerBlock(exec::BatchOpInterface) const override { return 0; }

  FailureOr<LLVM::LLVMFuncOp> kernel(func::FuncOp kernel,
                                     ArrayRef<exec::DispatchChunksOp> dispatches) const override {
    return recordFunction(kernel, dispatches);
  }
  FailureOr<LLVM::LLVMFuncOp>
  kernel(func::FuncOp kernel, ArrayRef<exec::DispatchParametersOp> dispatches) const override {
    return recordFunction(kernel, dispatches);
  }

  /// Other commands get no kernels, because the host carries them out.
  Kernels kernels(SymbolTable &symbols, Operation *command) const override {
    return llvm::TypeSwitch<Operation *, Kernels>(command)
        .Case([&](exec::ProductOp op) { return product(symbols, op); })
        .Case([&](exec::ApplyOp op) -> Kernels {
          auto [kernel, items] = blockKernels(op).interpreted(op);
          if (items == 0)
            return {};
          return {{recordFunction(symbols, op.getLoc(), kernel), items}};
        })
        .Case([&](exec::SumOp op) -> Kernels {
          interpret::SumKernel record{*optim::toPlan(op.getType()), int64_t(op.getDivisor())};
          return {{recordFunction(symbols, op.getLoc(), {nameOf(op), record}), 1}};
        })
        .Default(Kernels());
  }

  void addKernelPasses(OpPassManager &) const override {} // embed-plan leaves no kernel
  bool fuses() const override { return host->fuses(); }
  /// The interpreter converts f16 by integer operations on every chip.
  bool convertsHalf() const override { return false; }

private:
  static Kernels product(SymbolTable &symbols, exec::ProductOp op) {
    auto [m, n, k] = op.getSizes();
    interpret::ProductKernel record;
    std::tie(record.m, record.n, record.k) = std::tuple(m, n, k);
    record.lhs = *optim::toPlan(op.getLhs().getType());
    record.rhs = *optim::toPlan(op.getRhs().getType());
    record.out = *optim::toPlan(op.getOut().getType());
    if (op.getAddend())
      record.addend = *optim::toPlan(op.getAddend()->getType());
    record.transposeLhs = op.getTransposeLhs();
    record.transposeRhs = op.getTransposeRhs();
    record.symmetric = op.getSymmetric();
    record.isFused = op.getAccumulation() == exec::Accumulation::FusedChain;
    record.hasShift = !op.getShift().isZero();
    if (m == 0 || n == 0)
      return {};
    std::string name = llvm::formatv("stepc_product_{0}x{1}x{2}_{3}{4}_{5}{6}_{7}", m, n, k,
                                     plan::name(record.lhs), record.transposeLhs ? "t" : "",
                                     plan::name(record.rhs), record.transposeRhs ? "t" : "",
                                     plan::name(record.out));
    name += record.symmetric ? "_symmetric" : "";
    name += record.hasShift ? "_shifted" : "";
    if (record.addend)
      name += "_plus_" + std::string(plan::name(*record.addend));
    return {{recordFunction(symbols, op.getLoc(), {name, record}), record.itemsPerBlock()}};
  }

  std::unique_ptr<Target> host;
};

} // namespace

llvm::Expected<std::unique_ptr<Target>> makeInterpretTarget(StringRef chip) {
  auto [cpu, features] = splitChip(chip);
  llvm::Expected<std::unique_ptr<Target>> host = makeCpuTarget(cpu + ";" + features);
  if (!host)
    return host.takeError();
  return std::make_unique<InterpretTarget>(chip.str(), std::move(*host));
}

} // namespace stepc::kernels
