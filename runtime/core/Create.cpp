//===- Create.cpp - From options to an instance -----------------------------===//
#include "runtime/core/Chip.h"
#include "runtime/core/Instance.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/host/FloatModes.h"
#include "runtime/plan/BlockStates.h"
#include "runtime/random/Philox.h"
#include "runtime/text/Plural.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <system_error>

namespace stepc::runtime {
namespace {

int64_t product(const std::vector<int64_t> &shape) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

/// Checks what must hold before the transport may be called. The peers do not hear of a failure here.
int32_t checkOptions(const stepc_options *options, std::string &error) {
  if (!options)
    return fault(error, STEPC_ERROR_ARGUMENT, "options are null");
  if (options->abi_version != STEPC_ABI_VERSION)
    return fault(error, STEPC_ERROR_ABI,
                 format("expected options of ABI version %d, found version %d", STEPC_ABI_VERSION,
                        options->abi_version));
  if (options->struct_size < int32_t(sizeof(stepc_options)))
    return fault(error, STEPC_ERROR_ABI,
                 format("expected options of %zu bytes, found struct_size %d",
                        sizeof(stepc_options), options->struct_size));
  const stepc_transport *transport = options->transport;
  if (transport) {
    // Check the version first: a transport of another version may lay out its other fields differently.
    if (transport->version != STEPC_TRANSPORT_VERSION)
      return fault(error, STEPC_ERROR_ABI,
                   format("expected a transport of version %d, found version %d",
                          STEPC_TRANSPORT_VERSION, transport->version));
    if (transport->struct_size < int32_t(sizeof(stepc_transport)))
      return fault(error, STEPC_ERROR_ABI,
                   format("expected a transport of %zu bytes, found struct_size %d",
                          sizeof(stepc_transport), transport->struct_size));
    if (!transport->start || !transport->test || !transport->abort)
      return fault(error, STEPC_ERROR_ARGUMENT,
                   "the transport lacks one of the functions start, test and abort");
    bool gathers = transport->kinds >> STEPC_ALL_GATHER & 1;
    if (!transport->open_communicator != !transport->close_communicator ||
        (gathers && !transport->open_communicator))
      return fault(error, STEPC_ERROR_ARGUMENT,
                   "expected open_communicator and close_communicator, or neither of a transport "
                   "without all-gathers");
    if (transport->size < 1 || transport->rank < 0 || transport->rank >= transport->size)
      return fault(error, STEPC_ERROR_WORLD,
                   format("the transport says rank %d of %d", transport->rank, transport->size));
  }
  return STEPC_OK;
}

/// Checks all other options. The caller aborts the transport after a failure, so that the peers hear of it.
int32_t checkWorld(const Library &lib, const stepc_options *options, std::string &error) {
  if (lib.status)
    return fault(error, lib.status, lib.problem);
  int32_t given = options->transport ? options->transport->size : 1;
  if (given != int32_t(lib.world.size()))
    return fault(error, STEPC_ERROR_WORLD,
                 format("library '%s' is for a world of %s, %s", lib.plan.name.c_str(),
                        plural(int64_t(lib.world.size()), "rank").c_str(),
                        options->transport ? format("the transport has %d", given).c_str()
                                           : "and no transport was given"));
  std::string missing = missingFeature(lib.plan.chip);
  if (!missing.empty())
    return fault(
        error, STEPC_ERROR_CHIP,
        format("library '%s' is for chip '%s', this CPU lacks '%s'; where machines differ, "
               "compile for the target 'cpu:x86-64-v3', or 'cpu:x86-64-v2'",
               lib.plan.name.c_str(), shortChip(lib.plan.chip).c_str(), missing.c_str()));
  for (auto [kind, name] : {std::pair(STEPC_SEND, "send"), std::pair(STEPC_RECEIVE, "receive")})
    if (given > 1 && !(options->transport->kinds >> kind & 1))
      return fault(error, STEPC_ERROR_TRANSPORT,
                   format("library '%s' needs a transport with %s, found the kinds 0x%llx",
                          lib.plan.name.c_str(), name,
                          (unsigned long long)options->transport->kinds));
  bool movesDevice = given > 1 && options->transport->traits & STEPC_TRANSPORT_ON_DEVICE;
  bool isOnDevice = given > 1 && lib.device().stream;
  if (movesDevice != isOnDevice)
    return fault(
        error, STEPC_ERROR_TRANSPORT,
        format("library '%s' is for %s: expected a transport of %s memory, found one of %s",
               lib.plan.name.c_str(), isOnDevice ? "GPUs" : "the CPU",
               isOnDevice ? "GPUs'" : "the host's", movesDevice ? "GPUs'" : "the host's"));
  if (!(options->timeout_seconds >= 0))
    return fault(error, STEPC_ERROR_ARGUMENT, "timeout_seconds is negative or not a number");
  if (options->graph != 0 && options->graph != 1)
    return fault(error, STEPC_ERROR_ARGUMENT,
                 format("expected graph 0 or 1, found %d", options->graph));
  if (options->threads < 0)
    return fault(error, STEPC_ERROR_ARGUMENT, format("threads is %d", options->threads));
  if (lib.device().kind == STEPC_DEVICE_CUDA) {
    if (options->device != STEPC_DEVICE_CUDA)
      return fault(error, STEPC_ERROR_ARGUMENT,
                   format("library '%s' is for GPUs: expected device %d, found device %d",
                          lib.plan.name.c_str(), STEPC_DEVICE_CUDA, options->device));
  } else if (options->device != STEPC_DEVICE_CPU || options->device_ordinal ||
             (options->stream && !lib.device().stream))
    return fault(error, STEPC_ERROR_ARGUMENT,
                 format("library '%s' is for the CPU: expected device 0, number 0 and no stream, "
                        "found device %d, number %d and %s stream",
                        lib.plan.name.c_str(), options->device, options->device_ordinal,
                        options->stream ? "a" : "no"));
  if (!options->allocate != !options->deallocate)
    return fault(error, STEPC_ERROR_ARGUMENT,
                 format("expected allocate and deallocate or neither, found %s alone",
                        options->allocate ? "allocate" : "deallocate"));
  return STEPC_OK;
}

/// Adds ones to a local shape, up to `axes` axes. A flat shard's shape is one number, that of its elements.
std::vector<int64_t> withAxes(std::vector<int64_t> shape, size_t axes) {
  if (shape.size() < axes)
    shape.resize(axes, 1);
  return shape;
}

LocalGroup::LocalShard shardOfState(const StateText &state, std::vector<int64_t> shape) {
  int64_t bytes = product(shape) * state.elementBytes;
  return {withAxes(std::move(shape), state.shape.size()), bytes};
}

LocalGroup localGroup(const Library &lib, int64_t index, int64_t worldRank) {
  const plan::Group &group = lib.plan.groups[index];
  const plan::Mesh &mesh = lib.plan.meshes[group.mesh];
  LocalGroup local;
  local.states.resize(lib.groups[index].states.size());
  local.blockStates.resize(local.states.size());
  local.metrics.resize(lib.groups[index].metrics.size());
  local.inputs.resize(lib.groups[index].inputs.size());
  local.defaultAddresses.resize(local.inputs.size());
  auto found = std::find(mesh.ranks.begin(), mesh.ranks.end(), lib.world[worldRank]);
  if (found == mesh.ranks.end())
    return local;
  int64_t position = local.position = found - mesh.ranks.begin();
  local.member = true;
  auto shardOf = [&](plan::ShardsKind of, plan::DType type) -> LocalGroup::LocalShard {
    std::vector<int64_t> shape = geometry::localShape(group.shape, group.placementsOf(of), mesh,
                                                      geometry::coordinates(mesh, position));
    int64_t bytes = product(shape) * plan::byteSize(type);
    return {withAxes(std::move(shape), group.shape.size()), bytes};
  };
  local.parameter = shardOf(plan::ShardsKind::Parameter, group.parameterType);
  local.gradient = shardOf(plan::ShardsKind::Gradient, group.gradientType);
  if (lib.plan.isOfModel(group)) // no kernel touches its elements, so there is no memory for them
    local.parameter = local.gradient = {{0}, 0};
  auto place = [&](const std::vector<StateText> &texts,
                   std::vector<LocalGroup::LocalShard> &shards) {
    for (size_t i = 0; i < texts.size(); ++i)
      shards[i] =
          shardOfState(texts[i], geometry::localStateShape(group, mesh, position, texts[i].value));
  };
  place(lib.groups[index].states, local.states);
  place(lib.groups[index].metrics, local.metrics);
  place(lib.groups[index].inputs, local.inputs);
  return local;
}

/// Adds the states of a group that stay with blocks.
void addBlockStates(const Library &lib, int64_t index, const std::vector<int64_t> &computed,
                    LocalGroup &local) {
  const plan::Group &group = lib.plan.groups[index];
  for (size_t i = 0; i < local.states.size() && local.member; ++i) {
    const StateText &state = lib.groups[index].states[i];
    if (!group.staysWithBlocks(int64_t(state.index)))
      continue;
    for (size_t p = 0; p < group.parameters.size(); ++p)
      local.blockStates[i].push_back(shardOfState(
          state, plan::blockStateShape(group, state.value,
                                       plan::blocksWithin(group, computed, int64_t(p)))));
  }
}

void describeShards(stepc_instance &instance) {
  const Library &lib = instance.library;
  const plan::Plan &plan = lib.plan;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    instance.prepared.groups.push_back(localGroup(lib, g, instance.rank));
    addBlockStates(lib, int64_t(g), instance.prepared.tables.computed[g],
                   instance.prepared.groups.back());
  }
  makeDefaults(instance);
  std::vector<uint8_t> skips(plan.groups.size(), 0);
  for (size_t p = 0; p < plan.parameters.size(); ++p)
    if (lib.route(p).missingGrad == plan::MissingGrad::Skip)
      skips[plan.parameters[p].group] = instance.prepared.maySkip = true;
  for (size_t g = 0; g < plan.groups.size(); ++g)
    for (int32_t r = 0; skips[g] && r < instance.size; ++r)
      if (localGroup(lib, g, r).gradient.bytes > 0)
        instance.prepared.groups[g].holders.push_back(r);
}

void prepareBindings(stepc_instance &instance) {
  const Library &lib = instance.library;
  size_t count = lib.plan.parameters.size();
  instance.bound.parameters.assign(count, nullptr);
  instance.bound.gradients.assign(count, nullptr);
  instance.bound.givenGradients.assign(count, nullptr);
  instance.bound.parameterBound.assign(count, Bound::Never);
  instance.bound.gradientBound.assign(count, Bound::Never);
  instance.bound.states.assign(lib.ruleStates, std::vector<void *>(count, nullptr));
  instance.bound.stateBound.assign(lib.ruleStates, std::vector<Bound>(count, Bound::Never));
  instance.failures.halfStepped.assign(count, 0);
  instance.bound.stepsTaken.assign(count, 0);
  instance.running.firstRecord.assign(lib.plan.groups.size(), -1);
  for (const plan::Route &route : lib.plan.routes)
    instance.bound.routeValues.push_back(route.defaults);
  instance.running.records.resize(count);
  for (size_t g = 0; g < lib.plan.groups.size(); ++g) {
    const plan::Group &group = lib.plan.groups[g];
    double rows = double(group.rows()), cols = double(group.cols());
    for (int64_t p : group.parameters) {
      bool isFirst = lib.parameter(p).group == int64_t(g);
      if (!isFirst && p == group.parameters.front())
        instance.running.firstRecord[g] = instance.running.records.size();
      stepc_parameter_record record{
          rows,    cols, group.numel(), nullptr,
          nullptr, 1,    isFirst,       int64_t(random::keyOf(lib.parameter(p).name))};
      if (isFirst)
        instance.running.records[p] = record;
      else
        instance.running.records.push_back(record);
    }
  }
  for (const plan::Rule &rule : lib.plan.rules)
    instance.bound.hyperparameterStride =
        std::max(instance.bound.hyperparameterStride, int64_t(rule.hyperparameters.size()));
  instance.bound.hyperparameterValues.assign(count * instance.bound.hyperparameterStride, 0);
}

int32_t build(stepc_instance &instance, const stepc_options &options, std::string &error) {
  const Library &lib = instance.library;
  if (options.parallel_for)
    instance.parallel.use(options.parallel_for, options.parallel_context);
  else
    instance.parallel.startPool(options.threads);
  instance.prepared.tables = plan::expand(lib.plan, instance.rank);
  describeShards(instance);
  prepareBindings(instance);
  prepareOverlaps(instance);
  instance.failures.memoryText = instance.here() +
                                 ": memory ran out, or a function of the trainer threw; "
                                 "half_stepped() says which parameters may be changed";
  prepareAgreement(instance);
  int64_t workspaceBytes = lib.plan.workspaceBytes();
  std::string missing = instance.device().open(instance.deviceContext, options);
  if (!missing.empty())
    return fault(error, STEPC_ERROR_DEVICE, missing);
  if (std::string wrong = placeMetrics(instance); !wrong.empty())
    return fault(error, STEPC_ERROR_MEMORY, wrong);
  if (!instance.device().allocate(instance.deviceContext, instance.prepared.arena, workspaceBytes,
                                  options))
    return fault(error, STEPC_ERROR_MEMORY,
                 format("a workspace of %lld bytes, aligned to 64, could not be allocated%s%s%s",
                        (long long)workspaceBytes,
                        options.allocate ? " by the options' allocator" : "",
                        instance.deviceContext.failure.empty() ? "" : ": ",
                        instance.deviceContext.failure.c_str()));
  int32_t status = STEPC_OK;
  if (std::string wrong = prepareProgram(instance, status); !wrong.empty())
    return fault(error, status, wrong);
  if (std::string wrong = lendLists(instance); !wrong.empty())
    return fault(error, STEPC_ERROR_DEVICE, wrong);
  placeHyperparameters(instance, nullptr, 0, {});
  int64_t zeroBytes = 0;
  for (size_t p = 0; p < lib.plan.parameters.size(); ++p)
    if (lib.route(p).missingGrad == plan::MissingGrad::Zero)
      zeroBytes =
          std::max(zeroBytes, instance.prepared.groups[lib.parameter(p).group].gradient.bytes);
  if (zeroBytes &&
      !instance.device().allocateZeros(instance.deviceContext, instance.prepared.zeros, zeroBytes))
    return fault(error, STEPC_ERROR_MEMORY, "zeros for absent gradients could not be allocated");
  return STEPC_OK;
}

/// If there are several programs, chooses the one that the device of the options runs.
int32_t chooseProgram(const std::vector<const Library *> &programs, const stepc_options &options,
                      const Library *&chosen, std::string &error) {
  chosen = programs.front();
  if (programs.size() == 1 || !chosen->device().choose)
    return STEPC_OK;
  LibraryPrograms all{chosen->plan.name, {}};
  for (const Library *each : programs) {
    if (each->status)
      return fault(error, each->status, each->problem);
    all.programs.push_back(&each->program);
  }
  size_t number = 0;
  std::string missing = chosen->device().choose(all, options, number);
  if (!missing.empty())
    return fault(error, STEPC_ERROR_DEVICE, missing);
  chosen = programs[number];
  return STEPC_OK;
}

int32_t createChecked(const std::vector<const Library *> &programs, const stepc_options *options,
                      stepc_instance **out, std::string &error) {
  if (int32_t status = checkOptions(options, error))
    return status;
  const stepc_transport *transport = options->transport;
  std::unique_ptr<stepc_instance> instance;
  // On the heap, because a transport may still write to them after an abort; they are leaked then.
  auto hellos = std::make_unique<std::vector<Hello>>();
  const Library *lib = programs.front();
  int32_t status = checkWorld(*lib, options, error);
  if (!status)
    status = chooseProgram(programs, *options, lib, error);
  bool allKnow = false; // whether all ranks have found the same failure
  if (!status) {
    try {
      instance = std::make_unique<stepc_instance>(*lib);
      if (transport) {
        instance->transport = *transport;
        instance->rank = transport->rank;
        instance->size = transport->size;
      }
      if (options->timeout_seconds > 0)
        instance->timeout = options->timeout_seconds;
      status = build(*instance, *options, error);
    } catch (const std::system_error &exception) {
      status = fault(error, STEPC_ERROR_MEMORY,
                     std::string("a worker thread could not be started: ") + exception.what());
    } catch (const std::bad_alloc &) {
      status = fault(error, STEPC_ERROR_MEMORY, "the tables of this rank could not be allocated");
    } catch (const std::exception &exception) {
      status = fault(error, STEPC_ERROR_PLAN,
                     std::string("the tables of this rank cannot be made: ") + exception.what());
    }
    if (!status && instance->size > 1)
      status = meet(*instance, *hellos, error);
    if (!status && instance->size > 1) {
      status = compare(*lib, *hellos, error);
      allKnow = status != STEPC_OK;
    }
    if (!status)
      status = openCommunicators(*instance, error);
    if (!status && instance->isOnDevice())
      status = openConnections(*instance, error);
    if (!status && options->graph)
      status = recordGraph(*instance, error);
  }
  if (!status) {
    // From here on the instance owns the transport, and destroys it.
    instance->hasTransport = transport != nullptr;
    *out = instance.release();
    return STEPC_OK;
  }
  int32_t rank = transport ? transport->rank : 0;
  // The peers wait for this rank in create, so abort. After `compare` all ranks know of the failure by
  // themselves.
  if (transport && transport->size > 1 && !allKnow) {
    transport->abort(transport->context, error.c_str());
    // A transport that cannot take messages back may still write to `hellos` (see ~stepc_instance).
    if (!(transport->traits & STEPC_TRANSPORT_TAKES_BACK) && !hellos->empty())
      keepForever(hellos.release());
  }
  error = rankName(*lib, rank) + ": " + error;
  return status;
}

} // namespace

