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
  // One record per parameter of the plan. If a parameter has parts of several sizes, each further size is a
  // group, and has records of its own behind these, one per parameter.
  std::vector<stepc_parameter_record> records;
  // Per group, the number of its first own record. -1 if it uses the parameters' records.
  std::vector<int64_t> firstRecord;
  bool someInactive = false;
  // What ranks tell each other outside of exchanges: a seal per mesh and, if a route may skip, a bit per
  // parameter that says whether its gradient is present.
  std::unique_ptr<uint8_t[]> told; // [size][toldBytes]
  int64_t toldBytes = 0;
  std::vector<stepc_operation> tellMessages;
  Agreement agreement;
  // Each distinct set of meshes that the seal of some message covers, and the seal of each set in this step.
  std::vector<std::vector<int64_t>> sealedMeshes;
  std::vector<Seal> seals; // if the host carries out exchanges
  DeviceSeals deviceSeals; // if exchanges are on a stream
  bool hasAgreed = false;  // set in the first step
  stepc_traffic before{};  // the transport's, when the program began
  bool stepsAdvanced = false;
  int32_t failure = STEPC_OK; // of the step
  stepc_counters executed{};
};

} // namespace stepc::runtime

#endif
