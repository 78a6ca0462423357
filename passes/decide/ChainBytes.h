//===- ChainBytes.h - The memory of a chain of operations -------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_CHAINBYTES_H
#define STEPC_PASSES_DECIDE_CHAINBYTES_H

#include <array>
#include <cstdint>

namespace stepc::decide {

/// Bytes of a chain of matrix operations for each block, by the order in which the chain is computed.
/// Whatever comes before the first product is done for all chains of a wave, then each chain multiplies in
/// turn.
struct ChainBytes {
  int64_t arrived = 0;  ///< values that come from the shards
  int64_t prepared = 0; ///< values that are there when the chain begins to multiply
  int64_t results = 0;  ///< values that products compute for the shards
  /// Whether results take the memory of prepared values if other chains of the wave come before or behind.
  bool reuses = false;
  /// The most bytes of other values at a time, in a phase of the products; -1 if the chain has no such phase.
  /// Bit 0 of a phase says that prepared values are still read, and bit 1 that results are there.
  std::array<int64_t, 4> others = {-1, -1, -1, -1};

  /// The most bytes at a time while the chain multiplies `blocks` blocks. `prepared` and `results` are the
  /// bytes of the buffers in which these values are. `follows` says that there are results before the chain
  /// begins, and `precedes` that prepared values are read behind its end.
  int64_t most(int64_t blocks, int64_t prepared, int64_t results, bool follows,
               bool precedes) const;
};

} // namespace stepc::decide

#endif
