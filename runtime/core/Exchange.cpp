//===- Exchange.cpp - What a step sends and receives ------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <limits>
#include <thread>

namespace stepc::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// Waits a little longer each time: a peer on another core answers in microseconds, one that
/// shares this core needs it, one that is late should not be paid for with a core.
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

/// Whether the messages of a planned all-gather are one to the transport, too: equal parts, each of
/// which goes to all, and which arrive in the order of ranks. Whoever takes part sees all parts, so
/// all find the same.
bool isAllGather(const stepc_instance &instance, const plan::Command &start,
                 const std::vector<plan::Message> &messages) {
  if (!(instance.transport.kinds >> STEPC_ALL_GATHER & 1) || messages.size() < 2 ||
      start.collective != plan::CollectiveKind::AllGather)
    return false;
  const plan::Message &first = messages[0];
  bool takesPart = false;
  int64_t at = first.receiveOffset;
  for (const plan::Message &message : messages) {
    takesPart |= message.peer == instance.rank;
    if (message.sendOffset != first.sendOffset || message.sendCount != first.sendCount ||
        message.receiveOffset != at || message.receiveCount != first.sendCount)
      return false;
    at += message.receiveCount;
  }
  return takesPart && first.sendCount > 0;
}

int64_t communicatorOf(stepc_instance &instance, const std::vector<plan::Message> &messages) {
  std::vector<int32_t> members;
  for (const plan::Message &message : messages)
    members.push_back(int32_t(message.peer));
  auto &all = instance.communicators;
  auto found = std::find_if(all.begin(), all.end(),
                            [&](const GatheringRanks &one) { return one.members == members; });
  if (found == all.end())
    found = all.insert(found, {std::move(members), nullptr});
  return found - all.begin();
}

PreparedExchange prepare(stepc_instance &instance, const plan::Command &start, int64_t order) {
  PreparedExchange exchange;
  exchange.instance = &instance;
  exchange.order = order;
  int64_t tag = kFirstExchangeTag + order;
  char *arena = static_cast<char *>(instance.arena.data());
  char *sends = arena + start.operands[0].value, *receives = arena + start.operands[1].value;
  const std::vector<plan::Message> &messages = instance.tables.starts[order].messages;
  if (isAllGather(instance, start, messages)) {
    const plan::Message &first = messages[0];
    exchange.operations.push_back({STEPC_ALL_GATHER, -1, nullptr, sends + first.sendOffset,
                                   receives + first.receiveOffset, first.sendCount, tag,
                                   STEPC_ELEMENT_NONE, 0});
    exchange.communicators.push_back(communicatorOf(instance, messages));
    return exchange;
  }
  for (const plan::Message &message : messages) {
    int32_t peer = int32_t(message.peer);
    char *from = sends + message.sendOffset, *to = receives + message.receiveOffset;
    if (peer == instance.rank) {
      exchange.own.push_back({from, to, message.sendCount});
      continue;
    }
    if (message.receiveCount)
      exchange.operations.push_back(receiveFrom(peer, to, message.receiveCount, tag));
    if (message.sendCount)
      exchange.operations.push_back(sendTo(peer, from, message.sendCount, tag));
  }
  return exchange;
}

} // namespace

std::string prepareExchanges(stepc_instance &instance) {
  std::vector<const plan::Command *> starts = instance.library.plan.starts();
  for (size_t order = 0; order < starts.size(); ++order) {
    if (int64_t(order) > std::numeric_limits<int32_t>::max() - kFirstExchangeTag)
      return exchangeName(instance.library, order) + " has no tag left for its messages";
    for (const plan::Message &message : instance.tables.starts[order].messages)
      if (message.peer == instance.rank && message.sendCount != message.receiveCount)
        return exchangeName(instance.library, order) +
               format(" sends %lld bytes from this rank to itself and receives %lld",
                      (long long)message.sendCount, (long long)message.receiveCount);
    instance.exchanges.push_back(prepare(instance, *starts[order], order));
  }
  return {};
}

