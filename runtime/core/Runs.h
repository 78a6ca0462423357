//===- Runs.h - Which elements of a tensor a shard has -----------*- C++ -*-===//
#ifndef STEPC_RUNTIME_CORE_RUNS_H
#define STEPC_RUNTIME_CORE_RUNS_H

#include "stepc/stepc.h"

#include <cstdint>
#include <vector>

namespace stepc::runtime {

/// The runs of a shard. No element is in two of them. `shard_runs` gives them in the shard's order.
using Runs = std::vector<stepc_run>;

bool sameRuns(const Runs &one, const Runs &other);

/// Runs of one length at equal distances, as the rows of a shard of columns are: few numbers for many runs.
struct StridedRuns {
  stepc_run first;
  int64_t count, globalStep, localStep;

  stepc_run at(int64_t number) const {
    return {first.global + number * globalStep, first.local + number * localStep, first.length};
  }
  /// Takes the run if it comes next. The second run decides the distances.
  bool take(const stepc_run &run);
};

/// The runs in their order, as few strided ones.
std::vector<StridedRuns> stridedRunsOf(const Runs &runs);
/// The runs of `count` strided ones, in the order of the whole tensor's elements.
Runs runsOf(const StridedRuns *strided, int64_t count);

/// Elements that go from a place in one shard to a place in another.
struct Part {
  int64_t from, to, length;
};

/// Takes from `wanted` the elements that are in `held`, and returns how they go from there. Both are in the
/// order of the whole tensor's elements.
std::vector<Part> take(Runs &wanted, const Runs &held);

/// Whether the range from the first to the last element of one overlaps that of the other. Otherwise `take`
/// finds nothing. Both are in the order of the whole tensor's elements.
bool mayMeet(const Runs &one, const Runs &other);

} // namespace stepc::runtime

#endif
