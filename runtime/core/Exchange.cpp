//===- Exchange.cpp - What a step sends and receives ------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <unordered_set>

namespace stepc::runtime {

void backOff(Clock::duration waited) {
  if (waited < std::chrono::milliseconds(5))
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(waited < std::chrono::milliseconds(100)
                                    ? std::chrono::microseconds(50)
                                    : std::chrono::microseconds(500));
}

int32_t statusOf(int32_t code) {
  return code >= STEPC_ERROR_ARGUMENT && code <= STEPC_ERROR_HYPERPARAMETER ? code
                                                                            : STEPC_ERROR_TRANSPORT;
}

namespace {

/// Whether the transport may carry out the messages of a planned all-gather as one all-gather. Parts must be
/// equal, each part must go to all ranks of the meeting, and parts must arrive in the order of ranks. All
/// ranks see all parts, so all find the same answer.
bool isAllGather(const stepc_instance &instance, const plan::Start &start,
                 const std::vector<plan::Message> &messages, const Meeting &meeting) {
  if (!(instance.transport.kinds >> STEPC_ALL_GATHER & 1) || messages.size() < 2 ||
      start.collective != plan::CollectiveKind::AllGather ||
      messages.size() != meeting.members.size())
    return false;
  const plan::Message &first = messages[0];
  int64_t at = first.receiveOffset;
  for (const plan::Message &message : messages) {
    if (message.sendOffset != first.sendOffset || message.sendCount != first.sendCount ||
        message.receiveOffset != at || message.receiveCount != first.sendCount)
      return false;
    at += message.receiveCount;
  }
  return first.sendCount > 0;
}

/// The meshes to which all of these world ranks belong.
std::vector<int64_t> meshesOf(const Library &library, const std::vector<int32_t> &ranks) {
  std::vector<int64_t> found;
  for (size_t mesh = 0; mesh < library.plan.meshes.size(); ++mesh) {
    const std::vector<int64_t> &all = library.plan.meshes[mesh].ranks;
    std::unordered_set<int64_t> members(all.begin(), all.end());
    if (std::all_of(ranks.begin(), ranks.end(),
                    [&](int32_t rank) { return members.contains(library.world[size_t(rank)]); }))
      found.push_back(int64_t(mesh));
  }
  return found;
}

/// Finds or adds the meeting of a start: the set of ranks that it brings together. Also decides whether the
/// set gets a communicator. A set gets one if it is neither one rank nor the world, and if the transport
/// opens one (`opensFor`).
int64_t meetingOf(stepc_instance &instance, const plan::Start &start) {
  const std::vector<int64_t> found =
      plan::members(instance.library.plan, start.communicator, instance.rank);
  std::vector<int32_t> members(found.begin(), found.end());
  auto &all = instance.prepared.meetings;
  auto known = std::find_if(all.begin(), all.end(),
                            [&](const Meeting &one) { return one.members == members; });
  if (known == all.end()) {
    std::vector<int64_t> meshes = meshesOf(instance.library, members);
    known = all.insert(all.end(), {std::move(members), std::move(meshes), false, nullptr});
  }
  size_t count = known->members.size();
  known->isOpened |= count > 1 && int32_t(count) < instance.size && opensFor(instance, start);
  return known - all.begin();
}

/// The number by which operations name a world rank: its place in the communicator, or itself. -1 if it is
/// outside.
int32_t rankIn(const Meeting &meeting, int64_t rank) {
  auto found = std::lower_bound(meeting.members.begin(), meeting.members.end(), rank);
  if (found == meeting.members.end() || *found != rank)
    return -1;
  return meeting.isOpened ? int32_t(found - meeting.members.begin()) : int32_t(rank);
}

/// Says if a message of a start leaves the meeting, or if this rank sends itself other bytes than it
/// receives.
std::string checkMessages(const stepc_instance &instance, const Meeting &meeting,
                          const std::vector<plan::Message> &messages) {
  for (const plan::Message &message : messages) {
    if (message.peer == instance.rank && message.sendCount != message.receiveCount)
      return format(" sends %lld bytes from this rank to itself and receives %lld",
                    (long long)message.sendCount, (long long)message.receiveCount);
    if (rankIn(meeting, message.peer) < 0)
      return format(" has a message between this rank and rank %lld, which is none of the %zu that "
                    "meet in it",
                    (long long)message.peer, meeting.members.size());
  }
  return {};
}

/// Notes where the operations of an exchange have seals: behind the values of each message. A seal covers the
/// meshes of these values, and every other mesh to which all ranks of the exchange belong. Bytes that go to
/// several ranks have one seal, so a seal must not depend on the receiver.
class SealPlacer {
public:
  SealPlacer(stepc_instance &instance, const plan::Start &start, const Meeting &meeting,
             PreparedExchange &exchange)
      : instance(instance), meeting(meeting), exchange(exchange) {
    const plan::Plan &plan = instance.library.plan;
    for (int64_t table : start.tables)
      for (const plan::Message &part : instance.prepared.tables.tables[table].messages) {
        int64_t mesh = plan.groups[plan.segments[plan.tables[table].from.segment].group].mesh;
        if (part.sendCount > 0)
          ofValues[{part.peer, true}].insert(mesh);
        if (part.receiveCount > 0)
          ofValues[{part.peer, false}].insert(mesh);
      }
  }

