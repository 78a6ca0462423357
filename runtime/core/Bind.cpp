//===- Bind.cpp - What the trainer lends ------------------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Plural.h"
#include "runtime/text/Text.h"

#include <cmath>

namespace stepc::runtime {
namespace {

/// The shard that the trainer binds a pointer for.
struct Place {
  int64_t parameter;
  std::string what; // "parameter 'w'", "state 'm' of parameter 'w'", …
  const std::vector<int64_t> &shape;
  const std::string &dtype;
  int64_t bytes, elementBytes;
};

/// Returns why the device cannot use the trainer's memory; empty if it can. The device may ask its driver,
/// which is slow for many gradients, so callers do not ask again about a pointer that is bound already.
std::string wrongMemory(stepc_instance &instance, const void *data,
                        int32_t memory = STEPC_MEMORY_DEVICE) {
  auto *check = instance.device().checkPointer;
  return check ? check(instance.deviceContext, data, memory) : std::string();
}

/// Checks a pointer and its bytes against the local shard. If it returns STEPC_OK, the caller may bind the
/// pointer.
int32_t check(stepc_instance &instance, const Place &place, const void *data, int64_t bytes,
              bool isKnown = false) {
  auto refuse = [&](const std::string &why) {
    return instance.refuse(STEPC_ERROR_ARGUMENT, place.what + ": " + why);
  };
  if (!instance.isMember(place.parameter)) {
    if (!data && bytes == 0)
      return STEPC_OK;
    return refuse("this rank is outside the parameter's mesh and holds nothing of it");
  }
  if (bytes != place.bytes)
    return refuse(format("%lld bytes given, the local shard %s of %s has %lld", (long long)bytes,
                         shapeText(place.shape.data(), place.shape.size()).c_str(),
                         place.dtype.c_str(), (long long)place.bytes));
  if (!data && bytes != 0)
    return refuse("the pointer is null, which is legal for an empty shard only");
  if (reinterpret_cast<uintptr_t>(data) % place.elementBytes)
    return refuse(
        format("the pointer is not aligned to %lld bytes", (long long)place.elementBytes));
  if (std::string wrong = bytes && !isKnown ? wrongMemory(instance, data) : ""; !wrong.empty())
    return refuse(wrong);
  return STEPC_OK;
}

int32_t checkIndex(stepc_instance &instance, const char *what, int64_t index, int64_t count) {
  if (index >= 0 && index < count)
    return STEPC_OK;
  return instance.refuse(STEPC_ERROR_ARGUMENT, format("%s %lld does not exist, there are %lld",
                                                      what, (long long)index, (long long)count));
}

/// Numbers may lie in the host's memory. If the device counts steps by itself, they may also lie in its
/// memory.
int32_t checkMemory(stepc_instance &instance, const char *what, const void *data, int32_t memory) {
  bool countsItself = instance.countsSteps();
  if (memory == STEPC_MEMORY_HOST || (memory == STEPC_MEMORY_DEVICE && countsItself)) {
    std::string wrong = wrongMemory(instance, data, memory);
    return wrong.empty() ? int32_t(STEPC_OK)
                         : instance.refuse(STEPC_ERROR_ARGUMENT, what + (": " + wrong));
  }
  return instance.refuse(STEPC_ERROR_ARGUMENT,
                         format("%s: expected host memory (0)%s, found memory %d", what,
                                countsItself ? " or the device's (1)" : "", memory));
}

int32_t checkAlignment(stepc_instance &instance, const char *what, const void *data,
                       int64_t alignment) {
  if (reinterpret_cast<uintptr_t>(data) % uintptr_t(alignment) == 0)
    return STEPC_OK;
  return instance.refuse(STEPC_ERROR_ARGUMENT,
                         format("%s: expected an address at a multiple of %lld bytes, found %p",
                                what, (long long)alignment, data));
}

Bound boundAs(const void *data) { return data ? Bound::Given : Bound::Null; }

std::string quoted(const std::string &name) { return "'" + name + "'"; }

} // namespace

int32_t bindParameter(stepc_instance *self, int64_t parameter, void *data, int64_t bytes) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  const Library &lib = self->library;
  if (int32_t status = checkIndex(*self, "parameter", parameter, lib.plan.parameters.size()))
    return status;
  int64_t group = lib.parameter(parameter).group;
  Place place{parameter,
              "parameter " + quoted(lib.parameter(parameter).name),
              self->prepared.groups[group].parameter.shape,
              lib.groups[group].dtype,
              self->prepared.groups[group].parameter.bytes,
              plan::byteSize(lib.plan.groups[group].parameterType)};
  if (int32_t status = check(*self, place, data, bytes))
    return status;
  self->bound.shardsChecked = self->bound.writtenDisjoint = false;
  self->bound.parameters[parameter] = data;
  self->bound.parameterBound[parameter] = boundAs(data);
  return STEPC_OK;
}

