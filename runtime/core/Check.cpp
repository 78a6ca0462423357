//===- Check.cpp - What must hold before a step sends or writes -------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Plural.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>

namespace stepc::runtime {
namespace {

const char *whyMissing(Bound bound) {
  return bound == Bound::Never ? "was never bound" : "is null";
}

/// True where a pointer is needed and not there.
bool isMissing(Bound bound, int64_t bytes) { return bytes != 0 && bound != Bound::Given; }

int32_t checkShards(stepc_instance &instance, int64_t parameter) {
  const Library &lib = instance.library;
  int64_t index = lib.parameter(parameter).group;
  const LocalGroup &local = instance.groups[index];
  const char *name = lib.parameter(parameter).name.c_str();
  if (isMissing(instance.parameterBound[parameter], local.parameter.bytes))
    return instance.refuse(
        STEPC_ERROR_UNBOUND,
        format("parameter '%s' %s", name, whyMissing(instance.parameterBound[parameter])));
  for (size_t i = 0; i < local.states.size(); ++i) {
    const StateText &state = lib.groups[index].states[i];
    Bound bound = instance.stateBound[state.index][parameter];
    if (isMissing(bound, local.states[i].bytes))
      return instance.refuse(
          STEPC_ERROR_UNBOUND,
          format("state '%s' of parameter '%s' %s", state.name.c_str(), name, whyMissing(bound)));
  }
  return STEPC_OK;
}

int32_t checkGradient(stepc_instance &instance, int64_t parameter) {
  const Library &lib = instance.library;
  // What kernels read: zeros where the route says so; nothing is read of a skipped one.
  const void *gradient = instance.boundGradients[parameter];
  if (!isPresent(instance, parameter)) {
    switch (lib.route(parameter).missingGrad) {
    case plan::MissingGrad::Error:
      return instance.refuse(
          STEPC_ERROR_GRADIENT,
          format("the gradient of parameter '%s' %s, and route '%s' says missing_grad = error",
                 lib.parameter(parameter).name.c_str(),
                 whyMissing(instance.gradientBound[parameter]), lib.route(parameter).name.c_str()));
    case plan::MissingGrad::Zero:
      gradient = instance.zeros.data();
      break;
    case plan::MissingGrad::Skip:
      break;
    }
  }
  instance.gradients[parameter] = const_cast<void *>(gradient);
  return STEPC_OK;
}

const std::vector<std::string> &namesOf(const Library &lib, int64_t parameter) {
  return lib.plan.rules[lib.route(parameter).rule].hyperparameters;
}

int32_t checkHyperparameters(stepc_instance &instance, const HyperparameterRow &row) {
  const Library &lib = instance.library;
  const auto &names = namesOf(lib, row.parameter);
  for (size_t i = 0; i < names.size(); ++i)
    if (std::isnan(row.values[i]))
      return instance.refuse(
          STEPC_ERROR_HYPERPARAMETER,
          format("hyperparameter '%s' of parameter '%s' (route '%s') %s", names[i].c_str(),
                 lib.parameter(row.parameter).name.c_str(), lib.route(row.parameter).name.c_str(),
                 instance.areHyperparametersBound ? "is not a number"
                                                  : "has no default and was never set"));
  return STEPC_OK;
}

} // namespace

bool isPresent(const stepc_instance &instance, int64_t parameter) {
  const LocalGroup &local = instance.groups[instance.library.parameter(parameter).group];
  return !isMissing(instance.gradientBound[parameter], local.gradient.bytes);
}

void placeSteps(stepc_instance &instance) {
  int64_t *steps = instance.areStepsOnDevice ? instance.steps : instance.stepsAddress;
  for (size_t p = 0; p < instance.library.plan.parameters.size(); ++p)
    instance.records[p].steps_taken = steps + p;
}

void placeHyperparameters(stepc_instance &instance, const double *values, int64_t stride,
                          std::vector<int32_t> groups, int32_t memory) {
  const Library &lib = instance.library;
  std::vector<HyperparameterRow> rows;
  std::map<std::pair<const double *, int64_t>, int64_t> numbers; // of rows, each once
  auto keyOf = [&](int64_t p) {
    const double *row =
        values ? values + groups[p] * stride : instance.routeValues[lib.parameter(p).route].data();
    return std::pair(row, lib.parameter(p).route);
  };
  int64_t count = int64_t(lib.plan.parameters.size());
  instance.areHyperparametersBound = values != nullptr;
  instance.areHyperparametersOnDevice = memory == STEPC_MEMORY_DEVICE;
  if (memory == STEPC_MEMORY_DEVICE) {
    instance.hyperparameterRows.clear(); // nothing for the host to read
    for (int64_t p = 0; p < count; ++p)
      instance.records[p].hyperparameters = keyOf(p).first;
    return;
  }
  for (int64_t p = 0; p < count; ++p)
    if (numbers.emplace(keyOf(p), int64_t(rows.size())).second)
      rows.push_back({keyOf(p).first, p});
  // All memory is there: from here on nothing fails.
  for (int64_t p = 0; p < count; ++p)
    instance.records[p].hyperparameters =
        instance.hyperparameterAddress +
        numbers.find(keyOf(p))->second * instance.hyperparameterStride;
  instance.hyperparameterRows.swap(rows);
}

// Most steps are small, so what only a bind can change is not looked at again.
int32_t checkStep(stepc_instance &instance) {
  int64_t count = int64_t(instance.library.plan.parameters.size());
  if (!instance.steps && count)
    return instance.refuse(STEPC_ERROR_UNBOUND, "the step counts were never bound");
  for (int64_t p = 0; !instance.shardsChecked && p < count; ++p)
    if (int32_t status = checkShards(instance, p))
      return status;
  instance.shardsChecked = true;
  for (int64_t p = 0; !instance.gradientsChecked && p < count; ++p)
    if (int32_t status = checkGradient(instance, p))
      return status;
  instance.gradientsChecked = true;
  if (int32_t status = checkOverlaps(instance))
    return status;
  double *values = instance.hyperparameterValues.data();
  for (const HyperparameterRow &row : instance.hyperparameterRows) {
    if (int32_t status = checkHyperparameters(instance, row))
      return status;
    std::copy_n(row.values, namesOf(instance.library, row.parameter).size(), values);
    values += instance.hyperparameterStride;
  }
  for (int64_t p = 0; p < count && !instance.areStepsOnDevice; ++p) {
    if (instance.steps[p] < 0 || instance.steps[p] == INT64_MAX)
      return instance.refuse(
          STEPC_ERROR_ARGUMENT,
          format("expected a step count of parameter '%s' from 0 to %lld, found %lld",
                 instance.library.parameter(p).name.c_str(), (long long)(INT64_MAX - 1),
                 (long long)instance.steps[p]));
    instance.stepsTaken[p] = instance.steps[p];
  }
  for (int64_t p = 0; p < count; ++p)
    instance.records[p].active = 1;
  return STEPC_OK;
}

int32_t checkCapture(stepc_instance &instance) {
  auto refuse = [&](const std::string &why) {
    return instance.refuse(STEPC_ERROR_GRAPH, "a graph captures this step: " + why);
  };
  if (!instance.areStepsOnDevice)
    return refuse(
        "expected step counts in the device's memory (1), where replays count them, found "
        "them in the host's (0)");
  if (!instance.areHyperparametersOnDevice)
    return refuse(
        "expected hyperparameters that are bound in the device's memory (1), where replays "
        "find those of their time, found the host's (0)");
  for (const plan::Route &route : instance.library.plan.routes)
    if (route.missingGrad == plan::MissingGrad::Skip)
      return refuse(format("route '%s' says missing_grad = skip, on which ranks agree anew in each "
                           "step: expected zero or error",
                           route.name.c_str()));
  completeRecords(instance);
  std::string wrong = instance.device().graphs->prepare(instance.deviceContext);
  if (!wrong.empty())
    return refuse(wrong);
  const std::string &failure = instance.deviceContext.failure;
  return failure.empty() ? STEPC_OK : instance.refuse(STEPC_ERROR_DEVICE, failure);
}

/// What a step says of a parameter holds for all of its parts.
void completeRecords(stepc_instance &instance) {
  const plan::Plan &plan = instance.library.plan;
  if (instance.records.size() == plan.parameters.size())
    return;
  for (size_t g = 0; g < plan.groups.size(); ++g)
    for (size_t i = 0; instance.firstRecord[g] >= 0 && i < plan.groups[g].parameters.size(); ++i) {
      stepc_parameter_record &record = instance.records[instance.firstRecord[g] + i];
      const stepc_parameter_record &own = instance.records[plan.groups[g].parameters[i]];
      record.steps_taken = own.steps_taken;
      record.hyperparameters = own.hyperparameters;
      record.active = own.active;
    }
}

void countSteps(stepc_instance &instance, int64_t by) noexcept {
  for (size_t p = 0; p < instance.library.plan.parameters.size() && !instance.areStepsOnDevice; ++p)
    instance.steps[p] += by * instance.records[p].active;
}

void preparePresence(stepc_instance &instance) {
  if (!instance.maySkip)
    return;
  int64_t bytes = (int64_t(instance.library.plan.parameters.size()) + 7) / 8;
  instance.presenceBytes = bytes;
  instance.presence = std::make_unique<uint8_t[]>(bytes * instance.size);
  instance.presenceMessages = tellAll(instance, instance.presence.get(), bytes, kPresenceTag,
                                      instance.transport.kinds >> STEPC_ALL_GATHER & 1);
}

int32_t agreeOnPresence(stepc_instance &instance) {
  instance.someInactive = false;
  if (!instance.maySkip)
    return STEPC_OK;
  const Library &lib = instance.library;
  int64_t count = int64_t(lib.plan.parameters.size());
  int64_t bytes = instance.presenceBytes;
  uint8_t *own = &instance.presence[instance.rank * bytes];
  std::memset(own, 0, bytes);
  for (int64_t p = 0; p < count; ++p)
    own[p / 8] |= uint8_t(isPresent(instance, p)) << (p % 8);
  std::string what = "agreeing on absent gradients", error;
  void *handle = nullptr;
  // Before the start: one that fails half-way may leave messages behind.
  instance.leftInFlight = !instance.presenceMessages.empty();
  int32_t status = instance.start(instance.presenceMessages, nullptr, &handle, what, error);
  if (!status && instance.leftInFlight)
    status = instance.wait(handle, what, error);
  if (status) {
    instance.fail(status, error);
    return status;
  }
  instance.leftInFlight = false;
  for (int64_t p = 0; p < count; ++p) {
    if (lib.route(p).missingGrad != plan::MissingGrad::Skip)
      continue;
    for (int32_t holder : instance.groups[lib.parameter(p).group].holders) {
      bool present = (instance.presence[holder * bytes + p / 8] >> (p % 8)) & 1;
      if (!present)
        instance.records[p].active = 0;
    }
    instance.someInactive |= !instance.records[p].active;
  }
  return STEPC_OK;
}

} // namespace stepc::runtime
