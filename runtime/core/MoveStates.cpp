//===- MoveStates.cpp - States go to where another library has them ---------===//
//
// The ranks of a library tell each other which elements of each state they have by the library before, and
// which they need. From that all ranks find the same messages. So they find out together, before anything
// moves, if elements are missing or if a rank has a problem. The library before is used through its table
// alone: another version of stepc may have compiled it.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/core/Runs.h"
#include "runtime/host/FloatModes.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>

namespace stepc::runtime {
namespace {

/// A state of a parameter: where this rank has it by the library before, and where it needs it.
struct Item {
  int64_t parameter;
  std::string what; // "state 'm' of parameter 'w'"
  int64_t elementBytes;
  char *target;
  Runs need;
  // What follows is set if the library before knows the state.
  bool isKnown = false;
  const char *source = nullptr;
  Runs have;

  bool isInPlace() const { return source == target && sameRuns(); }
  bool sameRuns() const { return runtime::sameRuns(have, need); }
};

/// What goes to a rank, or comes from it. Its bytes are in the order of the parts.
struct Parcel {
  int32_t peer;
  std::vector<Part> parts;

  int64_t elements() const {
    int64_t count = 0;
    for (const Part &part : parts)
      count += part.length;
    return count;
  }
};
/// What this rank does for one state.
struct Moving {
  const Item *item;
  std::vector<Part> local;
  std::vector<Parcel> sent, received;

