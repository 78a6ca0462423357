//===- Scene.h - What the ranks of a simulation hold -----------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_PLAN_SCENE_H
#define STEPC_TEST_UNIT_PLAN_SCENE_H

#include "test/unit/plan/Buffer.h"
#include "test/unit/plan/Simulation.h"

namespace stepc::test {

/// Shards full of identities, the blocks that each rank should compute, and
/// walks over the rows of tables that check them against both. The first
/// failure stays.
class Scene {
public:
  Scene(const plan::Plan &plan, const std::vector<plan::RankTables> &ranks, const ValueTables &t);

protected:
  void fail(const std::string &message, int64_t rank = -1) {
    if (error.empty())
      error = message + (rank < 0 ? "" : " on rank " + std::to_string(rank));
  }
  const plan::RankTable &table(int64_t rank, int64_t index) const {
    return ranks[static_cast<size_t>(rank)].tables[static_cast<size_t>(index)];
  }
  int64_t worldSize() const { return static_cast<int64_t>(world.size()); }
  int64_t position(int64_t rank) const {
    auto found = std::find(mesh.ranks.begin(), mesh.ranks.end(), world[static_cast<size_t>(rank)]);
    return found == mesh.ranks.end() ? -1 : found - mesh.ranks.begin();
  }
  int64_t identity(int64_t block, int64_t row, int64_t col) const {
    return (block * size.rows + row) * size.cols + col;
  }
  std::vector<Buffer> buffers(const plan::Place &place) {
    std::vector<Buffer> result;
    for (int64_t rank = 0; rank < worldSize(); ++rank)
      result.emplace_back(query.elements(place, rank));
    return result;
  }

  Buffer *shard(int64_t rank, int64_t parameter);
  /// Every element of the segment's blocks in the shards was read once, no
  /// other at all.
  void shardsReadOnce(int64_t rank);

  /// visit(identity, staged offset or -1) for each element of a stage's rows.
  template <typename Visit> void eachElement(int64_t rank, int64_t index, Visit visit) {
    bool hasLines = index == t.lines;
    for (const plan::Chunk &c : table(rank, index).chunks) {
      if (c.rows * c.cols > plan::kChunkElements || c.rows < 1 || c.cols < 1 ||
          (c.perBlock != -1 && !hasLines))
        return fail("a row of a stage is ill-formed", rank);
      Buffer *local = shard(rank, c.parameter);
      if (!local)
        return fail("a row names a strange parameter", rank);
      for (int64_t i = 0; i < c.rows; ++i)
        for (int64_t j = 0; j < c.cols; ++j) {
          int64_t id = local->read(c.local + i * c.localStride + j);
          // A merged row may run on into other rows, but not where a row has a line.
          bool placed = c.rows > 1 || j == 0 || hasLines;
          if (id < 0 || (placed && id != identity(c.block, c.row + i, c.col + j)))
            return fail("a row says another place than its elements", rank);
          visit(id, c.staged < 0 ? -1 : c.staged + i * c.stagedStride + j);
        }
    }
    shardsReadOnce(rank);
  }

  /// visit(source offset, target offset, parameter) for each element of a copy.
  template <typename Visit> void eachCopy(int64_t rank, int64_t index, Visit visit) {
    for (const plan::CopyRow &c : table(rank, index).copies) {
      if (c.rows * c.cols > plan::kChunkElements || c.rows < 1 || c.cols < 1)
        return fail("a copy is ill-formed", rank);
      for (int64_t i = 0; i < c.rows; ++i)
        for (int64_t j = 0; j < c.cols; ++j)
          visit(c.source + i * c.sourceStride + j, c.target + i * c.targetStride + j, c.parameter);
    }
  }

  const plan::Plan &plan;
  const std::vector<plan::RankTables> &ranks;
  const ValueTables &t;
  const plan::Segment &segment;
  const plan::Group &group;
  const plan::Mesh &mesh;
  Extent size;
  Ids world, blocks;
  plan::Expander query;
  std::vector<std::vector<Buffer>> shards;
  std::vector<std::vector<Ids>> wanted; // identities of the segment's elements, -1 elsewhere
  std::vector<Ids> computed;
  std::string error;

private:
  void outsiders();
  void fillShards();
  void owners();
};

} // namespace stepc::test

#endif
