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
#include <utility>

namespace stepc::runtime {
namespace {

struct Problem {
  int32_t status = STEPC_OK;
  std::string text;
};

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

  /// Whether this rank's part stays where it is.
  bool isInPlace() const { return isKnown && source == target && sameRuns(have, need); }
};

/// The elements of runs or parts.
template <typename Pieces> int64_t elementsOf(const Pieces &pieces) {
  int64_t count = 0;
  for (const auto &piece : pieces)
    count += piece.length;
  return count;
}

/// What goes to a rank, or comes from it. Its bytes are in the order of the parts.
struct Parcel {
  int32_t peer;
  std::vector<Part> parts;
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
        count += elementsOf(parcel.parts) * item->elementBytes;
    return count;
  }
};

/// Memory of messages. It outlives an exception, and is never freed if an aborted transport may touch it.
struct Messages {
  std::vector<std::vector<char>> host;
  Memory device;

  char *add(int64_t bytes) { return host.emplace_back(size_t(bytes)).data(); }
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

std::string stateName(const std::string &state, const std::string &parameter) {
  return "state '" + state + "' of parameter '" + parameter + "'";
}

/// Memory that is bound in the library before.
struct BoundRange {
  uintptr_t begin, end;
  std::string what;
};

/// The instance of the library before, read through its table.
class Before {
public:
  Before(const stepc_library &library, stepc_instance *instance)
      : library(library), instance(instance) {}

  /// Finds names and memory. Returns why states cannot be taken from this instance.
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
      for (int32_t s = 0; s < info.states; ++s)
        if (int32_t status = addState(info.name, p, s))
          return failure(status);
    }
    return {};
  }
  const std::vector<BoundRange> &memory() const { return ranges; }

  /// Sets what this rank has of a state. Returns why the state cannot become that of the new library.
  Problem read(const std::string &parameter, const StateText &text, Item &item) {
    auto found = places.find({parameter, text.name});
    if (found == places.end())
      return {};
    const Place &place = found->second;
    stepc_state_info info{};
    info.struct_size = sizeof(info);
    if (int32_t status = library.state_info(instance, place.parameter, place.state, &info))
      return failure(status);
    std::string shape = shapeText(text.shape.data(), text.shape.size());
    std::string before = shapeText(info.global_shape, size_t(info.axes));
    if (shape != before || text.dtype != info.dtype)
      return {STEPC_ERROR_ARGUMENT,
              format("%s: expected %s of %s as in this library, found %s of %s in the one before",
                     item.what.c_str(), shape.c_str(), text.dtype.c_str(), before.c_str(),
                     info.dtype)};
    if (halfStepped[size_t(place.parameter)])
      return {STEPC_ERROR_POISONED,
              item.what +
                  ": expected that its last step was taken whole, found that it failed half way"};
    if (int32_t status =
            readRuns(library.shard_runs, instance, place.parameter, place.state, item.have))
      return failure(status);
    if (!item.have.empty() && !place.data)
      return {STEPC_ERROR_UNBOUND,
              item.what + ": expected memory that is bound in the library before, found none"};
    item.isKnown = true;
    item.source = static_cast<const char *>(place.data);
    return {};
  }

private:
  struct Place {
    int64_t parameter;
    int32_t state;
    void *data;
  };

  int32_t addState(const char *parameter, int64_t p, int32_t s) {
    stepc_state_info info{};
    info.struct_size = sizeof(info);
    Place place{p, s, nullptr};
    int64_t bytes = 0;
    if (int32_t status = library.state_info(instance, p, s, &info))
      return status;
    if (int32_t status = library.bound_state(instance, p, s, &place.data, &bytes))
      return status;
    auto begin = reinterpret_cast<uintptr_t>(place.data);
    if (bytes)
      ranges.push_back({begin, begin + uintptr_t(bytes), stateName(info.name, parameter)});
    places[{parameter, info.name}] = place;
    return STEPC_OK;
  }
  Problem failure(int32_t status) const {
    return {status,
            std::string("move_states: the library before: ") + library.last_error(instance)};
  }

  const stepc_library &library;
  stepc_instance *instance;
  std::vector<uint8_t> halfStepped;
  std::map<std::pair<std::string, std::string>, Place> places; // by parameter and state
  std::vector<BoundRange> ranges;
};