  int64_t bytes() const {
    int64_t count = 0;
    for (const std::vector<Parcel> *list : {&sent, &received})
      for (const Parcel &parcel : *list)
        count += parcel.elements() * item->elementBytes;
    return count;
  }
};

struct Problem {
  int32_t status = STEPC_OK;
  std::string text;
};

/// Memory of messages. Is never freed if the transport was aborted and may still touch it.
class Buffer {
public:
  Buffer(stepc_instance &instance, int64_t bytes)
      : instance(instance), bytes(std::make_unique<std::vector<char>>(size_t(bytes))) {}
  ~Buffer() {
    if (instance.failures.aborted && !instance.takesBack())
      keepForever(bytes.release());
  }
  char *data() { return bytes->data(); }

private:
  stepc_instance &instance;
  std::unique_ptr<std::vector<char>> bytes;
};

// --- what this rank has and needs ---

/// The runs of a state, from a function `shard_runs`.
template <typename ShardRuns>
int32_t readRuns(ShardRuns shardRuns, stepc_instance *instance, int64_t parameter, int32_t state,
                 Runs &runs) {
  int64_t count = 0;
  int32_t status = shardRuns(instance, parameter, state, nullptr, 0, &count);
  runs.resize(size_t(count));
  return status ? status : shardRuns(instance, parameter, state, runs.data(), count, &count);
}

std::string shapeText(const int64_t *shape, int32_t axes) {
  std::string text = "[";
  for (int32_t i = 0; i < axes; ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// The instance of the library before, read through its table.
class Before {
public:
  Before(const stepc_library &library, stepc_instance *instance)
      : library(library), instance(instance) {}

  /// Finds names. Returns why states cannot be taken from this instance.
  Problem open(const Library &lib) {
    if (library.abi_version != STEPC_ABI_VERSION ||
        library.struct_size < int32_t(offsetof(stepc_library, move_states)))
      return {STEPC_ERROR_ABI,
              "move_states: expected a library that says where its states are bound, "
              "found one of an earlier version"};
    if (library.device != lib.device().kind)
      return {STEPC_ERROR_ARGUMENT,
              format("move_states: expected states on a device of kind %d, found %d",
                     lib.device().kind, library.device)};
    int32_t done = 0;
    // A step that failed half way may have written some parameters; `read` refuses their states alone.
    if (library.poll(instance, &done) == STEPC_OK && !done)
      return {STEPC_ERROR_ARGUMENT,
              "move_states: expected no step under way of the library before, found one"};
    int64_t count = library.parameter_count();
    halfStepped.resize(size_t(count));
    if (int32_t status = library.half_stepped(instance, halfStepped.data(), count))
      return failure(status);
    for (int64_t p = 0; p < count; ++p) {
      stepc_parameter_info info{};
      info.struct_size = sizeof(info);
      if (int32_t status = library.parameter_info(instance, p, &info))
        return failure(status);
      for (int32_t s = 0; s < info.states; ++s) {
        stepc_state_info state{};
        state.struct_size = sizeof(state);
        if (int32_t status = library.state_info(instance, p, s, &state))
          return failure(status);
        places[{info.name, state.name}] = {p, s};
      }
    }
    return {};
  }

  /// Sets what this rank has of a state. Returns why the state cannot become that of the new library.
  Problem read(const std::string &parameter, const StateText &text, Item &item) {
    auto found = places.find({parameter, text.name});
    if (found == places.end())
      return {};
    auto [p, s] = found->second;
    stepc_state_info info{};
    info.struct_size = sizeof(info);
    if (int32_t status = library.state_info(instance, p, s, &info))
      return failure(status);
    std::string shape = shapeText(text.shape.data(), int32_t(text.shape.size()));
    std::string before = shapeText(info.global_shape, info.axes);
    if (shape != before || text.dtype != info.dtype)
      return {STEPC_ERROR_ARGUMENT,
              format("%s: expected %s of %s as in this library, found %s of %s in the one before",
                     item.what.c_str(), shape.c_str(), text.dtype.c_str(), before.c_str(),
                     info.dtype)};
    if (halfStepped[size_t(p)])
      return {STEPC_ERROR_POISONED,
              item.what +
                  ": expected that its last step was taken whole, found that it failed half way"};
    if (int32_t status = readRuns(library.shard_runs, instance, p, s, item.have))
      return failure(status);
    void *data = nullptr;
    int64_t bytes = 0;
    if (int32_t status = library.bound_state(instance, p, s, &data, &bytes))
      return failure(status);
    if (!item.have.empty() && !data)
      return {STEPC_ERROR_UNBOUND,
              item.what + ": expected memory that is bound in the library before, found none"};
    item.isKnown = true;
    item.source = static_cast<const char *>(data);
    return {};
  }

private:
  Problem failure(int32_t status) const {
    return {status,
            std::string("move_states: the library before: ") + library.last_error(instance)};
  }

  const stepc_library &library;
  stepc_instance *instance;
  std::vector<uint8_t> halfStepped;
  std::map<std::pair<std::string, std::string>, std::pair<int64_t, int32_t>> places;
};

/// Finds what this rank has and needs of all states, in the order of the plan.
Problem findItems(stepc_instance &instance, Before *before, std::vector<Item> &items) {
  const Library &lib = instance.library;
  Problem problem = before ? before->open(lib) : Problem();
  for (size_t p = 0; p < lib.plan.parameters.size(); ++p) {
    const std::string &name = lib.plan.parameters[p].name;
    const auto &states = lib.groups[size_t(lib.plan.parameters[p].group)].states;
    for (size_t s = 0; s < states.size(); ++s) {
      Item item{int64_t(p),
                "state '" + states[s].name + "' of parameter '" + name + "'",
                states[s].elementBytes,
                static_cast<char *>(instance.bound.states[size_t(states[s].index)][p]),
                {}};
      if (int32_t status = readRuns(shardRuns, &instance, int64_t(p), int32_t(s), item.need);
          status && !problem.status)
        problem = {status, instance.failures.cause};
      if (before && !problem.status)
        problem = before->read(name, states[s], item);
      if (!item.need.empty() && !item.target && !problem.status)
        problem = {STEPC_ERROR_UNBOUND, item.what + ": expected memory that is bound, found none"};
      items.push_back(std::move(item));
    }
  }
  return problem;
}

/// States that move need memory of their own: what is written must not be read later.
Problem checkOverlap(const std::vector<Item> &items) {
  struct Range {
    uintptr_t begin, end;
    const Item *item;
  };
  auto range = [](const void *data, const Runs &runs, const Item &item) {
    auto begin = reinterpret_cast<uintptr_t>(data);
    int64_t elements = 0;
    for (const stepc_run &run : runs)
      elements += run.length;
    return Range{begin, begin + uintptr_t(elements * item.elementBytes), &item};
  };
  std::vector<Range> sources;
  for (const Item &item : items)
    if (!item.have.empty())
      sources.push_back(range(item.source, item.have, item));
  std::sort(sources.begin(), sources.end(),
            [](const Range &one, const Range &other) { return one.begin < other.begin; });
  for (const Item &item : items) {
    if (item.need.empty())
      continue;
    Range target = range(item.target, item.need, item);
    auto after =
        std::lower_bound(sources.begin(), sources.end(), target.end,
                         [](const Range &one, uintptr_t address) { return one.begin < address; });
    for (; after != sources.begin() && std::prev(after)->end > target.begin; --after) {
      const Item &other = *std::prev(after)->item;
      if (&other != &item || !item.isInPlace())
        return {STEPC_ERROR_ARGUMENT,
                format("%s: expected memory of its own, found that it shares memory with %s of the "
                       "library before",
                       item.what.c_str(), other.what.c_str())};
    }
  }
  return {};
}

// --- what ranks tell each other ---

/// Aborts the transport after a failure of messages, before their memory is freed. Returns the status.
int32_t giveUpAfter(stepc_instance &instance, int32_t status, const std::string &error) {
  if (status && !instance.failures.poisoned)
    abortInstance(&instance, ("move_states: " + error).c_str());
  return status;
}

/// Tells all ranks `bytes` bytes at this rank's place in `all`, which has one for each rank.
int32_t tell(stepc_instance &instance, char *all, int64_t bytes, std::string &error) {
  if (instance.size == 1 || !bytes)
    return STEPC_OK;
  bool gathers = instance.isOnDevice() && (instance.transport.kinds >> STEPC_ALL_GATHER & 1);
  void *handle = nullptr;
  std::string what = "telling where states are";
  int32_t status = instance.start(tellAll(instance, all, bytes, kHelloTag, gathers), nullptr,
                                  &handle, what, error);
  return giveUpAfter(instance, status ? status : instance.wait(handle, what, error), error);
}

/// What each rank tells first. Behind it stands a byte per item.
struct Told {
  int32_t status;
  char text[508];
};
enum : uint8_t { kKnown = 1, kDiffers = 2 };

/// Tells the ranks whether this one has a problem, and how its items lie. If a rank has a problem, `problem`
/// becomes that of the first such rank. Sets which items are known by some rank, and move between some.
int32_t tellProblems(stepc_instance &instance, const std::vector<Item> &items, Problem &problem,
                     std::vector<uint8_t> &flags, std::string &error) {
  int64_t bytes = int64_t(sizeof(Told) + items.size());
  Buffer all(instance, bytes * instance.size);
  char *own = all.data() + instance.rank * bytes;
  Told told{problem.status, ""};
  problem.text.copy(told.text, sizeof(told.text) - 1);
  std::memcpy(own, &told, sizeof(told));
  for (size_t i = 0; i < items.size(); ++i) {
    bool differs = items[i].isKnown ? !items[i].sameRuns() : !items[i].need.empty();
    own[sizeof(Told) + i] = char((items[i].isKnown ? kKnown : 0) | (differs ? kDiffers : 0));
  }
  if (int32_t status = tell(instance, all.data(), bytes, error))
    return status;
  flags.assign(items.size(), 0);
  for (int32_t r = instance.size - 1; r >= 0; --r) {
    const char *at = all.data() + r * bytes;
    std::memcpy(&told, at, sizeof(told));
    if (told.status)
      problem = {told.status,
                 (r == instance.rank ? "" : rankName(instance.library, r) + ": ") + told.text};
    for (size_t i = 0; i < items.size(); ++i)
      flags[i] |= uint8_t(at[sizeof(Told) + i]);
  }
  return STEPC_OK;
}

/// Finds what this rank sends and receives of an item, from what all ranks have and need of it. A rank takes
/// what it has itself, and the rest from the ranks that follow it, so that copies are taken from different
/// ranks. All ranks find the same problem.
Problem planItem(const stepc_instance &instance, const Item &item, const std::vector<Runs> &have,
                 std::vector<Runs> &need, Moving &moving) {
  int32_t size = instance.size, me = instance.rank;
  for (int32_t target = 0; target < size; ++target) {
    Runs &wanted = need[size_t(target)];
    for (int32_t step = 0; step < size && !wanted.empty(); ++step) {
      int32_t source = (target + step) % size;
      if (!mayMeet(wanted, have[size_t(source)]))
        continue;
      std::vector<Part> parts = take(wanted, have[size_t(source)]);
      if (parts.empty())
        continue;
      if (source == me && target == me)
        moving.local = std::move(parts);
      else if (source == me)
        moving.sent.push_back({target, std::move(parts)});
      else if (target == me)
        moving.received.push_back({source, std::move(parts)});
    }
    if (wanted.empty())
      continue;
    int64_t missing = 0;
    for (const stepc_run &run : wanted)
      missing += run.length;
    return {
        STEPC_ERROR_ARGUMENT,
        format("%s: expected all elements that %s needs on some rank of this library, found %lld "
               "of them on none",
               item.what.c_str(), rankName(instance.library, target).c_str(), (long long)missing)};
  }
  return {};
}

/// Tells the ranks where those items lie that move between ranks, and plans all moves.
int32_t planMoves(stepc_instance &instance, const std::vector<Item> &items,
                  const std::vector<uint8_t> &flags, std::vector<Moving> &moves, Problem &problem,
                  std::string &error) {
  std::vector<const Item *> moving;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!(flags[i] & kKnown))
      continue; // it begins anew on all ranks
    if (flags[i] & kDiffers) {
      moving.push_back(&items[i]);
    } else if (!items[i].isInPlace() && !items[i].need.empty()) {
      moves.push_back({&items[i], {}, {}, {}});
      for (const stepc_run &run : items[i].need)
        moves.back().local.push_back({run.local, run.local, run.length});
    }
  }
  std::vector<Comb> combs;
  std::vector<int64_t>
      counts; // of an item's combs that this rank has, and then of those that it needs
  for (const Item *item : moving) {
    for (const Runs *runs : {&item->have, &item->need}) {
      std::vector<Comb> more = combsOf(*runs);
      counts.push_back(int64_t(more.size()));
      combs.insert(combs.end(), more.begin(), more.end());
    }
  }
  auto size = size_t(instance.size);
  int64_t bytes = int64_t(counts.size() * sizeof(int64_t));
  Buffer allCounts(instance, bytes * instance.size);
  std::memcpy(allCounts.data() + instance.rank * bytes, counts.data(), size_t(bytes));
  if (int32_t status = tell(instance, allCounts.data(), bytes, error))
    return status;
  auto countsOf = [&](size_t rank) {
    return reinterpret_cast<const int64_t *>(allCounts.data() + int64_t(rank) * bytes);
  };
  int64_t most = 0;
  for (size_t r = 0; r < size; ++r) {
    int64_t total = 0;
    for (size_t i = 0; i < counts.size(); ++i)
      total += countsOf(r)[i];
    most = std::max(most, total * int64_t(sizeof(Comb)));
  }
  Buffer allCombs(instance, most * instance.size);
  std::memcpy(allCombs.data() + instance.rank * most, combs.data(), combs.size() * sizeof(Comb));
  if (int32_t status = tell(instance, allCombs.data(), most, error))
    return status;
  std::vector<const Comb *> next(size);
  for (size_t r = 0; r < size; ++r)
    next[r] = reinterpret_cast<const Comb *>(allCombs.data() + int64_t(r) * most);
  std::vector<Runs> have(size), need(size);
  for (size_t i = 0; i < moving.size() && !problem.status; ++i) {
    for (size_t r = 0; r < size; ++r) {
      for (auto [runs, number] : {std::pair(&have[r], 2 * i), {&need[r], 2 * i + 1}}) {
        *runs = runsOf(next[r], countsOf(r)[number]);
        next[r] += countsOf(r)[number];
      }
    }
    moves.push_back({moving[i], {}, {}, {}});
    problem = planItem(instance, *moving[i], have, need, moves.back());
  }
  return STEPC_OK;
}

// --- moving ---

/// Carries out moves, one state after another. On a device with streams all copies and messages are on the
/// stream of messages, and `staging` is the device's memory.
class Mover {
public:
  Mover(stepc_instance &instance, char *staging) : instance(instance), staging(staging) {}

