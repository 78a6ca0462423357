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

/// Whether a shard has elements and no pointer is bound for them.
bool isMissing(Bound bound, int64_t bytes) { return bytes != 0 && bound != Bound::Given; }

int32_t checkShards(stepc_instance &instance, int64_t parameter) {
  const Library &lib = instance.library;
  int64_t index = lib.parameter(parameter).group;
  const LocalGroup &local = instance.prepared.groups[index];
  const char *name = lib.parameter(parameter).name.c_str();
  if (isMissing(instance.bound.parameterBound[parameter], local.parameter.bytes))
    return instance.refuse(
        STEPC_ERROR_UNBOUND,
        format("parameter '%s' %s", name, whyMissing(instance.bound.parameterBound[parameter])));
  for (size_t i = 0; i < local.states.size(); ++i) {
    const StateText &state = lib.groups[index].states[i];
    Bound bound = instance.bound.stateBound[state.index][parameter];
    if (isMissing(bound, local.state(i, lib.parameter(parameter).indexInGroup).bytes))
      return instance.refuse(
          STEPC_ERROR_UNBOUND,
          format("state '%s' of parameter '%s' %s", state.name.c_str(), name, whyMissing(bound)));
  }
  return STEPC_OK;
}

/// Inputs that have no default must be given. A parameter that takes no part needs none.
int32_t checkInputs(stepc_instance &instance, int64_t parameter) {
  const Library &lib = instance.library;
  int64_t index = lib.parameter(parameter).group;
  const LocalGroup &local = instance.prepared.groups[index];
  bool isSkipped = lib.route(parameter).missingGrad == plan::MissingGrad::Skip &&
                   !isPresent(instance, parameter);
  for (size_t i = 0; i < local.inputs.size() && !isSkipped; ++i) {
    const StateText &input = lib.groups[index].inputs[i];
    Bound bound = instance.bound.stateBound[input.index][parameter];
    if (isMissing(bound, local.inputs[i].bytes) && std::isnan(input.init))
      return instance.refuse(STEPC_ERROR_UNBOUND,
                             format("input '%s' of parameter '%s' %s, and it has no default",
                                    input.name.c_str(), lib.parameter(parameter).name.c_str(),
                                    whyMissing(bound)));
  }
  return STEPC_OK;
}

int32_t checkGradient(stepc_instance &instance, int64_t parameter) {
  const Library &lib = instance.library;
  // What kernels read: the given gradient, or zeros if it is absent and the route says so. Skipped gradients
  // are not read.
  const void *gradient = instance.bound.givenGradients[parameter];
  if (!isPresent(instance, parameter)) {
    switch (lib.route(parameter).missingGrad) {
    case plan::MissingGrad::Error:
      return instance.refuse(
          STEPC_ERROR_GRADIENT,
          format("the gradient of parameter '%s' %s, and route '%s' says missing_grad = error",
                 lib.parameter(parameter).name.c_str(),
                 whyMissing(instance.bound.gradientBound[parameter]),
                 lib.route(parameter).name.c_str()));
    case plan::MissingGrad::Zero:
      gradient = instance.prepared.zeros.data();
      break;
    case plan::MissingGrad::Skip:
      break;
    }
  }
  instance.bound.gradients[parameter] = const_cast<void *>(gradient);
  return checkInputs(instance, parameter);
}

const std::vector<std::string> &namesOf(const Library &lib, int64_t parameter) {
  return lib.plan.rules[lib.route(parameter).rule].hyperparameters;
}

int32_t checkHyperparameters(stepc_instance &instance, const HyperparameterRow &row) {
  const Library &lib = instance.library;
  const auto &names = namesOf(lib, row.parameter);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!std::isnan(row.values[i]))
      continue;
    std::string owner =
        row.parameter == lib.plan.model
            ? "the model"
            : format("parameter '%s' (route '%s')", lib.parameter(row.parameter).name.c_str(),
                     lib.route(row.parameter).name.c_str());
    return instance.refuse(STEPC_ERROR_HYPERPARAMETER,
                           format("hyperparameter '%s' of %s %s", names[i].c_str(), owner.c_str(),
                                  instance.bound.areHyperparametersBound
                                      ? "is not a number"
                                      : "has no default and was never set"));
  }
  return STEPC_OK;
}

} // namespace

bool isPresent(const stepc_instance &instance, int64_t parameter) {
  const LocalGroup &local = instance.prepared.groups[instance.library.parameter(parameter).group];
  return !isMissing(instance.bound.gradientBound[parameter], local.gradient.bytes);
}

