//===- RandomDevice.cpp - Two streams, carried out in random order ----------===//
//
// Stands in place of `cpu` in an archive of its own (CMakeLists.txt), so that any program that
// stepc compiles runs on it. Commands are queued, per stream, and carried out when the step has been
// walked: in an order that a seed draws, bound by nothing but the streams and their events. A step
// whose bits depend on more than these is found out.
//
//   STEPC_DEVICE_SEED   of the order; ranks and steps draw orders of their own
//   STEPC_DEVICE_LOSES  the number of an event whose record is lost, as a fault that tests plant
//
//===----------------------------------------------------------------------===//

// The device that carries out each command, by a name that leaves the usual one to this file.
#define stepc_device_cpu stepc_device_in_order
#include "runtime/devices/Cpu.cpp"
#undef stepc_device_cpu

#include "runtime/core/Instance.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <random>

namespace {

int64_t environment(const char *name, int64_t otherwise) {
  const char *value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}

struct Command {
  std::function<void(DeviceContext &)> run;
  int64_t waitsFor = -1; // a record's number
  int64_t records = -1;
};

/// Memory of its own for the messages of one exchange that is under way: sent is what stood there
/// when it was started, and what has arrived is there when it has been awaited. In memory that
/// ranks share a peer may read later and write earlier, which would hide that an event was lost.
class Wire {
public:
  void start(PreparedExchange &exchange) {
    for (stepc_operation &operation : exchange.operations) {
      Message &message = messages.emplace_back();
      message.send = operation.send;
      message.receive = operation.receive;
      if (operation.send) {
        const auto *from = static_cast<const char *>(operation.send);
        message.sent.assign(from, from + operation.bytes);
        operation.send = message.sent.data();
      }
      if (operation.receive) {
        message.received.resize(operation.bytes * parts(exchange, operation));
        operation.receive = message.received.data();
      }
    }
  }

  void await(PreparedExchange &exchange) {
    for (size_t i = 0; i < messages.size(); ++i) {
      Message &message = messages[i];
      if (message.receive && exchange.finished)
        std::memcpy(message.receive, message.received.data(), message.received.size());
      exchange.operations[i].send = message.send;
      exchange.operations[i].receive = message.receive;
    }
    messages.clear();
  }

private:
  struct Message {
    const void *send;
    void *receive;
    std::vector<char> sent, received;
  };

  static int64_t parts(const PreparedExchange &exchange, const stepc_operation &operation) {
    if (operation.kind != STEPC_ALL_GATHER)
      return 1;
    return int64_t(exchange.instance->meetings[exchange.meeting].members.size());
  }

  std::vector<Message> messages;
};

/// One rank's step; ranks are threads.
class Streams {
public:
  /// The number of the event whose record is lost, or -1.
  static int64_t lostEvent() {
    static const int64_t lost = environment("STEPC_DEVICE_LOSES", -1);
    return lost;
  }

  void useArena(char *data, int64_t bytes) { arena = data, arenaBytes = bytes; }

  void add(Stream stream, std::function<void(DeviceContext &)> run, int64_t weight) {
    mix = mix * 0x9e3779b97f4a7c15u + uint64_t(weight);
    queues[size_t(stream)].push_back({std::move(run)});
  }

  void record(Stream stream, int64_t event) {
    if (event == lostEvent())
      return;
    latest[event] = recorded;
    queues[size_t(stream)].push_back({nullptr, -1, recorded++});
  }

  /// Of an event that was not recorded there is nothing to wait for.
  void wait(Stream stream, int64_t event) {
    if (auto found = latest.find(event); found != latest.end())
      queues[size_t(stream)].push_back({nullptr, found->second, -1});
  }

  /// Calls what starts or awaits an exchange, whose messages travel by a wire of their own in half
  /// of the steps, and in all where a record is lost.
  void call(void (*function)(void *), void *argument) {
    auto *exchange = static_cast<PreparedExchange *>(argument);
    if (function == startExchange && usesWires && !exchange->started)
      wires[exchange].start(*exchange);
    function(argument);
    if (auto wire = wires.find(exchange); function == awaitExchange && wire != wires.end()) {
      wire->second.await(*exchange);
      wires.erase(wire);
    }
  }

