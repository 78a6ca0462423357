//===- SizeEvaluator.h - What follows from a block's sizes ------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_SIZEEVALUATOR_H
#define STEPC_PASSES_DECIDE_SIZEEVALUATOR_H

#include "dialects/optim/Optim.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace stepc::decide {

/// Evaluates what follows from a block's sizes and literals alone, in f64 as a step does. Operations that two
/// machines may round differently, such as powers and logarithms, are left to the step.
class SizeEvaluator {
public:
  /// An operation on tensors whose result is one of its operands, by their numbers.
  struct Decision {
    int64_t operation, operand;
    auto operator<=>(const Decision &) const = default;
  };

  /// Evaluates the operations of a body. `sizes` are its values of rows, cols and numel, which `group` has.
  SizeEvaluator(mlir::Block &body, mlir::ValueRange sizes, const plan::Group &group);

  /// The value of a scalar. Nothing if it does not follow from the sizes alone.
  std::optional<double> numberOf(mlir::Value value) const;
  /// The value of a condition. Nothing if it does not follow from the sizes alone.
  std::optional<bool> truthOf(mlir::Value value) const;
  /// The decisions of the body, by the numbers of their operations.
  std::vector<Decision> decisions;

private:
  void choose(mlir::Operation *op, int64_t number, int64_t operand);
  void visit(mlir::Operation *op, int64_t number);
  void visitConstant(mlir::arith::ConstantOp op);
  void visitArithmetic(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, double> numbers; ///< of scalars, and of tensors of equal elements
  llvm::DenseMap<mlir::Value, bool> truths;
};

} // namespace stepc::decide

#endif
