//===- GroundTruth.cpp - What placements and hops alone imply --------------===//

#include "passes/verify/GroundTruth.h"

#include <array>
#include <numeric>

namespace stepc::verify {

using plan::ValueKind;

std::vector<int64_t> coordinatesOf(const plan::Mesh &mesh, int64_t position) {
  std::vector<int64_t> result(mesh.sizes.size());
  for (size_t axis = result.size(); axis-- > 0; position /= mesh.sizes[axis])
    result[axis] = position % mesh.sizes[axis];
  return result;
}

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
    perParameter.push_back(viewOf(group, ValueKind::Full).blocks);
  segments.resize(plan.segments.size());
  broughtTo.resize(plan.groups.size());
  knownSlabs.resize(plan.groups.size());
}

std::vector<int64_t> GroundTruth::meetings(const plan::Communicator &communicator) const {
  if (communicator.mesh < 0)
    return std::vector<int64_t>(world.size(), 0);
  const plan::Mesh &mesh = thePlan.meshes[communicator.mesh];
  std::vector<int64_t> result(world.size(), -1);
  for (size_t rank = 0; rank < world.size(); ++rank) {
    int64_t position = positions[communicator.mesh][rank], number = 0;
    if (position < 0)
      continue;
    std::vector<int64_t> apart = coordinatesOf(mesh, position);
    for (const plan::Factor &factor : communicator.factors)
      apart[factor.axis] -= apart[factor.axis] / factor.stride % factor.size * factor.stride;
    for (size_t axis = 0; axis < apart.size(); ++axis)
      number = number * mesh.sizes[axis] + apart[axis];
    result[rank] = number;
  }
  return result;
}

void GroundTruth::trim() {
  constexpr int64_t kMostShards = 1 << 14;
  if (shardCount <= kMostShards)
    return;
  shards.clear();
  shardCount = 0;
}

const MemoryMap &GroundTruth::shard(int64_t group, ValueKind kind, int64_t position,
                                    plan::ShardsKind whose) {
  auto &maps = shards[{group * plan::kShardsKinds + int64_t(whose), kind}];
  const plan::Group &g = thePlan.groups[group];
  const plan::Mesh &mesh = thePlan.meshes[g.mesh];
  if (maps.empty())
    maps.resize(mesh.ranks.size());
  if (!maps[position]) {
    maps[position] =
        std::make_unique<MemoryMap>(MemoryMap::ofShard(g, mesh, position, kind, whose));
    ++shardCount;
  }
  return *maps[position];
}

const SegmentView &GroundTruth::segment(int64_t index) {
  std::unique_ptr<SegmentView> &view = segments[index];
  if (view)
    return *view;
  const plan::Segment &segment = thePlan.segments[index];
  int64_t count = blockCountOf(thePlan.groups[segment.group]);
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
  view->within.resize(perParameter[segment.group]);
  for (size_t i = 0; i < view->blocks.size(); ++i) {
    int64_t block = view->blocks[i];
    view->indices[block - view->least] = int64_t(i);
    view->within[block % perParameter[segment.group]].push_back(int64_t(i));
    bool anyOwned = false;
    int64_t coordinates = 0;
    for (size_t hop = 0; hop < group.hops.size(); ++hop)
      if (!group.hops[hop].owned.empty()) {
        anyOwned = true;
        addCoordinates(segment.group, hop, group.hops[hop].base[block], coordinates);
      }
    if (anyOwned)
      view->owned[coordinates].push_back(int64_t(i));
  }
  return *view;
}

/// Indices in the segment, ascending, of the blocks that have one of these numbers within their parameter.
static std::vector<int64_t> at(const SegmentView &view, const std::vector<int64_t> &places) {
  std::vector<int64_t> result;
  size_t count = 0;
  for (int64_t place : places)
    count += view.within[place].size();
  // If all blocks of the segment are meant, their indices need no sort.
  if (count == view.blocks.size()) {
    result.resize(count);
    std::iota(result.begin(), result.end(), 0);
    return result;
  }
  for (int64_t place : places)
    result.insert(result.end(), view.within[place].begin(), view.within[place].end());
  if (!std::is_sorted(result.begin(), result.end()))
    std::sort(result.begin(), result.end());
  return result;
}

std::vector<int64_t> GroundTruth::held(int64_t segmentIndex, const MemoryMap &shard) {
  std::vector<int64_t> places;
  shard.forBlocks([&](int64_t block) { places.push_back(block); });
  return at(segment(segmentIndex), places);
}

void GroundTruth::addCoordinates(int64_t group, size_t hop, int64_t position, int64_t &number) {
  const plan::Group &g = thePlan.groups[group];
  const std::vector<int64_t> &sizes = thePlan.meshes[g.mesh].sizes;
  along.resize(sizes.size());
  for (size_t axis = sizes.size(); axis-- > 0; position /= sizes[axis])
    along[axis] = position % sizes[axis];
  for (const plan::Factor &factor : g.hops[hop].owned)
    number = number * factor.size + along[factor.axis] / factor.stride % factor.size;
}

