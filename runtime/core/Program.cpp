//===- Program.cpp - The plan's commands, made ready ------------------------===//
//
// Each command is made ready by its file in commands/. What they have in common is done here.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Instance.h"

#include <map>

namespace stepc::runtime {
namespace {

void countPlanned(stepc_instance &instance) {
  stepc_counters &planned = instance.prepared.planned;
  for (const auto &command : instance.prepared.commands)
    command->count(planned);
  planned.exchanges = int64_t(instance.prepared.exchanges.size());
  for (const PreparedExchange &exchange : instance.prepared.exchanges) {
    countMessages(exchange, planned);
    for (const SealLaunch *one : {&exchange.seal, &exchange.check}) {
      planned.launches += one->launch.items > 0;
      planned.chunks += one->launch.items;
    }
  }
}

} // namespace

std::string prepareProgram(stepc_instance &instance, int32_t &status) {
  status = STEPC_ERROR_PLAN;
  const plan::Plan &plan = instance.library.plan;
  if (std::string wrong = prepareExchanges(instance); !wrong.empty())
    return wrong;
  Preparer preparer(instance);
  for (const plan::Command &command : plan.commands) {
    instance.prepared.commands.push_back(std::visit(preparer, command));
    if (!preparer.failure.empty()) {
      status = STEPC_ERROR_DEVICE;
      return preparer.failure;
    }
    ++preparer.number;
  }
  prepareDeviceSeals(instance);
  countPlanned(instance);
  return {};
}

/// Must run when the program is complete: only then do its lists keep their addresses.
std::string lendLists(stepc_instance &instance) {
  std::vector<HostList> lists;
  auto lend = [&](const auto &list, bool changes) {
    lists.push_back({list.data(), int64_t(list.size() * sizeof(list[0])), changes});
  };
  lend(instance.running.records, true);
  lend(instance.bound.stepsTaken, true);
  lend(instance.bound.hyperparameterValues, true);
  lend(instance.bound.parameters, true);
  lend(instance.bound.gradients, true);
  for (const std::vector<void *> &shards : instance.bound.states)
    lend(shards, true);
  for (const InputDefault &each : instance.prepared.inputDefaults)
    lend(each.elements, false);
  for (const auto &command : instance.prepared.commands)
    command->lend(lists);
  const DeviceSeals &seals = instance.running.deviceSeals;
  lend(seals.rows, false);
  lend(seals.terms, false);
  lend(seals.columns, false);
  lend(seals.messages, false);
  lend(seals.seals, false);
  std::string wrong = instance.device().lend(instance.deviceContext, lists);
  if (!wrong.empty())
    return wrong;
  std::map<const void *, const void *> addresses;
  for (const HostList &list : lists)
    if (list.bytes > 0)
      addresses[list.data] = list.address;
  AddressOf addressOf = [&](const void *list) {
    auto found = addresses.find(list);
    return found == addresses.end() ? list : found->second;
  };
  instance.bound.hyperparameterAddress =
      static_cast<const double *>(addressOf(instance.bound.hyperparameterValues.data()));
  instance.bound.stepsAddress =
      static_cast<int64_t *>(const_cast<void *>(addressOf(instance.bound.stepsTaken.data())));
  placeSteps(instance);
  placeInputs(instance, addressOf);
  for (const auto &command : instance.prepared.commands)
    if (wrong = command->place(addressOf); !wrong.empty())
      return wrong;
  return placeDeviceSeals(instance, addressOf);
}

} // namespace stepc::runtime
