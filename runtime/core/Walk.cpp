//===- Walk.cpp - Hands the commands of a step to the device -----------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

#include <span>

namespace stepc::runtime {
namespace {

/// Whether the running step has failed, also in a loop of the trainer's or on the device.
bool hasFailed(stepc_instance &instance) {
  checkLoops(instance);
  if (!instance.deviceContext.failure.empty())
    instance.fail(STEPC_ERROR_DEVICE, instance.deviceContext.failure);
  return instance.running.failure != STEPC_OK;
}

using Commands = std::span<const std::unique_ptr<PreparedCommand>>;

void carryOut(stepc_instance &instance, Commands commands) {
  const stepc_device_table &device = instance.device();
  for (const std::unique_ptr<PreparedCommand> &command : commands) {
    // After a failure the next command would read what did not arrive.
    if (hasFailed(instance))
      break;
    command->begun = true;
    if (device.declare)
      device.declare(instance.deviceContext, declareUses, command.get());
    command->enqueue();
  }
}

/// Replays the step that was recorded in `create`. The host's counts are those of the recording. Functions of
/// the host that each replay calls count by themselves.
void replay(stepc_instance &instance) {
  if (hasFailed(instance))
    return;
  for (const auto &command : instance.prepared.commands)
    command->begun = true;
  instance.running.executed = instance.prepared.recorded;
  instance.device().graphs->replay(instance.deviceContext);
  if (hasFailed(instance) || instance.prepared.replayCalls)
    return;
  for (PreparedExchange &exchange : instance.prepared.exchanges) {
    exchange.started = exchange.finished = true;
    exchange.inFlight = !exchange.operations.empty();
  }
  countSteps(instance, 1);
  instance.running.stepsAdvanced = true;
}

} // namespace

int32_t recordGraph(stepc_instance &instance, std::string &error) {
  const stepc_graph_table *graphs = instance.device().graphs;
  if (!graphs)
    return fault(error, STEPC_ERROR_GRAPH,
                 format("the options ask for a graph of the step, and the device '%s' has none",
                        instance.device().name));
  completeRecords(instance);
  beginTraffic(instance);
  instance.deviceContext.failure.clear();
  instance.prepared.isRecording = true;
  {
    DeviceWork walk{instance.device(), instance.deviceContext};
    graphs->begin(instance.deviceContext);
    carryOut(instance, instance.prepared.commands);
    graphs->end(instance.deviceContext);
    walk.hasEnded = true;
  }
  instance.prepared.isRecording = false;
  if (hasFailed(instance))
    return fault(error, instance.running.failure,
                 "recording the step as a graph: " + instance.failures.cause);
  instance.prepared.recorded = instance.running.executed;
  instance.prepared.replayCalls = !instance.running.stepsAdvanced;
  instance.prepared.hasGraph = true;
  for (PreparedExchange &exchange : instance.prepared.exchanges)
    exchange.inFlight = false; // nothing was sent
  return STEPC_OK;
}

void walkProgram(stepc_instance &instance) {
  completeRecords(instance);
  prepareSeals(instance);
  beginTraffic(instance);
  DeviceContext &context = instance.deviceContext;
  DeviceWork walk{instance.device(), context};
  instance.device().begin(context);
  // If the trainer captures this step, its graph gets the commands themselves.
  if (instance.prepared.hasGraph && !context.isCaptured)
    replay(instance);
  else
    carryOut(instance, instance.prepared.commands);
  instance.device().finish(context);
  walk.hasEnded = true;
  if (!hasFailed(instance) && !instance.running.stepsAdvanced)
    instance.fail(STEPC_ERROR_COUNTS, format("device '%s' did not come to the end of the program",
                                             instance.device().name));
}

} // namespace stepc::runtime
