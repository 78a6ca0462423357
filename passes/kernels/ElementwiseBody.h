//===- ElementwiseBody.h - A scalar region on scalars and vectors -*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_ELEMENTWISEBODY_H
#define STEPC_PASSES_KERNELS_ELEMENTWISEBODY_H

#include "dialects/optim/Optim.h"
#include "passes/kernels/KernelBuilder.h"

#include "mlir/IR/IRMapping.h"

namespace stepc::kernels {

/// A vector whose elements are all the scalar. A bf16 or f16 is broadcast as an integer with its bits: on
/// chips without the type LLVM would call functions that no library has.
mlir::Value broadcast(KernelBuilder &b, mlir::Value scalar, int64_t width);

/// Clones an elementwise region in two parts: what depends on the element, and what is the same for
/// all elements of a chunk.
class ElementwiseBody {
public:
  /// `firstUniform`: from this argument on, arguments are the same for all elements.
  ElementwiseBody(mlir::Block &body, unsigned firstUniform)
      : body(body), firstUniform(firstUniform) {}

  /// Emits the uniform part once, at the builder's insertion point.
  void emitUniform(KernelBuilder &builder, mlir::ValueRange uniformArguments);
  /// Emits the rest on vectors of `width` elements (0: on scalars). Returns what the region yields.
  /// `isAligned`: the numbers of elements that it reads begin with a multiple of the width.
  llvm::SmallVector<mlir::Value> emit(KernelBuilder &builder, mlir::ValueRange arguments,
                                      int64_t width, bool isAligned = false);

private:
  /// Draws numbers where the condition holds, which is the same for all elements, and adds them to `values`.
  /// Without a condition a CPU does some further draws with them, which differ in the call alone.
  void draw(KernelBuilder &builder, optim::RandomOp op, mlir::Value element, bool isAligned,
            mlir::IRMapping &values);

  mlir::Block &body;
  unsigned firstUniform;
  mlir::IRMapping uniform;
};

} // namespace stepc::kernels

#endif
