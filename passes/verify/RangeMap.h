//===- RangeMap.h - The sums that a rank adds up over slabs ------*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_RANGEMAP_H
#define STEPC_PASSES_VERIFY_RANGEMAP_H

#include "passes/verify/MemoryMap.h"

namespace stepc::verify {

/// The elements that a rank adds up over slabs. Blocks of which the same ranks have slabs form a list. The
/// rank has one range of elements per list; the ranges follow each other.
class RangeMap {
public:
  void add(MemoryMap blocks) {
    int64_t begin = elements();
    parts.push_back({std::move(blocks), begin});
  }
  int64_t elements() const {
    return parts.empty() ? 0 : parts.back().begin + parts.back().blocks.elements();
  }

  /// Like MemoryMap::cut on computed blocks. Elements count through all ranges.
  template <typename Visit> bool cut(const Strip &strip, Visit visit) const {
    if (strip.rows < 1 || strip.cols < 1 || strip.first < 0 || strip.firstStride < 0)
      return false;
    int64_t end = strip.first + (strip.rows - 1) * strip.firstStride + strip.cols;
    for (const PlacedMap &part : parts) { // mostly a strip lies in one range
      if (strip.first < part.begin || end > part.begin + part.blocks.elements())
        continue;
      Strip inside = strip;
      inside.first -= part.begin;
      return part.blocks.cut(inside, visit);
    }
    for (int64_t row = 0; row < strip.rows; ++row) {
      int64_t at = strip.first + row * strip.firstStride;
      int64_t second = strip.second + row * strip.secondStride, left = strip.cols;
      for (const PlacedMap &part : parts) {
        int64_t inside = at - part.begin, here = part.blocks.elements() - inside;
        if (left == 0 || inside < 0 || here <= 0)
          continue;
        int64_t length = std::min(left, here);
        if (!part.blocks.cut({inside, 0, second, 0, 1, length}, visit))
          return false;
        at += length;
        second += length;
        left -= length;
      }
      if (left > 0)
        return false;
    }
    return true;
  }

private:
  struct PlacedMap {
    MemoryMap blocks;
    int64_t begin;
  };
  std::vector<PlacedMap> parts;
};

} // namespace stepc::verify

#endif
