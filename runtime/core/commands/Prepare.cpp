//===- Prepare.cpp - What commands are made ready with ---------------------===//
#include "runtime/core/Instance.h"

namespace stepc::runtime {

const plan::Command &PreparedCommand::planned() const {
  return instance.library.plan.commands[size_t(number)];
}

Preparer::Preparer(stepc_instance &instance)
    : instance(instance), plan(instance.library.plan), tables(instance.prepared.tables.tables),
      starts(plan.starts()) {}

int64_t Preparer::recordOf(int64_t group, int64_t parameter) const {
  int64_t first = instance.running.firstRecord[group];
  return first < 0 ? parameter : first + plan.parameters[parameter].indexInGroup;
}

char *Preparer::arena() const { return static_cast<char *>(instance.prepared.arena.data()); }

void *Preparer::shardsOf(const plan::Operand &operand) const {
  std::vector<void *> *shards = runtime::shardsOf(instance, operand);
  return shards ? shards->data() : nullptr;
}

int64_t Preparer::shiftOf(const plan::Operand &operand, const plan::Place &place,
                          int64_t element) const {
  if (!place.isMoving() || operand.kind != plan::OperandKind::Workspace || element < 0)
    return 0;
  const plan::RankStart &start = instance.prepared.tables.starts[operand.start];
  const plan::PackedRun *part = (place.end == plan::End::Received ? start.received : start.sent)
                                    .find(operand.traveller, element);
  int64_t table = starts[operand.start]->tables[operand.traveller];
  return part ? part->byte - part->first * plan.tables[table].elementBytes : 0;
}

int64_t Preparer::wordOf(const plan::Operand &operand, int64_t parameter) const {
  if (operand.kind == plan::OperandKind::Scalars)
    return operand.value + plan.parameters[parameter].indexInGroup * operand.bytes;
  return beginOf(instance, operand);
}

std::vector<void *> *shardsOf(stepc_instance &instance, const plan::Operand &operand) {
  switch (operand.kind) {
  case plan::OperandKind::Parameters:
    return &instance.bound.parameters;
  case plan::OperandKind::Gradients:
    return &instance.bound.gradients;
  case plan::OperandKind::State:
    return &instance.bound.states[operand.value];
  default:
    return nullptr;
  }
}

int64_t beginOf(const stepc_instance &instance, const plan::Operand &operand) {
  return operand.value +
         (operand.pool.isNone()
              ? 0
              : instance.prepared.tables.pools[operand.pool].begins[operand.member]);
}

std::string checkLaunch(stepc_instance &instance, Launch &launch, std::vector<void *> &arguments) {
  launch.arguments = arguments.data();
  launch.argumentCount = int64_t(arguments.size());
  return launch.items > 0 && instance.device().checkLaunch
             ? instance.device().checkLaunch(instance.deviceContext, launch)
             : std::string();
}

} // namespace stepc::runtime