  /// Places the seal of a message that ends at byte `end` of the last operation's buffer.
  void place(int64_t peer, bool isSent, int64_t end) {
    if (peer == instance.rank)
      return;
    std::set<int64_t> meshes = ofValues[{peer, isSent}];
    meshes.insert(meeting.meshes.begin(), meeting.meshes.end());
    std::vector<int64_t> list(meshes.begin(), meshes.end());
    auto &all = instance.running.sealedMeshes;
    auto number = size_t(std::find(all.begin(), all.end(), list) - all.begin());
    if (number == all.size())
      all.push_back(std::move(list));
    (isSent ? exchange.sealsSent : exchange.sealsReceived)
        .push_back({exchange.operations.size() - 1, end - plan::kSealBytes, number, int32_t(peer)});
  }

private:
  stepc_instance &instance;
  const Meeting &meeting;
  PreparedExchange &exchange;
  std::map<std::pair<int64_t, bool>, std::set<int64_t>> ofValues;
};

PreparedExchange prepare(stepc_instance &instance, const plan::Start &start, int64_t order,
                         int64_t where) {
  PreparedExchange exchange;
  exchange.instance = &instance;
  exchange.order = order;
  exchange.meeting = where;
  const Meeting &meeting = instance.prepared.meetings[where];
  int64_t tag = kFirstExchangeTag + order;
  char *arena = static_cast<char *>(instance.prepared.arena.data());
  char *sends = arena + start.sent.value, *receives = arena + start.received.value;
  const std::vector<plan::Message> &messages = instance.prepared.tables.starts[order].messages;
  for (const plan::PartCopy &copy : instance.prepared.tables.starts[order].sent.copies)
    exchange.repeated.push_back({sends + copy.from, sends + copy.to, copy.bytes});
  SealPlacer seals(instance, start, meeting, exchange);
  if (isAllGather(instance, start, messages, meeting)) {
    const plan::Message &first = messages[0];
    exchange.operations.push_back({STEPC_ALL_GATHER, -1, nullptr, sends + first.sendOffset,
                                   receives + first.receiveOffset, first.sendCount, tag,
                                   STEPC_ELEMENT_NONE, 0});
    for (const plan::Message &message : messages)
      seals.place(message.peer, /*isSent=*/false,
                  message.receiveOffset + message.receiveCount - first.receiveOffset);
    auto isOther = [&](const plan::Message &message) { return message.peer != instance.rank; };
    seals.place(std::find_if(messages.begin(), messages.end(), isOther)->peer, /*isSent=*/true,
                first.sendCount);
    return exchange;
  }
  for (const plan::Message &message : messages) {
    char *from = sends + message.sendOffset, *to = receives + message.receiveOffset;
    if (message.peer == instance.rank) {
      if (message.sendCount)
        exchange.own.push_back({from, to, message.sendCount - plan::kSealBytes});
      continue;
    }
    int32_t peer = rankIn(meeting, message.peer);
    if (message.receiveCount) {
      exchange.operations.push_back(receiveFrom(peer, to, message.receiveCount, tag));
      seals.place(message.peer, /*isSent=*/false, message.receiveCount);
    }
    if (message.sendCount) {
      exchange.operations.push_back(sendTo(peer, from, message.sendCount, tag));
      seals.place(message.peer, /*isSent=*/true, message.sendCount);
    }
  }
  return exchange;
}

} // namespace

bool opensFor(const stepc_instance &instance, const plan::Start &start) {
  bool costs = instance.transport.traits & STEPC_TRANSPORT_OPENS_TOGETHER;
  return instance.transport.open_communicator &&
         (!costs || start.collective == plan::CollectiveKind::AllGather);
}

std::string prepareExchanges(stepc_instance &instance) {
  std::vector<const plan::Start *> starts = instance.library.plan.starts();
  // Find all meetings first: a later start may open the communicator by which an earlier exchange names its
  // ranks.
  for (const plan::Start *start : starts)
    meetingOf(instance, *start);
  for (size_t order = 0; order < starts.size(); ++order) {
    if (int64_t(order) > std::numeric_limits<int32_t>::max() - kFirstExchangeTag)
      return exchangeName(instance.library, order) + " has no tag left for its messages";
    int64_t where = meetingOf(instance, *starts[order]);
    std::string wrong = checkMessages(instance, instance.prepared.meetings[where],
                                      instance.prepared.tables.starts[order].messages);
    if (!wrong.empty())
      return exchangeName(instance.library, order) + wrong;
    instance.prepared.exchanges.push_back(prepare(instance, *starts[order], order, where));
  }
  instance.running.seals.resize(instance.running.sealedMeshes.size());
  return {};
}

void prepareSeals(stepc_instance &instance) {
  if (instance.isOnDevice())
    return; // kernels add them up
  for (size_t i = 0; i < instance.running.seals.size(); ++i)
    instance.running.seals[i] = instance.running.agreement.of(instance.running.sealedMeshes[i]);
}

// An all-gather counts as the messages that it stands for, even if the transport sends other messages.
void countMessages(const PreparedExchange &exchange, stepc_counters &counters) {
  for (const stepc_operation &operation : exchange.operations) {
    int64_t peers = 1;
    if (operation.kind > STEPC_RECEIVE)
      peers = int64_t(exchange.instance->prepared.meetings[exchange.meeting].members.size()) - 1;
    if (operation.kind != STEPC_RECEIVE) {
      counters.messages_sent += peers;
      counters.bytes_sent += peers * operation.bytes;
    }
    if (operation.kind != STEPC_SEND) {
      counters.messages_received += peers;
      counters.bytes_received += peers * operation.bytes;
    }
  }
}

std::string groupName(const Library &library, int64_t index) {
  const plan::Group &group = library.plan.groups[index];
  std::string text = format("group '%s' (", group.name.c_str());
  constexpr size_t kNamed = 2;
  for (size_t i = 0; i < group.parameters.size() && i < kNamed; ++i)
    text += (i ? ", '" : "'") + library.parameter(group.parameters[i]).name + "'";
  if (group.parameters.size() > kNamed)
    text += format(" and %zu more", group.parameters.size() - kNamed);
  return text + ")";
}

std::string exchangeName(const Library &library, int64_t order) {
  std::string text = format("exchange %lld of ", (long long)order);
  const std::vector<plan::TableNumber> &tables = library.plan.starts()[order]->tables;
  // Several tables may be of one group.
  std::vector<int64_t> groups;
  for (int64_t table : tables) {
    int64_t group = library.plan.segments[library.plan.tables[table].from.segment].group;
    if (std::find(groups.begin(), groups.end(), group) == groups.end())
      groups.push_back(group);
  }
  constexpr size_t kNamed = 2;
  for (size_t i = 0; i < groups.size() && i < kNamed; ++i)
    text += (i ? ", " : "") + groupName(library, groups[i]);
  if (groups.size() > kNamed)
    text += format(" and %zu more", groups.size() - kNamed);
  return text;
}

} // namespace stepc::runtime

