//===- Exchange.cpp - What a step sends and receives ------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

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

PreparedExchange prepare(stepc_instance &instance, const plan::Command &start, int64_t order) {
  const plan::Plan &plan = instance.library.plan;
  PreparedExchange exchange;
  exchange.instance = &instance;
  exchange.order = order;
  char *arena = static_cast<char *>(instance.arena.data());
  for (size_t i = 0; i < start.tables.size(); ++i) {
    int64_t bytes = plan.tables[start.tables[i]].elementBytes;
    int64_t tag = (order + 1) * kTagsPerExchange + int64_t(i);
    char *sends = arena + start.operands[i].value;
    char *receives = arena + start.operands[start.tables.size() + i].value;
    for (const plan::Message &message : instance.tables.tables[start.tables[i]].messages) {
      int32_t peer = int32_t(message.peer);
      char *from = sends + message.sendOffset * bytes,
           *to = receives + message.receiveOffset * bytes;
      if (peer == instance.rank) {
        exchange.own.push_back({from, to, message.sendCount * bytes});
        continue;
      }
      if (message.receiveCount)
        exchange.operations.push_back(receiveFrom(peer, to, message.receiveCount * bytes, tag));
      if (message.sendCount)
        exchange.operations.push_back(sendTo(peer, from, message.sendCount * bytes, tag));
    }
  }
  return exchange;
}

} // namespace

std::string prepareExchanges(stepc_instance &instance) {
  std::vector<const plan::Command *> starts = instance.library.plan.starts();
  for (size_t order = 0; order < starts.size(); ++order) {
    const std::vector<int64_t> &tables = starts[order]->tables;
    if (int64_t(tables.size()) > kTagsPerExchange ||
        int64_t(order) + 2 > std::numeric_limits<int32_t>::max() / kTagsPerExchange)
      return exchangeName(instance.library, order) + " has no tags left for its messages";
    for (int64_t table : tables)
      for (const plan::Message &message : instance.tables.tables[table].messages)
        if (message.peer == instance.rank && message.sendCount != message.receiveCount)
          return exchangeName(instance.library, order) +
                 format(" sends %lld elements from this rank to itself and receives %lld",
                        (long long)message.sendCount, (long long)message.receiveCount);
    instance.exchanges.push_back(prepare(instance, *starts[order], order));
  }
  return {};
}

void countMessages(const std::vector<stepc_operation> &operations, stepc_counters &counters) {
  for (const stepc_operation &operation : operations) {
    bool isSend = operation.kind == STEPC_SEND;
    (isSend ? counters.messages_sent : counters.messages_received) += 1;
    (isSend ? counters.bytes_sent : counters.bytes_received) += operation.bytes;
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
  const std::vector<int64_t> &tables = library.plan.starts()[order]->tables;
  constexpr size_t kNamed = 2;
  for (size_t i = 0; i < tables.size() && i < kNamed; ++i)
    text += (i ? ", " : "") +
            groupName(library, library.plan.segments[library.plan.tables[tables[i]].segment].group);
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
  countMessages(exchange.operations, instance.executed);
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
