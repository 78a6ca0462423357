//===- Teams.cpp - Who adds up what slabs add to their blocks --------------===//

#include "runtime/plan/BlockMap.h"

#include <algorithm>

namespace stepc::plan {

const Teams &BlockMap::teamsOf(int64_t segment, int64_t position) {
  int64_t index = at(thePlan.segments, segment).group;
  const Group &group = at(thePlan.groups, index);
  const Classes &all = classes(group.mesh, group.slabs.factors);
  auto [found, isNew] = teams.try_emplace({index, at(all.of, position)});
  Teams &result = found->second;
  if (!isNew)
    return result;
  std::vector<std::vector<int64_t>> holders(static_cast<size_t>(at(blocksPerParameter, index)));
  ShardForm form = formOf(computedIn(segment));
  for (int64_t member : all.members.of(at(all.of, position)))
    for (int64_t block : shard(index, form, member).held)
      holders[static_cast<size_t>(block)].push_back(member);
  std::map<std::vector<int64_t>, int64_t> numbers;
  for (std::vector<int64_t> &positions : holders) {
    if (positions.empty()) {
      result.of.push_back(-1);
      continue;
    }
    auto [known, isFirst] =
        numbers.try_emplace(positions, static_cast<int64_t>(result.positions.size()));
    result.of.push_back(known->second);
    if (isFirst)
      result.positions.push_back(std::move(positions));
  }
  return result;
}

std::vector<Team> BlockMap::teamsAt(const Place &place, int64_t position) {
  int64_t index = at(thePlan.segments, place.segment).group;
  const KindView &view = kind(index, formOf(place));
  const Teams &known = teamsOf(place.segment, position);
  std::vector<int64_t> numbers(known.positions.size(), -1);
  std::vector<Team> result;
  std::vector<int64_t> order; // numbers of teams, as found; the result is sorted by these
  std::vector<int64_t> slots = computed(place.segment, position);
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    int64_t team = at(known.of, block(place.segment, slots[slot]) % at(blocksPerParameter, index));
    int64_t &number = numbers[static_cast<size_t>(team)];
    if (number < 0) {
      number = static_cast<int64_t>(result.size());
      const std::vector<int64_t> &all = at(known.positions, team);
      int64_t self = std::find(all.begin(), all.end(), position) - all.begin();
      result.push_back({&all, {}, 0, self});
      order.push_back(team);
    }
    result[static_cast<size_t>(number)].slots.push_back(static_cast<int64_t>(slot));
    result[static_cast<size_t>(number)].elements += view.rows * view.cols;
  }
  if (std::is_sorted(order.begin(), order.end()))
    return result;
  std::sort(order.begin(), order.end());
  std::vector<Team> sorted;
  for (int64_t team : order)
    sorted.push_back(std::move(result[static_cast<size_t>(at(numbers, team))]));
  return sorted;
}

std::vector<TeamPart> BlockMap::teamParts(const Place &place, const std::vector<Team> &teams) {
  const MeshView &mesh = at(meshes, groupOf(place.segment).mesh);
  struct TeamMember {
    int64_t rank, position;
    size_t team;
    int64_t number;
    auto operator<=>(const TeamMember &) const = default;
  };
  std::vector<TeamMember> members;
  for (size_t i = 0; i < teams.size(); ++i)
    for (size_t number = 0; number < teams[i].positions->size(); ++number) {
      int64_t position = (*teams[i].positions)[number];
      members.push_back({at(mesh.worldOf, position), position, i, static_cast<int64_t>(number)});
    }
  if (teams.size() > 1) // the members of one team are in this order already
    std::sort(members.begin(), members.end());
  // A rank receives its range from all members of the team, and sends its sums to all of them.
  bool isOwn = place.standsIn() == Distribution::Ranges;
  bool isShared = isOwn && place.end == End::Sent; // peers in the same teams share a part
  std::map<std::vector<size_t>, int64_t> offsets;
  std::vector<TeamPart> result;
  int64_t next = 0;
  for (auto first = members.begin(), end = first; first != members.end(); first = end) {
    TeamPart part{first->position, next, 0, {}};
    std::vector<size_t> shared;
    for (; end != members.end() && end->position == first->position; ++end) {
      const Team &team = teams[end->team];
      int64_t number = isOwn ? team.self : end->number;
      part.ranges.push_back({end->team, team.begin(number), team.begin(number + 1)});
      part.count += team.size(number);
      shared.push_back(end->team);
    }
    if (isShared) {
      auto [known, isNew] = offsets.try_emplace(std::move(shared), next);
      part.offset = known->second;
      next += isNew ? part.count : 0;
    } else {
      next += part.count;
    }
    result.push_back(std::move(part));
  }
  return result;
}

std::vector<PeerPart> BlockMap::summedParts(const Place &place, int64_t position) {
  const MeshView &mesh = at(meshes, groupOf(place.segment).mesh);
  std::vector<PeerPart> result;
  for (const TeamPart &part : teamParts(place, teamsAt(place, position)))
    if (part.count > 0)
      result.push_back({at(mesh.worldOf, part.position), part.offset, part.count});
  return result;
}

int64_t BlockMap::rangeElements(const Place &place, int64_t position) {
  int64_t result = 0;
  for (const Team &team : teamsAt(place, position))
    result += team.own();
  return result;
}

std::vector<std::vector<int64_t>> BlockMap::beginsOfParts(const Place &place, int64_t position) {
  std::vector<Team> teams = teamsAt(place, position);
  std::vector<std::vector<std::pair<int64_t, int64_t>>> begins(teams.size()); // by position
  for (const TeamPart &part : teamParts(place, teams)) {
    int64_t next = part.offset;
    for (const TeamPart::Range &range : part.ranges) {
      begins[range.team].push_back({part.position, next});
      next += range.end - range.begin;
    }
  }
  std::vector<std::vector<int64_t>> result;
  for (auto &list : begins) {
    std::sort(list.begin(), list.end());
    std::vector<int64_t> &all = result.emplace_back();
    for (auto [member, begin] : list)
      all.push_back(begin);
  }
  return result;
}

} // namespace stepc::plan
