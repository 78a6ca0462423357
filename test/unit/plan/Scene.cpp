//===- Scene.cpp - What the ranks of a simulation hold -------------------===//

#include "test/unit/plan/Scene.h"

#include <set>

namespace stepc::test {

using namespace plan;

Scene::Scene(const Plan &plan, const std::vector<RankTables> &ranks, const ValueTables &t)
    : plan(plan), ranks(ranks), t(t), segment(plan.segments[static_cast<size_t>(t.segment)]),
      group(plan.groups[static_cast<size_t>(segment.group)]),
      mesh(plan.meshes[static_cast<size_t>(group.mesh)]), size(blockExtent(group, t.kind)),
      world(plan.world()), query(plan) {
  for (int64_t block = 0; segment.all && block < group.blockCount(); ++block)
    blocks.push_back(block);
  if (!segment.all)
    blocks = segment.blocks;
  outsiders();
  fillShards();
  owners();
}

void Scene::outsiders() {
  for (int64_t rank = 0; rank < worldSize(); ++rank) {
    if (position(rank) >= 0)
      continue;
    for (int64_t index : {t.pack, t.packCopy, t.gather, t.place, t.compute, t.unplace, t.scatter,
                          t.unpack, t.unpackCopy, t.in, t.inCopy, t.out, t.outCopy, t.untouched})
      if (index >= 0)
        if (const RankTable &r = table(rank, index);
            !r.chunks.empty() || !r.copies.empty() || !r.messages.empty() || r.blocks != 0)
          fail("a rank outside the mesh has rows", rank);
  }
}

// shards[rank][index in group] with the group's identities.
void Scene::fillShards() {
  int64_t perParameter = group.blocksPerParameter();
  std::set<int64_t> inSegment(blocks.begin(), blocks.end());
  shards.assign(world.size(), {});
  wanted.assign(world.size(), {});
  for (int64_t rank = 0; rank < worldSize(); ++rank) {
    int64_t at = position(rank), total = 0;
    Ids local = at < 0 ? Ids() : shardIdentities(group, mesh, at, t.kind);
    for (size_t p = 0; p < group.parameters.size(); ++p) {
      Ids ids = local, want = local;
      int64_t first = identity(static_cast<int64_t>(p) * perParameter, 0, 0);
      for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < 0)
          continue;
        want[i] = ids[i] += first;
        if (!inSegment.count(ids[i] / (size.rows * size.cols)))
          want[i] = -1;
        total += want[i] >= 0;
      }
      shards[static_cast<size_t>(rank)].push_back(Buffer::of(ids));
      wanted[static_cast<size_t>(rank)].push_back(want);
    }
    // Between the runs of a part stand other parts.
    int64_t elements = query.elements(t.shards(), rank);
    if (group.parts.empty() ? total != elements : total > elements)
      fail("the shard layout has another size", rank);
  }
}

void Scene::owners() {
  std::set<int64_t> done;
  for (int64_t rank = 0; rank < worldSize(); ++rank) {
    int64_t at = position(rank);
    computed.push_back(at < 0 ? Ids() : computedBlocks(group, mesh, at, blocks));
    done.insert(computed.back().begin(), computed.back().end());
    if (static_cast<int64_t>(computed.back().size()) * size.rows * size.cols !=
        query.elements(t.blocks(), rank))
      fail("the blocks layout has another size", rank);
  }
  if (group.computes && done.size() != blocks.size())
    fail("a block is computed nowhere");
}

Buffer *Scene::shard(int64_t rank, int64_t parameter) {
  auto found = std::find(group.parameters.begin(), group.parameters.end(), parameter);
  if (found == group.parameters.end())
    return nullptr;
  return &shards[static_cast<size_t>(rank)][static_cast<size_t>(found - group.parameters.begin())];
}

void Scene::shardsReadOnce(int64_t rank) {
  for (size_t p = 0; p < group.parameters.size(); ++p) {
    Buffer &buffer = shards[static_cast<size_t>(rank)][p];
    for (size_t i = 0; i < buffer.ids.size(); ++i)
      if (buffer.reads[i] != (wanted[static_cast<size_t>(rank)][p][i] >= 0))
        fail("a stage does not visit each element of the segment once", rank);
    std::fill(buffer.reads.begin(), buffer.reads.end(), 0);
  }
}

} // namespace stepc::test
