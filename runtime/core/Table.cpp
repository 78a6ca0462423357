//===- Table.cpp - The table of functions that a library exports -----------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"
#include "runtime/transports/InProcess.h"

#include <limits>

namespace stepc::runtime {
namespace {

const plan::Rule *ruleOf(int64_t route) {
  const plan::Plan &plan = library().plan;
  if (route < 0 || route >= int64_t(plan.routes.size()))
    return nullptr;
  return &plan.rules[plan.routes[route].rule];
}

bool isHyperparameter(int64_t route, int32_t index) {
  const plan::Rule *rule = ruleOf(route);
  return rule && index >= 0 && index < int32_t(rule->hyperparameters.size());
}

} // namespace

int32_t refuse(const stepc_instance *instance, int32_t status, const std::string &message) {
  return instance ? instance->refuse(status, message) : status;
}

int32_t checkRoom(const stepc_instance *instance, const char *what, const int32_t *structSize,
                  size_t needed) {
  if (!structSize)
    return refuse(instance, STEPC_ERROR_ARGUMENT, format("%s: the struct to fill is null", what));
  if (*structSize < 0 || size_t(*structSize) < needed)
    return refuse(
        instance, STEPC_ERROR_ABI,
        format("%s: expected a struct_size of at least %zu, found %d", what, needed, *structSize));
  return STEPC_OK;
}

namespace {

int32_t worldSize() { return int32_t(library().world.size()); }
const int64_t *worldRanks() { return library().world.data(); }
int64_t workspaceBytes() { return library().plan.workspaceBytes(); }
int64_t parameterCount() { return int64_t(library().plan.parameters.size()); }
int64_t routeCount() { return int64_t(library().plan.routes.size()); }

const char *routeRule(int64_t route) {
  return ruleOf(route) ? ruleOf(route)->name.c_str() : nullptr;
}

const char *routeName(int64_t route) {
  return ruleOf(route) ? library().plan.routes[route].name.c_str() : nullptr;
}

int32_t hyperparameterCount(int64_t route) {
  const plan::Rule *rule = ruleOf(route);
  return rule ? int32_t(rule->hyperparameters.size()) : 0;
}

const char *hyperparameterName(int64_t route, int32_t index) {
  return isHyperparameter(route, index) ? ruleOf(route)->hyperparameters[index].c_str() : nullptr;
}

double hyperparameterDefault(int64_t route, int32_t index) {
  return isHyperparameter(route, index) ? library().plan.routes[route].defaults[index]
                                        : std::numeric_limits<double>::quiet_NaN();
}

int32_t checkParameter(const stepc_instance *instance, const char *what, int64_t parameter) {
  if (parameter >= 0 && parameter < parameterCount())
    return STEPC_OK;
  return refuse(instance, STEPC_ERROR_ARGUMENT,
                format("%s: parameter %lld does not exist, there are %lld", what,
                       (long long)parameter, (long long)parameterCount()));
}

int32_t parameterInfo(const stepc_instance *instance, int64_t parameter,
                      stepc_parameter_info *info) {
  const Library &lib = library();
  if (int32_t status = checkParameter(instance, "parameter_info", parameter))
    return status;
  int64_t index = lib.parameter(parameter).group;
  const plan::Group &group = lib.plan.groups[index];
  const GroupText &text = lib.groups[index];
  const LocalGroup *local = instance ? &instance->groups[index] : nullptr;
  bool member = local && local->member;
  return fill(instance, "parameter_info", info,
              {.struct_size = 0,
               .axes = int32_t(group.shape.size()),
               .name = lib.parameter(parameter).name.c_str(),
               .route = lib.route(parameter).name.c_str(),
               .dtype = text.dtype.c_str(),
               .gradient_dtype = text.gradientType.c_str(),
               .placements = text.placements.c_str(),
               .gradient_placements = text.gradientPlacements.c_str(),
               .mesh = text.mesh.c_str(),
               .global_shape = group.shape.data(),
               .local_shape = member ? local->parameter.shape.data() : nullptr,
               .gradient_local_shape = member ? local->gradient.shape.data() : nullptr,
               .states = int32_t(text.states.size()),
               .member = member});
}

int32_t stateInfo(const stepc_instance *instance, int64_t parameter, int32_t state,
                  stepc_state_info *info) {
  const Library &lib = library();
  if (int32_t status = checkParameter(instance, "state_info", parameter))
    return status;
  int64_t group = lib.parameter(parameter).group;
  if (state < 0 || state >= int32_t(lib.groups[group].states.size()))
    return refuse(instance, STEPC_ERROR_ARGUMENT,
                  format("state_info: parameter '%s': state %d does not exist, there are %zu",
                         lib.parameter(parameter).name.c_str(), state,
                         lib.groups[group].states.size()));
  const StateText &text = lib.groups[group].states[state];
  bool member = instance && instance->groups[group].member;
  return fill(instance, "state_info", info,
              {.struct_size = 0,
               .axes = int32_t(text.shape.size()),
               .name = text.name.c_str(),
               .dtype = text.dtype.c_str(),
               .kind = text.kind.c_str(),
               .placements = text.placements.c_str(),
               .global_shape = text.shape.data(),
               .local_shape = member ? instance->groups[group].states[state].shape.data() : nullptr,
               .init = text.init,
               .master = text.master,
               .reserved = 0});
}

int32_t meshInfo(int64_t parameter, stepc_mesh_info *info) {
  const Library &lib = library();
  if (parameter < 0 || parameter >= parameterCount())
    return STEPC_ERROR_ARGUMENT;
  const plan::Group &group = lib.group(parameter);
  const plan::Mesh &mesh = lib.plan.meshes[group.mesh];
  return fill(nullptr, "mesh_info", info,
              {.struct_size = 0,
               .axes = int32_t(mesh.sizes.size()),
               .name = mesh.name.c_str(),
               .axis_names = lib.meshAxes[group.mesh].data(),
               .axis_sizes = mesh.sizes.data(),
               .ranks = mesh.ranks.data(),
               .rank_count = int64_t(mesh.ranks.size()),
               .batch_axes = int32_t(group.batchAxes),
               .reserved = 0,
               .blocks = lib.groups[lib.parameter(parameter).group].blocks.c_str()});
}

const char *lastError(const stepc_instance *instance) {
  return instance ? instance->lastError() : "";
}

int32_t inProcessWorldTable(int32_t size, stepc_transport *transports) {
  if (size < 1 || !transports)
    return STEPC_ERROR_ARGUMENT;
  if (transports->struct_size < int32_t(sizeof(stepc_transport)))
    return STEPC_ERROR_ABI;
  try {
    inProcessWorld(size, transports);
  } catch (...) {
    return STEPC_ERROR_MEMORY;
  }
  return STEPC_OK;
}

/// No exception crosses the C interface. What can be thrown is std::bad_alloc, where a message is
/// put together. A step that has begun catches its own, and poisons the instance.
template <auto Function> struct Guard;
template <typename Instance, typename... Arguments, int32_t (*Function)(Instance *, Arguments...)>
struct Guard<Function> {
  static int32_t call(Instance *instance, Arguments... arguments) noexcept {
    try {
      return Function(instance, arguments...);
    } catch (...) {
      if (instance)
        instance->textLost = true;
      return STEPC_ERROR_MEMORY;
    }
  }
};

stepc_library makeTable() {
  const Library &lib = library();
  stepc_library table{};
  table.abi_version = STEPC_ABI_VERSION;
  table.struct_size = sizeof(stepc_library);
  table.name = lib.plan.name.c_str();
  table.chip = lib.plan.chip.c_str();
  table.plan_hash = lib.hash;
  // A program of another ABI may not even have these.
  if (lib.status != STEPC_ERROR_ABI) {
    table.plan = stepc_program_plan;
    table.plan_bytes = stepc_program_plan_bytes;
  }
  table.world_size = worldSize;
  table.world_ranks = worldRanks;
  table.create = create;
  table.destroy = Guard<destroy>::call;
  table.last_error = lastError;
  table.workspace_bytes = workspaceBytes;
  table.parameter_count = parameterCount;
  table.parameter_info = Guard<parameterInfo>::call;
  table.state_info = Guard<stateInfo>::call;
  table.route_count = routeCount;
  table.route_name = routeName;
  table.route_rule = routeRule;
  table.hyperparameter_count = hyperparameterCount;
  table.hyperparameter_name = hyperparameterName;
  table.hyperparameter_default = hyperparameterDefault;
  table.bind_parameter = Guard<bindParameter>::call;
  table.bind_state = Guard<bindState>::call;
  table.bind_gradient = Guard<bindGradient>::call;
  table.bind_gradients = Guard<bindGradients>::call;
  table.bind_steps = Guard<bindSteps>::call;
  table.bind_hyperparameters = Guard<bindHyperparameters>::call;
  table.set_hyperparameter = Guard<setHyperparameter>::call;
  table.device = stepc_program_device->kind;
  table.step = Guard<step>::call;
  table.enqueue = Guard<enqueue>::call;
  table.poll = Guard<poll>::call;
  table.half_stepped = Guard<halfStepped>::call;
  table.recover = Guard<recover>::call;
  table.counters = Guard<counters>::call;
  table.in_process_world = inProcessWorldTable;
  table.abort = Guard<abortInstance>::call;
  table.shard_runs = Guard<shardRuns>::call;
  table.mesh_info = meshInfo;
  table.refresh = Guard<refresh>::call;
  return table;
}

} // namespace
} // namespace stepc::runtime

extern "C" {

const void *stepc_rt_library(void) {
  static const stepc_library table = stepc::runtime::makeTable();
  return &table;
}

__attribute__((visibility("default"))) const stepc_library *stepc_library_table(void) {
  return static_cast<const stepc_library *>(stepc_rt_library());
}

} // extern "C"
