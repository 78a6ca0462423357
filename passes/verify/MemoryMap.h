//===- MemoryMap.h - Which element stands where in a memory -----*- C++ -*-===//
//
// A memory is a shard of a parameter, or the computed blocks of a rank. It is a sequence of grids of equal
// size, one per matrix. Rectangles of the matrix's block tile the grid. If the matrix is divided, the grid
// has rectangles of several blocks, and some may belong to other groups. The memory is a window of the grids:
// all elements, or a range of them (of a flat shard, or of sums). It is made from placements (ShardRuns.h) or
// from a list of blocks, and is the ground truth for tables.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_MEMORYMAP_H
#define STEPC_PASSES_VERIFY_MEMORYMAP_H

#include "passes/verify/ShardRuns.h"
#include "runtime/plan/Plan.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace stepc::verify {

/// A rectangle of rows × cols elements that a table's row has in two memories: where it begins in each, and
/// how far its rows are apart there.
struct Strip {
  int64_t first, firstStride, second, secondStride, rows, cols;
};

/// What a cut finds: a rectangle of a block, and where it stands in the second memory.
struct Cut {
  int64_t block, row, col, rows, cols, second, secondStride;
};

class MemoryMap {
public:
  /// The shard of one parameter at a mesh position. Its blocks are numbered within the parameter.
  static MemoryMap ofShard(const plan::Group &group, const plan::Mesh &mesh, int64_t position,
                           plan::ValueKind kind, plan::ShardsKind whose);
  /// Computed blocks, or slabs of them, each whole: block blocks[k] at slot k.
  static MemoryMap ofBlocks(int64_t rows, int64_t cols, const std::vector<int64_t> &blocks);

  /// Reduces a memory of computed blocks to a range of its elements.
  void narrow(std::pair<int64_t, int64_t> range) { std::tie(windowBegin, windowEnd) = range; }

  int64_t elements() const { return windowEnd - windowBegin; }
  /// Only for shards: calls visit(block) for every block with a place in it, ascending.
  template <typename Visit> void forBlocks(Visit visit) const {
    for (int64_t block : held)
      visit(block);
  }
  /// Only for shards: the first element of a block, and the one after its last. They are equal if the shard
  /// has none of the block.
  std::pair<int64_t, int64_t> spanOf(int64_t block) const { return spans[block]; }
  /// Whether `other` has the same blocks at the same places. Each of its elements is `rows` rows and `cols`
  /// columns further on in its block.
  bool isMoved(const MemoryMap &other, int64_t rows, int64_t cols) const;
  /// Only for shards: the number of elements of a block.
  int64_t blockElements(int64_t block) const { return elementsOf[block]; }

  /// Calls visit(Cut) for the rectangles of which `strip` consists. The first memory of the strip must be
  /// this one. Returns false if the strip leaves the memory, or covers elements of other groups.
  template <typename Visit> bool cut(const Strip &strip, Visit visit) const;
  /// The single element at `first`. Returns nullopt if it is outside of the memory, or belongs to another
  /// group.
  std::optional<Cut> at(int64_t first) const;

private:
  /// Rows (columns) that every grid has of its block number `part`: from `at` in the grid, from `inBlock` in
  /// the block. Only the rows or only the columns of a grid tell its blocks apart; `part` is 0 for the other
  /// axis.
  struct Line {
    int64_t at, length, inBlock, part;
    bool operator==(const Line &) const = default;
  };
  /// The lines of a shard that belong to this group's blocks, ascending. `extent` counts all rows (columns)
  /// of the grid, also those that belong to other groups.
  struct Lines {
    std::vector<Line> lines;
    int64_t extent = 0;
  };
  struct Area {
    int64_t row, col, rows, cols;
  };
  static Lines linesOf(const plan::Group &group, const ShardRuns &runs,
                       const std::vector<size_t> &axes, bool isRows);

  /// Computes `held`, `elementsOf` and `spans`. The caller must have set the window.
  void count();
  template <typename Visit>
  void line(int64_t first, int64_t second, int64_t length, Visit &visit) const;
  template <typename Visit>
  void rectangle(int64_t grid, const Area &asked, int64_t second, int64_t stride,
                 Visit &visit) const;
  /// The first line that ends after index `at`.
  static auto behind(const std::vector<Line> &lines, int64_t at) {
    return std::partition_point(lines.begin(), lines.end(),
                                [&](const Line &line) { return line.at + line.length <= at; });
  }

  std::vector<int64_t> grids;                     // the first block of each grid
  std::vector<int64_t> held;                      // of shards: the blocks with elements
  std::vector<std::pair<int64_t, int64_t>> spans; // of shards: per block, see spanOf
  std::vector<int64_t> elementsOf;                // of shards: per block
  std::vector<Line> rows, cols;                   // of every grid
  int64_t blocksPerGrid = 1;
  int64_t width = 0, gridSize = 0;
  int64_t windowBegin = 0, windowEnd = 0; // the memory is these elements of the grids
};

