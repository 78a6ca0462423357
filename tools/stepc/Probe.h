//===- Probe.h - What a running cluster takes -------------------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_PROBE_H
#define STEPC_TOOLS_STEPC_PROBE_H

#include "frontends/manifest/ManifestCluster.h"
#include "passes/cost/LinkFit.h"
#include "runtime/include/stepc/transport.h"

#include "llvm/Support/Error.h"

#include <functional>

namespace stepc::driver {

/// Links of one kind, and the times that ranks measured over them.
struct ProbedLevel {
  std::string name;
  int64_t ranks; ///< ranks of a domain of these links, or cost::Level::kAll
  std::vector<cost::LinkSample> samples = {};
};

/// The levels for ranks on these hosts. If sizes are given, levels have these sizes. Otherwise levels are
/// hosts and the network between them. Returns an error if sizes or hosts do not fit the ranks.
llvm::Expected<std::vector<ProbedLevel>>
levelsOf(const std::vector<std::string> &hosts,
         const std::vector<std::pair<std::string, int64_t>> &given);

/// The processes that a transport connects. Each process must call these functions in the same order.
class ProbeRanks {
public:
  /// `clock` returns seconds since any fixed time, which may differ between processes.
  explicit ProbeRanks(stepc_transport transport, std::function<double()> clock = steadySeconds)
      : transport(transport), clock(std::move(clock)) {}
  static double steadySeconds();

  int rank() const { return transport.rank; }
  int size() const { return transport.size; }
  /// Exchanges a text of at most 255 bytes per rank. Returns the texts of all ranks, on every rank.
  llvm::Expected<std::vector<std::string>> exchangeNames(const std::string &mine);
  /// Returns the largest number of all ranks, on every rank. No rank returns before all have called it.
  llvm::Expected<double> largest(double mine);
  /// Measures all levels: messages of several sizes, to and from one or more peers at a time, by all ranks at
  /// once. A sample is the median of several times, and each time is that of the slowest rank.
  llvm::Error measure(std::vector<ProbedLevel> &levels);

private:
  /// Carries out a group of operations. Returns an error if a peer does not answer in time.
  llvm::Error run(const std::vector<stepc_operation> &operations);
  llvm::Error measure(ProbedLevel &level, int64_t inner);

  stepc_transport transport;
  std::function<double()> clock;
};

/// Measures one rank's CPU with some threads, while all ranks do the same, and fills `cluster` with the
/// slowest rank's figures. Measures products of f32 in loops that the compiler vectorizes, a copy of more
/// than caches hold, and how long threads take to meet.
llvm::Error measureDevice(ProbeRanks &ranks, int64_t threads, int64_t ranksOfHost,
                          manifest::Cluster &cluster);

} // namespace stepc::driver

#endif