void placeSteps(stepc_instance &instance) {
  int64_t *steps =
      instance.bound.areStepsOnDevice ? instance.bound.steps : instance.bound.stepsAddress;
  for (size_t p = 0; p < instance.library.plan.parameters.size(); ++p)
    instance.running.records[p].steps_taken = steps + p;
}

void placeHyperparameters(stepc_instance &instance, const double *values, int64_t stride,
                          std::vector<int32_t> groups, int32_t memory) {
  const Library &lib = instance.library;
  std::vector<HyperparameterRow> rows;
  std::map<std::pair<const double *, int64_t>, int64_t> numbers; // the number of each distinct row
  auto keyOf = [&](int64_t p) {
    const double *row = values ? values + groups[p] * stride
                               : instance.bound.routeValues[lib.parameter(p).route].data();
    return std::pair(row, lib.parameter(p).route);
  };
  int64_t count = int64_t(lib.plan.parameters.size());
  instance.bound.areHyperparametersBound = values != nullptr;
  instance.bound.areHyperparametersOnDevice = memory == STEPC_MEMORY_DEVICE;
  if (memory == STEPC_MEMORY_DEVICE) {
    instance.bound.hyperparameterRows.clear(); // nothing for the host to read
    instance.running.agreement.place({});
    for (int64_t p = 0; p < count; ++p)
      instance.running.records[p].hyperparameters = keyOf(p).first;
    return;
  }
  std::vector<int64_t> rowOf;
  for (int64_t p = 0; p < count; ++p) {
    auto [found, isNew] = numbers.emplace(keyOf(p), int64_t(rows.size()));
    if (isNew)
      rows.push_back({keyOf(p).first, p});
    rowOf.push_back(found->second);
  }
  instance.running.agreement.place(rowOf);
  // All memory is allocated: nothing fails from here on.
  for (int64_t p = 0; p < count; ++p)
    instance.running.records[p].hyperparameters =
        instance.bound.hyperparameterAddress +
        rowOf[size_t(p)] * instance.bound.hyperparameterStride;
  instance.bound.hyperparameterRows.swap(rows);
}

/// Reads the step counts that the host holds.
static int32_t readSteps(stepc_instance &instance) {
  size_t count = instance.library.plan.parameters.size();
  if (instance.bound.areStepsOnDevice) {
    instance.running.agreement.forgetSteps();
    return STEPC_OK;
  }
  // A loop without branches becomes vector code. Only the sign bit of `isNone` is used: some count is out of
  // range.
  const int64_t *steps = instance.bound.steps;
  int64_t *before = instance.bound.stepsTaken.data();
  uint64_t isNone = 0;
  for (size_t p = 0; p < count; ++p)
    isNone |= uint64_t(steps[p]) | (uint64_t(steps[p]) + 1); // negative, or INT64_MAX
  if (isNone >> 63) {
    instance.running.agreement.forgetSteps();
    auto wrong = std::find_if(steps, steps + count,
                              [](int64_t step) { return step < 0 || step == INT64_MAX; });
    return instance.refuse(
        STEPC_ERROR_ARGUMENT,
        format("expected a step count of parameter '%s' from 0 to %lld, found %lld",
               instance.library.parameter(wrong - steps).name.c_str(), (long long)(INT64_MAX - 1),
               (long long)*wrong));
  }
  if (instance.size > 1) { // a world of one rank compares nothing
    int64_t moved = count ? steps[0] - before[0] : 0;
    int64_t unlike = 0;
    for (size_t p = 0; p < count; ++p)
      unlike |= (steps[p] - before[p]) ^ moved;
    instance.running.agreement.readSteps(steps, unlike == 0, moved);
  }
  std::copy_n(steps, count, before);
  return STEPC_OK;
}

