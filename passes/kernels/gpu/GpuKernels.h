//===- GpuKernels.h - Kernels that a GPU's blocks run -----------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_GPU_GPUKERNELS_H
#define STEPC_PASSES_KERNELS_GPU_GPUKERNELS_H

#include "passes/kernels/KernelBuilder.h"
#include "passes/kernels/products/Products.h"
#include "stepc/kernel_abi.h"

#include "dialects/exec/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace stepc::kernels {

/// Threads of a block, in all kernels of this room that do not say otherwise.
inline constexpr int32_t kThreads = 256;
/// The address space of a GPU's global memory.
inline constexpr unsigned kGlobal = 1;

/// The module of all kernels, at the begin of `module`: for a chip, in a version of PTX.
mlir::gpu::GPUModuleOp makeGpuModule(mlir::ModuleOp module, llvm::StringRef chip,
                                     llvm::StringRef features);

/// What a kernel of level 5 says of every chunk, or parameter, as a function at the end of `code`.
/// `dispatches` are all that run it, one at least. Emits an error at a dispatch that does not fit.
mlir::FailureOr<mlir::gpu::GPUFuncOp>
addGpuChunkKernel(mlir::gpu::GPUModuleOp code, mlir::func::FuncOp kernel,
                  llvm::ArrayRef<exec::DispatchChunksOp> dispatches);
mlir::FailureOr<mlir::gpu::GPUFuncOp>
addGpuParameterKernel(mlir::gpu::GPUModuleOp code, mlir::func::FuncOp kernel,
                      llvm::ArrayRef<exec::DispatchParametersOp> dispatches);

/// One of the kernels that an operation on computed blocks takes: its grid is so many blocks per slot,
/// those of a slot side by side.
struct GpuKernel {
  mlir::gpu::GPUFuncOp function;
  int64_t blocksPerSlot;
};
using GpuKernels = llvm::SmallVector<GpuKernel>;

/// The kernels that a command has on GPUs, in order; missing ones are added at the end of `code`. None for a
/// command that a GPU carries out by itself, and for an empty result.
GpuKernels addGpuKernels(mlir::gpu::GPUModuleOp code, mlir::Operation *command);
/// Bytes of scratch that they take for each block. Products take none.
int64_t gpuScratchBytesPerBlock(exec::BatchOpInterface command);

/// The order in which a GPU adds up a product of operands of these types: on its tensor cores, if they take
/// the types and `tensorCores` is set.
exec::Accumulation gpuAccumulation(bool tensorCores, mlir::Type lhs, mlir::Type rhs);
/// How a GPU cuts up a product m × n.
ProductTile gpuProductTile(int64_t m, int64_t n, exec::Accumulation accumulation);
/// The kernels of a product of one of these accumulations. Arguments are the scratch, which it does
/// not use, the operands, the addend if there is one, the out, and stepc_factors.
GpuKernels addGpuProductKernels(mlir::gpu::GPUModuleOp code, exec::ProductOp op);

/// The kernel of a copy, a row per block. Arguments are those of rows in kernel_abi.h.
GpuKernels addGpuCopyKernel(mlir::gpu::GPUModuleOp code, exec::CopyOp op);
/// The kernel of a sum of contributions, a row per block.
GpuKernels addGpuSumKernel(mlir::gpu::GPUModuleOp code, exec::SumOp op);
/// The kernel that counts a step, a parameter per thread.
GpuKernels addGpuAdvanceKernel(mlir::gpu::GPUModuleOp code, exec::AdvanceStepsOp op);
/// The kernel that adds up seals and puts them on messages, a seal per block, and the one that compares
/// those of messages that came, in one block. Arguments are those of seals in kernel_abi.h.
GpuKernels addGpuSealKernel(mlir::gpu::GPUModuleOp code, exec::StartOp op);
GpuKernels addGpuSealCheckKernel(mlir::gpu::GPUModuleOp code, exec::AwaitOp op);

/// Turns one of these kernels into a function of the kernel ABI, at the end of `module`. Threads run one
/// after another; if they wait for each other, the runtime switches between them (runtime/emulated). With
/// `races` they announce every load and store to the runtime. An error at an operation for which this does
/// not work.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp> threadsOnHost(mlir::gpu::GPUFuncOp kernel,
                                                      mlir::ModuleOp module, bool races = false);

/// Begins a kernel at the module's end, with its return; the builder stands before that. How it is started
/// stands on it as `exec.launch`. Static shared memory is counted when the kernel is complete.
mlir::gpu::GPUFuncOp beginGpuKernel(mlir::gpu::GPUModuleOp code, llvm::StringRef name,
                                    llvm::ArrayRef<mlir::Type> arguments, KernelBuilder &b,
                                    plan::LaunchShape launch = {.threads = kThreads});
/// The size of an array in a block's memory.
int64_t bytesOfMemory(mlir::BlockArgument attribution);
/// How a complete kernel is started.
plan::LaunchShape launchOf(mlir::gpu::GPUFuncOp kernel);
/// Moves that from the kernel to the function by which commands name it.
void moveLaunch(mlir::gpu::GPUFuncOp kernel, mlir::Operation *named);
/// The block's or the thread's number, as i64.
mlir::Value blockIndex(KernelBuilder &b);
mlir::Value threadIndex(KernelBuilder &b);
/// Calls body(row, column, whether a vector of `width` elements begins there) for all elements of a
/// rectangle, each by one thread of the block. Calls beginRow(row) before those of a row. Vectors are used if
/// `isAligned`.
void shareOut(KernelBuilder &b, mlir::Value rows, mlir::Value cols, int64_t width,
              mlir::Value isAligned, llvm::function_ref<void(mlir::Value)> beginRow,
              llvm::function_ref<void(mlir::Value, mlir::Value, bool)> body);
/// Bytes that a thread moves in its widest access, whose address is a multiple of them.
constexpr int64_t kWideBytes = 16;
/// Whether all `bases` are multiples of kWideBytes. So must be all `strides` (bytes) if there is more than
/// one row.
mlir::Value areAligned(KernelBuilder &b, mlir::Value rows, llvm::ArrayRef<mlir::Value> bases,
                       llvm::ArrayRef<mlir::Value> strides);
/// Runs `body` unless this step skips the parameter.
void ifActive(KernelBuilder &b, mlir::Value records, mlir::Value parameter,
              llvm::function_ref<void()> body);

} // namespace stepc::kernels

#endif
