//===- Probe.h - What a running cluster takes -------------------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_PROBE_H
#define STEPC_TOOLS_STEPC_PROBE_H

#include "frontends/manifest/ManifestCluster.h"
#include "passes/cost/LinkFit.h"
#include "runtime/include/stepc/transport.h"

#include "llvm/Support/Error.h"

#include <functional>

namespace stepc::driver {

/// Links of one kind, and what ranks measured that met over them.
struct ProbedLevel {
  std::string name;
  int64_t ranks; ///< of a domain, or cost::Level::kAll
  std::vector<cost::LinkSample> samples = {};
};

/// The levels that ranks on these hosts stand on: of the sizes that are given, or else hosts and the
/// network between them. An error where they do not fit the ranks.
llvm::Expected<std::vector<ProbedLevel>>
levelsOf(const std::vector<std::string> &hosts,
         const std::vector<std::pair<std::string, int64_t>> &given);

/// The processes that a transport connects, each of which calls these functions in the same order.
class ProbeRanks {
public:
  /// `clock` tells seconds since any time, this process's.
  explicit ProbeRanks(stepc_transport transport, std::function<double()> clock = steadySeconds)
      : transport(transport), clock(std::move(clock)) {}
  static double steadySeconds();

  int rank() const { return transport.rank; }
  int size() const { return transport.size; }
  /// What every rank says, on every rank; at most 255 bytes each.
  llvm::Expected<std::vector<std::string>> exchangeNames(const std::string &mine);
  /// The largest that a rank has, on every rank: all have come here then.
  llvm::Expected<double> largest(double mine);
  /// Measures all levels: messages of several sizes, to and from one peer and more at a time, all ranks at
  /// once. What took the slowest rank longest counts, and of several times the median.
  llvm::Error measure(std::vector<ProbedLevel> &levels);

private:
  /// A group of operations, to its end; an error where a peer does not answer.
  llvm::Error run(const std::vector<stepc_operation> &operations);
  llvm::Error measure(ProbedLevel &level, int64_t inner);

  stepc_transport transport;
  std::function<double()> clock;
};

/// What one rank's CPU does with some threads, all ranks at once: products of f32 in loops that the compiler
/// vectorizes for the chip, a copy of more than caches hold, and what threads take to meet.
llvm::Error measureDevice(ProbeRanks &ranks, int64_t threads, int64_t ranksOfHost,
                          manifest::Cluster &cluster);

} // namespace stepc::driver

#endif