int32_t create(const std::vector<const Library *> &programs, const stepc_options *options,
               stepc_instance **instance, char *error, int64_t errorSize) {
  FloatModes modes;
  if (!instance) {
    copyText(error, errorSize, "the place for the instance is null");
    return STEPC_ERROR_ARGUMENT;
  }
  *instance = nullptr;
  int32_t status;
  try {
    std::string message;
    status = createChecked(programs, options, instance, message);
    copyText(error, errorSize, message);
  } catch (...) {
    copyText(error, errorSize, "memory ran out, or a function of the trainer threw");
    status = STEPC_ERROR_MEMORY;
  }
  return status;
}

int32_t destroy(stepc_instance *instance) {
  if (!instance)
    return STEPC_OK;
  const stepc_graph_table *graphs = instance->device().graphs;
  // The driver releases a destroyed graph a little later, so wait for up to kMost.
  constexpr auto kMost = std::chrono::seconds(1);
  int64_t living = 0;
  for (auto begin = Clock::now();
       graphs && (living = graphs->living(instance->deviceContext)) > 0;) {
    auto waited = Clock::now() - begin;
    if (waited >= kMost)
      return instance->refuse(
          STEPC_ERROR_GRAPH,
          format("%s of this instance %s in graphs of the trainer's: expected that these are "
                 "destroyed first",
                 plural(living, "step").c_str(), living == 1 ? "stands" : "stand"));
    backOff(waited);
  }
  delete instance;
  return STEPC_OK;
}

} // namespace stepc::runtime

