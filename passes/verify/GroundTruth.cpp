//===- GroundTruth.cpp - What placements and owners alone imply ------------===//

#include "passes/verify/GroundTruth.h"

namespace stepc::verify {

using plan::Strategy;
using plan::ValueKind;

GroundTruth::GroundTruth(const plan::Plan &plan) : thePlan(plan), world(plan.world()) {
  for (const plan::Mesh &mesh : plan.meshes) {
    std::vector<int64_t> ofRank(world.size(), -1);
    for (size_t position = 0; position < mesh.ranks.size(); ++position) {
      auto found = std::lower_bound(world.begin(), world.end(), mesh.ranks[position]);
      if (found != world.end() && *found == mesh.ranks[position])
        ofRank[found - world.begin()] = int64_t(position);
    }
    positions.push_back(std::move(ofRank));
  }
  for (const plan::Group &group : plan.groups)
    perParameter.push_back(group.blocksPerParameter());
  shards.resize(plan.groups.size() * 4);
  segments.resize(plan.segments.size());
}

const MemoryMap &GroundTruth::shard(int64_t group, ValueKind kind, int64_t position) {
  auto &maps = shards[group * 4 + int64_t(kind)];
  const plan::Group &g = thePlan.groups[group];
  const plan::Mesh &mesh = thePlan.meshes[g.mesh];
  if (maps.empty())
    maps.resize(mesh.ranks.size());
  if (!maps[position])
    maps[position] = std::make_unique<MemoryMap>(MemoryMap::ofShard(g, mesh, position, kind));
  return *maps[position];
}

const SegmentView &GroundTruth::segment(int64_t index) {
  std::unique_ptr<SegmentView> &view = segments[index];
  if (view)
    return *view;
  const plan::Segment &segment = thePlan.segments[index];
  int64_t count = thePlan.groups[segment.group].blockCount();
  view = std::make_unique<SegmentView>();
  view->blocks = segment.blocks;
  for (int64_t block = 0; segment.all && block < count; ++block)
    view->blocks.push_back(block);
  if (!view->blocks.empty()) {
    auto [least, most] = std::minmax_element(view->blocks.begin(), view->blocks.end());
    view->least = *least;
    view->indices.assign(*most - *least + 1, -1);
  }
  const plan::Group &group = thePlan.groups[segment.group];
  bool owned = group.strategy == Strategy::Owner;
  view->within.resize(perParameter[segment.group]);
  view->owned.resize(owned ? thePlan.meshes[group.mesh].ranks.size() : 0);
  for (size_t i = 0; i < view->blocks.size(); ++i) {
    int64_t block = view->blocks[i];
    view->indices[block - view->least] = int64_t(i);
    view->within[block % perParameter[segment.group]].push_back(int64_t(i));
    if (owned)
      view->owned[group.owners[block]].push_back(block);
  }
  return *view;
}

std::vector<int64_t> GroundTruth::held(int64_t segmentIndex, const MemoryMap &shard) {
  const SegmentView &view = segment(segmentIndex);
  std::vector<int64_t> result;
  shard.forBlocks([&](int64_t block) {
    result.insert(result.end(), view.within[block].begin(), view.within[block].end());
  });
  if (!std::is_sorted(result.begin(), result.end()))
    std::sort(result.begin(), result.end());
  return result;
}

std::vector<int64_t> GroundTruth::computed(int64_t segmentIndex, int64_t position) {
  int64_t group = groupOf(segmentIndex);
  const plan::Group &g = thePlan.groups[group];
  const SegmentView &view = segment(segmentIndex);
  switch (g.strategy) {
  case Strategy::Elementwise:
    break;
  case Strategy::Gather:
    return view.blocks;
  case Strategy::Owner:
    return view.owned[position];
  case Strategy::Local: {
    // One value per block tells who holds it, also where a block has no elements.
    std::vector<int64_t> result = held(segmentIndex, shard(group, ValueKind::One, position));
    for (int64_t &index : result)
      index = view.blocks[index];
    return result;
  }
  }
  return {};
}

std::string GroundTruth::describeBlock(int64_t group, int64_t block) const {
  const plan::Group &g = thePlan.groups[group];
  int64_t index = perParameter[group] ? block / perParameter[group] : 0;
  if (block < 0 || index >= int64_t(g.parameters.size()))
    return "block " + std::to_string(block) + " of group @" + g.name;
  std::string name = "parameter '" + thePlan.parameters[g.parameters[index]].name + "'";
  if (perParameter[group] == 1)
    return name;
  return "block " + std::to_string(block % perParameter[group]) + " of " + name;
}

std::string GroundTruth::describe(int64_t group, const Piece &piece) const {
  auto range = [](int64_t first, int64_t count) {
    return std::to_string(first) + ":" + std::to_string(first + count);
  };
  return "rows " + range(piece.row, piece.rows) + " and columns " + range(piece.col, piece.cols) +
         " of " + describeBlock(group, piece.block);
}

std::string GroundTruth::describeElement(int64_t group, const Piece &piece) const {
  return "element (" + std::to_string(piece.row) + ", " + std::to_string(piece.col) + ") of " +
         describeBlock(group, piece.block);
}

} // namespace stepc::verify