using namespace stepc::runtime;

int32_t stepc_instance::start(const std::vector<stepc_operation> &operations, void *stream,
                              void **handle, const std::string &what, std::string &message) {
  *handle = nullptr;
  if (operations.empty())
    return STEPC_OK;
  char text[512] = "";
  stepc_operations group{int32_t(sizeof(group)), int32_t(sizeof(stepc_operation)),
                         operations.data(), int64_t(operations.size()), stream};
  int32_t code = transport.start(transport.context, &group, handle, text, sizeof(text));
  if (!code)
    return STEPC_OK;
  message = what + ": " + (*text ? text : format("the transport failed with code %d", code));
  return statusOf(code);
}

int32_t stepc_instance::wait(void *handle, const std::string &what, std::string &message) {
  char text[512] = "";
  auto begin = Clock::now();
  for (;;) {
    *text = '\0';
    int32_t code = transport.test(transport.context, handle, text, sizeof(text));
    if (code == 1)
      return STEPC_OK;
    if (code > 1) {
      // A function that breaks its contract may not have finished, so the exchange does not count as done.
      message = what + format(": the transport's test returned %d, expected 1 (done), 0 (not yet) "
                              "or a negative error code",
                              code);
      return STEPC_ERROR_TRANSPORT;
    }
    if (code < 0) {
      message = what + ": " + (*text ? text : format("the transport failed with code %d", -code));
      return statusOf(-code);
    }
    auto waited = Clock::now() - begin;
    if (std::chrono::duration<double>(waited).count() >= timeout) {
      message = what + format(": no answer within %g seconds", timeout) +
                (*text ? std::string(" from ") + text : std::string());
      return STEPC_ERROR_TIMEOUT;
    }
    backOff(waited);
  }
}