template <typename Visit>
void MemoryMap::rectangle(int64_t grid, const Area &asked, int64_t second, int64_t stride,
                          Visit &visit) const {
  auto firstCol = behind(cols, asked.col);
  for (auto row = behind(rows, asked.row); row != rows.end() && row->at < asked.row + asked.rows;
       ++row)
    for (auto col = firstCol; col != cols.end() && col->at < asked.col + asked.cols; ++col) {
      int64_t top = std::max(row->at, asked.row), left = std::max(col->at, asked.col);
      int64_t bottom = std::min(row->at + row->length, asked.row + asked.rows);
      int64_t right = std::min(col->at + col->length, asked.col + asked.cols);
      visit(Cut{grid + row->part + col->part, row->inBlock + top - row->at,
                col->inBlock + left - col->at, bottom - top, right - left,
                second + (top - asked.row) * stride + (left - asked.col), stride});
    }
}

template <typename Visit>
void MemoryMap::line(int64_t first, int64_t second, int64_t length, Visit &visit) const {
  // A range of elements of one grid is the end of a row, then whole rows, then the begin of a row.
  while (length > 0) {
    int64_t grid = grids[first / gridSize];
    int64_t row = first % gridSize / width, col = first % gridSize % width;
    int64_t rows = 1, cols = std::min(length, width - col);
    if (col == 0 && length >= width) {
      rows = std::min(length / width, gridSize / width - row);
      cols = width;
    }
    rectangle(grid, {row, col, rows, cols}, second, cols, visit);
    first += rows * cols;
    second += rows * cols;
    length -= rows * cols;
  }
}

template <typename Visit> bool MemoryMap::cut(const Strip &strip, Visit visit) const {
  if (strip.rows < 1 || strip.cols < 1 || strip.first < 0 || strip.firstStride < 0)
    return false;
  int64_t last = strip.first + (strip.rows - 1) * strip.firstStride + strip.cols;
  if (last > elements())
    return false;
  int64_t first = strip.first + windowBegin;
  int64_t row = first % gridSize / width, col = first % gridSize % width, visited = 0;
  auto count = [&](const Cut &cut) {
    visited += cut.rows * cut.cols;
    visit(cut);
  };
  if (strip.rows > 1 && strip.firstStride == width && col + strip.cols <= width) {
    int64_t grid = first / gridSize, below = gridSize / width;
    for (int64_t done = 0, rows; done < strip.rows; done += rows, row = 0, ++grid) {
      rows = std::min(strip.rows - done, below - row);
      rectangle(grids[grid], {row, col, rows, strip.cols}, strip.second + done * strip.secondStride,
                strip.secondStride, count);
    }
  } else
    for (int64_t i = 0; i < strip.rows; ++i)
      line(first + i * strip.firstStride, strip.second + i * strip.secondStride, strip.cols, count);
  return visited == strip.rows * strip.cols; // elements of other groups are not visited
}

inline std::optional<Cut> MemoryMap::at(int64_t first) const {
  if (first < 0 || first >= elements())
    return std::nullopt;
  first += windowBegin;
  int64_t grid = first / gridSize, inside = first - grid * gridSize;
  int64_t row = inside / width, col = inside - row * width;
  auto inRows = behind(rows, row), inCols = behind(cols, col);
  if (inRows == rows.end() || row < inRows->at || inCols == cols.end() || col < inCols->at)
    return std::nullopt;
  return Cut{grids[grid] + inRows->part + inCols->part,
             inRows->inBlock + row - inRows->at,
             inCols->inBlock + col - inCols->at,
             1,
             1,
             0,
             0};
}

/// A copy of a rank's shards of some blocks. Block follows block, and each is laid out as in its shard.
class CopyMap {
public:
  /// `blocks`: their numbers in the group, in the order of the copy. Each parameter has `perParameter`
  /// blocks.
  CopyMap(const MemoryMap &shard, std::vector<int64_t> blocks, int64_t perParameter);

  /// Like MemoryMap::cut on a shard, but blocks are numbered within the group.
  template <typename Visit> bool cut(const Strip &strip, Visit visit) const;

private:
  const MemoryMap &shard;
  std::vector<int64_t> blocks, starts; // `starts`: of each block, and the end
  int64_t perParameter;
};

template <typename Visit> bool CopyMap::cut(const Strip &strip, Visit visit) const {
  if (strip.rows < 1 || strip.cols < 1 || strip.firstStride < 0)
    return false;
  for (int64_t row = 0; row < strip.rows; ++row) {
    int64_t at = strip.first + row * strip.firstStride;
    int64_t second = strip.second + row * strip.secondStride;
    for (int64_t left = strip.cols, length; left > 0; left -= length) {
      auto next = std::upper_bound(starts.begin(), starts.end(), at);
      if (next == starts.begin() || next == starts.end())
        return false;
      int64_t block = blocks[next - starts.begin() - 1], inside = block % perParameter;
      length = std::min(left, *next - at);
      bool own = true;
      if (!shard.cut({shard.spanOf(inside).first + at - next[-1], 0, second, 0, 1, length},
                     [&](Cut cut) {
                       own &= cut.block == inside;
                       cut.block = block;
                       visit(cut);
                     }) ||
          !own)
        return false;
      at += length;
      second += length;
    }
  }
  return true;
}

} // namespace stepc::verify

#endif