// An all-gather counts as the messages that it stands for, whatever the transport makes of it.
void countMessages(const PreparedExchange &exchange, stepc_counters &counters) {
  auto communicator = exchange.communicators.begin();
  for (const stepc_operation &operation : exchange.operations) {
    int64_t peers = 1;
    if (operation.kind == STEPC_ALL_GATHER)
      peers = int64_t(exchange.instance->communicators[*communicator++].members.size()) - 1;
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

int32_t openCommunicators(stepc_instance &instance, std::string &error) try {
  const stepc_transport &transport = instance.transport;
  for (GatheringRanks &ranks : instance.communicators) {
    auto count = int32_t(ranks.members.size());
    if (count == instance.size)
      continue;
    std::string what = format("opening a communicator of %d ranks", count);
    char text[512] = "";
    void *handle = nullptr;
    int32_t code = transport.open_communicator(transport.context, ranks.members.data(), count,
                                               &ranks.communicator, &handle, text, sizeof(text));
    if (code) {
      error = what + ": " + (*text ? text : format("the transport failed with code %d", code));
      return statusOf(code);
    }
    if (int32_t status = handle ? instance.wait(handle, what, error) : STEPC_OK)
      return status;
  }
  for (PreparedExchange &exchange : instance.exchanges) {
    auto communicator = exchange.communicators.begin();
    for (stepc_operation &operation : exchange.operations)
      if (operation.kind == STEPC_ALL_GATHER)
        operation.communicator = instance.communicators[*communicator++].communicator;
  }
  return STEPC_OK;
} catch (...) {
  error.assign("out of memory"); // short: does not allocate
  return STEPC_ERROR_MEMORY;
}

void closeCommunicators(stepc_instance &instance) noexcept {
  for (GatheringRanks &ranks : instance.communicators)
    if (ranks.communicator)
      instance.transport.close_communicator(instance.transport.context, ranks.communicator);
  instance.communicators.clear();
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
  const std::vector<int64_t> &tables = library.plan.starts()[order]->tables;
  constexpr size_t kNamed = 2;
  for (size_t i = 0; i < tables.size() && i < kNamed; ++i)
    text += (i ? ", " : "") +
            groupName(library,
                      library.plan.segments[library.plan.tables[tables[i]].from.segment].group);
  if (tables.size() > kNamed)
    text += format(" and %zu more", tables.size() - kNamed);
  return text;
}

} // namespace stepc::runtime

using namespace stepc::runtime;

int32_t stepc_instance::start(const std::vector<stepc_operation> &operations, void **handle,
                              const std::string &what, std::string &message) {
  *handle = nullptr;
  if (operations.empty())
    return STEPC_OK;
  char text[512] = "";
  stepc_operations group{int32_t(sizeof(group)), int32_t(sizeof(stepc_operation)),
                         operations.data(), int64_t(operations.size()), nullptr};
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
      // Of a function that does not say what it did: done is the last thing to believe.
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
  if (instance.failure)
    return;
  if (exchange.started)
    return instance.fail(STEPC_ERROR_COUNTS, exchangeName(instance.library, exchange.order) +
                                                 " was started twice in one step");
  exchange.started = true;
  ++instance.executed.exchanges;
  if (exchange.operations.empty())
    return;
  // Before the start: one that fails half-way may leave messages behind.
  exchange.inFlight = true;
  std::string error;
  int32_t status = instance.start(exchange.operations, &exchange.handle, std::string(), error);
  if (status)
    return instance.fail(status, exchangeName(instance.library, exchange.order) + error);
  countMessages(exchange, instance.executed);
}

void awaitExchange(void *argument) {
  PreparedExchange &exchange = *static_cast<PreparedExchange *>(argument);
  stepc_instance &instance = *exchange.instance;
  if (instance.failure)
    return;
  if (!exchange.started || exchange.finished)
    return instance.fail(STEPC_ERROR_COUNTS, exchangeName(instance.library, exchange.order) +
                                                 " is awaited, but is not under way");
  if (exchange.inFlight) {
    std::string error;
    int32_t status = instance.wait(exchange.handle, std::string(), error);
    if (status)
      return instance.fail(status, exchangeName(instance.library, exchange.order) + error);
    exchange.inFlight = false;
  }
  exchange.finished = true;
}

} // namespace stepc::runtime
