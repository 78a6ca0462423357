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
#include "runtime/devices/StreamQueues.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

namespace {

int64_t environment(const char *name, int64_t otherwise) {
  const char *value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}

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
    return int64_t(exchange.instance->prepared.meetings[exchange.meeting].members.size());
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

  void add(Stream stream, std::function<void()> run, int64_t weight) {
    mix = mix * 0x9e3779b97f4a7c15u + uint64_t(weight);
    queues.add(stream, std::move(run));
  }

  void record(Stream stream, int64_t event) {
    if (event != lostEvent())
      latest[event] = queues.record(stream);
  }

  /// Of an event that was not recorded there is nothing to wait for.
  void wait(Stream stream, int64_t event) {
    if (auto found = latest.find(event); found != latest.end())
      queues.wait(stream, found->second);
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

  void carryOut() {
    static const int64_t seed = environment("STEPC_DEVICE_SEED", 0);
    StreamQueues::Random random(uint64_t(seed) * 1000003 + uint64_t(steps++) + mix);
    // Nothing that an earlier step left in the workspace may be read: as floats these are NaN.
    std::fill(arena, arena + arenaBytes, char(0xff));
    usesWires = lostEvent() >= 0 || random() % 2 == 0;
    if (!queues.carryOut(random, StreamQueues::drawBias(random))) {
      std::fputs("random device: streams wait for each other\n", stderr);
      std::abort();
    }
    latest.clear();
    mix = 0;
  }

private:
  StreamQueues queues;
  std::map<int64_t, int64_t> latest; // per event, the number of its last record
  int64_t steps = 0, arenaBytes = 0;
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
    [](DeviceContext &context, Stream stream, const Launch &launch) {
      auto run = [&context, &launch] { stepc_device_in_order.launch(context, Stream(), launch); };
      streams.add(stream, run, launch.items);
    },
    [](DeviceContext &context, Stream stream, const BatchWork &work) {
      auto run = [&context, &work] { stepc_device_in_order.compute(context, Stream(), work); };
      streams.add(stream, run, work.blocks);
    },
    [](DeviceContext &context, Stream stream, const RowCopy &copy) {
      auto run = [&context, &copy] { stepc_device_in_order.copy(context, Stream(), copy); };
      streams.add(stream, run, copy.elements);
    },
    [](DeviceContext &context, Stream stream, const char *from, char *to, int64_t bytes) {
      auto run = [&context, from, to, bytes] {
        stepc_device_in_order.move(context, Stream(), from, to, bytes);
      };
      streams.add(stream, run, bytes);
    },
    [](DeviceContext &, Stream stream, void (*function)(void *), void *argument) {
      auto run = [=] { streams.call(function, argument); };
      streams.add(stream, run, 1);
    },
    [](DeviceContext &, Stream stream, int64_t event) { streams.record(stream, event); },
    [](DeviceContext &, Stream stream, int64_t event) { streams.wait(stream, event); },
    [](DeviceContext &) { streams.carryOut(); },
    stepc_device_in_order.poll,
    stepc_device_in_order.drain,
    stepc_device_in_order.abandon,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};
