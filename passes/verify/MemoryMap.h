//===- MemoryMap.h - Which element stands where in a memory -----*- C++ -*-===//
//
// A memory is a shard of a parameter, or the computed blocks of a rank. It is a sequence of grids of equal
// size, one per matrix. Each grid is tiled by rectangles of its block. If the matrix is divided, it has
// rectangles of several blocks, beside those of blocks of other groups. The memory is a window of the grids:
// all, or the rank's range of a flat shard. It is made from placements (ShardRuns.h) or from a list of
// blocks, and is the ground truth for tables.
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

/// rows × cols elements that stand in two memories, as a row of a table says.
struct Strip {
  int64_t first, firstStride, second, secondStride, rows, cols;
};

/// What a cut finds: a rectangle of a block, and where it stands in the second memory.
struct Cut {
  int64_t block, row, col, rows, cols, second, secondStride;
};

class MemoryMap {
public:
  /// One parameter's shard at a mesh position; blocks are those within the parameter.
  static MemoryMap ofShard(const plan::Group &group, const plan::Mesh &mesh, int64_t position,
                           plan::ValueKind kind, plan::ShardsKind whose);
  /// Computed blocks, or slabs of them, each whole: block blocks[k] at slot k.
  static MemoryMap ofBlocks(int64_t rows, int64_t cols, const std::vector<int64_t> &blocks);

  /// Leaves only a range of the elements of computed blocks.
  void narrow(std::pair<int64_t, int64_t> range) { std::tie(windowBegin, windowEnd) = range; }

  int64_t elements() const { return windowEnd - windowBegin; }
  /// Only for shards: calls visit(block) for every block with a place in it, ascending.
  template <typename Visit> void forBlocks(Visit visit) const {
    for (int64_t block : held)
      visit(block);
  }
  /// Only for shards: where the elements of a block begin, and after the last one; equal if it has none.
  std::pair<int64_t, int64_t> spanOf(int64_t block) const { return spans[block]; }
  /// Whether `other` has the same blocks and places, with elements that are `rows` and `cols` further on.
  bool isMoved(const MemoryMap &other, int64_t rows, int64_t cols) const;
  /// Elements of a block in this memory.
  int64_t blockElements(int64_t block) const { return elementsOf[block]; }

  /// Calls visit(Cut) for the rectangles of which `strip` consists; its first memory is this one. False if it
  /// leaves the memory, or the blocks' parts of it.
  template <typename Visit> bool cut(const Strip &strip, Visit visit) const;
  /// A single element. Nothing if it is outside of the memory, or of another group.
  std::optional<Cut> at(int64_t first) const;

private:
  /// Rows (columns) that every grid has of one block, and where they stand in it. Either rows or columns tell
  /// the blocks of a grid apart, not both.
  struct Line {
    int64_t at, length, inBlock, part;
    bool operator==(const Line &) const = default;
  };
  /// The lines of a shard that belong to this group's blocks, ascending. The extent is the whole grid's,
  /// other groups' blocks included.
  struct Lines {
    std::vector<Line> lines;
    int64_t extent = 0;
  };
  struct Area {
    int64_t row, col, rows, cols;
  };
  static Lines linesOf(const plan::Group &group, const ShardRuns &runs,
                       const std::vector<size_t> &axes, bool isRows);

  /// Counts what each block has in the window, which is set.
  void count();
  template <typename Visit>
  void line(int64_t first, int64_t second, int64_t length, Visit &visit) const;
  template <typename Visit>
  void rectangle(int64_t grid, const Area &asked, int64_t second, int64_t stride,
                 Visit &visit) const;
  /// The first line that ends after a place.
  static auto behind(const std::vector<Line> &lines, int64_t at) {
    return std::partition_point(lines.begin(), lines.end(),
                                [&](const Line &line) { return line.at + line.length <= at; });
  }

  std::vector<int64_t> grids;                     // the first block of each
  std::vector<int64_t> held;                      // blocks of a shard
  std::vector<std::pair<int64_t, int64_t>> spans; // per block, of shards
  std::vector<int64_t> elementsOf;                // the same
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
  // Within one grid a run is the end of a row, whole rows and the beginning of a row.
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
  return visited == strip.rows * strip.cols; // the rest is of other groups
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

/// A copy of a rank's shards of some blocks: one after the other, each as it stands in its shard.
class CopyMap {
public:
  /// `blocks`: those of the group, in order; each parameter has `perParameter`.
  CopyMap(const MemoryMap &shard, std::vector<int64_t> blocks, int64_t perParameter);

  /// As of a shard, with the group's blocks.
  template <typename Visit> bool cut(const Strip &strip, Visit visit) const;

private:
  const MemoryMap &shard;
  std::vector<int64_t> blocks, starts; // of each block, and the end
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
