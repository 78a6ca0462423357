//===- Target.h - What targets differ in ------------------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_TARGET_H
#define STEPC_PASSES_KERNELS_TARGET_H

#include "passes/cost/ProductRates.h"
#include "passes/kernels/products/Products.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace stepc::kernels {

/// Answers what depends on the target for the passes of levels 5 and 6. A new target is a subclass in a file
/// of its own, and a line in Target.cpp.
class Target {
public:
  explicit Target(std::string chip) : text(std::move(chip)) {}
  virtual ~Target() = default;

  /// The chip as text, with all that decides what its code may use (TargetShape.h). The module and the plan
  /// have it.
  const std::string &chip() const { return text; }

  /// The most elements of a shard or block for one item of a kernel. It cuts work and changes no result.
  virtual int64_t chunkElements() const = 0;
  /// The order in which a product of operands of these types adds up, for any batch and rank.
  virtual exec::Accumulation accumulation(mlir::Type lhs, mlir::Type rhs) const = 0;
  /// How a product is cut up. Only reports for people use it.
  virtual ProductTile productTile(const cost::BlockProduct &product,
                                  exec::Accumulation accumulation) const = 0;
  /// Bytes of scratch that a command's kernels need per block. Must not exceed what earlier levels reserve
  /// (scratchBoundPerBlock).
  virtual int64_t scratchBytesPerBlock(exec::BatchOpInterface command) const = 0;
  /// Builds the function that the device runs instead of a kernel of level 5, for all `dispatches` of it.
  /// Fails with an error if a dispatch does not fit the kernel.
  virtual mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
  kernel(mlir::func::FuncOp kernel, llvm::ArrayRef<exec::DispatchChunksOp> dispatches) const = 0;
  virtual mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
  kernel(mlir::func::FuncOp kernel,
         llvm::ArrayRef<exec::DispatchParametersOp> dispatches) const = 0;
  /// Builds the kernels of any other command and adds them to the module's symbols. Returns none for a
  /// command that the device, or the host, carries out by itself.
  ///
  /// One item of a copy or of a sum is one row. The kernel of a start puts seals on messages. The kernel of
  /// an await compares the seals of messages that came. The kernels of exec.skip and exec.advance_steps set
  /// active flags and count the step in the device's memory.
  virtual Kernels kernels(mlir::SymbolTable &symbols, mlir::Operation *command) const = 0;

  /// Whether one launch can compute both products, if they do not depend on each other.
  virtual bool canJoin(exec::ProductOp, exec::ProductOp) const { return false; }

  /// Adds the passes that lower the module's kernels, after their numerics are expanded, to level 6.
  virtual void addKernelPasses(mlir::OpPassManager &manager) const = 0;

  /// The GPU (90: sm_90) on which a library may compute products in place of kernels. Nullopt if there is no
  /// library, or if its bits differ from those that are required.
  virtual std::optional<int64_t> libraryChip() const { return std::nullopt; }

  /// Whether the chip has fused multiply-adds of f32 and f64.
  virtual bool fuses() const = 0;
  /// Whether the chip has instructions that convert between f16 and f32, denormal numbers included.
  virtual bool convertsHalf() const = 0;

private:
  std::string text;
};

/// The target of a text as users write it: "cpu" (this machine), "cpu:<llvm cpu>", "cuda:<gpu>",
/// "emulated:<gpu>", "interpret", "interpret:<llvm cpu>", "interpret:<gpu>". An error lists the known
/// targets.
llvm::Expected<std::unique_ptr<Target>> targetOfText(llvm::StringRef text);

/// The target that a module at level exec or later is for. Fails with an error if the module names none.
mlir::FailureOr<std::unique_ptr<Target>> targetOfModule(mlir::ModuleOp module);

/// A processor of this machine's architecture, from its chip (TargetShape.h).
llvm::Expected<std::unique_ptr<Target>> makeCpuTarget(llvm::StringRef chip);
/// A target that runs a GPU's code on this machine, from its chip (gpu/EmulatedTarget.cpp).
llvm::Expected<std::unique_ptr<Target>> makeEmulatedTarget(llvm::StringRef chip);
/// A target whose kernels the runtime interprets, from its chip (interpret/InterpretTarget.cpp).
llvm::Expected<std::unique_ptr<Target>> makeInterpretTarget(llvm::StringRef chip);
/// A target for NVIDIA's GPUs, from its chip (gpu/CudaTarget.cpp).
llvm::Expected<std::unique_ptr<Target>> makeCudaTarget(llvm::StringRef chip);

} // namespace stepc::kernels

#endif
