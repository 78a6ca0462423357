//===- RunLibrary.cpp - A compiled step on in-process ranks ----------------===//
//
// Each rank is a thread with its own instance and its own shards, as in a real job. The library says which
// elements belong to which rank. The tensors are cut by this and put together again, and copies of one
// element must be equal to the byte.
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Plural.h"
#include "stepc/sized.h"
#include "tools/stepc/LoadedLibrary.h"

#include "llvm/Support/raw_ostream.h"

#include <barrier>
#include <cstring>
#include <numeric>
#include <optional>
#include <thread>

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;
using llvm::Twine;
using manifest::TensorType;

namespace {

constexpr int32_t kMostRanks = 1024; // each is a thread

/// What one rank holds.
struct Rank {
  stepc_instance *instance = nullptr;
  std::vector<std::vector<uint8_t>> values, gradients;           // per parameter
  std::vector<std::vector<std::vector<uint8_t>>> states, inputs; // per parameter, state or input
  std::vector<int64_t> steps;
  std::vector<std::vector<uint8_t>> statesOfModel, metricsOfModel; // an f32 each
  stepc_counters executed = sized<stepc_counters>(), planned = sized<stepc_counters>();
  int32_t status = STEPC_OK;
  std::string error;
};

class LibraryRun {
public:
  LibraryRun(const RunInput &run, const RunCommand &command, std::vector<RunOutput> &outputs,
             Report &report)
      : run(run), command(command), outputs(outputs), report(report),
        library(run, command, report) {}

  ~LibraryRun() {
    for (Rank &rank : ranks)
      if (rank.instance)
        table->destroy(rank.instance);
  }

  int start(const std::string &path) {
    if (!library.load(path))
      return kInputError;
    table = library.table;
    int32_t size = table->world_size();
    if (size > kMostRanks) {
      report.error("expected a world of at most " + Twine(kMostRanks) +
                   " ranks to run in one process, found " + Twine(size));
      return kInputError;
    }
    std::vector<stepc_transport> transports(size, sized<stepc_transport>());
    if (table->in_process_world(size, transports.data())) {
      report.error("cannot make a world of " + plural(size, "rank") + " in this process");
      return kInternalError;
    }
    ranks.resize(size);
    if (!run.watched.empty())
      stepped.emplace(size, AllStepped{*this});
    std::vector<std::thread> threads;
    for (int32_t rank = 0; rank < size; ++rank)
      threads.emplace_back([this, rank, &transports] {
        runRank(rank, transports[rank]);
        if (stepped && ranks[rank].status) // others do not wait for a rank that failed
          stepped->arrive_and_drop();
      });
    for (std::thread &thread : threads)
      thread.join();
    if (!reportErrors())
      return kInputError;
    for (int32_t rank = 0; rank < size; ++rank)
      if (!gather(rank))
        return kInternalError;
    printCounters();
    writeOutputs();
    return kSuccess;
  }

private:
  //===--------------------------------------------------------------------===//
  // One rank
  //===--------------------------------------------------------------------===//

  bool isMember(const StepParameter &p, int32_t rank) const {
    return llvm::is_contained(p.mesh->ranks, library.world[rank]);
  }

  /// The runs that a rank holds of a parameter, its gradient or a state.
  std::vector<stepc_run> runs(const Rank &rank, int64_t parameter, int32_t of) const {
    int64_t count = 0;
    table->shard_runs(rank.instance, parameter, of, nullptr, 0, &count);
    std::vector<stepc_run> found(count);
    table->shard_runs(rank.instance, parameter, of, found.data(), count, &count);
    return found;
  }