  void carryOut(DeviceContext &context) {
    static const int64_t seed = environment("STEPC_DEVICE_SEED", 0);
    std::mt19937_64 random(uint64_t(seed) * 1000003 + uint64_t(steps++) + mix);
    // Nothing that an earlier step left in the workspace may be read: as floats these are NaN.
    std::fill(arena, arena + arenaBytes, char(0xff));
    usesWires = lostEvent() >= 0 || random() % 2 == 0;
    // Often one stream runs as far ahead of the other as events let it.
    constexpr std::array kBias = {0., 0.5, 1.};
    std::bernoulli_distribution second(kBias[random() % kBias.size()]);
    std::vector<bool> done(recorded, false);
    auto isReady = [&](const std::deque<Command> &queue) {
      return !queue.empty() && (queue.front().waitsFor < 0 || done[queue.front().waitsFor]);
    };
    for (;;) {
      size_t next = second(random) ? 1 : 0;
      if (!isReady(queues[next]))
        next = 1 - next;
      if (!isReady(queues[next]))
        break;
      Command command = std::move(queues[next].front());
      queues[next].pop_front();
      if (command.run)
        command.run(context);
      if (command.records >= 0)
        done[command.records] = true;
    }
    if (!queues[0].empty() || !queues[1].empty()) {
      std::fputs("random device: streams wait for each other\n", stderr);
      std::abort();
    }
    latest.clear();
    recorded = 0;
    mix = 0;
  }

private:
  std::array<std::deque<Command>, 2> queues;
  std::map<int64_t, int64_t> latest; // per event, the number of its last record
  int64_t recorded = 0, steps = 0, arenaBytes = 0;
  uint64_t mix = 0; // of what was queued: ranks differ in it
  char *arena = nullptr;
  bool usesWires = false;
  std::map<PreparedExchange *, Wire> wires; // of exchanges that are under way
};

thread_local Streams streams;

} // namespace

extern "C" const stepc_device_table stepc_device_cpu = {
    "random",
    STEPC_DEVICE_CPU,
    stepc_device_in_order.open,
    [](DeviceContext &, Memory &memory, int64_t bytes, const stepc_options &options) {
      bool made = memory.allocate(bytes, options);
      if (made)
        streams.useArena(static_cast<char *>(memory.data()), bytes);
      return made;
    },
    stepc_device_in_order.allocateZeros,
    stepc_device_in_order.lend,
    stepc_device_in_order.begin,
    [](DeviceContext &, Stream stream, const Launch &launch) {
      auto run = [&launch](DeviceContext &context) { launchKernel(context, Stream(), launch); };
      streams.add(stream, run, launch.items);
    },
    [](DeviceContext &, Stream stream, const BatchWork &work) {
      auto run = [&work](DeviceContext &context) { compute(context, Stream(), work); };
      streams.add(stream, run, work.blocks);
    },
    [](DeviceContext &, Stream stream, const RowCopy &copy) {
      auto run = [&copy](DeviceContext &context) { copyRows(context, Stream(), copy); };
      streams.add(stream, run, copy.elements);
    },
    [](DeviceContext &, Stream stream, const char *from, char *to, int64_t bytes) {
      auto run = [=](DeviceContext &context) { moveBytes(context, Stream(), from, to, bytes); };
      streams.add(stream, run, bytes);
    },
    [](DeviceContext &, Stream stream, void (*function)(void *), void *argument) {
      auto run = [=](DeviceContext &) { streams.call(function, argument); };
      streams.add(stream, run, 1);
    },
    [](DeviceContext &, Stream stream, int64_t event) { streams.record(stream, event); },
    [](DeviceContext &, Stream stream, int64_t event) { streams.wait(stream, event); },
    [](DeviceContext &context) { streams.carryOut(context); },
    stepc_device_in_order.poll,
    stepc_device_in_order.drain,
    stepc_device_in_order.abandon,
};
