//===- WarpgroupProduct.h - Products of warpgroups --------------*- C++ -*-===//
//
// One kernel serves products of all shapes, any number of them in one launch. Each cluster of GPU blocks
// works off its own list of tiles (runtime/plan/TileLists.h).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_GPU_WARPGROUPPRODUCT_H
#define STEPC_PASSES_KERNELS_GPU_WARPGROUPPRODUCT_H

#include "passes/kernels/gpu/GpuKernels.h"
#include "runtime/plan/TileLists.h"

namespace stepc::kernels {

/// The properties that a kernel's code depends on.
struct WarpgroupForm {
  plan::ProductForm product;           ///< as plan::checkTileForm says
  int64_t cluster = plan::kTileBlocks; ///< GPU blocks that share the loads of the right operand

  bool isWide() const { return product.out != product.lhs; }
  std::string name() const;
};

/// The form of a product that warpgroups compute, otherwise nullopt. They compute products on tensor cores
/// of the shapes that cost::kernelOf says and the operands that plan::checkTiles says.
std::optional<WarpgroupForm> warpgroupForm(exec::ProductOp op);

/// Whether warpgroups compute both products by the same kernel.
bool areOfOneWarpgroupForm(exec::ProductOp one, exec::ProductOp other);
/// Whether the chip that a module is for has products of warpgroups.
bool hasWarpgroups(mlir::gpu::GPUModuleOp code);

/// How a GPU starts the kernel of a form.
plan::LaunchShape warpgroupLaunch(const WarpgroupForm &form);
/// The kernel of a form, added to `code` if it is missing. Arguments are those of lists of tiles in
/// kernel_abi.h.
mlir::gpu::GPUFuncOp addWarpgroupKernel(mlir::gpu::GPUModuleOp code, const WarpgroupForm &form,
                                        mlir::Location loc);

} // namespace stepc::kernels

#endif