/// States need memory of their own: what is written must not be read later, and the library before keeps its
/// states, which lie in `before`.
Problem checkOverlap(const std::vector<Item> &items, std::vector<BoundRange> before) {
  std::sort(before.begin(), before.end(),
            [](const BoundRange &one, const BoundRange &other) { return one.begin < other.begin; });
  std::vector<size_t> reach; // for each range, the one up to it that ends last
  for (size_t i = 0; i < before.size(); ++i)
    reach.push_back(i > 0 && before[reach.back()].end > before[i].end ? reach.back() : i);
  for (const Item &item : items) {
    auto begin = reinterpret_cast<uintptr_t>(item.target);
    uintptr_t end = begin + uintptr_t(elementsOf(item.need) * item.elementBytes);
    auto after = std::lower_bound(
        before.begin(), before.end(), end,
        [](const BoundRange &one, uintptr_t address) { return one.begin < address; });
    if (begin == end || after == before.begin())
      continue;
    const BoundRange &other = before[reach[size_t(after - before.begin()) - 1]];
    if (other.end > begin && !(item.isInPlace() && other.begin == begin))
      return {STEPC_ERROR_ARGUMENT,
              format("%s: expected memory of its own, found that it shares memory with %s of the "
                     "library before",
                     item.what.c_str(), other.what.c_str())};
  }
  return {};
}