plan::ShardsKind GroundTruth::beforeHops(int64_t group) const {
  const plan::Group &g = thePlan.groups[group];
  for (const plan::State &state : thePlan.rules[g.rule].states)
    if (!state.master || g.parameterType != plan::DType::F32) // an f32 parameter needs no master
      return plan::ShardsKind::State;
  return plan::ShardsKind::Parameter;
}

const std::vector<int64_t> &GroundTruth::brought(int64_t group, int64_t position) {
  const plan::Group &g = thePlan.groups[group];
  const plan::Mesh &mesh = thePlan.meshes[g.mesh];
  auto &known = broughtTo[group];
  if (auto all = known.find({}); all != known.end())
    return all->second;
  bool anyLeft = false;
  auto unresolved = [&](int64_t of) {
    std::vector<int64_t> left = coordinatesOf(mesh, of), sizes = mesh.sizes;
    for (const plan::Hop &hop : g.hops)
      for (const auto *factors : {&hop.owned, &hop.replicated})
        for (const plan::Factor &factor : *factors) {
          left[factor.axis] -= left[factor.axis] / factor.stride % factor.size * factor.stride;
          // A factor may be owned after an earlier hop has replicated it. It counts once.
          auto replicates = [&](const plan::Hop &other) {
            return std::ranges::find(other.replicated, factor) != other.replicated.end();
          };
          bool isNew =
              factors == &hop.replicated || std::find_if(g.hops.data(), &hop, replicates) == &hop;
          sizes[factor.axis] /= isNew ? factor.size : 1;
        }
    anyLeft = std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size > 1; });
    return left;
  };
  std::vector<int64_t> here = unresolved(position);
  if (!anyLeft)
    here.clear(); // all positions get the same blocks
  auto [found, isNew] = known.try_emplace(here);
  if (!isNew)
    return found->second;
  // Hops bring to a position the blocks of which a rank holds an element that differs from the position only
  // along the hops' factors. If no other factor is left, these are all blocks. A block without elements is
  // found by its single value.
  plan::View block = viewOf(g, ValueKind::Full);
  ValueKind value = block.rows * block.cols > 0 ? ValueKind::Full : ValueKind::One;
  std::vector<bool> any(perParameter[group], !anyLeft);
  for (int64_t holder = 0; anyLeft && holder < int64_t(mesh.ranks.size()); ++holder)
    if (unresolved(holder) == here)
      shard(group, value, holder, beforeHops(group)).forBlocks([&](int64_t block) {
        any[block] = true;
      });
  for (size_t block = 0; block < any.size(); ++block)
    if (any[block])
      found->second.push_back(int64_t(block));
  return found->second;
}

std::vector<int64_t> GroundTruth::computed(int64_t segmentIndex, int64_t position) {
  int64_t group = groupOf(segmentIndex);
  const plan::Group &g = thePlan.groups[group];
  const SegmentView &view = segment(segmentIndex);
  if (!g.computes)
    return {};
  std::vector<int64_t> result;
  bool anyOwned = false;
  int64_t coordinates = 0;
  for (size_t hop = 0; hop < g.hops.size(); ++hop) {
    anyOwned = anyOwned || !g.hops[hop].owned.empty();
    addCoordinates(group, hop, position, coordinates);
  }
  const std::vector<int64_t> &places = brought(group, position);
  if (!anyOwned) {
    if (int64_t(places.size()) == perParameter[group])
      return view.blocks;
    result = at(view, places);
  } else if (auto owned = view.owned.find(coordinates); owned != view.owned.end()) {
    for (int64_t index : owned->second)
      if (std::binary_search(places.begin(), places.end(),
                             view.blocks[index] % perParameter[group]))
        result.push_back(index);
  }
  for (int64_t &index : result)
    index = view.blocks[index];
  return result;
}

std::vector<int64_t> GroundTruth::computedOf(int64_t group, int64_t position,
                                             int64_t indexInGroup) {
  const plan::Group &g = thePlan.groups[group];
  std::vector<int64_t> result;
  for (int64_t within : brought(group, position)) {
    int64_t here = 0, base = 0;
    for (size_t hop = 0; hop < g.hops.size(); ++hop)
      if (!g.hops[hop].owned.empty()) {
        addCoordinates(group, hop, position, here);
        addCoordinates(group, hop, g.hops[hop].base[indexInGroup * perParameter[group] + within],
                       base);
      }
    if (here == base)
      result.push_back(within);
  }
  return result;
}

