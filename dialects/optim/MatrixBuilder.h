//===- MatrixBuilder.h - What matrix operations are made of -----*- C++ -*-===//
//
// The method `expand` of a matrix operation (OptimInterfaces.td) computes the operation from products,
// functions of blocks and elementwise stages. Its caller passes a MatrixBuilder. One builder builds
// operations on batches of blocks (passes/distribute). Another builder counts what they cost (passes/decide).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_MATRIXBUILDER_H
#define STEPC_DIALECTS_OPTIM_MATRIXBUILDER_H

#include "runtime/plan/Plan.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace stepc::optim {

class BlockFunctionAttrInterface;

/// A value of an expansion, one matrix per block.
struct MatrixValue {
  mlir::Value batch; ///< null if the builder only counts costs
  plan::ValueKind kind = plan::ValueKind::Full;
  mlir::Type element;
  int64_t number = 0; ///< identifies the value if the builder only counts costs
};

/// The extents for which an operation is expanded.
struct MatrixExtents {
  /// The extents of the group's blocks. In a group with slabs, `rows` and `cols` are those of a slab.
  MatrixExtents(const plan::Group &group);
  MatrixExtents(int64_t rows, int64_t cols, std::vector<int64_t> sizes = {})
      : rows(rows), cols(cols), small(std::min(rows, cols)), large(std::max(rows, cols)),
        isTall(rows > cols), sizes(std::move(sizes)) {}
  /// The extents of the group's blocks, which are whole.
  static MatrixExtents whole(const plan::Group &group) {
    return {group.rows(), group.cols(), group.sizes};
  }

  int64_t rows, cols;
  int64_t small, large; ///< the extents of the whole block, by size
  bool isTall; ///< whether the whole block has more rows than columns, or its slabs cut rows
  bool areSlabs = false;      ///< whether rows and cols are a slab's
  std::vector<int64_t> sizes; ///< of the rule (plan::Group::sizes)

  std::pair<int64_t, int64_t> of(plan::ValueKind kind) const {
    return kind.extents(rows, cols, small, sizes);
  }
};

/// alpha · (lhs · rhs) + beta · addend + shift · I, rounded as `optim.product` says.
struct MatrixProduct {
  MatrixValue lhs, rhs;
  std::optional<MatrixValue> addend = {};
  double alpha = 1, beta = 0, shift = 0;
  bool transposeLhs = false, transposeRhs = false;
  bool isSymmetric = false;
  plan::ValueKind kind = plan::ValueKind::Full; ///< of the result
  mlir::Type element;
  /// A value of the result's type that nothing reads after this product. The result may take its memory.
  std::optional<MatrixValue> replaced = {};
};

/// The operations that an expansion is built from. Each function returns its result.
class MatrixBuilder {
public:
  explicit MatrixBuilder(const MatrixExtents &extents) : extents(extents) {}
  virtual ~MatrixBuilder() = default;

  /// Builds the scalar computation of a stage: one element of its result from the elements of its inputs.
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

  /// A function of whole blocks. In a group with slabs it is a function of each slab by itself.
  virtual MatrixValue apply(BlockFunctionAttrInterface function,
                            llvm::ArrayRef<MatrixValue> sources, plan::ValueKind kind,
                            mlir::Type element) = 0;
  /// The Frobenius norm of each block times 2 to `exponent`, in f32. In a group with slabs it is computed
  /// from the norms of the slabs. Before they are squared they are divided by the larger of their sum and
  /// `least`.
  virtual MatrixValue norm(MatrixValue source, int64_t exponent, double least) = 0;
  virtual MatrixValue product(const MatrixProduct &) = 0;
  /// An elementwise stage. The scalar that `body` builds is rounded to `element`.
  virtual MatrixValue stage(llvm::ArrayRef<MatrixValue> ins, plan::ValueKind kind,
                            mlir::Type element, Body body) = 0;

  const MatrixExtents extents;
};

} // namespace stepc::optim

#endif
