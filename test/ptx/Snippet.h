//===- Snippet.h - Kernels written by hand -----------------------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_SNIPPET_H
#define STEPC_TEST_PTX_SNIPPET_H

#include "test/ptx/Error.h"
#include "test/ptx/Machine.h"

#include <optional>

namespace stepc::ptx {

/// A kernel of a few lines. Each has the parameters `map` (a tensor map), `out` and `in`, 16 KiB of memory `smem`, and
/// registers %p0 to %p15, %rs0 to %rs63, %r0 to %r255 and %rd0 to %rd63. %p1 is true in each block's first thread, %r1 is the
/// thread and %rd0 `out`.
struct Snippet {
  std::string body;
  std::string declarations = ""; ///< of the module
  uint32_t threads = 32, clusterBlocks = 1, clusters = 1;
  uint32_t outBytes = 4096;
  std::vector<uint8_t> in = std::vector<uint8_t>(64);
  /// Makes the tensor map of `in`, or of `out` with `isMapOfOut`.
  std::optional<TensorMap> map;
  bool isMapOfOut = false;
  uint64_t seed = 0;
  uint64_t mostInstructions = 1'000'000;

  /// The text of the whole kernel. The body begins in line 11.
  std::string text() const;
  /// `out` after the kernel.
  std::vector<uint8_t> run() const;
  /// The message of the error that the kernel ends with, empty if there is none.
  std::string error() const;
  /// The first error of some seeds.
  std::string errorOfSeeds(uint64_t count) const;
};

/// Words of 32 bits.
std::vector<uint32_t> words(const std::vector<uint8_t> &bytes);

/// A tensor of two dimensions with elements of 16 bits and boxes of 64 columns.
TensorMap planarMap(uint32_t rows, uint32_t columns, uint32_t boxRows);

/// One barrier for `count` arrivals at smem+16000, begun by the first thread and seen by all.
std::string barrierText(uint32_t count);

/// Waits until the barrier's first phase (parity 0) or second one (1) is done.
std::string waitText(uint32_t parity);

} // namespace stepc::ptx

#endif
