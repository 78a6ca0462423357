//===- Adders.h - Who adds up what slabs add to a block ----------*- C++ -*-===//
//
// Internal to the plan.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_ADDERS_H
#define STEPC_RUNTIME_PLAN_ADDERS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stepc::plan {

/// Who adds up what the ranks with slabs of some blocks have: each of them a range of the elements of all.
struct Adders {
  std::vector<int64_t> positions; // by ascending world rank
  int64_t elements = 0;           // of all blocks, in the order of slots
  size_t self = 0;                // among the positions
  int64_t begin(size_t i) const {
    auto count = std::max<int64_t>(1, static_cast<int64_t>(positions.size()));
    auto at = static_cast<int64_t>(i);
    return elements / count * at + elements % count * at / count;
  }
  int64_t size(size_t i) const { return begin(i + 1) - begin(i); }
  int64_t own() const { return positions.empty() ? 0 : size(self); }
};

} // namespace stepc::plan

#endif
