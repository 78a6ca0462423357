//===- Interpreter.h - One block through a rule's body ----------*- C++ -*-===//
#ifndef STEPC_PASSES_REFERENCE_INTERPRETER_H
#define STEPC_PASSES_REFERENCE_INTERPRETER_H

#include "dialects/optim/Optim.h"

#include "llvm/ADT/DenseMap.h"

namespace stepc::reference {

/// A scalar (1 × 1) or a tensor of a block; conditions are 0 and 1.
struct Matrix {
  int64_t rows = 1, cols = 1;
  std::vector<double> data = {0.0};

  Matrix() = default;
  Matrix(int64_t rows, int64_t cols, double value = 0.0)
      : rows(rows), cols(cols), data(static_cast<size_t>(rows * cols), value) {}
  double &at(int64_t row, int64_t col) { return data[static_cast<size_t>(row * cols + col)]; }
  double at(int64_t row, int64_t col) const { return data[static_cast<size_t>(row * cols + col)]; }
};

/// Computes an operation with MatrixOpInterface in double, as the operation is documented. The result is a
/// matrix of rows × cols. Returns nothing for an unknown operation.
std::optional<Matrix> computeMatrix(mlir::Operation *op, llvm::ArrayRef<const Matrix *> operands,
                                    int64_t rows, int64_t cols);

/// Runs the operations of the body of a rule or model on one block.
class Interpreter {
public:
  /// `arguments` has a matrix per argument of the body. `numbers` are the numbers of the model that are
  /// known; in a model's body they are the results of its reductions. `sizes` are those of plan::Group.
  Interpreter(mlir::Block &body, std::vector<Matrix> arguments, int64_t rows, int64_t cols,
              llvm::ArrayRef<double> numbers = {}, std::vector<int64_t> sizes = {});
  /// Says which elements the block has, for random numbers: the number of its first one among those of its
  /// parameter, and the key of the parameter's name (random::keyOf).
  /// `block` is its number in the parameter, by which elements of values of other sizes are counted.
  void countElements(int64_t first, int64_t block, uint64_t key) {
    firstElement = first;
    numberOfBlock = block;
    keyOfName = key;
  }

  /// Returns the values that the body yields. Fails, with an error at the operation, if an operation is
  /// unknown.
  mlir::FailureOr<std::vector<Matrix>> run();
  /// A value of the body, after `run` has succeeded.
  const Matrix &at(mlir::Value value) const { return values.at(value); }

private:
  mlir::LogicalResult runOp(mlir::Operation &op);
  /// Computes an element of an elementwise operation of arith, math or optim. Returns nothing for other
  /// operations.
  std::optional<double> compute(mlir::Operation &op, llvm::ArrayRef<double> operands);
  Matrix shaped(mlir::Value value) const;

  mlir::Block &body;
  int64_t rows, cols;
  llvm::ArrayRef<double> numbers;
  std::vector<int64_t> sizes;
  int64_t firstElement = 0, numberOfBlock = 0;
  uint64_t keyOfName = 0;
  llvm::DenseMap<mlir::Value, Matrix> values;
};

} // namespace stepc::reference

#endif
