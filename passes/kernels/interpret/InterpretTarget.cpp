//===- InterpretTarget.cpp - Kernels that the runtime interprets -------------===//
//
// No code is generated. Results have the bits of the processor that the chip names: its order in products,
// and its expansions of functions and conversions. If the chip names a GPU, products add up as the GPU's do
// and begin together as they do there, and lists of tiles are worked off as the GPU's clusters do.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/SumKernel.h"
#include "passes/kernels/Target.h"
#include "passes/kernels/gpu/GpuKernels.h"
#include "passes/kernels/gpu/WarpgroupProduct.h"
#include "passes/kernels/interpret/Records.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

class InterpretTarget : public Target {
public:
  InterpretTarget(std::string chip, std::optional<GpuTarget> gpu, std::unique_ptr<Target> host)
      : Target(std::move(chip)), gpu(std::move(gpu)), host(std::move(host)) {}

  int64_t chunkElements() const override { return host->chunkElements(); }
  exec::Accumulation accumulation(Type lhs, Type rhs) const override {
    return gpu ? gpuAccumulation(gpu->tensorCores, lhs, rhs) : host->accumulation(lhs, rhs);
  }
  ProductTile productTile(const cost::BlockProduct &product,
                          exec::Accumulation accumulation) const override {
    return gpu ? gpuProductTile(*gpu, product, accumulation)
               : host->productTile(product, accumulation);
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
          record.reduction = op.getReduction();
          record.sums = op.getReduction() ? sumsPerValue(op) : 0;
          return {{recordFunction(symbols, op.getLoc(), {nameOf(op), record}), 1}};
        })
        .Case([&](exec::CollectOp op) -> Kernels {
          return {{recordFunction(symbols, op.getLoc(),
                                  {nameOf(op), interpret::CollectKernel{op.getReduction()}}),
                   1}};
        })
        .Default(Kernels());
  }

  bool canJoin(exec::ProductOp one, exec::ProductOp other) const override {
    return hasWarpgroups() && areOfOneWarpgroupForm(one, other);
  }
  void addKernelPasses(OpPassManager &) const override {} // embed-plan leaves no kernel
  bool fuses() const override { return gpu || host->fuses(); }
  /// The interpreter converts f16 by integer operations on every chip.
  bool convertsHalf() const override { return false; }

private:
  bool hasWarpgroups() const { return gpu && gpu->hasWarpgroups(); }

  static Kernels tiles(SymbolTable &symbols, const WarpgroupForm &form, Location loc) {
    interpret::TilesKernel record{form.product};
    LLVM::LLVMFuncOp made = recordFunction(symbols, loc, {form.name(), record});
    made->setAttr(exec::kLaunchAttr,
                  exec::LaunchAttr::get(made.getContext(), warpgroupLaunch(form)));
    return {{made, 1}};
  }

  Kernels product(SymbolTable &symbols, exec::ProductOp op) const {
    if (hasWarpgroups())
      if (std::optional<WarpgroupForm> form = warpgroupForm(op))
        return tiles(symbols, *form, op.getLoc());
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
    record.accumulation = op.getAccumulation();
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
    name += record.isOnTensorCores() ? "_tensorcore" : "";
    return {{recordFunction(symbols, op.getLoc(), {name, record}), record.itemsPerBlock()}};
  }

  std::optional<GpuTarget> gpu; ///< for which plans are made
  std::unique_ptr<Target> host;
};

} // namespace

llvm::Expected<std::unique_ptr<Target>> makeInterpretTarget(StringRef chip) {
  llvm::Expected<StringRef> cpu = hostOfChip(chip);
  if (!cpu)
    return cpu.takeError();
  llvm::Expected<std::unique_ptr<Target>> host = makeCpuTarget(*cpu);
  if (!host)
    return host.takeError();
  std::optional<GpuTarget> gpu;
  if (standsForGpu(chip)) {
    llvm::Expected<GpuTarget> named = gpuOnHost(chip);
    if (!named)
      return named.takeError();
    gpu = std::move(*named);
  }
  return std::make_unique<InterpretTarget>(chip.str(), std::move(gpu), std::move(*host));
}

} // namespace stepc::kernels
