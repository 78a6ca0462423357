//===- Library.h - What is the same for all ranks ----------------*- C++ -*-===//
//
// A program, with its plan: read once per process and never changed.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_CORE_LIBRARY_H
#define STEPC_RUNTIME_CORE_LIBRARY_H

#include "runtime/devices/Device.h"
#include "runtime/plan/Plan.h"
#include "stepc/stepc.h"

#include <string>
#include <vector>

namespace stepc::runtime {

/// A state that exists on a group's parameters, a metric, or an input.
struct StateText {
  std::string name, dtype, kind, placements;
  std::vector<int64_t> shape;
  int64_t index = 0; // among the rule's states
  plan::ValueKind value = plan::ValueKind::Full;
  int64_t elementBytes = 4;
  double init = 0; // of an input the default; NaN if it has none
  bool master = false;
};

struct GroupText {
  std::string dtype, gradientType, placements, gradientPlacements, mesh, blocks;
  std::vector<StateText> states;  // that the trainer binds
  std::vector<StateText> metrics; // that lie in memory of the library
  std::vector<StateText> inputs;  // that the trainer gives, and steps only read
};

struct Library {
  explicit Library(const stepc_program &program) : program(program) {}

  const stepc_program &program;
  /// Why the program cannot be used, with its status; STEPC_OK otherwise.
  int32_t status = STEPC_OK;
  std::string problem;

  plan::Plan plan;
  std::vector<int64_t> world;
  uint64_t hash = 0;
  std::vector<GroupText> groups;
  std::vector<std::vector<const char *>> meshAxes; // by mesh, the axes' names in the plan
  int64_t ruleStates = 0;                          // the most states that a rule has

  const stepc_device_table &device() const { return *program.device; }
  /// The kernel of that number in the plan. Null if the number is negative, or if kernels are in a GPU's
  /// images.
  stepc_kernel kernel(int64_t number) const {
    return number < 0 || !program.kernels ? nullptr : program.kernels[number];
  }
  /// A launch of that kernel, without items yet.
  Launch launch(plan::KernelNumber number) const {
    Launch made;
    made.kernel = kernel(number);
    made.number = number;
    if (!number.isNone() && plan.kernels[number].launch)
      made.shape = &*plan.kernels[number].launch;
    return made;
  }
  const plan::Parameter &parameter(int64_t index) const { return plan.parameters[index]; }
  const plan::Group &group(int64_t parameter) const {
    return plan.groups[plan.parameters[parameter].group];
  }
  const plan::Route &route(int64_t parameter) const {
    return plan.routes[plan.parameters[parameter].route];
  }
};

/// Reads a program's plan. The library is never destroyed, because a trainer's thread may outlive the static
/// destructors of the process.
const Library *readLibrary(const stepc_program &program);

/// "rank 1", or "rank 1 (global rank 5)" if a library's world is a part of the job's.
std::string rankName(const Library &library, int64_t worldRank);

} // namespace stepc::runtime

#endif