  int32_t move(const Moving &moving, std::string &error) {
    const Item &item = *moving.item;
    int64_t element = item.elementBytes;
    std::vector<stepc_operation> operations;
    char *at = staging;
    if (isOnDevice())
      instance.device().begin(instance.deviceContext);
    for (const Part &part : moving.local)
      copy(item.source + part.from * element, item.target + part.to * element,
           part.length * element);
    for (const Parcel &parcel : moving.sent) {
      operations.push_back(sendTo(parcel.peer, at, parcel.elements() * element, kHelloTag));
      for (const Part &part : parcel.parts) {
        copy(item.source + part.from * element, at, part.length * element);
        at += part.length * element;
      }
    }
    char *arrived = at;
    for (const Parcel &parcel : moving.received) {
      int64_t bytes = parcel.elements() * element;
      operations.push_back(receiveFrom(parcel.peer, at, bytes, kHelloTag));
      at += bytes;
    }
    void *handle = nullptr;
    int32_t status =
        instance.start(operations, instance.exchangeStream(), &handle, item.what, error);
    if (!status && handle)
      status = instance.wait(handle, item.what, error);
    for (const Parcel &parcel : moving.received)
      for (const Part &part : parcel.parts) {
        if (!status)
          copy(arrived, item.target + part.to * element, part.length * element);
        arrived += part.length * element;
      }
    if (!isOnDevice())
      return giveUpAfter(instance, status, error);
    instance.device().finish(instance.deviceContext);
    return giveUpAfter(instance, status ? status : waitForDevice(item.what, error), error);
  }

private:
  /// Whether memory is the device's. Also true of a world of one rank, unlike the instance's `isOnDevice`.
  bool isOnDevice() const { return instance.device().stream != nullptr; }
  int32_t waitForDevice(const std::string &what, std::string &error) {
    if (instance.isOnDevice())
      return instance.waitForDevice(instance.timeout, what, error);
    instance.device().drain(instance.deviceContext);
    error = instance.deviceContext.failure;
    return error.empty() ? STEPC_OK : STEPC_ERROR_DEVICE;
  }
  void copy(const char *from, char *to, int64_t bytes) {
    if (isOnDevice())
      instance.device().move(instance.deviceContext, Stream::Communication, from, to, bytes);
    else
      std::memmove(to, from, size_t(bytes));
  }

