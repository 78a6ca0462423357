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

/// What an operation with MatrixOpInterface is documented to make of these operands, in double: a matrix of
/// rows × cols. Nothing for an operation that is not known.
std::optional<Matrix> computeMatrix(mlir::Operation *op, llvm::ArrayRef<const Matrix *> operands,
                                    int64_t rows, int64_t cols);

/// Runs the operations of a rule's body on one block.
class Interpreter {
public:
  /// `arguments` are one per argument of the rule's body.
  Interpreter(optim::RuleOp rule, std::vector<Matrix> arguments, int64_t rows, int64_t cols);

  /// The values that the body yields, or an error at the operation that it does not know.
  mlir::FailureOr<std::vector<Matrix>> run();

private:
  mlir::LogicalResult runOp(mlir::Operation &op);
  /// Elementwise operations of arith and math, and the named ones of optim. Nothing for others.
  std::optional<double> compute(mlir::Operation &op, llvm::ArrayRef<double> operands);
  Matrix shaped(mlir::Value value) const;

  optim::RuleOp rule;
  int64_t rows, cols;
  llvm::DenseMap<mlir::Value, Matrix> values;
};

} // namespace stepc::reference

#endif