  /// The bytes of a gradient for a rank. If the gradient is partial, these are the rank's contribution.
  llvm::ArrayRef<uint8_t> contributionOf(const StepParameter &p, const Rank &rank,
                                         const manifest::TensorView &gradient) const {
    auto found = llvm::find(p.mesh->ranks, library.world[&rank - ranks.data()]);
    int64_t size = gradient.bytes.size() / plan::contributions(*p.group, *p.mesh).count;
    if (found == p.mesh->ranks.end())
      return {};
    int64_t number = plan::contributionOf(*p.group, *p.mesh, found - p.mesh->ranks.begin());
    return gradient.bytes.slice(number * size, size);
  }

  std::vector<uint8_t> shardOf(const std::vector<stepc_run> &runs, TensorType type,
                               llvm::ArrayRef<uint8_t> whole) const {
    int64_t size = manifest::byteSize(type), elements = 0;
    for (const stepc_run &run : runs)
      elements += run.length;
    std::vector<uint8_t> shard(elements * size);
    for (const stepc_run &run : runs)
      std::memcpy(shard.data() + run.local * size, whole.data() + run.global * size,
                  run.length * size);
    return shard;
  }

  void runRank(int32_t index, stepc_transport &transport) {
    Rank &rank = ranks[index];
    char message[1024] = "";
    auto options = sized<stepc_options>();
    options.abi_version = STEPC_ABI_VERSION;
    options.transport = &transport;
    options.threads = std::max(command.threads, 1);
    options.graph = command.graph;
    rank.status = table->create(&options, &rank.instance, message, sizeof(message));
    if (rank.status) {
      rank.error = message;
      // The transport is still ours: peers that wait for this rank must hear of it.
      transport.abort(transport.context, message);
      if (transport.destroy)
        transport.destroy(transport.context);
      return;
    }
    auto call = [&](int32_t status) {
      if (status == STEPC_OK)
        return true;
      rank.status = status;
      rank.error = table->last_error(rank.instance);
      table->abort(rank.instance, rank.error.c_str());
      return false;
    };
    if (!bind(index, rank, call))
      return;
    for (int64_t step = 0; step < command.steps; ++step) {
      if (!bindGradients(index, rank, step, call) || !bindInputs(index, rank, step, call) ||
          !call(table->step(rank.instance)))
        return;
      if (stepped)
        stepped->arrive_and_wait();
    }
    call(table->counters(rank.instance, &rank.executed, &rank.planned));
  }

  template <typename Call> bool bind(int32_t index, Rank &rank, Call call) {
    rank.values.resize(parameters.size());
    rank.gradients.resize(parameters.size());
    rank.states.resize(parameters.size());
    for (auto [number, p] : llvm::enumerate(parameters)) {
      rank.steps.push_back(p.steps);
      if (!isMember(p, index))
        continue;
      std::vector<uint8_t> &value = rank.values[number];
      value = shardOf(runs(rank, number, STEPC_PARAMETER), p.value.type, p.value.bytes);
      if (!call(table->bind_parameter(rank.instance, number, value.data(), value.size())))
        return false;
      rank.states[number].resize(p.states.size());
      for (auto [i, state] : llvm::enumerate(p.states)) {
        std::vector<uint8_t> &bytes = rank.states[number][i];
        bytes = shardOf(runs(rank, number, i), state.type, state.bytes);
        if (!call(table->bind_state(rank.instance, number, i, bytes.data(), bytes.size())))
          return false;
      }
    }
    if (library.plan.model >= 0) {
      rank.steps.push_back(run.stepsOfModel());
      for (auto [i, state] : llvm::enumerate(library.statesOfModel())) {
        auto number = float(run.stateOfModel(state.name, state.init));
        std::vector<uint8_t> &bytes = rank.statesOfModel.emplace_back(sizeof(number));
        std::memcpy(bytes.data(), &number, sizeof(number));
        if (!call(table->bind_state(rank.instance, library.plan.model, int32_t(i), bytes.data(),
                                    bytes.size())))
          return false;
      }
    }
    // The emulated GPU has no memory of its own.
    int32_t memory = library.plan.skipsOnDevice() ? STEPC_MEMORY_DEVICE : STEPC_MEMORY_HOST;
    if (!call(table->bind_steps(rank.instance, rank.steps.data(), memory)))
      return false;
    for (const auto &[name, value] : command.hyperparameters) {
      size_t dot = name.rfind('.');
      for (int64_t route = 0; route < table->route_count(); ++route)
        if (name.substr(0, dot) == table->route_name(route) &&
            !call(table->set_hyperparameter(rank.instance, route, name.c_str() + dot + 1, value)))
          return false;
    }
    return true;
  }

