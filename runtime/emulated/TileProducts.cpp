//===- TileProducts.cpp - Products of lists of tiles, on this machine ------===//
//
// A kernel of tiles for NVIDIA's GPUs multiplies by warpgroups, which this machine does not emulate. Here the
// same lists are worked off with the tensor cores' arithmetic, so plans for these GPUs run in tests. The
// devices `emulated` and `interpret` share this.
//
//===----------------------------------------------------------------------===//

#include "runtime/emulated/TileProducts.h"
#include "runtime/emulated/Seed.h"
#include "runtime/emulated/TensorCore.h"
#include "runtime/interpret/Storage.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <cstring>

namespace stepc::runtime {
namespace {

constexpr uint64_t kMark = 0x7374657063746d70; // of our own maps

/// A stack of matrices, from its map.
struct Stack {
  char *address;
  int64_t columns, rows;

  explicit Stack(const stepc_tensor_map &map)
      : address(reinterpret_cast<char *>(map.words[1])), columns(int64_t(map.words[2])),
        rows(int64_t(map.words[3])) {}
  uint16_t *at(int64_t matrix, int64_t row, int64_t column) const {
    return reinterpret_cast<uint16_t *>(address) + (matrix * rows + row) * columns + column;
  }
  /// An element, or 0 past the ends.
  uint16_t read(int64_t matrix, int64_t row, int64_t column) const {
    return row < rows && column < columns ? *at(matrix, row, column) : uint16_t(0);
  }
};

/// A part of 64 × 64 elements of a result.
class Part {
public:
  Part(const TileForm &form, const stepc_product_problem &problem, const stepc_product_tile &tile,
       int64_t row, int64_t column)
      : form(form), problem(problem), tile(tile), lhs(problem.lhs), rhs(problem.rhs),
        out(problem.out), row(row), column(column) {}

  void compute(bool stores, bool mirrors) const {
    for (int64_t i = 0; i < kEdge; i += kFragmentRows)
      for (int64_t j = 0; j < kEdge; j += kFragmentColumns)
        if (row + i < out.rows && column + j < out.columns)
          computeFragment(row + i, column + j, stores, mirrors);
  }

private:
  static constexpr int64_t kEdge = 64;

  uint16_t left(int64_t line, int64_t step) const {
    return form.transposeLhs ? lhs.read(tile.matrix, step, line)
                             : lhs.read(tile.matrix, line, step);
  }
  uint16_t right(int64_t line, int64_t step) const {
    return form.transposeRhs ? rhs.read(tile.matrix, line, step)
                             : rhs.read(tile.matrix, step, line);
  }

  void computeFragment(int64_t firstRow, int64_t firstColumn, bool stores, bool mirrors) const {
    multiplyFragments(
        form.transposeLhs ? lhs.rows : lhs.columns, form.type == plan::DType::F16,
        [&](int64_t line, int64_t step) { return left(firstRow + line, step); },
        [&](int64_t line, int64_t step) { return right(firstColumn + line, step); },
        [&](int64_t i, int64_t j, float sum) {
          store(firstRow + i, firstColumn + j, sum, stores, mirrors);
        });
  }

  void store(int64_t i, int64_t j, float sum, bool stores, bool mirrors) const {
    // Elements above the diagonal are copies of those below it.
    if (i >= out.rows || j >= out.columns || (form.symmetric && j > i))
      return;
    mirrors |= form.symmetric;
    float value = sum * problem.alpha;
    if (tile.options & STEPC_TILE_HAS_ADDEND) {
      Stack addend(problem.addend);
      float term = interpret::read(
          form.type, reinterpret_cast<const std::byte *>(addend.at(tile.matrix, i, j)));
      value += term * problem.beta;
    }
    if (i == j && tile.options & STEPC_TILE_HAS_SHIFT)
      value += problem.shift;
    if (stores)
      interpret::write(form.type, value, reinterpret_cast<std::byte *>(out.at(tile.matrix, i, j)));
    if (mirrors)
      interpret::write(form.type, value, reinterpret_cast<std::byte *>(out.at(tile.matrix, j, i)));
  }

  const TileForm &form;
  const stepc_product_problem &problem;
  const stepc_product_tile &tile;
  Stack lhs, rhs, out;
  int64_t row, column;
};

void computeTile(const TileForm &form, const stepc_product_problem &problem,
                 const stepc_product_tile &tile) {
  constexpr int64_t kEdge = 64, kDown = 4; // parts of a tile of two GPU blocks
  for (int64_t down = 0; down < kDown; ++down)
    for (int64_t across = 0; across < tile.columns / kEdge; ++across) {
      uint32_t bits = tile.stores >> (8 * down + across);
      bool stores = bits & 1, mirrors = bits >> 4 & 1 && form.symmetric;
      if (stores || mirrors)
        Part(form, problem, tile, tile.row + down * kEdge, tile.column + across * kEdge)
            .compute(stores, mirrors);
    }
}

} // namespace

std::string writeMap(const void *address, const std::array<int64_t, 3> &sizes,
                     stepc_tensor_map &map) {
  constexpr int64_t kBytes = 16, kElementBytes = 2;
  if (reinterpret_cast<uintptr_t>(address) % kBytes || sizes[0] * kElementBytes % kBytes)
    return format("expected matrices at a multiple of 16 bytes with rows of whole 16 bytes, found "
                  "address %p and rows of %lld bytes",
                  address, (long long)(sizes[0] * kElementBytes));
  for (int64_t size : sizes)
    if (size < 1)
      return format("expected matrices with elements, found %lld of %lld x %lld",
                    (long long)sizes[2], (long long)sizes[1], (long long)sizes[0]);
  map = {};
  map.words[0] = kMark;
  map.words[1] = reinterpret_cast<uintptr_t>(address);
  for (size_t i = 0; i < sizes.size(); ++i)
    map.words[2 + i] = uint64_t(sizes[i]);
  return {};
}

void multiplyTiles(const TileForm &form, void *const *arguments, int64_t first, int64_t last) {
  auto *problems = static_cast<const stepc_product_problem *>(arguments[0]);
  auto *tiles = static_cast<const stepc_product_tile *>(arguments[2]);
  auto *begins = static_cast<const int32_t *>(arguments[3]);
  for (int64_t list = first; list < last; ++list)
    for (int32_t i = begins[list]; i < begins[list + 1]; ++i)
      computeTile(form, problems[tiles[i].problem], tiles[i]);
}

int64_t drawnClusters(std::optional<uint64_t> seed) {
  constexpr int64_t kUnlessDrawn = 3, kMost = 8;
  return seed ? 1 + int64_t(Draws{*seed}.next(kMost)) : kUnlessDrawn;
}

} // namespace stepc::runtime

extern "C" void stepc_rt_emulated_tiles(void *const *arguments, int64_t first, int64_t last,
                                        int32_t form) {
  stepc::runtime::multiplyTiles(
      {form & STEPC_TILES_OF_F16 ? stepc::plan::DType::F16 : stepc::plan::DType::BF16,
       bool(form & STEPC_TILES_TRANSPOSE_LHS), bool(form & STEPC_TILES_TRANSPOSE_RHS),
       bool(form & STEPC_TILES_SYMMETRIC)},
      arguments, first, last);
}
