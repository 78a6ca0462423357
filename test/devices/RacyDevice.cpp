//===- RacyDevice.cpp - The device `emulated`, with races planted -----------===//
//
// Stands in an archive of the runtime in place of `emulated` (CMakeLists.txt), so that any program for
// `emulated:<gpu>,races` runs with one of these faults:
//
//   STEPC_RACY_FAULT  "wait <event>"   the wait for an event is lost
//                     "start <n>"      start n comes before the command that stands before it in the plan
//                     "reuse <a> <b>"  of the buffers that starts send or receive, by their begins in the
//                                      workspace, buffer a stands where b does
//                     "undeclared <c> <k>"  of command c operand k is not declared
//
//===----------------------------------------------------------------------===//

#define stepc_device_emulated_races stepc_device_without_faults
#include "runtime/devices/gpu/Emulated.cpp"
#undef stepc_device_emulated_races

#include "runtime/core/Instance.h"
#include "runtime/emulated/Races.h"

#include <barrier>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

using namespace stepc::runtime;
namespace plan = stepc::plan;

namespace {

struct Fault {
  char kind[16] = "";
  int64_t a = -1, b = -1;
};

const Fault &fault() {
  static const Fault given = [] {
    Fault made;
    if (const char *text = std::getenv("STEPC_RACY_FAULT")) {
      long long a = -1, b = -1;
      std::sscanf(text, "%15s %lld %lld", made.kind, &a, &b);
      made.a = a, made.b = b;
    }
    return made;
  }();
  return given;
}
bool is(const char *kind) { return std::string(fault().kind) == kind; }

/// Of all ranks, which share the library's plan.
void change(plan::Plan &plan) {
  if (is("start")) {
    int64_t number = 0;
    for (size_t i = 0; i < plan.commands.size(); ++i)
      if (std::holds_alternative<plan::Start>(plan.commands[i]) && number++ == fault().a)
        return std::swap(plan.commands[i - 1], plan.commands[i]);
  }
  if (!is("reuse"))
    return;
  std::set<int64_t> begins;
  for (const plan::Start *start : plan.starts())
    for (const plan::Operand *operand : {&start->sent, &start->received})
      begins.insert(operand->value);
  std::vector<int64_t> all(begins.begin(), begins.end());
  for (plan::Command &command : plan.commands)
    plan::forEach<plan::Operand>(command, [&](plan::Operand &operand) {
      if (!operand.start.isNone() && operand.value == all.at(size_t(fault().a)))
        operand.value = all.at(size_t(fault().b));
    });
}

void declareLess(void *argument, MemoryUses &uses) {
  declareUses(argument, uses);
  const auto &command = *static_cast<PreparedCommand *>(argument);
  if (command.number == fault().a)
    std::erase_if(uses.declared, [](const MemoryUse &use) { return use.operand == fault().b; });
}

} // namespace

extern "C" const stepc_device_table stepc_device_emulated_races = [] {
  stepc_device_table device =
      gpuDeviceTable("emulated", STEPC_DEVICE_CPU, false, openWatched, true);
  device.open = [](DeviceContext &context, const stepc_options &options) {
    // Ranks are threads of one process, and have made their tables of the plan before they come here.
    static std::barrier ranks(std::ptrdiff_t(context.plan.world().size()));
    ranks.arrive_and_wait();
    static std::once_flag once;
    std::call_once(once, [&] { change(const_cast<plan::Plan &>(context.plan)); });
    return openWatched(context, options);
  };
  device.wait = [](DeviceContext &context, Stream stream, int64_t event) {
    if (!is("wait") || event != fault().a)
      stepc_device_without_faults.wait(context, stream, event);
  };
  device.declare = [](DeviceContext &context, void (*uses)(void *, MemoryUses &), void *argument) {
    stepc_device_without_faults.declare(context, is("undeclared") ? declareLess : uses, argument);
  };
  return device;
}();
