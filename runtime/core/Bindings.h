//===- Bindings.h - What the trainer has bound ------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_CORE_BINDINGS_H
#define STEPC_RUNTIME_CORE_BINDINGS_H

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace stepc::runtime {

/// Values of hyperparameters that some parameters of one route read; `parameter` is the first of them.
struct HyperparameterRow {
  const double *values;
  int64_t parameter;
};

/// Memory that the trainer lends: a parameter, its gradient or a state, as Overlaps.cpp numbers them.
struct LentRange {
  uintptr_t begin, end; ///< 0 if nothing is bound
  int64_t bytes, parameter, what;
  uintptr_t freeBegin,
      freeEnd; ///< of a gradient: where it stood between two ranges that are written
};

/// What a pointer that the trainer bound is known to be.
enum class Bound : uint8_t { Never, Null, Given };

/// The trainer's memory and numbers, as they were bound last.
struct Bindings {
  std::vector<void *> parameters;
  std::vector<void *> gradients;           // what kernels read; see givenGradients
  std::vector<std::vector<void *>> states; // [rule's state][parameter]
  std::vector<const void *> givenGradients;
  std::vector<Bound> parameterBound, gradientBound;
  std::vector<std::vector<Bound>> stateBound;
  int64_t *steps = nullptr;
  bool areStepsOnDevice = false, areHyperparametersOnDevice = false;
  // What kernels read of step counts that the host holds, as of this step, and its address for them.
  std::vector<int64_t> stepsTaken;
  int64_t *stepsAddress = nullptr;
  std::vector<std::vector<double>> routeValues;
  bool areHyperparametersBound = false;
  std::vector<HyperparameterRow> hyperparameterRows; // each once
  // What kernels read of hyperparameters, as of this step: rows of `hyperparameterStride`.
  std::vector<double> hyperparameterValues;
  int64_t hyperparameterStride = 0;
  const double *hyperparameterAddress = nullptr;        // where kernels find these
  bool shardsChecked = false, gradientsChecked = false; // since they were bound
  // The memory that a step writes, and the gradients that it reads, by their addresses at the last look.
  std::vector<LentRange> writtenRanges, gradientRanges;
  bool writtenDisjoint = false, gradientsDisjoint = false; // since an address changed
};

} // namespace stepc::runtime

#endif
