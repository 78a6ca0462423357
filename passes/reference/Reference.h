//===- Reference.h - The float64 reference of level 1 -----------*- C++ -*-===//
//
// What a rule means, without roundings: an interpreter of `optim.rule` bodies in double on whole tensors.
// Casts to bf16, f16 and f32 change nothing, nor does storage. Tests compare every back end with this
// reference, and the reference with formulas that were written from the papers.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_REFERENCE_REFERENCE_H
#define STEPC_PASSES_REFERENCE_REFERENCE_H

#include "dialects/optim/Optim.h"

namespace stepc::reference {

/// A whole tensor, row-major.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> data;
};

/// All that a step of one parameter reads and writes.
struct Tensors {
  Tensor parameter, gradient;
  /// One tensor per state of the rule, in its order. A tensor is empty if the state does not exist (the
  /// master of an f32 parameter).
  std::vector<Tensor> states;
};

/// The global shape of a state of that kind.
std::vector<int64_t> stateShape(optim::ParameterOp parameter, optim::ValueKind kind);
/// False for the master of a parameter that is f32.
bool stateExists(optim::ParameterOp parameter, optim::StateAttr state);
/// States before the first step: their initial values; masters equal the parameter, and metrics are NaN.
std::vector<Tensor> initialStates(optim::RuleOp rule, optim::ParameterOp parameter,
                                  const Tensor &value);

/// Steps one parameter in place; each declared matrix of a stack is stepped by itself. `step` counts from 1,
/// and `hyperparameters` are in the rule's order. Fails at an unknown operation, or if a tensor has another
/// shape. Then an error was emitted, and `tensors` is unchanged. `numbers` are those of the model, if the
/// rules went through `optim-expand-model`.
mlir::LogicalResult step(optim::RuleOp rule, optim::ParameterOp parameter, Tensors &tensors,
                         llvm::ArrayRef<double> hyperparameters, int64_t step,
                         llvm::ArrayRef<double> numbers = {});

/// A parameter that takes a step, and its values before the step.
struct Stepping {
  optim::RuleOp rule;
  optim::ParameterOp parameter;
  const Tensors *tensors;
};
/// The results of a model for one step.
struct ModelStep {
  std::vector<double> numbers; ///< for the rules, by number
  std::vector<double> states;  ///< of the model, after the step
  bool isSkipped = false;      ///< the step changes nothing and does not count
};
/// Computes the results of a model for one step of these parameters. The model must have gone through
/// `optim-expand-model`. `step` counts the steps of the model from 1, `states` are those of the model before
/// the step.
mlir::FailureOr<ModelStep> stepModel(optim::ModelOp model, llvm::ArrayRef<Stepping> parameters,
                                     llvm::ArrayRef<double> hyperparameters, int64_t step,
                                     llvm::ArrayRef<double> states);

} // namespace stepc::reference

#endif
