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
#include "runtime/plan/TileLists.h"
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
  std::byte *at(plan::DType type, int64_t matrix, int64_t row, int64_t column) const {
    return reinterpret_cast<std::byte *>(address) +
           ((matrix * rows + row) * columns + column) * (type == plan::DType::F32 ? 4 : 2);
  }
  /// An element of 16 bits, or 0 past the ends.
  uint16_t read(int64_t matrix, int64_t row, int64_t column) const {
    uint16_t bits = 0;
    if (row < rows && column < columns)
      std::memcpy(&bits, at(plan::DType::BF16, matrix, row, column), sizeof bits);
    return bits;
  }
};

/// A part of 64 × 64 elements of a result.
class Part {
public:
  Part(const plan::ProductForm &form, const stepc_product_problem &problem,
       const stepc_product_tile &tile, int64_t row, int64_t column)
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
        form.transposeLhs ? lhs.rows : lhs.columns, form.lhs == plan::DType::F16,
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
      float term = interpret::read(form.lhs, addend.at(form.lhs, tile.matrix, i, j));
      value += term * problem.beta;
    }
    if (i == j && tile.options & STEPC_TILE_HAS_SHIFT)
      value += problem.shift;
    if (stores)
      interpret::write(form.out, value, out.at(form.out, tile.matrix, i, j));
    if (mirrors)
      interpret::write(form.out, value, out.at(form.out, tile.matrix, j, i));
  }

  const plan::ProductForm &form;
  const stepc_product_problem &problem;
  const stepc_product_tile &tile;
  Stack lhs, rhs, out;
  int64_t row, column;
};

void computeTile(const plan::ProductForm &form, const stepc_product_problem &problem,
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

void writeMap(const void *address, const std::array<int64_t, 3> &sizes, stepc_tensor_map &map) {
  map = {};
  map.words[0] = kMark;
  map.words[1] = reinterpret_cast<uintptr_t>(address);
  for (size_t i = 0; i < sizes.size(); ++i)
    map.words[2 + i] = uint64_t(sizes[i]);
}

void multiplyTiles(const plan::ProductForm &form, void *const *arguments, int64_t first,
                   int64_t last) {
  auto *problems = static_cast<const stepc_product_problem *>(arguments[0]);
  auto *tiles = static_cast<const stepc_product_tile *>(arguments[1]);
  auto *lists = static_cast<const stepc_tile_list *>(arguments[2]);
  for (int64_t list = first; list < last; ++list)
    for (int32_t i = lists[list].first; i < lists[list].last; ++i)
      computeTile(form, problems[tiles[i].problem], tiles[i]);
}

int64_t drawnClusters(std::optional<uint64_t> seed) {
  constexpr int64_t kUnlessDrawn = 3, kMost = 8;
  return seed ? 1 + int64_t(Draws{*seed}.next(kMost)) : kUnlessDrawn;
}

} // namespace stepc::runtime

extern "C" void stepc_rt_emulated_tiles(void *const *arguments, int64_t first, int64_t last,
                                        int32_t form) {
  stepc::runtime::multiplyTiles(stepc::plan::tileForm(form), arguments, first, last);
}
