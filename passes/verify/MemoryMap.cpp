//===- MemoryMap.cpp - Which element stands where in a memory --------------===//

#include "passes/verify/MemoryMap.h"

namespace stepc::verify {

MemoryMap MemoryMap::ofShard(const plan::Group &group, const plan::Mesh &mesh, int64_t position,
                             plan::ValueKind kind, plan::ShardsKind whose) {
  MemoryMap map;
  std::vector<geometry::Rect> rects = geometry::rectangles(group, mesh, position, kind, whose);
  map.spans.assign(std::max<int64_t>(1, group.blocksPerParameter()), {0, 0});
  for (const geometry::Rect &rect : rects) {
    auto &[first, end] = map.spans[rect.block];
    first = end == 0 ? rect.offset : std::min(first, rect.offset);
    end = std::max(end, rect.offset + (rect.rows - 1) * rect.stride + rect.cols);
  }
  if (rects.empty())
    return map;
  // All blocks have grids of one size: the local matrix axes do not depend on the block.
  map.width = rects.front().stride;
  int64_t total = 0;
  for (const geometry::Rect &rect : rects) {
    if (map.grids.empty() || map.grids.back().block != rect.block)
      map.grids.push_back({rect.block, 0, 0});
    total += rect.rows * rect.cols;
  }
  map.perBlock = total / int64_t(map.grids.size());
  map.gridSize = map.perBlock;
  if (group.part >= 0) { // the grid has the other parts, too
    int64_t all = 0;
    for (const geometry::Rect &rect :
         geometry::rectangles(geometry::whole(group), mesh, position, kind, whose))
      all += rect.rows * rect.cols;
    map.gridSize = all / int64_t(map.grids.size());
  }
  size_t grid = 0;
  for (const geometry::Rect &rect : rects) {
    if (map.grids[grid].block != rect.block)
      map.grids[++grid].firstPart = int64_t(map.parts.size());
    int64_t inside = rect.offset - int64_t(grid) * map.gridSize;
    map.parts.push_back(
        {inside / map.width, inside % map.width, rect.rows, rect.cols, rect.row, rect.col});
    map.grids[grid].lastPart = int64_t(map.parts.size());
  }
  return map;
}

MemoryMap MemoryMap::ofBlocks(int64_t rows, int64_t cols, const std::vector<int64_t> &blocks) {
  MemoryMap map;
  if (rows == 0 || cols == 0)
    return map;
  map.width = cols;
  map.gridSize = map.perBlock = rows * cols;
  map.parts.push_back({0, 0, rows, cols, 0, 0});
  map.grids.reserve(blocks.size());
  for (int64_t block : blocks)
    map.grids.push_back({block, 0, 1});
  return map;
}

bool MemoryMap::isMoved(const MemoryMap &other, int64_t rows, int64_t cols) const {
  return width == other.width && gridSize == other.gridSize && perBlock == other.perBlock &&
         grids == other.grids && spans == other.spans &&
         std::equal(parts.begin(), parts.end(), other.parts.begin(), other.parts.end(),
                    [&](Part part, const Part &moved) {
                      part.blockRow += rows;
                      part.blockCol += cols;
                      return part == moved;
                    });
}

CopyMap::CopyMap(const MemoryMap &shard, std::vector<int64_t> of, int64_t perParameter)
    : shard(shard), blocks(std::move(of)), starts{0}, perParameter(perParameter) {
  for (int64_t block : blocks) {
    auto [first, end] = shard.spanOf(block % perParameter);
    starts.push_back(starts.back() + end - first);
  }
}

} // namespace stepc::verify