namespace stepc::runtime {

void startExchange(void *argument) {
  PreparedExchange &exchange = *static_cast<PreparedExchange *>(argument);
  stepc_instance &instance = *exchange.instance;
  if (instance.running.failure)
    return;
  if (exchange.started)
    return instance.fail(STEPC_ERROR_COUNTS, exchangeName(instance.library, exchange.order) +
                                                 " was started twice in one step");
  exchange.started = true;
  ++instance.running.executed.exchanges;
  if (exchange.operations.empty())
    return;
  // No command writes the sent bytes before the exchange is done: the compiler guarantees it.
  if (!instance.isOnDevice()) {
    for (const PreparedExchange::MessageSeal &seal : exchange.sealsSent)
      std::memcpy(const_cast<void *>(seal.sent(exchange)), &instance.running.seals[seal.number],
                  sizeof(Seal));
    // If the transport loses a message, no seal of an earlier step must be there. The counters find the loss.
    for (const PreparedExchange::MessageSeal &seal : exchange.sealsReceived)
      std::memset(seal.received(exchange), 0, sizeof(Seal));
  }
  // Set before the start, because a start that fails half-way may leave messages in flight.
  exchange.inFlight = true;
  std::string error;
  const stepc_device_table &device = instance.device();
  if (instance.watchdog)
    device.mark(instance.deviceContext, Stream::Communication,
                int32_t(Watchdog::kFirstExchange + exchange.order));
  auto launch = [&](const SealLaunch &one) {
    if (one.launch.items > 0)
      device.launch(instance.deviceContext, Stream::Communication, one.launch);
  };
  launch(exchange.seal);
  int32_t status = instance.start(exchange.operations, instance.exchangeStream(), &exchange.handle,
                                  std::string(), error);
  if (!status)
    launch(exchange.check);
  if (instance.watchdog)
    device.mark(instance.deviceContext, Stream::Communication, Watchdog::kOutside);
  if (!status)
    return;
  // If the watchdog aborted the transport, its message explains this failure.
  std::string found;
  if (int32_t cause = instance.watchdog ? instance.watchdog->found(found) : STEPC_OK)
    return instance.fail(cause, found);
  instance.fail(status, exchangeName(instance.library, exchange.order) + error);
}

/// Fails the step if a received seal differs from this rank's seal of the same meshes.
static void compareSeals(stepc_instance &instance, const PreparedExchange &exchange) {
  // An earlier error of the device explains a difference. A device that looks for races finds damaged
  // messages itself.
  if (!instance.deviceContext.failure.empty() || instance.device().declare)
    return;
  for (const PreparedExchange::MessageSeal &place : exchange.sealsReceived) {
    const Seal &own = instance.running.seals[place.number];
    Seal theirs;
    std::memcpy(&theirs, place.received(exchange), sizeof(Seal));
    if (theirs == own || !theirs.isKnown() || !own.isKnown())
      continue;
    return instance.fail(STEPC_ERROR_AGREEMENT,
                         exchangeName(instance.library, exchange.order) + ": " +
                             disagreement(instance, instance.running.sealedMeshes[place.number],
                                          theirs, place.peer, instance.rank));
  }
}

void awaitExchange(void *argument) {
  PreparedExchange &exchange = *static_cast<PreparedExchange *>(argument);
  stepc_instance &instance = *exchange.instance;
  if (instance.running.failure)
    return;
  if (!exchange.started || exchange.finished)
    return instance.fail(STEPC_ERROR_COUNTS, exchangeName(instance.library, exchange.order) +
                                                 " is awaited, but is not under way");
  // On a device the stream itself waits for the exchange; the host waits for the whole step.
  if (exchange.inFlight && !instance.isOnDevice()) {
    std::string error;
    int32_t status = instance.wait(exchange.handle, std::string(), error);
    if (status)
      return instance.fail(status, exchangeName(instance.library, exchange.order) + error);
    exchange.inFlight = false;
    // A transport with `traffic` counts its messages itself.
    if (!instance.transport.traffic)
      countMessages(exchange, instance.running.executed);
    compareSeals(instance, exchange);
  }
  exchange.finished = true;
}

static stepc_traffic trafficOf(const stepc_instance &instance) {
  stepc_traffic traffic{};
  if (instance.transport.traffic)
    instance.transport.traffic(instance.transport.context, &traffic);
  return traffic;
}

void beginTraffic(stepc_instance &instance) { instance.running.before = trafficOf(instance); }

void countTraffic(stepc_instance &instance) {
  stepc_traffic now = trafficOf(instance), &before = instance.running.before;
  stepc_counters &done = instance.running.executed;
  done.messages_sent += now.messages_sent - before.messages_sent;
  done.messages_received += now.messages_received - before.messages_received;
  done.bytes_sent += now.bytes_sent - before.bytes_sent;
  done.bytes_received += now.bytes_received - before.bytes_received;
}

} // namespace stepc::runtime
