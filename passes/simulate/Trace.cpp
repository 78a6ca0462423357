//===- Trace.cpp - A simulated step for Perfetto ----------------------------===//

#include "passes/simulate/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stepc;
using namespace stepc::simulate;
using llvm::json::Array;
using llvm::json::Object;

static double micro(double seconds) { return seconds * 1e6; }

/// Adds the name of a process or of one of its threads, and its place in the order.
static void addName(Array &events, const char *of, int64_t process, int64_t thread,
                    const std::string &name) {
  events.push_back(Object{{"name", std::string(of) + "_name"},
                          {"ph", "M"},
                          {"pid", process},
                          {"tid", thread},
                          {"args", Object{{"name", name}}}});
  events.push_back(Object{{"name", std::string(of) + "_sort_index"},
                          {"ph", "M"},
                          {"pid", process},
                          {"tid", thread},
                          {"args", Object{{"sort_index", process + thread}}}});
}

std::string simulate::toTrace(const Report &report) {
  const Result &result = report.result;
  Array events;
  Names names(report.plan);
  for (const Track &track : result.tracks) {
    int64_t process = result.world[size_t(track.rank)];
    addName(events, "process", process, 0, nameOf(result, track));
    // Slices of a thread must not overlap, so exchanges that overlap get further threads.
    std::vector<double> ends[3];
    for (const Slice &slice : track.slices) {
      const Named &named = names.of(slice);
      std::vector<double> &lane = ends[int(slice.lane)];
      auto free = llvm::find_if(lane, [&](double end) { return end <= slice.begin; });
      int64_t thread = int64_t(slice.lane) + (free - lane.begin());
      if (free == lane.end()) {
        addName(events, "thread", process, thread, nameOf(slice.lane));
        lane.push_back(0);
        free = std::prev(lane.end());
      }
      *free = slice.end;
      events.push_back(Object{{"name", named.text},
                              {"cat", nameOf(slice.lane)},
                              {"ph", "X"},
                              {"ts", micro(slice.begin)},
                              {"dur", micro(slice.end - slice.begin)},
                              {"pid", process},
                              {"tid", thread},
                              {"args", Object{{"segments", llvm::join(named.segments, ", ")}}}});
    }
  }
  // The counters are a process of their own, behind the ranks' processes.
  int64_t network = result.world.back() + 1;
  addName(events, "process", network, 0, "bytes under way");
  for (auto [level, parts] : llvm::enumerate(result.flight.bytes))
    for (auto [part, bytes] : llvm::enumerate(parts))
      events.push_back(Object{{"name", result.levels[level]},
                              {"ph", "C"},
                              {"ts", micro(double(part) * result.flight.part)},
                              {"pid", network},
                              {"args", Object{{"bytes", bytes}}}});
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(
      Object{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}});
  return text + "\n";
}
