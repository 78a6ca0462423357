//===- Exchange.cpp - What a step sends and receives ------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

#include <cstring>
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

PreparedExchange prepare(const stepc_instance &instance, int64_t order) {
  const plan::Plan &plan = instance.library.plan;
  PreparedExchange exchange;
  const std::vector<int64_t> &tables = plan.exchanges[order].tables;
  for (size_t i = 0; i < tables.size(); ++i) {
    int64_t bytes = plan.tables[tables[i]].elementBytes;
    int64_t tag = (order + 1) * kTagsPerExchange + int64_t(i);
    for (const plan::Message &message : instance.tables.tables[tables[i]].messages) {
      int32_t peer = int32_t(message.peer);
      if (peer == instance.rank) {
        exchange.own.push_back({int64_t(i), message.sendOffset * bytes,
                                message.receiveOffset * bytes, message.sendCount * bytes});
        continue;
      }
      if (message.receiveCount) {
        exchange.operations.push_back(
            receiveFrom(peer, nullptr, message.receiveCount * bytes, tag));
        exchange.places.push_back({int64_t(i), message.receiveOffset * bytes});
      }
      if (message.sendCount) {
        exchange.operations.push_back(sendTo(peer, nullptr, message.sendCount * bytes, tag));
        exchange.places.push_back({int64_t(i), message.sendOffset * bytes});
      }
    }
  }
  return exchange;
}

/// An own part in pieces, so that all threads copy.
struct OwnCopy {
  const char *from;
  char *to;
  int64_t bytes;
  static constexpr int64_t kPiece = 1 << 18;
  static void run(void *arguments, int64_t first, int64_t last) {
    const OwnCopy &copy = *static_cast<OwnCopy *>(arguments);
    int64_t begin = first * kPiece, end = std::min(last * kPiece, copy.bytes);
    std::memcpy(copy.to + begin, copy.from + begin, end - begin);
  }
};

} // namespace

std::string prepareExchanges(stepc_instance &instance) {
  const plan::Plan &plan = instance.library.plan;
  for (size_t order = 0; order < plan.exchanges.size(); ++order) {
    const std::vector<int64_t> &tables = plan.exchanges[order].tables;
    if (int64_t(tables.size()) > kTagsPerExchange ||
        int64_t(order) + 2 > std::numeric_limits<int32_t>::max() / kTagsPerExchange)
      return exchangeName(instance.library, order) + " has no tags left for its messages";
    for (int64_t table : tables)
      for (const plan::Message &message : instance.tables.tables[table].messages)
        if (message.peer == instance.rank && message.sendCount != message.receiveCount)
          return exchangeName(instance.library, order) +
                 format(" sends %lld elements from this rank to itself and receives %lld",
                        (long long)message.sendCount, (long long)message.receiveCount);
    instance.exchanges.push_back(prepare(instance, order));
  }
  countPlanned(instance);
  return {};
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
  const std::vector<int64_t> &tables = library.plan.exchanges[order].tables;
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

// No exception may reach generated code, which does not unwind.
extern "C" {

void stepc_rt_exchange_start(stepc_context *context, int64_t order, int64_t count,
                             const int64_t *tables, const int64_t *sends,
                             const int64_t *receives) try {
  stepc_instance &instance = instanceOf(context);
  if (instance.failure)
    return;
  const auto &planned = instance.library.plan.exchanges;
  if (order < 0 || order >= int64_t(planned.size()))
    return instance.fail(STEPC_ERROR_COUNTS,
                         format("the program starts exchange %lld, the plan has %zu",
                                (long long)order, planned.size()));
  PreparedExchange &exchange = instance.exchanges[order];
  std::string error;
  if (exchange.started)
    return instance.fail(STEPC_ERROR_COUNTS,
                         exchangeName(instance.library, order) + " was started twice in one step");
  bool equal = count == int64_t(planned[order].tables.size());
  for (int64_t i = 0; equal && i < count; ++i)
    equal = tables[i] == planned[order].tables[i];
  if (!equal)
    return instance.fail(STEPC_ERROR_COUNTS, exchangeName(instance.library, order) +
                                                 " was started with other tables than planned");
  exchange.started = true;
  ++instance.executed.exchanges;
  char *arena = static_cast<char *>(instance.arena.data());
  for (size_t i = 0; i < exchange.operations.size(); ++i) {
    stepc_operation &operation = exchange.operations[i];
    const PreparedExchange::Place &place = exchange.places[i];
    if (operation.kind == STEPC_SEND)
      operation.send = arena + sends[place.operand] + place.offset;
    else
      operation.receive = arena + receives[place.operand] + place.offset;
  }
  if (!exchange.operations.empty()) {
    // Before the start: one that fails half-way may leave messages behind.
    exchange.inFlight = true;
    int32_t status = instance.start(exchange.operations, &exchange.handle, std::string(), error);
    if (status)
      return instance.fail(status, exchangeName(instance.library, order) + error);
  }
  for (const stepc_operation &operation : exchange.operations) {
    stepc_counters &done = instance.executed;
    bool isSend = operation.kind == STEPC_SEND;
    (isSend ? done.messages_sent : done.messages_received) += 1;
    (isSend ? done.bytes_sent : done.bytes_received) += operation.bytes;
  }
  // Last, so that it runs while the messages travel.
  for (const PreparedExchange::OwnPart &own : exchange.own) {
    OwnCopy copy{arena + sends[own.operand] + own.from, arena + receives[own.operand] + own.to,
                 own.bytes};
    instance.parallel.run(OwnCopy::run, &copy, (own.bytes + OwnCopy::kPiece - 1) / OwnCopy::kPiece,
                          1);
  }
} catch (...) {
  instanceOf(context).failWithoutText();
}

void stepc_rt_exchange_wait(stepc_context *context, int64_t order) try {
  stepc_instance &instance = instanceOf(context);
  if (instance.failure)
    return;
  if (order < 0 || order >= int64_t(instance.exchanges.size()) ||
      !instance.exchanges[order].started || instance.exchanges[order].finished)
    return instance.fail(
        STEPC_ERROR_COUNTS,
        format("the program waits for exchange %lld, which is not under way", (long long)order));
  PreparedExchange &exchange = instance.exchanges[order];
  if (exchange.inFlight) {
    std::string error;
    int32_t status = instance.wait(exchange.handle, std::string(), error);
    if (status)
      return instance.fail(status, exchangeName(instance.library, order) + error);
    exchange.inFlight = false;
  }
  exchange.finished = true;
} catch (...) {
  instanceOf(context).failWithoutText();
}

} // extern "C"
