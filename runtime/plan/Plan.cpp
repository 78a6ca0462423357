//===- Plan.cpp - Names and derived quantities of a plan -----------------===//

#include "runtime/plan/Plan.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Checks.h"
#include "runtime/sums/Parts.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <tuple>

namespace stepc::plan {

std::string name(Distribution distribution) {
  std::string word(name(distribution.kind));
  return distribution.kind == Distribution::Pieces ? word + " " + std::to_string(distribution.hop)
                                                   : word;
}

int64_t Distribution::level(const Group &group) const {
  return isShards() ? 0 : kind == Pieces ? hop + 1 : static_cast<int64_t>(group.hops.size());
}

Distribution Distribution::after(const Group &group, int64_t hops) {
  return hops == static_cast<int64_t>(group.hops.size()) ? Distribution(Blocks)
                                                         : Distribution(Pieces, hops - 1);
}

Distribution shardsOf(const Group &group, ShardsKind kind) {
  if (kind == ShardsKind::StateBlocks)
    return Distribution::StateBlocks;
  if (kind == ShardsKind::LineParts || kind == ShardsKind::LineSums)
    return kind == ShardsKind::LineParts ? Distribution::LineParts : Distribution::LineSums;
  const std::vector<Placement> &own = group.placementsOf(kind);
  if (own == group.placements)
    return Distribution::Shards;
  if (own == group.placementsOf(ShardsKind::Gradient))
    return Distribution::GradientShards;
  return own == group.placementsOf(ShardsKind::State) ? Distribution::StateShards
                                                      : Distribution::ReducedShards;
}

Distribution home(const Group &group, const Rule &rule) {
  bool keeps = std::any_of(rule.states.begin(), rule.states.end(),
                           [&](const State &state) { return stateExists(group, state); });
  return shardsOf(group, keeps ? ShardsKind::State : ShardsKind::Parameter);
}

Distribution modelShards(const Group &group, const Rule &rule, const Mesh &mesh) {
  if (!group.reducedPlacements.empty())
    return shardsOf(group, ShardsKind::Reduced);
  Distribution start = home(group, rule), gradient = shardsOf(group, ShardsKind::Gradient);
  return geometry::holdsAll(group, mesh, gradient.whose(), start.whose()) ? start : gradient;
}

ShardsKind whose(const Plan &plan, const Place &place) {
  for (const Distribution &each : {place.from, place.to})
    if (each.isShards())
      return each.whose();
  const Segment &segment = plan.segments[static_cast<size_t>(place.segment)];
  const Group &group = plan.groups[static_cast<size_t>(segment.group)];
  return home(group, plan.rules[static_cast<size_t>(group.rule)]).whose();
}

int64_t Plan::groupOfModel() const { return at(parameters, model).group; }

bool Plan::skipsOnDevice() const {
  return std::any_of(commands.begin(), commands.end(), [](const Command &command) {
    const Skip *skip = std::get_if<Skip>(&command);
    return skip && !skip->kernel.isNone();
  });
}

std::string checkShards(const Plan &plan, const Place &place) {
  const Segment &segment = plan.segments[static_cast<size_t>(place.segment)];
  const Group &group = plan.groups[static_cast<size_t>(segment.group)];
  Distribution start = home(group, plan.rules[static_cast<size_t>(group.rule)]);
  bool byHops = place.from.isShards() != place.to.isShards();
  for (const Distribution &each : {place.from, place.to}) {
    Distribution named = shardsOf(group, each.whose());
    if (each.isShards() && named != each)
      return "expected " + name(named) + ", where the shards of the " +
             std::string(describe(each.whose())) + " stand, found " + name(each);
    if (each.isShards() && byHops && start != each)
      return "expected " + name(start) + ", where the hops of the group start, found " + name(each);
  }
  return {};
}

std::string expectedBytes(TableKind kind, Distribution from, int64_t bytes) {
  constexpr int64_t kMostBytes = int64_t(1) << 20; // of all parts of a value
  if (kind != TableKind::Copy && kind != TableKind::Message && kind != TableKind::Sum &&
      kind != TableKind::Collect)
    return bytes == 0 ? "" : "no";
  if (from == Distribution::LineParts || from == Distribution::ModelParts)
    return bytes > 0 && bytes <= kMostBytes && bytes % sums::bytesOf(Reduction::Max) == 0
               ? ""
               : "a multiple of 4";
  return bytes > 0 && bytes <= 8 && std::has_single_bit(static_cast<uint64_t>(bytes))
             ? ""
             : "1, 2, 4 or 8";
}

bool Place::isAddressableFrom(const Place &walked) const {
  if (segment != walked.segment)
    return false;
  if (walked.isResting(Distribution::Blocks))
    return isBatch();
  return value == walked.value &&
         (isResting(Distribution::Blocks) || (isPacked() && standsIn() == walked.from));
}

bool Place::copiesTo(const Place &other) const {
  if (segment != other.segment || value != other.value || end == End::Sent ||
      other.end == End::Received)
    return false;
  // States that stay with blocks are copied to blocks at rest and back.
  if (from == Distribution::StateBlocks || other.from == Distribution::StateBlocks)
    return isResting(Distribution::Blocks) || other.isResting(Distribution::Blocks);
  // Values of other kinds are never in shards.
  if (!value.isStored() && (isOfShards() || other.isOfShards()))
    return false;
  // Parts that travel are to be added up and not copied. Parts and ranges at rest must travel first.
  if ((isMoving() && from == Distribution::Parts) ||
      (!isMoving() && !other.isMoving() && (from.isSummed() || other.from.isSummed())))
    return false;
  // So must parts and sums of lines.
  if ((end == End::Received && from == Distribution::LineParts) ||
      (!isMoving() && !other.isMoving() && (from.isOfLines() || other.from.isOfLines())))
    return false;
  // A copy stays in one distribution, because only a move leads to another. But what a hop brought may be
  // copied to blocks if all later hops choose (isChoice in Validate.cpp).
  if (isMoving() || other.isMoving())
    return standsIn() == other.standsIn() ||
           (end == End::Received && to.kind == Distribution::Pieces &&
            other.isResting(Distribution::Blocks));
  return from != other.from || end != other.end;
}

bool Place::sumsTo(const Plan &plan, const Place &other) const {
  if (from == Distribution::Parts)
    return segment == other.segment && value == other.value && end == End::Received &&
           to == Distribution::Ranges && other.end == End::Kept && other.from == to;
  if (from == Distribution::LineParts)
    return segment == other.segment && value == other.value && end == End::Received &&
           to == Distribution::LineSums && other.end == End::Kept && other.from == to;
  const Group &group = at(plan.groups, at(plan.segments, segment).group);
  return segment == other.segment && value == ValueKind::Full && other.value == ValueKind::Full &&
         end == End::Received && from == shardsOf(group, ShardsKind::Gradient) &&
         to == shardsOf(group, ShardsKind::Reduced) && other.end == End::Kept && other.from == to &&
         !group.reducedPlacements.empty();
}

bool Place::travelsTo(const Place &other) const {
  return end == End::Sent && other.end == End::Received && value == other.value &&
         from == other.from && to == other.to;
}

std::vector<int64_t> Plan::world() const {
  std::vector<bool> used(meshes.size(), false);
  for (const Group &group : groups)
    if (group.mesh >= 0 && group.mesh < static_cast<int64_t>(meshes.size()))
      used[static_cast<size_t>(group.mesh)] = true;
  std::vector<int64_t> ranks;
  for (size_t mesh = 0; mesh < meshes.size(); ++mesh)
    if (used[mesh])
      ranks.insert(ranks.end(), meshes[mesh].ranks.begin(), meshes[mesh].ranks.end());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::vector<int64_t> meetings(const Plan &plan, const Communicator &communicator) {
  std::vector<int64_t> world = plan.world(), result(world.size(), communicator.mesh < 0 ? 0 : -1);
  if (communicator.mesh < 0)
    return result;
  const Mesh &mesh = plan.meshes[static_cast<size_t>(communicator.mesh)];
  for (size_t i = 0; i < mesh.ranks.size(); ++i) {
    auto rank = std::lower_bound(world.begin(), world.end(), mesh.ranks[i]);
    auto position = static_cast<int64_t>(i);
    if (rank != world.end() && *rank == mesh.ranks[i])
      result[static_cast<size_t>(rank - world.begin())] =
          position - along(mesh, communicator.factors, position);
  }
  return result;
}

std::vector<int64_t> members(const Plan &plan, const Communicator &communicator, int64_t rank) {
  std::vector<int64_t> all = meetings(plan, communicator), result;
  int64_t mine = all[static_cast<size_t>(rank)];
  for (size_t other = 0; other < all.size(); ++other)
    if (mine >= 0 && all[other] == mine)
      result.push_back(static_cast<int64_t>(other));
  return result;
}

bool shareAPair(const Plan &plan, const Communicator &one, const Communicator &other) {
  std::vector<int64_t> a = meetings(plan, one), b = meetings(plan, other);
  std::set<std::pair<int64_t, int64_t>> seen;
  for (size_t rank = 0; rank < a.size(); ++rank)
    if (a[rank] >= 0 && b[rank] >= 0 && !seen.insert({a[rank], b[rank]}).second)
      return true;
  return false;
}

std::vector<const Start *> Plan::starts() const {
  std::vector<const Start *> starts;
  for (const Command &command : commands)
    if (const auto *start = std::get_if<Start>(&command))
      starts.push_back(start);
  return starts;
}

} // namespace stepc::plan
