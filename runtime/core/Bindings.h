//===- Bindings.h - What the trainer has bound ------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_CORE_BINDINGS_H
#define STEPC_RUNTIME_CORE_BINDINGS_H

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace stepc::runtime {

/// A row of hyperparameter values, for parameters of one route; `parameter` is the first of these parameters.
struct HyperparameterRow {
  const double *values;
  int64_t parameter;
};

/// Memory that the trainer lends. `what` is a state's index, or a kind of Overlaps.cpp: parameter, gradient,
/// counts.
struct LentRange {
  uintptr_t begin, end; ///< 0 if nothing is bound
  int64_t bytes, parameter, what;
  /// A gradient's: at the last check, the gap between two written ranges in which it lay.
  uintptr_t freeBegin, freeEnd;
};

/// What a pointer that the trainer bound is known to be.
enum class Bound : uint8_t { Never, Null, Given };

/// The trainer's memory and numbers, as they were bound last.
struct Bindings {
  std::vector<void *> parameters;
  std::vector<void *> gradients; // what kernels read: the given gradient, or zeros
  std::vector<std::vector<void *>>
      states; // [rule's state][parameter]; of an input what kernels read
  std::vector<const void *> givenGradients;
  std::vector<Bound> parameterBound, gradientBound;
  std::vector<std::vector<Bound>> stateBound;
  int64_t *steps = nullptr;
  bool areStepsOnDevice = false, areHyperparametersOnDevice = false;
  // A copy of the step counts that the host holds, as of this step, and the address at which kernels read it.
  std::vector<int64_t> stepsTaken;
  int64_t *stepsAddress = nullptr;
  std::vector<std::vector<double>> routeValues;
  bool areHyperparametersBound = false;
  std::vector<HyperparameterRow> hyperparameterRows; // each distinct row once
  // A copy of the hyperparameters that the host holds, as of this step: rows of `hyperparameterStride`
  // numbers.
  std::vector<double> hyperparameterValues;
  int64_t hyperparameterStride = 0;
  const double *hyperparameterAddress = nullptr;        // at which kernels read the copy
  bool shardsChecked = false, gradientsChecked = false; // whether checked since the last bind
  // The memory that a step writes, and the gradients that it reads, sorted by their addresses at the last
  // check.
  std::vector<LentRange> writtenRanges, gradientRanges;
  bool writtenDisjoint = false, gradientsDisjoint = false; // whether found since an address changed
};

} // namespace stepc::runtime

#endif
