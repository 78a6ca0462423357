//===- StageKernel.h - Kernels of stages and scalar stages ------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_STAGEKERNEL_H
#define STEPC_PASSES_KERNELS_STAGEKERNEL_H

#include "dialects/comm/Comm.h"
#include "passes/kernels/KernelBuilder.h"

#include "llvm/ADT/StringMap.h"

namespace stepc::kernels {

/// An operand of a kernel over chunks (kernel_abi.h).
struct KernelArgument {
  enum Kind {
    Scalars,   ///< `value`: the scalar table
    BlockRows, ///< the number R of a block's rows
    Operand,   ///< `value`: a buffer, or shards
  };
  Kind kind;
  mlir::Value value;
};

struct StageKernel {
  mlir::LLVM::LLVMFuncOp kernel;
  llvm::SmallVector<KernelArgument> arguments;
};

/// The element type of a buffer or of shards.
mlir::Type elementOf(mlir::Value value);

/// What a stage does: "in" stages for matrix space, "out" reads what was staged, "elementwise" does
/// neither, "blocks" is in matrix space.
llvm::StringRef roleOf(comm::StageOp op);

/// "Muon_in_f32_bf16": rule, stage, and the types in the order of their first use.
std::string kernelName(comm::StageOp op);

/// Makes kernels, one per distinct computation, and names them by rule, stage and types.
class KernelCache {
public:
  explicit KernelCache(mlir::ModuleOp module) : module(module), table(module) {}

  /// The module's symbols: a search for each of thousands of kernels would be quadratic.
  mlir::SymbolTable &symbols() { return table; }
  /// Names a function of the module `name`, or `name_1`, …: the first that is free.
  void enter(mlir::LLVM::LLVMFuncOp function, const std::string &name);

  mlir::FailureOr<StageKernel> stage(comm::StageOp op);
  /// One operand: the table.
  mlir::FailureOr<mlir::LLVM::LLVMFuncOp> scalars(comm::ScalarsOp op);

private:
  /// The kernel of `key`, or a new function of that name (made unique) that `emit` fills.
  mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
  get(const std::string &key, std::string name, mlir::Location loc,
      llvm::function_ref<mlir::LogicalResult(KernelBuilder &, mlir::LLVM::LLVMFuncOp)> emit);

  mlir::ModuleOp module;
  mlir::SymbolTable table;
  llvm::StringMap<int64_t> copies; // of a name: the next to try
  llvm::StringMap<mlir::LLVM::LLVMFuncOp> kernels;
};

/// Clones an elementwise region in two parts: what depends on the element, and what is the same for
/// all elements of a chunk.
class ElementwiseBody {
public:
  /// `firstUniform`: from this argument on, arguments are the same for all elements.
  ElementwiseBody(mlir::Block &body, unsigned firstUniform)
      : body(body), firstUniform(firstUniform) {}

  /// An op that has no elementwise form on vectors, or null.
  mlir::Operation *illegal();
  /// Emits the uniform part once, where the builder stands.
  void emitUniform(KernelBuilder &builder, mlir::ValueRange uniformArguments);
  /// Emits the rest on vectors of `width` elements (0: on scalars); returns what is yielded.
  llvm::SmallVector<mlir::Value> emit(KernelBuilder &builder, mlir::ValueRange arguments,
                                      int64_t width);

private:
  mlir::Block &body;
  unsigned firstUniform;
  mlir::IRMapping uniform;
};

} // namespace stepc::kernels

#endif