/// Finds what this rank has and needs of all states, in the order of the plan. Items are complete even if
/// there is a problem, because all ranks tell of the same ones.
Problem findItems(stepc_instance &instance, const stepc_library *library, stepc_instance *from,
                  std::vector<Item> &items) {
  const Library &lib = instance.library;
  Problem problem;
  std::unique_ptr<Before> before;
  if (instance.deviceContext.isCaptured)
    problem = {STEPC_ERROR_GRAPH, "move_states: expected a stream that no graph captures"};
  else if (!library != !from || from == &instance)
    problem = {STEPC_ERROR_ARGUMENT, "move_states: expected the table and the instance of another "
                                     "library, or null for both"};
  else if (from)
    problem = (before = std::make_unique<Before>(*library, from))->open(lib);
  for (size_t p = 0; p < lib.plan.parameters.size(); ++p) {
    const std::string &name = lib.plan.parameters[p].name;
    const auto &states = lib.groups[size_t(lib.plan.parameters[p].group)].states;
    for (size_t s = 0; s < states.size(); ++s) {
      Item item{int64_t(p),
                stateName(states[s].name, name),
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
  if (problem.status)
    return problem;
  if (int32_t status = checkOverlaps(instance))
    return {status, instance.failures.cause};
  return before ? checkOverlap(items, before->memory()) : problem;
}

// --- what ranks tell each other ---

/// `all` has `bytes` bytes for each rank. Sends this rank's to all others, and receives theirs.
int32_t tell(stepc_instance &instance, char *all, int64_t bytes, std::string &error) {
  return instance.size == 1 || !bytes
             ? int32_t(STEPC_OK)
             : tellRanks(instance, all, bytes, "telling where states are", error);
}

/// What a rank tells of itself. Behind it stands a byte per item.
struct Told {
  int32_t status;
  char text[508];
};
enum : uint8_t { kKnown = 1, kDiffers = 2 };

/// Tells the ranks whether this one has a problem, and how its items lie. If ranks have one, `problem`
/// becomes that of the first of them. Sets which items are known by some rank, and move between some.
int32_t tellProblems(stepc_instance &instance, Messages &messages, const std::vector<Item> &items,
                     Problem &problem, std::vector<uint8_t> &flags, std::string &error) {
  auto bytes = int64_t(sizeof(Told) + items.size());
  char *all = messages.add(bytes * instance.size), *own = all + instance.rank * bytes;
  Told told{problem.status, ""};
  size_t length = std::min(problem.text.size(), sizeof(told.text) - 1);
  while (length < problem.text.size() && (problem.text[length] & 0xc0) == 0x80)
    --length; // do not cut a character of UTF-8
  problem.text.copy(told.text, length);
  std::memcpy(own, &told, sizeof(told));
  for (size_t i = 0; i < items.size(); ++i) {
    bool differs =
        items[i].isKnown ? !sameRuns(items[i].have, items[i].need) : !items[i].need.empty();
    own[sizeof(Told) + i] = char((items[i].isKnown ? kKnown : 0) | (differs ? kDiffers : 0));
  }
  if (int32_t status = tell(instance, all, bytes, error))
    return status;
  flags.assign(items.size(), 0);
  int32_t first = instance.size;
  for (int32_t r = instance.size - 1; r >= 0; --r) {
    const char *at = all + r * bytes;
    std::memcpy(&told, at, sizeof(told));
    if (told.status)
      first = r;
    for (size_t i = 0; i < items.size(); ++i)
      flags[i] |= uint8_t(at[sizeof(Told) + i]);
  }
  if (first < instance.size && first != instance.rank) { // else the own text is whole
    std::memcpy(&told, all + first * bytes, sizeof(told));
    problem = {told.status, rankName(instance.library, first) + ": " + told.text};
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
        moving.local = item.isInPlace() ? std::vector<Part>() : std::move(parts);
      else if (source == me)
        moving.sent.push_back({target, std::move(parts)});
      else if (target == me)
        moving.received.push_back({source, std::move(parts)});
    }
    if (int64_t missing = elementsOf(wanted))
      return {STEPC_ERROR_ARGUMENT,
              format("%s: expected all elements that %s needs on some rank of this library, found "
                     "%lld of them on none",
                     item.what.c_str(), rankName(instance.library, target).c_str(),
                     (long long)missing)};
  }
  return {};
}

/// Tells the ranks where those items lie that move between ranks, and plans all moves.
int32_t planMoves(stepc_instance &instance, Messages &messages, const std::vector<Item> &items,
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
  if (moving.empty())
    return STEPC_OK;
  // For each item how many strided runs this rank has, and how many it needs.
  std::vector<int64_t> counts;
  std::vector<StridedRuns> own;
  for (const Item *item : moving)
    for (const Runs *runs : {&item->have, &item->need}) {
      std::vector<StridedRuns> more = stridedRunsOf(*runs);
      counts.push_back(int64_t(more.size()));
      own.insert(own.end(), more.begin(), more.end());
    }
  auto size = size_t(instance.size);
  auto bytes = int64_t(counts.size() * sizeof(int64_t));
  char *allCounts = messages.add(bytes * instance.size);
  std::memcpy(allCounts + instance.rank * bytes, counts.data(), size_t(bytes));
  if (int32_t status = tell(instance, allCounts, bytes, error))
    return status;
  auto countsOf = [&](size_t rank) {
    return reinterpret_cast<const int64_t *>(allCounts + int64_t(rank) * bytes);
  };
  int64_t most = 0;
  for (size_t r = 0; r < size; ++r) {
    int64_t total = 0;
    for (size_t i = 0; i < counts.size(); ++i)
      total += countsOf(r)[i];
    most = std::max(most, total * int64_t(sizeof(StridedRuns)));
  }
  char *all = messages.add(most * instance.size);
  std::copy(own.begin(), own.end(), reinterpret_cast<StridedRuns *>(all + instance.rank * most));
  if (int32_t status = tell(instance, all, most, error))
    return status;
  std::vector<const StridedRuns *> next(size);
  for (size_t r = 0; r < size; ++r)
    next[r] = reinterpret_cast<const StridedRuns *>(all + int64_t(r) * most);
  std::vector<Runs> have(size), need(size);
  for (size_t i = 0; i < moving.size() && !problem.status; ++i) {
    for (size_t r = 0; r < size; ++r)
      for (auto [runs, number] : {std::pair(&have[r], 2 * i), {&need[r], 2 * i + 1}}) {
        *runs = runsOf(next[r], countsOf(r)[number]);
        next[r] += countsOf(r)[number];
      }
    moves.push_back({moving[i], {}, {}, {}});
    problem = planItem(instance, *moving[i], have, need, moves.back());
  }
  return STEPC_OK;
}

// --- moving ---

/// Whether states lie in the device's memory. Also true of a world of one rank, unlike the instance's
/// `isOnDevice`, which is about messages.
bool hasDeviceMemory(const stepc_instance &instance) { return instance.device().stream; }

void copy(stepc_instance &instance, const char *from, char *to, int64_t bytes) {
  if (hasDeviceMemory(instance))
    instance.device().move(instance.deviceContext, Stream::Communication, from, to, bytes);
  else
    std::memmove(to, from, size_t(bytes));
}

int32_t waitForDevice(stepc_instance &instance, const std::string &what, std::string &error) {
  if (instance.isOnDevice())
    return instance.waitForDevice(instance.timeout, what, error);
  instance.device().drain(instance.deviceContext);
  error = instance.deviceContext.failure;
  return error.empty() ? STEPC_OK : STEPC_ERROR_DEVICE;
}

/// Moves one state. `staging` has room for what this rank sends and receives. On a device all copies and
/// messages are on the stream of messages.
int32_t move(stepc_instance &instance, const Moving &moving, char *staging, std::string &error) {
  const Item &item = *moving.item;
  int64_t element = item.elementBytes;
  bool isOnDevice = hasDeviceMemory(instance);
  DeviceWork work{instance.device(), instance.deviceContext, /*hasEnded=*/!isOnDevice};
  if (isOnDevice)
    instance.device().begin(instance.deviceContext);
  for (const Part &part : moving.local)
    copy(instance, item.source + part.from * element, item.target + part.to * element,
         part.length * element);
  std::vector<stepc_operation> operations;
  char *at = staging;
  for (const Parcel &parcel : moving.sent) {
    operations.push_back(sendTo(parcel.peer, at, elementsOf(parcel.parts) * element, kHelloTag));
    for (const Part &part : parcel.parts) {
      copy(instance, item.source + part.from * element, at, part.length * element);
      at += part.length * element;
    }
  }
  char *arrived = at;
  for (const Parcel &parcel : moving.received) {
    int64_t bytes = elementsOf(parcel.parts) * element;
    operations.push_back(receiveFrom(parcel.peer, at, bytes, kHelloTag));
    at += bytes;
  }
  void *handle = nullptr;
  int32_t status = instance.start(operations, instance.exchangeStream(), &handle, item.what, error);
  if (!status && handle)
    status = instance.wait(handle, item.what, error);
  for (const Parcel &parcel : moving.received)
    for (const Part &part : parcel.parts) {
      if (!status)
        copy(instance, arrived, item.target + part.to * element, part.length * element);
      arrived += part.length * element;
    }
  if (isOnDevice) {
    instance.device().finish(instance.deviceContext);
    work.hasEnded = true;
    if (!status)
      status = waitForDevice(instance, item.what, error);
  }
  return status;
}

/// Allocates memory for the messages of any one of the moves. Returns why it cannot.
Problem allocateStaging(stepc_instance &instance, const std::vector<Moving> &moves,
                        Messages &messages, char *&staging) {
  int64_t most = 0;
  for (const Moving &moving : moves)
    most = std::max(most, moving.bytes());
  bool isAllocated = true;
  if (!hasDeviceMemory(instance)) {
    try {
      staging = messages.add(most);
    } catch (const std::bad_alloc &) {
      isAllocated = false;
    }
  } else if (most) {
    isAllocated = instance.device().allocateZeros(instance.deviceContext, messages.device, most);
    staging = static_cast<char *>(messages.device.data());
  }
  if (isAllocated)
    return {};
  std::string why = std::exchange(instance.deviceContext.failure, {});
  return {
      STEPC_ERROR_MEMORY,
      format("move_states: expected %lld bytes for messages, found no memory", (long long)most) +
          (why.empty() ? "" : ": " + why)};
}

/// Moves the states. If a rank has a problem, `problem` is that on all ranks, and nothing has changed. The
/// status is that of messages.
int32_t moveItems(stepc_instance &instance, const std::vector<Item> &items, Messages &messages,
                  Problem &problem, std::string &error) {
  std::vector<uint8_t> flags, none;
  std::vector<Moving> moves;
  char *staging = nullptr;
  int32_t status = tellProblems(instance, messages, items, problem, flags, error);
  if (!status && !problem.status)
    status = planMoves(instance, messages, items, flags, moves, problem, error);
  if (status || problem.status)
    return status;
  problem = allocateStaging(instance, moves, messages, staging);
  status = tellProblems(instance, messages, {}, problem, none, error);
  if (problem.status)
    return status;
  auto mark = [&](const Moving &moving, uint8_t flag) {
    instance.failures.halfStepped[size_t(moving.item->parameter)] = flag;
  };
  for (size_t i = 0; i < moves.size() && !status; ++i) {
    mark(moves[i], 1);
    status = move(instance, moves[i], staging, error);
  }
  // When all have answered, all have moved their states. Otherwise all fail.
  if (!status)
    status = tell(instance, messages.add(instance.size), 1, error);
  for (size_t i = 0; i < moves.size() && !status; ++i)
    mark(moves[i], 0);
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
  void *bound = self->bound.states[size_t(index)][size_t(parameter)];
  *bytes = bound ? self->prepared.groups[size_t(of.group)].state(state, of.indexInGroup).bytes : 0;
  *data = *bytes ? bound : nullptr;
  return STEPC_OK;
}

int32_t moveStates(stepc_instance *self, const stepc_library *library, stepc_instance *from) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  FloatModes modes;
  int32_t status = checkReady(*self);
  if (self->failures.poisoned)
    return status;
  Problem problem{status, status ? self->failures.cause : std::string()};
  std::vector<Item> items;
  auto messages = std::make_unique<Messages>();
  try {
    Problem found = findItems(*self, library, from, items);
    problem = problem.status ? problem : found;
    std::string error;
    status = moveItems(*self, items, *messages, problem, error);
    if (status)
      abortInstance(self, ("move_states: " + error).c_str());
  } catch (...) {
    self->failures.poisoned = self->failures.textLost = true;
    self->failures.poisonedText.clear();
    self->abortTransport("memory ran out, or a function of the trainer threw");
    status = STEPC_ERROR_MEMORY;
  }
  // After a failure messages and copies may still be under way.
  if (status && hasDeviceMemory(*self))
    messages->device.leak();
  if (status && !self->takesBack())
    keepForever(messages.release());
  if (!status && problem.status)
    return self->refuse(problem.status, problem.text);
  if (!status)
    self->failures.error.clear();
  return status;
}

} // namespace stepc::runtime