  template <typename Call> bool bindGradients(int32_t index, Rank &rank, int64_t step, Call call) {
    std::vector<const void *> pointers;
    for (auto [number, p] : llvm::enumerate(parameters)) {
      const manifest::TensorView *gradient = run.tensors[p.index].gradients[step];
      std::vector<uint8_t> &bytes = rank.gradients[number];
      bytes.clear();
      if (gradient)
        bytes = shardOf(runs(rank, number, STEPC_GRADIENT), gradient->type,
                        contributionOf(p, rank, *gradient));
      pointers.push_back(bytes.empty() ? nullptr : bytes.data());
    }
    if (library.plan.model >= 0)
      pointers.push_back(nullptr);
    return call(table->bind_gradients(rank.instance, pointers.data(), pointers.size()));
  }

  template <typename Call> bool bindInputs(int32_t index, Rank &rank, int64_t step, Call call) {
    rank.inputs.resize(parameters.size());
    for (auto [number, p] : llvm::enumerate(parameters)) {
      rank.inputs[number].resize(p.inputs.size());
      for (auto [i, input] : llvm::enumerate(p.inputs)) {
        const manifest::TensorView *view = run.tensors[p.index].input(input.name, step + 1);
        std::vector<uint8_t> &bytes = rank.inputs[number][i];
        bytes.clear();
        if (view && isMember(p, index))
          bytes = shardOf(runs(rank, number, STEPC_INPUT + int32_t(i)), view->type, view->bytes);
        if (!call(table->bind_input(rank.instance, number, int32_t(i),
                                    bytes.empty() ? nullptr : bytes.data(), bytes.size())))
          return false;
      }
    }
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Afterwards
  //===--------------------------------------------------------------------===//

  /// Prints the errors of ranks. Returns false if a rank failed. Ranks that only heard of a failure are no
  /// cause.
  bool reportErrors() {
    bool good = true, cause = false;
    for (const Rank &rank : ranks) {
      good &= rank.status == STEPC_OK;
      cause |= rank.status != STEPC_OK && rank.status != STEPC_ERROR_TRANSPORT;
    }
    for (auto [index, rank] : llvm::enumerate(ranks))
      if (rank.status != STEPC_OK && (!cause || rank.status != STEPC_ERROR_TRANSPORT))
        report.error("rank " + Twine(index) + " failed: " + rank.error);
    return good;
  }

  /// Puts a rank's shard of a value into the whole. Returns false if it differs from what another rank wrote.
  bool merge(GlobalValue &value, llvm::ArrayRef<uint8_t> shard, const std::vector<stepc_run> &runs,
             int32_t rank, StringRef name) {
    int64_t size = manifest::byteSize(value.type);
    value.filled.resize(value.bytes.size() / size);
    bool equal = true;
    for (const stepc_run &run : runs)
      for (int64_t i = 0; i < run.length; ++i) {
        uint8_t *target = value.bytes.data() + (run.global + i) * size;
        const uint8_t *source = shard.data() + (run.local + i) * size;
        if (value.filled[run.global + i])
          equal &= std::memcmp(target, source, size) == 0;
        std::memcpy(target, source, size);
        value.filled[run.global + i] = true;
      }
    if (!equal)
      report.error("internal error: expected equal bytes of '" + name +
                   "' on all ranks that hold them, found "
                   "others on rank " +
                   Twine(rank));
    return equal;
  }

  bool gather(int32_t index) {
    Rank &rank = ranks[index];
    for (auto [number, p] : llvm::enumerate(parameters)) {
      if (!isMember(p, index))
        continue;
      const std::string &name = run.names[p.index];
      if (!merge(p.value, rank.values[number], runs(rank, number, STEPC_PARAMETER), index, name))
        return false;
      for (auto [i, state] : llvm::enumerate(p.states))
        if (!merge(state, rank.states[number][i], runs(rank, number, i), index,
                   name + ":" + p.stateNames[i]))
          return false;
      for (auto [i, metric] : llvm::enumerate(p.metrics)) {
        std::vector<stepc_run> where = runs(rank, number, STEPC_METRIC - int32_t(i));
        int64_t count = 0;
        for (const stepc_run &run : where)
          count += run.length;
        auto bytes = numbersOf(rank, int64_t(number), int32_t(i), count);
        if (!bytes || !merge(metric, *bytes, where, index, name + ":" + p.metricNames[i]))
          return false;
      }
      p.steps = rank.steps[number];
    }
    for (size_t i = 0; i < library.statesOfModel(/*metrics=*/true).size(); ++i)
      if (auto bytes = numbersOf(rank, library.plan.model, int32_t(i), 1))
        rank.metricsOfModel.push_back(std::move(*bytes));
      else
        return false;
    if (rank.statesOfModel == ranks[0].statesOfModel &&
        rank.metricsOfModel == ranks[0].metricsOfModel)
      return true;
    report.error(
        "internal error: expected equal states and metrics of the model on all ranks, found "
        "others on rank " +
        Twine(index));
    return false;
  }

  /// The bytes of a metric's numbers on a rank. Returns nothing after an error.
  std::optional<std::vector<uint8_t>> numbersOf(Rank &rank, int64_t parameter, int32_t metric,
                                                int64_t count) {
    std::vector<float> numbers(count);
    if (table->metrics(rank.instance, parameter, metric, numbers.data(), count) != STEPC_OK) {
      report.error("internal error: " + Twine(table->last_error(rank.instance)));
      return std::nullopt;
    }
    std::vector<uint8_t> bytes(size_t(count) * sizeof(float));
    if (count)
      std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
  }

  //===--------------------------------------------------------------------===//
  // Watched values
  //===--------------------------------------------------------------------===//

  /// Called when all ranks have taken a step, while they wait.
  struct AllStepped {
    LibraryRun &run;
    void operator()() noexcept { run.printWatched(); }
  };

  /// Prints the watched values of all parameters, in the manifest's order.
  void printWatched() {
    if (!llvm::all_of(ranks, [](const Rank &rank) { return rank.status == STEPC_OK; }))
      return;
    ++stepsPrinted;
    if (library.plan.model >= 0)
      skipsAll = std::exchange(stepsOfModel, ranks[0].steps.back()) == ranks[0].steps.back();
    std::vector<size_t> order(parameters.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order,
               [&](size_t a, size_t b) { return parameters[a].index < parameters[b].index; });
    for (size_t number : order)
      printWatchedOf(number, parameters[number]);
  }

  void printWatchedOf(size_t number, StepParameter &p) {
    const std::string &name = run.manifest->parameters[p.index].name;
    auto watched = run.watched.find(p.rule->name);
    if (watched == run.watched.end())
      return;
    int64_t before = p.steps;
    for (auto [index, rank] : llvm::enumerate(ranks))
      if (isMember(p, int32_t(index)))
        p.steps = rank.steps[number];
    if (p.steps == before)
      return printSkipped(textOutput(command), stepsPrinted, name, skipsAll);
    for (const WatchedValue &one : watched->second) {
      size_t state = llvm::find(p.stateNames, one.state) - p.stateNames.begin();
      if (state == p.states.size() && !one.state.empty())
        continue; // a parameter of f32 has no master
      GlobalValue whole = one.state.empty() ? p.value : p.states[state];
      for (auto [index, rank] : llvm::enumerate(ranks)) {
        if (!isMember(p, int32_t(index)))
          continue;
        const auto &shard = one.state.empty() ? rank.values[number] : rank.states[number][state];
        int32_t which = one.state.empty() ? STEPC_PARAMETER : int32_t(state);
        if (!merge(whole, shard, runs(rank, number, which), int32_t(index), name + ":" + one.name))
          return;
      }
      // The state holds the gradient in f32. Print the gradient in its own type, in which it is exact.
      TensorType type =
          one.name == "grad" ? manifest::toTensorType(p.group->gradientType) : whole.type;
      printValue(textOutput(command), stepsPrinted, name, one, *p.group, whole.kind, type,
                 toDoubles({one.name, whole.type, "", whole.shape, whole.bytes}));
    }
  }

  void printCounters() {
    llvm::raw_ostream &os = textOutput(command);
    for (auto [index, rank] : llvm::enumerate(ranks)) {
      const stepc_counters &c = rank.executed;
      bool equal = std::memcmp(&rank.executed, &rank.planned, sizeof(c)) == 0;
      os << "rank " << index << ": " << plural(c.launches, "launch", "launches") << ", "
         << plural(c.chunks, "chunk") << ", " << plural(c.exchanges, "exchange") << "; sent "
         << plural(c.messages_sent, "message") << ", " << plural(c.bytes_sent, "byte")
         << "; received " << plural(c.messages_received, "message") << ", "
         << plural(c.bytes_received, "byte") << "; " << (equal ? "as planned" : "not as planned")
         << '\n';
    }
  }

  void writeOutputs() {
    for (StepParameter &p : parameters) {
      const std::string &name = run.manifest->parameters[p.index].name;
      outputs.push_back({"param:" + name, p.value.type, p.value.shape, std::move(p.value.bytes)});
      for (auto [i, state] : llvm::enumerate(p.states))
        if (!isWatchState(p.stateNames[i]))
          outputs.push_back({"state:" + name + ":" + p.stateNames[i], state.type, state.shape,
                             std::move(state.bytes)});
      for (auto [i, metric] : llvm::enumerate(p.metrics))
        outputs.push_back({"metric:" + name + ":" + p.metricNames[i], metric.type, metric.shape,
                           std::move(metric.bytes)});
      outputs.push_back(stepsOutput(name, p.steps));
    }
    if (library.plan.model < 0)
      return;
    outputs.push_back(stepsOutput(manifest::kModelName.str(), ranks[0].steps.back()));
    for (auto [state, bytes] : llvm::zip_equal(library.statesOfModel(), ranks[0].statesOfModel))
      outputs.push_back({"state:model:" + state.name, TensorType::F32, {}, std::move(bytes)});
    for (auto [metric, bytes] :
         llvm::zip_equal(library.statesOfModel(/*metrics=*/true), ranks[0].metricsOfModel))
      outputs.push_back({"metric:model:" + metric.name, TensorType::F32, {}, std::move(bytes)});
  }

  const RunInput &run;
  const RunCommand &command;
  std::vector<RunOutput> &outputs;
  Report &report;
  LoadedLibrary library;
  const stepc_library *table = nullptr;
  std::vector<StepParameter> &parameters = library.parameters;
  std::vector<Rank> ranks;                         // destroyed before the library closes
  std::optional<std::barrier<AllStepped>> stepped; // if values are watched
  int64_t stepsPrinted = 0;
  int64_t stepsOfModel = run.stepsOfModel(); ///< before the step whose values are printed
  bool skipsAll = false;                     ///< whether the model skips this step
};

} // namespace

int driver::runLibrary(const std::string &library, const RunInput &run, const RunCommand &command,
                       std::vector<RunOutput> &outputs, Report &report) {
  return LibraryRun(run, command, outputs, report).start(library);
}