int32_t bindState(stepc_instance *self, int64_t parameter, int32_t state, void *data,
                  int64_t bytes) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  const Library &lib = self->library;
  if (int32_t status = checkIndex(*self, "parameter", parameter, lib.plan.parameters.size()))
    return status;
  int64_t group = lib.parameter(parameter).group;
  std::string name = "parameter " + quoted(lib.parameter(parameter).name);
  const auto &states = lib.groups[group].states;
  if (int32_t status = checkIndex(*self, (name + ": state").c_str(), state, states.size()))
    return status;
  const LocalGroup::LocalShard &local =
      self->prepared.groups[group].state(state, lib.parameter(parameter).indexInGroup);
  Place place{parameter,   "state " + quoted(states[state].name) + " of " + name,
              local.shape, states[state].dtype,
              local.bytes, states[state].elementBytes};
  if (int32_t status = check(*self, place, data, bytes))
    return status;
  self->bound.shardsChecked = self->bound.writtenDisjoint = false;
  self->bound.states[states[state].index][parameter] = data;
  self->bound.stateBound[states[state].index][parameter] = boundAs(data);
  return STEPC_OK;
}

int32_t bindInput(stepc_instance *self, int64_t parameter, int32_t input, const void *data,
                  int64_t bytes) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  const Library &lib = self->library;
  if (int32_t status = checkInput(lib, self, "bind_input", parameter, input))
    return status;
  int64_t group = lib.parameter(parameter).group;
  const StateText &text = lib.groups[group].inputs[size_t(input)];
  const LocalGroup &all = self->prepared.groups[group];
  const LocalGroup::LocalShard &local = all.inputs[size_t(input)];
  void *&bound = self->bound.states[text.index][parameter];
  Bound &known = self->bound.stateBound[text.index][parameter];
  const void *given = known == Bound::Given ? bound : nullptr;
  if (data || bytes) {
    Place place{parameter,
                "input " + quoted(text.name) + " of parameter " +
                    quoted(lib.parameter(parameter).name),
                local.shape,
                text.dtype,
                local.bytes,
                text.elementBytes};
    if (int32_t status = check(*self, place, data, bytes, data && data == given))
      return status;
  }
  self->bound.gradientsChecked &= known == boundAs(data);
  self->bound.gradientsDisjoint &= data == given;
  bound = const_cast<void *>(data ? data : all.defaultAddresses[size_t(input)]);
  known = boundAs(data);
  return STEPC_OK;
}

int32_t bindGradient(stepc_instance *self, int64_t parameter, const void *data, int64_t bytes) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  const Library &lib = self->library;
  if (int32_t status = checkIndex(*self, "parameter", parameter, lib.plan.parameters.size()))
    return status;
  int64_t group = lib.parameter(parameter).group;
  if (data || bytes) {
    Place place{parameter,
                "gradient of parameter " + quoted(lib.parameter(parameter).name),
                self->prepared.groups[group].gradient.shape,
                lib.groups[group].gradientType,
                self->prepared.groups[group].gradient.bytes,
                plan::byteSize(lib.plan.groups[group].gradientType)};
    if (int32_t status =
            check(*self, place, data, bytes, data == self->bound.givenGradients[parameter]))
      return status;
  }
  self->bound.gradientsChecked = false;
  self->bound.gradientsDisjoint &= data == self->bound.givenGradients[parameter];
  self->bound.givenGradients[parameter] = data;
  self->bound.gradientBound[parameter] = boundAs(data);
  return STEPC_OK;
}

int32_t bindGradients(stepc_instance *self, const void *const *data, int64_t count) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  const Library &lib = self->library;
  int64_t parameters = int64_t(lib.plan.parameters.size());
  if (!data)
    return self->refuse(STEPC_ERROR_ARGUMENT, "the list of gradients is null");
  if (count != parameters)
    return self->refuse(STEPC_ERROR_ARGUMENT,
                        format("%s given, there are %s", plural(count, "gradient").c_str(),
                               plural(parameters, "parameter").c_str()));
  // All or none: a refused call changes nothing.
  for (int64_t p = 0; p < count; ++p) {
    std::string wrong;
    if (reinterpret_cast<uintptr_t>(data[p]) % plan::byteSize(lib.group(p).gradientType))
      wrong = "the pointer is not aligned to its type";
    else if (data[p] != self->bound.givenGradients[p] &&
             self->prepared.groups[lib.parameter(p).group].gradient.bytes > 0 && data[p])
      wrong = wrongMemory(*self, data[p]);
    if (!wrong.empty())
      return self->refuse(STEPC_ERROR_ARGUMENT,
                          "gradient of parameter " + quoted(lib.parameter(p).name) + ": " + wrong);
  }
  self->bound.gradientsChecked = false;
  for (int64_t p = 0; p < count; ++p) {
    self->bound.gradientsDisjoint &= data[p] == self->bound.givenGradients[p];
    self->bound.givenGradients[p] = data[p];
    self->bound.gradientBound[p] = boundAs(data[p]);
  }
  return STEPC_OK;
}

