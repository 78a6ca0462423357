//===- Table.cpp - The table of functions that a library exports -----------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"
#include "runtime/transports/InProcess.h"

#include <limits>

namespace stepc::runtime {
namespace {

const plan::Rule *ruleOf(const Library &lib, int64_t route) {
  const plan::Plan &plan = lib.plan;
  if (route < 0 || route >= int64_t(plan.routes.size()))
    return nullptr;
  return &plan.rules[plan.routes[route].rule];
}

bool isHyperparameter(const Library &lib, int64_t route, int32_t index) {
  const plan::Rule *rule = ruleOf(lib, route);
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

static int32_t checkParameter(const Library &lib, const stepc_instance *instance, const char *what,
                              int64_t parameter) {
  auto count = int64_t(lib.plan.parameters.size());
  if (parameter >= 0 && parameter < count)
    return STEPC_OK;
  return refuse(instance, STEPC_ERROR_ARGUMENT,
                format("%s: parameter %lld does not exist, there are %lld", what,
                       (long long)parameter, (long long)count));
}

/// Checks the number of one of the parameter's states, metrics or inputs, of which there are `count`.
static int32_t checkListed(const Library &lib, const stepc_instance *instance, const char *what,
                           int64_t parameter, const char *kind, int32_t number, size_t count) {
  if (number >= 0 && number < int32_t(count))
    return STEPC_OK;
  return refuse(instance, STEPC_ERROR_ARGUMENT,
                format("%s: parameter '%s': %s %d does not exist, there are %zu", what,
                       lib.parameter(parameter).name.c_str(), kind, number, count));
}

int32_t checkState(const Library &lib, const stepc_instance *instance, const char *what,
                   int64_t parameter, int32_t state) {
  if (int32_t status = checkParameter(lib, instance, what, parameter))
    return status;
  return checkListed(lib, instance, what, parameter, "state", state,
                     lib.groups[lib.parameter(parameter).group].states.size());
}

int32_t checkMetric(const Library &lib, const stepc_instance *instance, const char *what,
                    int64_t parameter, int32_t metric) {
  if (int32_t status = checkParameter(lib, instance, what, parameter))
    return status;
  return checkListed(lib, instance, what, parameter, "metric", metric,
                     lib.groups[lib.parameter(parameter).group].metrics.size());
}

int32_t checkInput(const Library &lib, const stepc_instance *instance, const char *what,
                   int64_t parameter, int32_t input) {
  if (int32_t status = checkParameter(lib, instance, what, parameter))
    return status;
  return checkListed(lib, instance, what, parameter, "input", input,
                     lib.groups[lib.parameter(parameter).group].inputs.size());
}

namespace {

// Each of these functions gets the library first. If it also gets an instance, it uses the instance's
// library.

int32_t worldSize(const Library &lib) { return int32_t(lib.world.size()); }
const int64_t *worldRanks(const Library &lib) { return lib.world.data(); }
int64_t workspaceBytes(const Library &lib) { return lib.plan.workspaceBytes(); }
int64_t parameterCount(const Library &lib) { return int64_t(lib.plan.parameters.size()); }
int64_t routeCount(const Library &lib) { return int64_t(lib.plan.routes.size()); }

const char *routeRule(const Library &lib, int64_t route) {
  const plan::Rule *rule = ruleOf(lib, route);
  return rule ? rule->name.c_str() : nullptr;
}

const char *routeName(const Library &lib, int64_t route) {
  return ruleOf(lib, route) ? lib.plan.routes[route].name.c_str() : nullptr;
}

int32_t hyperparameterCount(const Library &lib, int64_t route) {
  const plan::Rule *rule = ruleOf(lib, route);
  return rule ? int32_t(rule->hyperparameters.size()) : 0;
}

const char *hyperparameterName(const Library &lib, int64_t route, int32_t index) {
  return isHyperparameter(lib, route, index) ? ruleOf(lib, route)->hyperparameters[index].c_str()
                                             : nullptr;
}

double hyperparameterDefault(const Library &lib, int64_t route, int32_t index) {
  return isHyperparameter(lib, route, index) ? lib.plan.routes[route].defaults[index]
                                             : std::numeric_limits<double>::quiet_NaN();
}

int32_t parameterInfo(const Library &own, const stepc_instance *instance, int64_t parameter,
                      stepc_parameter_info *info) {
  const Library &lib = instance ? instance->library : own;
  if (int32_t status = checkParameter(lib, instance, "parameter_info", parameter))
    return status;
  int64_t index = lib.parameter(parameter).group;
  const plan::Group &group = lib.plan.groups[index];
  const GroupText &text = lib.groups[index];
  const LocalGroup *local = instance ? &instance->prepared.groups[index] : nullptr;
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
               .member = member,
               .is_model = parameter == lib.plan.model,
               .steps_on_device = parameter == lib.plan.model && lib.plan.skipsOnDevice()});
}

/// Describes a state or an input. `localShape` is null without an instance that has its shard.
int32_t fillState(const stepc_instance *instance, const char *function, const StateText &text,
                  const int64_t *localShape, stepc_state_info *info) {
  return fill(instance, function, info,
              {.struct_size = 0,
               .axes = int32_t(text.shape.size()),
               .name = text.name.c_str(),
               .dtype = text.dtype.c_str(),
               .kind = text.kind.c_str(),
               .placements = text.placements.c_str(),
               .global_shape = text.shape.data(),
               .local_shape = localShape,
               .init = text.init,
               .master = text.master,
               .reserved = 0});
}

int32_t stateInfo(const Library &own, const stepc_instance *instance, int64_t parameter,
                  int32_t state, stepc_state_info *info) {
  const Library &lib = instance ? instance->library : own;
  if (int32_t status = checkState(lib, instance, "state_info", parameter, state))
    return status;
  int64_t group = lib.parameter(parameter).group;
  const StateText &text = lib.groups[group].states[state];
  bool member = instance && instance->prepared.groups[group].member;
  return fillState(instance, "state_info", text,
                   member ? instance->prepared.groups[group]
                                .state(state, lib.parameter(parameter).indexInGroup)
                                .shape.data()
                          : nullptr,
                   info);
}

int64_t metricCount(const Library &lib, int64_t parameter) {
  return parameter < 0 || parameter >= parameterCount(lib)
             ? 0
             : int64_t(lib.groups[lib.parameter(parameter).group].metrics.size());
}

int32_t metricInfo(const Library &own, const stepc_instance *instance, int64_t parameter,
                   int32_t metric, stepc_metric_info *info) {
  const Library &lib = instance ? instance->library : own;
  if (int32_t status = checkMetric(lib, instance, "metric_info", parameter, metric))
    return status;
  int64_t group = lib.parameter(parameter).group;
  const StateText &text = lib.groups[group].metrics[size_t(metric)];
  bool member = instance && instance->prepared.groups[group].member;
  return fill(
      instance, "metric_info", info,
      {.struct_size = 0,
       .axes = int32_t(text.shape.size()),
       .name = text.name.c_str(),
       .global_shape = text.shape.data(),
       .local_shape =
           member ? instance->prepared.groups[group].metrics[size_t(metric)].shape.data() : nullptr,
       .count = instance ? countOfMetric(*instance, parameter, metric) : 0});
}

int32_t inputInfo(const Library &own, const stepc_instance *instance, int64_t parameter,
                  int32_t input, stepc_state_info *info) {
  const Library &lib = instance ? instance->library : own;
  if (int32_t status = checkInput(lib, instance, "input_info", parameter, input))
    return status;
  int64_t group = lib.parameter(parameter).group;
  const StateText &text = lib.groups[group].inputs[size_t(input)];
  bool member = instance && instance->prepared.groups[group].member;
  return fillState(
      instance, "input_info", text,
      member ? instance->prepared.groups[group].inputs[size_t(input)].shape.data() : nullptr, info);
}

int32_t meshInfo(const Library &lib, int64_t parameter, stepc_mesh_info *info) {
  if (parameter < 0 || parameter >= parameterCount(lib))
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
               .flatten = int32_t(group.flatten),
               .blocks = lib.groups[lib.parameter(parameter).group].blocks.c_str(),
               .flatten_specified = group.flattenSpecified,
               .reserved = 0});
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

/// No exception may cross the C interface. Only std::bad_alloc can be thrown, while a message is put
/// together. A step that has begun catches its exceptions itself, and poisons the instance.
template <auto Function> struct Guard;
template <typename Instance, typename... Arguments, int32_t (*Function)(Instance *, Arguments...)>
struct Guard<Function> {
  static int32_t call(Instance *instance, Arguments... arguments) noexcept {
    try {
      return Function(instance, arguments...);
    } catch (...) {
      if (instance)
        instance->failures.textLost = true;
      return STEPC_ERROR_MEMORY;
    }
  }
};

/// The program in a slot of stepc_programs, read at the first call.
template <size_t Slot> const Library &library() {
  static const Library *const made = readLibrary(*stepc_programs[Slot]);
  return *made;
}

/// A function of a library without its argument for the library, as the C table needs it.
template <size_t Slot, auto Function> struct Of;
template <size_t Slot, typename Result, typename... Arguments,
          Result (*Function)(const Library &, Arguments...)>
struct Of<Slot, Function> {
  static Result call(Arguments... arguments) { return Function(library<Slot>(), arguments...); }
};

using GetLibrary = const Library &(*)();
template <size_t... Slots> std::vector<GetLibrary> allLibraries(std::index_sequence<Slots...>) {
  return {library<Slots>...};
}

/// The program in a slot, and after it all others for devices of its kind.
template <size_t Slot> std::vector<const Library *> programsLike() {
  const Library &own = library<Slot>();
  std::vector<const Library *> programs = {&own};
  std::vector<GetLibrary> all = allLibraries(std::make_index_sequence<STEPC_MOST_PROGRAMS>());
  for (size_t slot = 0; slot < all.size() && stepc_programs[slot]; ++slot) {
    const Library &other = all[slot]();
    // If a program is of another ABI, nothing else of it can be read.
    bool isKnown = own.status != STEPC_ERROR_ABI && other.status != STEPC_ERROR_ABI;
    if (&other != &own && isKnown && &other.device() == &own.device())
      programs.push_back(&other);
  }
  return programs;
}

template <size_t Slot>
int32_t createInstance(const stepc_options *options, stepc_instance **instance, char *error,
                       int64_t errorSize) {
  try {
    return create(programsLike<Slot>(), options, instance, error, errorSize);
  } catch (...) {
    if (instance)
      *instance = nullptr;
    copyText(error, errorSize, "memory ran out");
    return STEPC_ERROR_MEMORY;
  }
}

const stepc_library *tableOf(const stepc_instance *instance);

template <size_t Slot> stepc_library makeTable() {
  const Library &lib = library<Slot>();
  stepc_library table{};
  table.abi_version = STEPC_ABI_VERSION;
  table.struct_size = sizeof(stepc_library);
  table.name = lib.plan.name.c_str();
  table.chip = lib.plan.chip.c_str();
  table.plan_hash = lib.hash;
  table.target = "";
  table.status = lib.status;
  table.problem = lib.status ? lib.problem.c_str() : nullptr;
  if (!lib.status) {
    table.plan = lib.program.plan;
    table.plan_bytes = lib.program.plan_bytes;
  }
  // A program of another ABI may not even have these fields.
  if (lib.status != STEPC_ERROR_ABI) {
    table.device = lib.device().kind;
    table.target = lib.program.target;
  }
  table.world_size = Of<Slot, worldSize>::call;
  table.world_ranks = Of<Slot, worldRanks>::call;
  table.create = createInstance<Slot>;
  table.destroy = Guard<destroy>::call;
  table.last_error = lastError;
  table.workspace_bytes = Of<Slot, workspaceBytes>::call;
  table.parameter_count = Of<Slot, parameterCount>::call;
  table.parameter_info = Guard<Of<Slot, parameterInfo>::call>::call;
  table.state_info = Guard<Of<Slot, stateInfo>::call>::call;
  table.route_count = Of<Slot, routeCount>::call;
  table.route_name = Of<Slot, routeName>::call;
  table.route_rule = Of<Slot, routeRule>::call;
  table.hyperparameter_count = Of<Slot, hyperparameterCount>::call;
  table.hyperparameter_name = Of<Slot, hyperparameterName>::call;
  table.hyperparameter_default = Of<Slot, hyperparameterDefault>::call;
  table.bind_parameter = Guard<bindParameter>::call;
  table.bind_state = Guard<bindState>::call;
  table.bind_gradient = Guard<bindGradient>::call;
  table.bind_gradients = Guard<bindGradients>::call;
  table.bind_steps = Guard<bindSteps>::call;
  table.bind_hyperparameters = Guard<bindHyperparameters>::call;
  table.set_hyperparameter = Guard<setHyperparameter>::call;
  table.step = Guard<step>::call;
  table.enqueue = Guard<enqueue>::call;
  table.poll = Guard<poll>::call;
  table.half_stepped = Guard<halfStepped>::call;
  table.recover = Guard<recover>::call;
  table.counters = Guard<counters>::call;
  table.in_process_world = inProcessWorldTable;
  table.abort = Guard<abortInstance>::call;
  table.shard_runs = Guard<shardRuns>::call;
  table.mesh_info = Of<Slot, meshInfo>::call;
  table.refresh = Guard<refresh>::call;
  table.table_of = tableOf;
  table.metric_count = Of<Slot, metricCount>::call;
  table.metric_info = Guard<Of<Slot, metricInfo>::call>::call;
  table.metrics = Guard<metrics>::call;
  table.bound_state = Guard<boundState>::call;
  table.move_states = Guard<moveStates>::call;
  table.input_count = Of<Slot, inputCount>::call;
  table.input_info = Guard<Of<Slot, inputInfo>::call>::call;
  table.bind_input = Guard<bindInput>::call;
  return table;
}

/// The table of this slot, which links to the tables of later slots. Each is made once. Null if the slot is
/// empty.
template <size_t Slot> const stepc_library *tablesFrom() {
  if constexpr (Slot < STEPC_MOST_PROGRAMS) {
    if (!stepc_programs[Slot])
      return nullptr;
    static const stepc_library table = [] {
      stepc_library made = makeTable<Slot>();
      made.next = tablesFrom<Slot + 1>();
      return made;
    }();
    return &table;
  }
  return nullptr;
}

const stepc_library *tableOf(const stepc_instance *instance) {
  const stepc_library *table = instance ? tablesFrom<0>() : nullptr;
  while (table && table->plan != instance->library.program.plan)
    table = table->next;
  return table;
}

} // namespace
} // namespace stepc::runtime

extern "C" {

/// This library's handle, which the linker defines.
extern void *__dso_handle __attribute__((visibility("hidden")));
void __cxa_finalize(void *library);

/// Runs the library's static destructors when it is unloaded. A C++ compiler's crtbeginS.o would do that, but
/// libraries are linked without a toolchain. The priority makes it the last function that runs.
__attribute__((destructor(101))) static void stepc_rt_unload(void) {
  __cxa_finalize(&__dso_handle);
}

const void *stepc_rt_library(void) { return stepc::runtime::tablesFrom<0>(); }

__attribute__((visibility("default"))) const stepc_library *stepc_library_table(void) {
  return static_cast<const stepc_library *>(stepc_rt_library());
}

} // extern "C"