  stepc_instance &instance;
  char *staging;
};

int32_t moveAll(stepc_instance &instance, const std::vector<Moving> &moves, std::string &error) {
  int64_t most = 0;
  for (const Moving &moving : moves)
    most = std::max(most, moving.bytes());
  bool isOnDevice = instance.device().stream != nullptr;
  Memory deviceMemory;
  Buffer hostMemory(instance, isOnDevice ? 0 : most);
  if (isOnDevice && most &&
      !instance.device().allocateZeros(instance.deviceContext, deviceMemory, most))
    return fault(
        error, STEPC_ERROR_MEMORY,
        format("expected %lld bytes for messages with states, found no memory", (long long)most));
  Mover mover(instance, isOnDevice ? static_cast<char *>(deviceMemory.data()) : hostMemory.data());
  int32_t status = STEPC_OK;
  for (const Moving &moving : moves) {
    instance.failures.halfStepped[size_t(moving.item->parameter)] = 1;
    if ((status = mover.move(moving, error)))
      break;
  }
  if (status)
    deviceMemory.leak(); // messages may still be under way
  return status;
}

} // namespace

int32_t boundState(const stepc_instance *self, int64_t parameter, int32_t state, void **data,
                   int64_t *bytes) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  if (!data || !bytes)
    return self->refuse(STEPC_ERROR_ARGUMENT,
                        "bound_state: expected places for a pointer and bytes");
  const Library &lib = self->library;
  if (int32_t status = checkState(lib, self, "bound_state", parameter, state))
    return status;
  const plan::Parameter &of = lib.parameter(parameter);
  int64_t index = lib.groups[size_t(of.group)].states[size_t(state)].index;
  *data = self->bound.states[size_t(index)][size_t(parameter)];
  *bytes = *data ? self->prepared.groups[size_t(of.group)].state(state, of.indexInGroup).bytes : 0;
  return STEPC_OK;
}

