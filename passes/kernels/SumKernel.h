//===- SumKernel.h - Adding up contributions of ranks -----------*- C++ -*-===//
//
// What all targets share of the kernels of exec.sum: where a row's elements stand, and the sum itself.
// Loops over the elements, and their width, are a target's.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_SUMKERNEL_H
#define STEPC_PASSES_KERNELS_SUMKERNEL_H

#include "dialects/exec/Exec.h"
#include "passes/kernels/KernelBuilder.h"

namespace stepc::kernels {

/// One name for sums of equal types and divisors.
std::string nameOf(exec::SumOp op);

/// One row of a sum (plan::SumRow).
class SumEmitter {
public:
  /// `rows`, `from` and `to`: what the kernel is given (kernel_abi.h); `item`: the number of the row.
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
  mlir::Value source, list; ///< elements behind where a contribution begins; a word of the rows
  mlir::Type element, storage;
  int64_t divisor;
};

} // namespace stepc::kernels

#endif
