//===- GpuKernels.h - Kernels that a GPU's blocks run -----------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_GPU_GPUKERNELS_H
#define STEPC_PASSES_KERNELS_GPU_GPUKERNELS_H

#include "passes/cost/ProductRates.h"
#include "passes/kernels/KernelBuilder.h"
#include "passes/kernels/products/Products.h"
#include "stepc/kernel_abi.h"

#include "dialects/exec/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace stepc {
struct GpuTarget;
}

namespace stepc::kernels {

/// Threads of a GPU block, in all kernels of this folder that do not say another number.
inline constexpr int32_t kThreads = 256;
/// Marks a gpu.module whose kernels bound their waits (GpuTarget::bounded).
inline constexpr llvm::StringLiteral kBoundedAttr = "stepc.bounded";
/// The address space of a GPU's global memory.
inline constexpr unsigned kGlobal = 1;

/// Adds the gpu.module of all kernels at the begin of `module`, for a chip. `features` say the version of
/// PTX.
mlir::gpu::GPUModuleOp makeGpuModule(mlir::ModuleOp module, llvm::StringRef chip,
                                     llvm::StringRef features);

/// Adds a kernel of level 5 to the end of `code`, as a function that a GPU runs for every chunk, or
/// parameter. `dispatches` must be all that run the kernel, at least one. Fails with an error at a dispatch
/// that does not fit.
mlir::FailureOr<mlir::gpu::GPUFuncOp>
addGpuChunkKernel(mlir::gpu::GPUModuleOp code, mlir::func::FuncOp kernel,
                  llvm::ArrayRef<exec::DispatchChunksOp> dispatches);
mlir::FailureOr<mlir::gpu::GPUFuncOp>
addGpuParameterKernel(mlir::gpu::GPUModuleOp code, mlir::func::FuncOp kernel,
                      llvm::ArrayRef<exec::DispatchParametersOp> dispatches);

/// One kernel of a command. Its grid has `blocksPerSlot` GPU blocks per slot (or per row of a table), and
/// those of one slot have consecutive numbers.
struct GpuKernel {
  mlir::gpu::GPUFuncOp function;
  int64_t blocksPerSlot;
};
using GpuKernels = llvm::SmallVector<GpuKernel>;

/// Returns the kernels of a command on GPUs, in the order in which they run. Missing kernels are added at the
/// end of `code`. There are none for a command that a GPU carries out by itself, and none for an empty
/// result.
GpuKernels addGpuKernels(mlir::gpu::GPUModuleOp code, mlir::Operation *command);
/// Bytes of scratch that these kernels need for each block. Products need none.
int64_t gpuScratchBytesPerBlock(exec::BatchOpInterface command);

/// The order in which a GPU adds up a product of operands of these types: on its tensor cores, if they take
/// the types and `tensorCores` is set.
exec::Accumulation gpuAccumulation(bool tensorCores, mlir::Type lhs, mlir::Type rhs);
/// How a GPU's chains and mma.sync cut up a product m × n, and how the kernels for a target do. For
/// clusters of blocks the tile is the cluster's.
ProductTile gpuProductTile(const GpuTarget &target, const cost::BlockProduct &product,
                           exec::Accumulation accumulation);
ProductTile gpuProductTile(int64_t m, int64_t n, exec::Accumulation accumulation);
/// The kernels of a product with accumulation fused_chain or tensorcore. Arguments are the scratch, which
/// they do not use, the operands, the addend if there is one, the out, stepc_factors, and stepc_shift if
/// there is a shift.
GpuKernels addGpuProductKernels(mlir::gpu::GPUModuleOp code, exec::ProductOp op);

/// The kernel of a copy: each GPU block copies a row of the table. Arguments are those of rows in
/// kernel_abi.h.
GpuKernels addGpuCopyKernel(mlir::gpu::GPUModuleOp code, exec::CopyOp op);
/// The kernel of a sum of contributions: each GPU block adds up a row of the table.
GpuKernels addGpuSumKernel(mlir::gpu::GPUModuleOp code, exec::SumOp op);
/// The kernel that adds up a rank's parts of a number of the model, in one GPU block.
GpuKernels addGpuCollectKernel(mlir::gpu::GPUModuleOp code, exec::CollectOp op);
/// The kernel that leaves all parameters out of a step that the model skips: each thread visits a record.
GpuKernels addGpuSkipKernel(mlir::gpu::GPUModuleOp code, exec::SkipOp op);
/// The kernel that counts a step: each thread visits a record.
GpuKernels addGpuAdvanceKernel(mlir::gpu::GPUModuleOp code, exec::AdvanceStepsOp op);
/// The kernel that adds up seals and puts them on messages, each seal by a GPU block. The second one compares
/// the seals of messages that came, in one GPU block. Arguments are those of seals in kernel_abi.h.
GpuKernels addGpuSealKernel(mlir::gpu::GPUModuleOp code, exec::StartOp op);
GpuKernels addGpuSealCheckKernel(mlir::gpu::GPUModuleOp code, exec::AwaitOp op);

/// Turns one of these kernels into a function of the kernel ABI, at the end of `module`. Threads run one
/// after another; if they wait for each other, the runtime switches between them (runtime/emulated). With
/// `races` they announce every load and store to the runtime. Fails with an error at an operation that is not
/// emulated.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp> threadsOnHost(mlir::gpu::GPUFuncOp kernel,
                                                      mlir::ModuleOp module, bool races = false);

