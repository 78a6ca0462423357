//===- Report.h - A simulated step as table, JSON, trace, page --*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_REPORT_H
#define STEPC_PASSES_SIMULATE_REPORT_H

#include "passes/simulate/Simulate.h"

#include "llvm/Support/JSON.h"

namespace stepc::simulate {

/// A simulation: what was asked, and the answer.
struct Report {
  const plan::Plan &plan;
  const cost::Cluster &cluster;
  const Options &options;
  const Result &result;
  std::string target; ///< as given; empty for this machine's CPU
};

/// Tables for people, at most 120 columns.
std::string toText(const Report &report);
std::string toJson(const Report &report);
/// The trace-event format of Chrome and Perfetto: a process per track, a thread per lane, counters of the
/// bytes under way. Needs a result with tracks, as the page does.
std::string toTrace(const Report &report);
/// One HTML page that fetches nothing.
std::string toPage(const Report &report);

/// The content of toJson.
llvm::json::Object toObject(const Report &report);

/// The name of a slice, and of what it works on.
struct Named {
  std::string text;                  ///< "product 256×256×1022"
  std::vector<std::string> segments; ///< the waves of groups: "group.1.w0"
};
class Names {
public:
  explicit Names(const plan::Plan &plan);
  const Named &of(const Slice &slice) const {
    return (slice.lane == Lane::Compute ? commands : starts)[size_t(slice.what)];
  }

private:
  std::vector<Named> commands, starts;
};
std::string nameOf(Lane lane);
std::string nameOf(Progress progress);
/// "rank 3", or "rank 3, as 5 more".
std::string nameOf(const Result &result, const Track &track);

} // namespace stepc::simulate

#endif