// Many steps take little time, so a step does not repeat checks of what only a bind changes.
int32_t checkStep(stepc_instance &instance) {
  int64_t count = int64_t(instance.library.plan.parameters.size());
  if (!instance.bound.steps && count)
    return instance.refuse(STEPC_ERROR_UNBOUND, "the step counts were never bound");
  for (int64_t p = 0; !instance.bound.shardsChecked && p < count; ++p)
    if (int32_t status = checkShards(instance, p))
      return status;
  instance.bound.shardsChecked = true;
  for (int64_t p = 0; !instance.bound.gradientsChecked && p < count; ++p)
    if (int32_t status = checkGradient(instance, p))
      return status;
  instance.bound.gradientsChecked = true;
  if (int32_t status = checkOverlaps(instance))
    return status;
  double *values = instance.bound.hyperparameterValues.data();
  for (const HyperparameterRow &row : instance.bound.hyperparameterRows) {
    if (int32_t status = checkHyperparameters(instance, row))
      return status;
    std::copy_n(row.values, namesOf(instance.library, row.parameter).size(), values);
    values += instance.bound.hyperparameterStride;
  }
  if (int32_t status = readSteps(instance))
    return status;
  if (instance.size > 1)
    instance.running.agreement.readRows(instance.bound.hyperparameterValues.data());
  // If the last step skipped parameters, all become active again before ranks agree anew.
  for (int64_t p = 0; instance.running.someInactive && p < count; ++p)
    instance.running.records[p].active = 1;
  instance.running.someInactive = false;
  return STEPC_OK;
}