/// Begins a kernel at the module's end. The builder then stands before its return. The kernel gets the
/// attribute `exec.launch`, which says how it is started. launchOf adds the static shared memory when the
/// kernel is complete.
mlir::gpu::GPUFuncOp beginGpuKernel(mlir::gpu::GPUModuleOp code, llvm::StringRef name,
                                    llvm::ArrayRef<mlir::Type> arguments, KernelBuilder &b,
                                    plan::LaunchShape launch = {.threads = kThreads});
/// The size in bytes of an array in a GPU block's shared memory.
int64_t bytesOfMemory(mlir::BlockArgument attribution);
/// How a complete kernel is started, with its static shared memory.
plan::LaunchShape launchOf(mlir::gpu::GPUFuncOp kernel);
/// Moves the launch from the kernel to the function by which commands name the kernel.
void moveLaunch(mlir::gpu::GPUFuncOp kernel, mlir::Operation *named);
/// The number of the GPU block, or of the thread in it, as i64.
mlir::Value blockIndex(KernelBuilder &b);
mlir::Value threadIndex(KernelBuilder &b);
/// Emits loops in which the threads of a GPU block share out a rectangle, so that each element has one
/// thread. Calls beginRow(row), then body(row, column, isVector) for elements of that row. isVector: whether
/// `width` elements from the column on are meant. Vectors are used if `isAligned` holds.
void shareOut(KernelBuilder &b, mlir::Value rows, mlir::Value cols, int64_t width,
              mlir::Value isAligned, llvm::function_ref<void(mlir::Value)> beginRow,
              llvm::function_ref<void(mlir::Value, mlir::Value, bool)> body);
/// Bytes that a thread moves in its widest access, whose address is a multiple of them.
constexpr int64_t kWideBytes = 16;
/// Whether all `bases`, addresses or i64, are multiples of kWideBytes. If there is more than one row, all
/// `strides` (bytes) must also be multiples.
mlir::Value areAligned(KernelBuilder &b, mlir::Value rows, llvm::ArrayRef<mlir::Value> bases,
                       llvm::ArrayRef<mlir::Value> strides);
/// Runs `body` unless this step skips the parameter.
void ifActive(KernelBuilder &b, mlir::Value records, mlir::Value parameter,
              llvm::function_ref<void()> body);

} // namespace stepc::kernels

#endif
