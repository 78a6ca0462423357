//===- BlockKernels.h - Kernels of functions of blocks ----------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_BLOCKKERNELS_H
#define STEPC_PASSES_KERNELS_BLOCKKERNELS_H

#include "passes/kernels/gpu/GpuKernels.h"
#include "runtime/interpret/Kernels.h"

#include "llvm/ADT/TypeSwitch.h"

namespace stepc::kernels {

/// Makes the kernels of an `exec.apply` for each kind of target. Kernels that the symbols (or `code`) lack
/// are added to them. If the result is empty, there are no kernels.
class BlockKernels {
public:
  virtual ~BlockKernels() = default;

  /// Bytes of scratch that kernels need for each block, on a CPU and on a GPU.
  virtual int64_t scratchBytesPerBlock(exec::ApplyOp op) const = 0;
  virtual Kernels onCpu(mlir::SymbolTable &symbols, exec::ApplyOp op) const = 0;
  /// The kernels' arguments are the scratch, the sources and the out.
  virtual GpuKernels onGpu(mlir::gpu::GPUModuleOp code, exec::ApplyOp op) const = 0;
  /// The interpreter's kernel, which needs no scratch, and the number of its items per block.
  struct Interpreted {
    interpret::NamedKernel kernel;
    int64_t itemsPerBlock = 0;
  };
  virtual Interpreted interpreted(exec::ApplyOp op) const = 0;
};

/// The reduction that an exec.apply of #optim.block_reduce computes.
sums::BlockReduction reductionOf(exec::ApplyOp op);
/// The name of the kernel of a phase of a reduction: letters, digits and _.
std::string kernelName(const sums::BlockReduction &reduction, sums::Phase phase);

/// Makes the kernels of `optim.block_reduce`.
class ReduceKernels : public BlockKernels {
public:
  int64_t scratchBytesPerBlock(exec::ApplyOp op) const override;
  Kernels onCpu(mlir::SymbolTable &symbols, exec::ApplyOp op) const override;
  GpuKernels onGpu(mlir::gpu::GPUModuleOp code, exec::ApplyOp op) const override;
  Interpreted interpreted(exec::ApplyOp op) const override;
};

/// Makes the kernels of `optim.block_transpose`.
class TransposeKernels : public BlockKernels {
public:
  int64_t scratchBytesPerBlock(exec::ApplyOp) const override { return 0; }
  Kernels onCpu(mlir::SymbolTable &symbols, exec::ApplyOp op) const override;
  GpuKernels onGpu(mlir::gpu::GPUModuleOp code, exec::ApplyOp op) const override;
  Interpreted interpreted(exec::ApplyOp op) const override;
};
/// The interpreter's kernel of an exec.apply of #optim.block_transpose, which has the source's extents.
interpret::TransposeKernel transposeOf(exec::ApplyOp op);
/// The name of the kernel of a transpose: letters, digits and _.
std::string kernelName(const interpret::TransposeKernel &kernel);

/// The kernels of a command's function; null if the function has no line here.
inline const BlockKernels *findBlockKernels(exec::ApplyOp op) {
  static const ReduceKernels reduce;
  static const TransposeKernels transpose;
  return llvm::TypeSwitch<mlir::Attribute, const BlockKernels *>(op.getFunction())
      .Case([](optim::BlockReduceAttr) -> const BlockKernels * { return &reduce; })
      .Case([](optim::BlockTransposeAttr) -> const BlockKernels * { return &transpose; })
      .Default(nullptr);
}
/// Emits an error at a command whose function has no kernels. Passes check this before they ask for kernels.
inline mlir::LogicalResult checkBlockKernels(exec::ApplyOp op) {
  if (findBlockKernels(op))
    return mlir::success();
  return op.emitOpError("expected a function of blocks that has kernels, found ")
         << op.getFunction();
}
inline const BlockKernels &blockKernels(exec::ApplyOp op) {
  const BlockKernels *found = findBlockKernels(op);
  assert(found && "a function that checkBlockKernels accepts");
  return *found;
}

} // namespace stepc::kernels

#endif
