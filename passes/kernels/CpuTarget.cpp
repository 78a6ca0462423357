//===- CpuTarget.cpp - Processors of this machine's architecture -----------===//

#include "passes/kernels/Target.h"

namespace stepc::kernels {
namespace {

/// Products are one chain of (fused) multiply-adds over increasing k, whatever the vectors.
class CpuTarget : public Target {
public:
  CpuTarget(std::string chip, const TargetShape &shape) : Target(std::move(chip)), shape(shape) {}

  mlir::FailureOr<BatchKernels> product(mlir::SymbolTable &symbols,
                                        optim::ProductOp op) const override {
    return emitProduct(symbols, op, shape);
  }
  mlir::FailureOr<BatchKernels> blockReduce(mlir::SymbolTable &symbols,
                                            optim::BlockReduceOp op) const override {
    return emitBlockReduce(symbols, op, shape);
  }
  bool fuses() const override { return shape.fma; }
  bool convertsHalf() const override { return shape.half; }

private:
  TargetShape shape;
};

} // namespace

llvm::Expected<std::unique_ptr<Target>> makeCpuTarget(llvm::StringRef chip) {
  llvm::Expected<TargetShape> shape = shapeOfChip(chip);
  if (!shape)
    return shape.takeError();
  return std::make_unique<CpuTarget>(chip.str(), *shape);
}

} // namespace stepc::kernels