int32_t moveStates(stepc_instance *self, const stepc_library *library, stepc_instance *from) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  FloatModes modes;
  if (int32_t status = checkReady(*self))
    return status;
  Problem problem;
  std::vector<Item> items;
  if (self->deviceContext.isCaptured)
    problem = {STEPC_ERROR_GRAPH, "move_states: expected a stream that no graph captures"};
  if (!library != !from || from == self)
    problem = {
        STEPC_ERROR_ARGUMENT,
        "move_states: expected the table and the instance of another library, or null for both"};
  std::unique_ptr<Before> before;
  if (from && !problem.status)
    before = std::make_unique<Before>(*library, from);
  Problem found = findItems(*self, before.get(), items);
  if (!found.status)
    found = checkOverlap(items);
  if (!problem.status)
    problem = found;

  std::string error;
  std::vector<uint8_t> flags;
  std::vector<Moving> moves;
  int32_t status = tellProblems(*self, items, problem, flags, error);
  if (!status && !problem.status)
    status = planMoves(*self, items, flags, moves, problem, error);
  if (!status && problem.status)
    return self->refuse(problem.status, problem.text);
  if (!status)
    status = moveAll(*self, moves, error);
  if (!status) { // all ranks have moved their states when they have answered, or all fail
    Buffer all(*self, self->size);
    status = tell(*self, all.data(), 1, error);
  }
  if (status)
    return giveUpAfter(*self, status, error);
  for (const Moving &moving : moves)
    self->failures.halfStepped[size_t(moving.item->parameter)] = 0;
  self->failures.error.clear();
  return STEPC_OK;
}

} // namespace stepc::runtime