using namespace stepc::runtime;

// Waits the timeout and more: by then the watchdog has ended exchanges whose peers do not come, and the GPU
// goes on.
bool stepc_instance::drainOrGiveUp() noexcept try {
  constexpr double kMoreSeconds = 30; // time for an abort
  double limit = (failures.aborted ? 0 : timeout) + kMoreSeconds;
  auto begin = Clock::now();
  while (!device().poll(deviceContext)) {
    auto waited = Clock::now() - begin;
    if (std::chrono::duration<double>(waited).count() >= limit)
      return false;
    backOff(waited);
  }
  return true;
} catch (...) {
  return false;
}

stepc_instance::~stepc_instance() {
  // Drain before any member is destroyed: a step on the device may still use it.
  bool isDrained = !isOnDevice() || !deviceContext.state || drainOrGiveUp();
  watchdog.reset();
  if (isDrained) {
    device().drain(deviceContext);
  } else {
    // A GPU that does not finish may use its state and this memory for as long as the process lives: leak
    // them.
    keepForever(deviceContext.state.release());
    prepared.arena.leak();
    prepared.zeros.leak();
  }
  // NCCL waits for graphs that hold a communicator, so forget them before communicators are closed.
  if (device().graphs)
    device().graphs->forget(deviceContext);
  closeCommunicators(*this);
  if (hasTransport && transport.destroy)
    transport.destroy(transport.context);
  // A transport that cannot take messages back may still touch the buffers of an aborted exchange.
  if (failures.leftInFlight && !takesBack()) {
    prepared.arena.leak();
    keepForever(running.told.release());
  }
}
