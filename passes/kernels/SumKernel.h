//===- SumKernel.h - Adding up contributions of ranks -----------*- C++ -*-===//
//
// What all targets share of the kernels of exec.sum: where a row's elements stand, and the sum itself. Each
// target has its own loops over the elements, and their width.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_SUMKERNEL_H
#define STEPC_PASSES_KERNELS_SUMKERNEL_H

#include "dialects/exec/Exec.h"
#include "passes/kernels/KernelBuilder.h"

namespace stepc::kernels {

/// The name of the kernel. It is the same for sums of equal types and divisors.
std::string nameOf(exec::SumOp op);

/// Emits the code for one row of a sum (plan::SumRow).
class SumEmitter {
public:
  /// `rows`, `from` and `to`: arguments of the kernel (kernel_abi.h). `item`: the number of the row.
  SumEmitter(exec::SumOp op, KernelBuilder &b, mlir::Value rows, mlir::Value from, mlir::Value to,
             mlir::Value item);

  mlir::Value parameter, rowCount, cols;  ///< of the row
  mlir::Value sourceStride, targetStride; ///< in elements
  mlir::Value target;                     ///< the address of its first element
  int64_t elementBytes;

  /// The address of the first element of a contribution.
  mlir::Value contribution(mlir::Value number);
  /// The number of contributions.
  mlir::Value count;
  /// Adds up `width` elements, or one if `width` is 0, in f32 in the order of contributions. Then it divides
  /// the sum, rounds it and stores it. `alignment`: bytes, of all addresses.
  void emit(mlir::Value row, mlir::Value column, int64_t width, unsigned alignment = 0);

private:
  mlir::Value field(size_t offset);

  KernelBuilder &b;
  mlir::Value rows, from, row;
  mlir::Value source, list; ///< an offset from a contribution's begin; an index of a word of `rows`
  mlir::Type element, storage;
  int64_t divisor;
};

} // namespace stepc::kernels

#endif
