//===- Reference.h - The float64 reference of level 1 -----------*- C++ -*-===//
//
// What a rule means, without roundings: an interpreter of `optim.rule` bodies in
// double on whole tensors. Casts to bf16, f16 and f32 are the identity, and so is storage. Every
// back end is compared with it; it is compared with formulas written from the papers.
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
  /// One per state of the rule, in its order; empty where the state does not exist (the
  /// master of an f32 parameter).
  std::vector<Tensor> states;
};

/// The global shape of a state of that kind.
std::vector<int64_t> stateShape(optim::ParameterOp parameter, optim::ValueKind kind);
/// False for the master of a parameter that is f32.
bool stateExists(optim::ParameterOp parameter, optim::StateAttr state);
/// States before the first step: their initial values; masters equal the parameter.
std::vector<Tensor> initialStates(optim::RuleOp rule, optim::ParameterOp parameter,
                                  const Tensor &value);

/// One step of one parameter, in place; each declared matrix of a stack by itself. `step` counts
/// from 1; `hyperparameters` are in the rule's order. Fails, with an error at the operation, on an
/// operation that it does not know or a tensor of another shape; `tensors` is unchanged then.
mlir::LogicalResult step(optim::RuleOp rule, optim::ParameterOp parameter, Tensors &tensors,
                         llvm::ArrayRef<double> hyperparameters, int64_t step);

} // namespace stepc::reference

#endif
