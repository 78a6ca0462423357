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

/// The name of the kernel. It is the same for sums of equal types, divisors and reductions.
std::string nameOf(exec::SumOp op);
std::string nameOf(exec::CollectOp op);

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
  /// The address in memory of a word of the row's list, of where contributions begin.
  mlir::Value listed(mlir::Value number);
  /// The address of an element, as its offset from the first one of the source says, from a begin.
  mlir::Value sourceAt(mlir::Value begin, mlir::Value line, mlir::Value column);
  mlir::Value targetAt(mlir::Value line, mlir::Value column);
  /// The address of the row's first element in a contribution that begins at `begin`.
  mlir::Value sourceOf(mlir::Value begin) { return b.address(begin, sourceStorage, source); }
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
  mlir::Type sourceStorage; ///< of what is added up: exact sums if it is parts of lines
  int64_t divisor;
};

/// How many exact sums each number has that the operation adds up. It must add up parts of lines.
int64_t sumsPerValue(exec::SumOp op);

} // namespace stepc::kernels

#endif