/// While graphs of the trainer's hold steps, refuses numbers in the host's memory. Replays of graphs that
/// were captured before read the device's memory.
static int32_t checkGraphs(stepc_instance &instance, const char *what, int32_t memory) {
  const stepc_graph_table *graphs = instance.device().graphs;
  if (memory == STEPC_MEMORY_DEVICE || !graphs || graphs->living(instance.deviceContext) == 0)
    return STEPC_OK;
  return instance.refuse(
      STEPC_ERROR_GRAPH,
      format("%s: expected the device's memory (1) while graphs of the trainer's "
             "hold steps, found the host's (0)",
             what));
}

int32_t bindSteps(stepc_instance *self, int64_t *steps, int32_t memory) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  if (!steps)
    return self->refuse(STEPC_ERROR_ARGUMENT, "the array of step counts is null");
  if (int32_t status = checkAlignment(*self, "step counts", steps, alignof(int64_t)))
    return status;
  if (int32_t status = checkMemory(*self, "step counts", steps, memory))
    return status;
  if (memory == STEPC_MEMORY_HOST && self->library.plan.skipsOnDevice())
    return self->refuse(
        STEPC_ERROR_ARGUMENT,
        "step counts: expected the device's memory (1), because the device alone knows whether the "
        "model skips a step, found the host's (0)");
  if (int32_t status = checkGraphs(*self, "step counts", memory))
    return status;
  self->bound.writtenDisjoint = false;
  self->bound.steps = steps;
  self->bound.areStepsOnDevice = memory == STEPC_MEMORY_DEVICE;
  placeSteps(*self);
  return STEPC_OK;
}

int32_t bindHyperparameters(stepc_instance *self, const double *values, int64_t groupCount,
                            int64_t stride, const int32_t *groups, int32_t memory) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  if (int32_t status = checkGraphs(*self, "hyperparameters", values ? memory : STEPC_MEMORY_HOST))
    return status;
  if (!values) {
    placeHyperparameters(*self, nullptr, 0, {});
    return STEPC_OK;
  }
  if (int32_t status = checkAlignment(*self, "hyperparameters", values, alignof(double)))
    return status;
  if (int32_t status = checkAlignment(*self, "groups of hyperparameters", groups, alignof(int32_t)))
    return status;
  if (int32_t status = checkMemory(*self, "hyperparameters", values, memory))
    return status;
  if (!groups || groupCount < 1)
    return self->refuse(STEPC_ERROR_ARGUMENT, "hyperparameters are given without groups");
  const Library &lib = self->library;
  int64_t count = int64_t(lib.plan.parameters.size());
  for (int64_t p = 0; p < count; ++p) {
    const std::string &name = lib.parameter(p).name;
    if (groups[p] < 0 || groups[p] >= groupCount)
      return self->refuse(STEPC_ERROR_ARGUMENT,
                          format("parameter '%s' is in group %d of hyperparameters, there are %lld",
                                 name.c_str(), groups[p], (long long)groupCount));
    int64_t needed = int64_t(lib.plan.rules[lib.group(p).rule].hyperparameters.size());
    if (stride < needed)
      return self->refuse(STEPC_ERROR_ARGUMENT,
                          format("parameter '%s' of route '%s' has %s, a row of values has %lld",
                                 name.c_str(), lib.route(p).name.c_str(),
                                 plural(needed, "hyperparameter").c_str(), (long long)stride));
  }
  placeHyperparameters(*self, values, stride, {groups, groups + count}, memory);
  return STEPC_OK;
}

int32_t setHyperparameter(stepc_instance *self, int64_t route, const char *name, double value) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  const plan::Plan &plan = self->library.plan;
  if (int32_t status = checkIndex(*self, "route", route, plan.routes.size()))
    return status;
  const std::string &routeName = plan.routes[route].name;
  const auto &names = plan.rules[plan.routes[route].rule].hyperparameters;
  for (size_t i = 0; name && i < names.size(); ++i) {
    if (names[i] != name)
      continue;
    if (std::isnan(value))
      return self->refuse(
          STEPC_ERROR_HYPERPARAMETER,
          format("hyperparameter '%s' of route '%s' is not a number", name, routeName.c_str()));
    self->bound.routeValues[route][i] = value;
    return STEPC_OK;
  }
  return self->refuse(STEPC_ERROR_ARGUMENT, format("route '%s' has no hyperparameter '%s'",
                                                   routeName.c_str(), name ? name : "(null)"));
}

} // namespace stepc::runtime