int64_t GroundTruth::contributions(int64_t group) const {
  // The last position has the last contribution.
  return contributionOf(group,
                        int64_t(thePlan.meshes[thePlan.groups[group].mesh].ranks.size()) - 1) +
         1;
}

int64_t GroundTruth::contributionOf(int64_t group, int64_t position) const {
  const plan::Group &g = thePlan.groups[group];
  const plan::Mesh &mesh = thePlan.meshes[g.mesh];
  std::vector<int64_t> at = coordinatesOf(mesh, position);
  int64_t number = 0;
  for (size_t axis = 0; axis < at.size(); ++axis)
    if (auto kind = g.placementsOf(plan::ShardsKind::Gradient)[axis].kind;
        kind == plan::PlacementKind::PartialSum || kind == plan::PlacementKind::PartialAverage)
      number = number * mesh.sizes[axis] + at[axis];
  return number;
}

int64_t GroundTruth::lineParts(int64_t group, ValueKind kind) const {
  // The last position has the last part.
  int64_t positions = int64_t(thePlan.meshes[thePlan.groups[group].mesh].ranks.size());
  return linePartOf(group, kind, positions - 1) + 1;
}

int64_t GroundTruth::linePartOf(int64_t group, ValueKind kind, int64_t position) const {
  const plan::Group &g = thePlan.groups[group];
  const plan::Mesh &mesh = thePlan.meshes[g.mesh];
  std::vector<int64_t> at = coordinatesOf(mesh, position);
  ValueAxes axes = axesOf(g, kind);
  auto isKept = [&](int64_t dim) {
    return std::ranges::any_of(std::array{&axes.blocks, &axes.rows, &axes.cols}, [&](auto *list) {
      return std::ranges::find(*list, size_t(dim)) != list->end();
    });
  };
  int64_t number = 0;
  for (size_t axis = 0; axis < at.size(); ++axis) {
    const plan::Placement &placement = g.placementsOf(plan::ShardsKind::State)[axis];
    bool isCut = placement.kind == plan::PlacementKind::Flat ||
                 (placement.isShard() && !isKept(placement.dim));
    number = isCut ? number * mesh.sizes[axis] + at[axis] : number;
  }
  return number;
}

int64_t GroundTruth::firstElement(int64_t group, int64_t block, ValueKind kind) {
  const plan::Group &g = thePlan.groups[group];
  if (kind != ValueKind::Full) { // a matrix of its own for each block
    plan::View each = viewOf(g, kind);
    return block % perParameter[group] * each.rows * each.cols;
  }
  firstOfParts.resize(thePlan.groups.size());
  std::vector<int64_t> &first = firstOfParts[group];
  if (first.empty()) {
    auto [blocks, rows, cols] = viewOf(g, ValueKind::Full);
    bool ofRows = g.division.axis == plan::Division::Rows;
    if (g.parts.empty()) {
      first = {0, rows * cols};
    } else {
      int64_t end = 0, part = 0;
      for (const std::vector<plan::Span> &spans : g.division.parts) {
        if (std::ranges::binary_search(g.parts, part++))
          first.push_back(end);
        for (const plan::Span &span : spans)
          end += (span.end - span.begin) * (ofRows ? cols : rows);
      }
      first.push_back(end);
    }
  }
  int64_t parts = int64_t(first.size()) - 1, within = block % perParameter[group];
  return within / parts * first.back() + first[within % parts];
}

std::optional<std::pair<int64_t, std::string>> GroundTruth::checkCounts() {
  for (int64_t group = 0; group < int64_t(thePlan.groups.size()); ++group) {
    std::set<ValueKind> kinds = {ValueKind::Full};
    for (const plan::Table &table : thePlan.tables)
      if (table.kind == plan::TableKind::BlockChunks && !table.from.value.isStored() &&
          groupOf(table.from.segment) == group)
        kinds.insert(table.from.value);
    for (ValueKind kind : kinds) {
      plan::ElementOrder order(thePlan.groups[group], kind);
      for (int64_t block = 0; block < perParameter[group]; ++block)
        if (int64_t first = firstElement(group, block, kind), found = order.before(block);
            first != found)
          return std::pair(group, "expected element " + std::to_string(first) + " to begin " +
                                      describeBlock(group, block) + ", found element " +
                                      std::to_string(found));
    }
  }
  return std::nullopt;
}

std::string GroundTruth::describeBlock(int64_t group, int64_t block) const {
  const plan::Group &g = thePlan.groups[group];
  int64_t index = perParameter[group] ? block / perParameter[group] : 0;
  if (block < 0 || index >= int64_t(g.parameters.size()))
    return "block " + std::to_string(block) + " of group @" + g.name;
  return plan::describeBlock(g, block % perParameter[group]) + "parameter '" +
         thePlan.parameters[g.parameters[index]].name + "'";
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
