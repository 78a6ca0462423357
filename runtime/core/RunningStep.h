//===- RunningStep.h - The step that is under way ---------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_CORE_RUNNINGSTEP_H
#define STEPC_RUNTIME_CORE_RUNNINGSTEP_H

#include "runtime/core/Agreement.h"
#include "runtime/core/DeviceSeals.h"
#include "stepc/kernel_abi.h"
#include "stepc/stepc.h"

#include <memory>
#include <vector>

namespace stepc::runtime {

/// What changes from step to step.
struct RunningStep {
  // One record per parameter. Behind them, one per parameter for each group that has a further part of its
  // parameters.
  std::vector<stepc_parameter_record> records;
  std::vector<int64_t> firstRecord; // per group, of its records; -1: those of its parameters
  bool someInactive = false;
  // What ranks tell each other outside of exchanges: a seal per mesh and, if a route may skip, a bit per
  // parameter that says whether its gradient is present.
  std::unique_ptr<uint8_t[]> told; // [size][toldBytes]
  int64_t toldBytes = 0;
  std::vector<stepc_operation> tellMessages;
  Agreement agreement;
  // Each distinct set of meshes to which a message's values belong, and its seal in this step.
  std::vector<std::vector<int64_t>> sealedMeshes;
  std::vector<Seal> seals; // where the host carries out exchanges
  DeviceSeals deviceSeals; // where they stand on a stream
  bool hasAgreed = false;  // once, in the first step
  stepc_traffic before{};  // of the transport, when the program began
  bool stepsAdvanced = false;
  int32_t failure = STEPC_OK; // of the step
  stepc_counters executed{};
};

} // namespace stepc::runtime

#endif
