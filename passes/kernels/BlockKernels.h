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

/// Makes the kernels of `optim.block_reduce`.
class ReduceKernels : public BlockKernels {
public:
  int64_t scratchBytesPerBlock(exec::ApplyOp op) const override;
  Kernels onCpu(mlir::SymbolTable &symbols, exec::ApplyOp op) const override;
  GpuKernels onGpu(mlir::gpu::GPUModuleOp code, exec::ApplyOp op) const override;
  Interpreted interpreted(exec::ApplyOp op) const override;
};

/// Returns the class that makes the kernels of the operation's function. Each function of blocks has a line
/// here.
inline const BlockKernels &blockKernels(exec::ApplyOp op) {
  static const ReduceKernels reduce;
  const BlockKernels *found =
      llvm::TypeSwitch<mlir::Attribute, const BlockKernels *>(op.getFunction())
          .Case([](optim::BlockReduceAttr) { return &reduce; })
          .Default(nullptr);
  if (!found)
    llvm::report_fatal_error("expected a function of blocks with a line in BlockKernels.h, found " +
                             op.getFunction().getAbstractAttribute().getName());
  return *found;
}

} // namespace stepc::kernels

#endif
