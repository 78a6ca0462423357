//===- SlabTruth.cpp - Which rank adds up which sums of slabs -------------===//

#include "passes/verify/GroundTruth.h"

namespace stepc::verify {

using plan::ValueKind;

std::vector<int64_t> GroundTruth::besideSlabs(int64_t group, int64_t position) const {
  const plan::Group &g = thePlan.groups[group];
  std::vector<int64_t> apart = coordinatesOf(thePlan.meshes[g.mesh], position);
  for (const plan::Factor &factor : g.slabs.factors)
    apart[factor.axis] = 0;
  return apart;
}

const GroundTruth::Teams &GroundTruth::teamsOf(int64_t group, int64_t position) {
  auto &all = knownSlabs[group].teams;
  const plan::Group &g = thePlan.groups[group];
  if (all.empty()) {
    plan::View block = viewOf(g, ValueKind::Full);
    // A block without elements still has its single value.
    ValueKind kind = block.rows * block.cols > 0 ? ValueKind::Full : ValueKind::One;
    for (int64_t other : positions[g.mesh])
      if (other >= 0) {
        Teams &teams = all[besideSlabs(group, other)];
        teams.of.resize(perParameter[group]);
        shard(group, kind, other, beforeHops(group)).forBlocks([&](int64_t within) {
          teams.of[within].push_back(other);
        });
      }
    for (auto &[apart, teams] : all) {
      std::map<std::vector<int64_t>, int64_t> firsts;
      for (const std::vector<int64_t> &team : teams.of)
        teams.first.push_back(firsts.try_emplace(team, int64_t(teams.first.size())).first->second);
    }
  }
  return all.at(besideSlabs(group, position));
}

bool GroundTruth::haveSameSlabs(int64_t group) {
  teamsOf(group, 0);
  size_t ranks = 1;
  for (const plan::Factor &factor : thePlan.groups[group].slabs.factors)
    ranks *= size_t(factor.size);
  for (auto &[apart, teams] : knownSlabs[group].teams)
    for (const std::vector<int64_t> &team : teams.of)
      if (!team.empty() && team.size() != ranks)
        return false;
  return true;
}

RangeMap GroundTruth::rangesOf(int64_t segmentIndex, int64_t position, const plan::View &value) {
  int64_t group = groupOf(segmentIndex);
  const Teams &teams = teamsOf(group, position);
  std::map<int64_t, std::vector<int64_t>> blocks; // lists, by the first block with the same team
  for (int64_t block : computed(segmentIndex, position))
    blocks[teams.first[block % perParameter[group]]].push_back(block);
  RangeMap result;
  for (auto &[first, list] : blocks) {
    const std::vector<int64_t> &ranks = teams.of[first];
    MemoryMap map = MemoryMap::ofBlocks(value.rows, value.cols, list);
    auto count = int64_t(ranks.size()), elements = map.elements();
    auto begin = [&](int64_t i) { return elements / count * i + elements % count * i / count; };
    int64_t self = std::ranges::find(ranks, position) - ranks.begin();
    if (self < count) {
      map.narrow({begin(self), begin(self + 1)});
      result.add(std::move(map));
    }
  }
  return result;
}

const std::vector<Span> &GroundTruth::slabOf(int64_t group, int64_t position, int64_t block) {
  auto &known = knownSlabs[group].runs;
  const plan::Group &g = thePlan.groups[group];
  known.resize(thePlan.meshes[g.mesh].ranks.size());
  std::vector<std::vector<Span>> &runs = known[position];
  if (!runs.empty())
    return runs[block];
  runs.resize(std::max<int64_t>(1, perParameter[group]));
  const MemoryMap &map = slabs(group, position);
  bool isRows = g.slabs.axis == plan::Division::Rows;
  if (map.elements() > 0)
    map.cut({0, 0, 0, 0, 1, map.elements()}, [&](const Cut &cut) {
      runs[cut.block].push_back(isRows ? Span{cut.row, 0, cut.rows} : Span{cut.col, 0, cut.cols});
    });
  for (std::vector<Span> &list : runs) {
    std::ranges::sort(list, {}, &Span::global);
    std::vector<Span> merged;
    for (const Span &span : list) {
      if (merged.empty() || span.global > merged.back().global + merged.back().length) {
        int64_t local = merged.empty() ? 0 : merged.back().local + merged.back().length;
        merged.push_back({span.global, local, span.length});
        continue;
      }
      int64_t end =
          std::max(merged.back().global + merged.back().length, span.global + span.length);
      merged.back().length = end - merged.back().global;
    }
    list = std::move(merged);
  }
  return runs[block];
}

std::optional<std::pair<int64_t, std::string>> GroundTruth::checkSlabs() {
  for (size_t index = 0; index < thePlan.groups.size(); ++index) {
    const plan::Group &group = thePlan.groups[index];
    if (group.slabs.factors.empty())
      continue;
    std::string wrong = checkSlabs(int64_t(index));
    if (!wrong.empty())
      return std::pair(int64_t(index), wrong);
  }
  return std::nullopt;
}

std::string GroundTruth::checkSlabs(int64_t index) {
  const plan::Group &group = thePlan.groups[index];
  const plan::Mesh &mesh = thePlan.meshes[group.mesh];
  auto [blocks, rows, cols] = viewOf(group, ValueKind::Full);
  int64_t last = -1, shortest = 0, longest = 0;
  bool isRows = group.slabs.axis == plan::Division::Rows;
  std::string what = isRows ? "rows" : "columns";
  for (const plan::Factor &factor : group.slabs.factors) {
    if (factor.axis <= last || factor.stride != 1 || factor.size != mesh.sizes[factor.axis])
      return "expected slabs along whole axes of the mesh, in their order";
    last = factor.axis;
  }
  // By besideSlabs, then by block: the pieces of all ranks that differ only along the slabs' factors.
  std::map<std::vector<int64_t>, std::map<int64_t, std::vector<Piece>>> pieces;
  for (int64_t position = 0; position < int64_t(mesh.ranks.size()); ++position) {
    const MemoryMap &map = slabs(index, position);
    std::map<int64_t, std::vector<Piece>> own;
    if (map.elements() > 0)
      map.cut({0, 0, 0, 0, 1, map.elements()}, [&](const Cut &cut) {
        own[cut.block].push_back({0, cut.block, cut.row, cut.col, cut.rows, cut.cols});
      });
    std::map<int64_t, std::vector<Piece>> &beside = pieces[besideSlabs(index, position)];
    for (auto &[block, list] : own) {
      const Span &end = slabOf(index, position, block).back();
      int64_t length = end.local + end.length, elements = 0;
      for (const Piece &piece : list)
        elements += piece.size();
      if (elements != length * (isRows ? cols : rows))
        return "expected slabs of whole " + what + ", found " + std::to_string(elements) +
               " elements in " + std::to_string(length) + " " + what + " of " +
               describeBlock(index, block);
      longest = std::max(longest, length);
      shortest = shortest ? std::min(shortest, length) : length;
      beside[block].insert(beside[block].end(), list.begin(), list.end());
    }
  }
  if (shortest != group.slabs.shortest || longest != group.slabs.longest)
    return "expected slabs of " + std::to_string(shortest) + " to " + std::to_string(longest) +
           " " + what + ", found " + std::to_string(group.slabs.shortest) + " to " +
           std::to_string(group.slabs.longest);
  for (auto &[apart, byBlock] : pieces)
    for (auto &[block, list] : byBlock) {
      int64_t elements = 0;
      for (const Piece &piece : list)
        elements += piece.size();
      if (elements != rows * cols)
        return "expected slabs that make up " + describeBlock(index, block) + ", found " +
               std::to_string(elements) + " of " + std::to_string(rows * cols) + " elements";
      if (auto overlap = findOverlap(list))
        return "expected slabs that do not overlap, found " + describe(index, overlap->first) +
               " and again " + describe(index, overlap->second);
    }
  return {};
}

} // namespace stepc::verify