int32_t checkCapture(stepc_instance &instance) {
  auto refuse = [&](const std::string &why) {
    return instance.refuse(STEPC_ERROR_GRAPH, "a graph captures this step: " + why);
  };
  if (!instance.bound.areStepsOnDevice)
    return refuse(
        "expected step counts in the device's memory (1), where replays count them, found "
        "them in the host's (0)");
  if (!instance.bound.areHyperparametersOnDevice)
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

void completeRecords(stepc_instance &instance) {
  const plan::Plan &plan = instance.library.plan;
  if (instance.running.records.size() == plan.parameters.size())
    return;
  for (size_t g = 0; g < plan.groups.size(); ++g)
    for (size_t i = 0; instance.running.firstRecord[g] >= 0 && i < plan.groups[g].parameters.size();
         ++i) {
      stepc_parameter_record &record =
          instance.running.records[instance.running.firstRecord[g] + i];
      const stepc_parameter_record &own = instance.running.records[plan.groups[g].parameters[i]];
      record.steps_taken = own.steps_taken;
      record.hyperparameters = own.hyperparameters;
      record.active = own.active;
    }
}

void countSteps(stepc_instance &instance, int64_t by) noexcept {
  if (instance.bound.areStepsOnDevice)
    return;
  size_t count = instance.library.plan.parameters.size();
  int64_t *steps = instance.bound.steps;
  if (!instance.running.someInactive) {
    for (size_t p = 0; p < count; ++p)
      steps[p] += by;
    return;
  }
  for (size_t p = 0; p < count; ++p)
    steps[p] += by * instance.running.records[p].active;
}

void prepareAgreement(stepc_instance &instance) {
  instance.running.agreement.prepare(instance.library, instance.rank);
  if (instance.size == 1 && !instance.prepared.maySkip)
    return;
  auto seals = int64_t(instance.library.plan.meshes.size() * sizeof(Seal));
  int64_t bits =
      instance.prepared.maySkip ? (int64_t(instance.library.plan.parameters.size()) + 7) / 8 : 0;
  instance.running.toldBytes = seals + bits;
  instance.running.told = std::make_unique<uint8_t[]>(instance.running.toldBytes * instance.size);
  instance.running.tellMessages =
      tellAll(instance, instance.running.told.get(), instance.running.toldBytes, kAgreementTag,
              instance.transport.kinds >> STEPC_ALL_GATHER & 1);
}

namespace {

/// What a rank told the others in `agree`: a seal per mesh, then a bit per parameter.
uint8_t *toldBy(stepc_instance &instance, int32_t rank) {
  return &instance.running.told[rank * instance.running.toldBytes];
}
Seal sealOf(stepc_instance &instance, int32_t rank, size_t mesh) {
  Seal seal;
  std::memcpy(&seal, toldBy(instance, rank) + mesh * sizeof(Seal), sizeof(Seal));
  return seal;
}
uint8_t *presenceOf(stepc_instance &instance, int32_t rank) {
  return toldBy(instance, rank) + instance.library.plan.meshes.size() * sizeof(Seal);
}

/// Fails the step if the known seals of a mesh differ. A rank of the majority names the first rank that is
/// not.
void compareSeals(stepc_instance &instance, size_t mesh) {
  Seal first;
  bool isEqual = true;
  for (int32_t rank = 0; rank < instance.size; ++rank) {
    Seal seal = sealOf(instance, rank, mesh);
    isEqual &= !seal.isKnown() || !first.isKnown() || seal == first;
    first = first.isKnown() ? first : seal;
  }
  if (isEqual)
    return;
  std::vector<std::pair<int32_t, Seal>> known;
  for (int32_t rank = 0; rank < instance.size; ++rank)
    if (Seal seal = sealOf(instance, rank, mesh); seal.isKnown())
      known.push_back({rank, seal});
  auto votes = [&](const auto &one) {
    return std::count_if(known.begin(), known.end(),
                         [&](const auto &other) { return other.second == one.second; });
  };
  auto most = std::max_element(known.begin(), known.end(),
                               [&](const auto &a, const auto &b) { return votes(a) < votes(b); });
  auto odd = std::find_if(known.begin(), known.end(),
                          [&](const auto &one) { return one.second != most->second; });
  Seal own = sealOf(instance, instance.rank, mesh);
  // A rank can name only numbers that differ from its own. A rank outside the majority compares itself with
  // it.
  if (own.isKnown() && own != most->second)
    std::swap(odd, most);
  instance.fail(STEPC_ERROR_AGREEMENT,
                disagreement(instance, {int64_t(mesh)}, odd->second, odd->first,
                             own == most->second ? most->first : instance.rank));
}

} // namespace

std::string disagreement(const stepc_instance &instance, const std::vector<int64_t> &meshes,
                         const Seal &other, int32_t otherRank, int32_t ownRank) {
  const Agreement &agreement = instance.running.agreement;
  return disagreement(instance, meshes, agreement.numbers(instance.bound.stepsTaken.data()),
                      agreement.of(meshes), other, otherRank, ownRank);
}

std::string disagreement(const stepc_instance &instance, const std::vector<int64_t> &meshes,
                         const SealedNumbers &numbers, const Seal &own, const Seal &other,
                         int32_t otherRank, int32_t ownRank) {
  return "expected equal hyperparameters and step counts on all ranks that hold a parameter, "
         "found " +
         instance.running.agreement.describe(meshes, numbers, own, other, otherRank, ownRank);
}

int32_t agree(stepc_instance &instance) {
  // Ranks compare nothing in a step that the trainer captures: its graph can hold only the program's
  // exchanges.
  bool compares =
      instance.size > 1 && !instance.running.hasAgreed && !instance.deviceContext.isCaptured;
  if (!instance.prepared.maySkip && !compares)
    return STEPC_OK;
  const Library &lib = instance.library;
  int64_t count = int64_t(lib.plan.parameters.size());
  uint8_t *own = toldBy(instance, instance.rank);
  std::memset(own, 0, instance.running.toldBytes);
  for (size_t mesh = 0; mesh < lib.plan.meshes.size(); ++mesh) {
    Seal seal = instance.running.agreement.of({int64_t(mesh)});
    std::memcpy(own + mesh * sizeof(Seal), &seal, sizeof(Seal));
  }
  for (int64_t p = 0; p < count && instance.prepared.maySkip; ++p)
    presenceOf(instance, instance.rank)[p / 8] |= uint8_t(isPresent(instance, p)) << (p % 8);
  std::string what = instance.prepared.maySkip ? "agreeing on absent gradients"
                                               : "comparing hyperparameters and step counts",
              error;
  void *handle = nullptr;
  // Set before the start, because a start that fails half-way may leave messages that still arrive in our
  // buffers.
  instance.failures.leftInFlight = !instance.running.tellMessages.empty();
  int32_t status = instance.start(instance.running.tellMessages, nullptr, &handle, what, error);
  if (!status && instance.failures.leftInFlight)
    status = instance.wait(handle, what, error);
  if (status) {
    instance.fail(status, error);
    return status;
  }
  instance.failures.leftInFlight = false;
  for (size_t mesh = 0; mesh < lib.plan.meshes.size() && !instance.running.failure; ++mesh)
    compareSeals(instance, mesh);
  instance.running.hasAgreed = true;
  for (int64_t p = 0; p < count && instance.prepared.maySkip; ++p) {
    if (lib.route(p).missingGrad != plan::MissingGrad::Skip)
      continue;
    for (int32_t holder : instance.prepared.groups[lib.parameter(p).group].holders) {
      bool present = (presenceOf(instance, holder)[p / 8] >> (p % 8)) & 1;
      if (!present)
        instance.running.records[p].active = 0;
    }
    instance.running.someInactive |= !instance.running.records[p].active;
  }
  return instance.running.failure;
}

} // namespace stepc::runtime
