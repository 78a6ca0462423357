//===- Plan.cpp - Names and derived quantities of a plan -----------------===//

#include "runtime/plan/Plan.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Checks.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace stepc::plan {

int64_t byteSize(DType type) {
  switch (type) {
  case DType::F32:
    return 4;
  case DType::BF16:
    return 2;
  case DType::F16:
    return 2;
  case DType::F64:
    return 8;
  }
  return 0;
}

std::string_view name(DType type) {
  switch (type) {
  case DType::F32:
    return "f32";
  case DType::BF16:
    return "bf16";
  case DType::F16:
    return "f16";
  case DType::F64:
    return "f64";
  }
  return "?";
}

std::string_view name(ValueKind kind) {
  switch (kind) {
  case ValueKind::Full:
    return "full";
  case ValueKind::Rows:
    return "rows";
  case ValueKind::Cols:
    return "cols";
  case ValueKind::One:
    return "one";
  }
  return "?";
}

std::string_view name(ShardsKind kind) {
  switch (kind) {
  case ShardsKind::Parameter:
    return "parameter";
  case ShardsKind::Gradient:
    return "gradient";
  case ShardsKind::State:
    return "state";
  }
  return "?";
}

std::string name(Distribution distribution) {
  switch (distribution.kind) {
  case Distribution::Shards:
    return "shards";
  case Distribution::Blocks:
    return "blocks";
  case Distribution::Pieces:
    return "hop " + std::to_string(distribution.hop);
  case Distribution::GradientShards:
    return "gradient_shards";
  case Distribution::StateShards:
    return "state_shards";
  }
  return "?";
}

int64_t Distribution::level(const Group &group) const {
  return isShards() ? 0 : kind == Pieces ? hop + 1 : static_cast<int64_t>(group.hops.size());
}

Distribution Distribution::after(const Group &group, int64_t hops) {
  return hops == static_cast<int64_t>(group.hops.size()) ? Distribution(Blocks)
                                                         : Distribution(Pieces, hops - 1);
}

Distribution shardsOf(const Group &group, ShardsKind kind) {
  const std::vector<Placement> &own = group.placementsOf(kind);
  if (own == group.placements)
    return Distribution::Shards;
  return own == group.placementsOf(ShardsKind::Gradient) ? Distribution::GradientShards
                                                         : Distribution::StateShards;
}

Distribution home(const Group &group, const Rule &rule) {
  bool keeps = std::any_of(rule.states.begin(), rule.states.end(),
                           [&](const State &state) { return stateExists(group, state); });
  return shardsOf(group, keeps ? ShardsKind::State : ShardsKind::Parameter);
}

ShardsKind whose(const Plan &plan, const Place &place) {
  for (const Distribution &each : {place.from, place.to})
    if (each.isShards())
      return each.whose();
  const Segment &segment = plan.segments[static_cast<size_t>(place.segment)];
  const Group &group = plan.groups[static_cast<size_t>(segment.group)];
  return home(group, plan.rules[static_cast<size_t>(group.rule)]).whose();
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
             std::string(name(each.whose())) + " stand, found " + name(each);
    if (each.isShards() && byHops && start != each)
      return "expected " + name(start) + ", where the hops of the group start, found " + name(each);
  }
  return {};
}

std::vector<Factor> wholeAxes(const Mesh &mesh) {
  std::vector<Factor> factors;
  for (int64_t size : mesh.sizes)
    factors.push_back({static_cast<int64_t>(factors.size()), 1, size});
  return factors;
}

int64_t along(const Mesh &mesh, const std::vector<Factor> &factors, int64_t position) {
  int64_t result = 0;
  for (const Factor &factor : factors) {
    int64_t apart = factor.stride;
    for (size_t axis = static_cast<size_t>(factor.axis) + 1; axis < mesh.sizes.size(); ++axis)
      apart *= mesh.sizes[axis];
    result += position / apart % factor.size * apart;
  }
  return result;
}

bool Place::isAddressableFrom(const Place &walked) const {
  if (segment != walked.segment)
    return false;
  if (walked.isResting(Distribution::Blocks))
    return isResting(Distribution::Blocks);
  return value == walked.value &&
         (isResting(Distribution::Blocks) || (isPacked() && standsIn() == walked.from));
}

bool Place::copiesTo(const Place &other) const {
  if (segment != other.segment || value != other.value || end == End::Sent ||
      other.end == End::Received)
    return false;
  // A rank that has a block whole has it in its shard, too: else a move leads there.
  if (isMoving() || other.isMoving())
    return standsIn() == other.standsIn();
  return from != other.from || end != other.end;
}

bool Place::travelsTo(const Place &other) const {
  return end == End::Sent && other.end == End::Received && value == other.value &&
         from == other.from && to == other.to;
}

std::string_view name(TableKind kind) {
  constexpr std::string_view names[] = {"shard chunks", "block chunks", "copies", "messages"};
  return names[static_cast<size_t>(kind)];
}

std::string_view name(OperandKind kind) {
  constexpr std::string_view names[] = {
      "a part of the workspace", "scalars", "parameters", "gradients", "a state",
      "a number of rows",        "a batch"};
  return kind < OperandKind::Workspace || kind > OperandKind::Batch
             ? "an unknown operand"
             : names[static_cast<size_t>(kind)];
}

std::string_view name(CommandKind kind) {
  switch (kind) {
  case CommandKind::Chunks:
    return "chunks";
  case CommandKind::Parameters:
    return "parameters";
  case CommandKind::Product:
    return "product";
  case CommandKind::Reduce:
    return "reduce";
  case CommandKind::Copy:
    return "copy";
  case CommandKind::Start:
    return "start";
  case CommandKind::Await:
    return "await";
  case CommandKind::AdvanceSteps:
    return "advance_steps";
  }
  return "?";
}

std::string toString(const Placement &placement) {
  switch (placement.kind) {
  case PlacementKind::Replicate:
    return "R";
  case PlacementKind::Shard:
    return "S(" + std::to_string(placement.dim) + ")";
  case PlacementKind::StridedShard:
    return "_S(" + std::to_string(placement.dim) + ", " + std::to_string(placement.factor) + ")";
  }
  return "?";
}

const std::vector<Placement> &Group::placementsOf(ShardsKind kind) const {
  const auto &own = kind == ShardsKind::Gradient ? gradientPlacements : statePlacements;
  return kind == ShardsKind::Parameter || own.empty() ? placements : own;
}

int64_t Group::blocksPerParameter() const { return geometry::view(shape, batchAxes).blocks; }
int64_t Group::blockCount() const {
  return blocksPerParameter() * static_cast<int64_t>(parameters.size());
}
int64_t Group::rows() const { return geometry::view(*this, ValueKind::Full).rows; }
int64_t Group::cols() const { return geometry::view(*this, ValueKind::Full).cols; }

std::string checkDivision(const Division &division, int64_t size) {
  const char *what = division.axis == Division::Rows ? "row" : "column";
  std::vector<Span> spans;
  for (size_t number = 0; number < division.parts.size(); ++number) {
    const std::vector<Span> &part = division.parts[number];
    std::string expected = std::string("expected ") + what + "s of part " + std::to_string(number);
    if (part.empty())
      return expected + ", found none";
    for (size_t i = 0; i < part.size(); ++i) {
      std::string found =
          ", found " + std::to_string(part[i].begin) + ":" + std::to_string(part[i].end);
      if (part[i].end <= part[i].begin)
        return expected + " in each run" + found;
      if (part[i].begin < 0 || part[i].end > size)
        return expected + " between 0 and " + std::to_string(size) + found;
      if (i > 0 && part[i].begin < part[i - 1].end)
        return expected + " in their order" + found + " behind " +
               std::to_string(part[i - 1].begin) + ":" + std::to_string(part[i - 1].end);
      spans.push_back(part[i]);
    }
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span &a, const Span &b) { return a.begin < b.begin; });
  spans.push_back({size, size});
  int64_t end = 0;
  for (const Span &span : spans) {
    if (span.begin != end)
      return std::string("expected each ") + what + " in one part, found " + what + " " +
             std::to_string(std::min(span.begin, end)) +
             (span.begin < end ? " in two" : " in none");
    end = span.end;
  }
  return {};
}

std::string checkFactors(const Mesh &mesh, std::vector<Factor> factors) {
  std::sort(factors.begin(), factors.end(), [](const Factor &a, const Factor &b) {
    return std::tie(a.axis, a.stride, a.size) < std::tie(b.axis, b.stride, b.size);
  });
  auto describe = [](const Factor &factor, const char *ranks) {
    return std::to_string(factor.size) + ranks + std::to_string(factor.stride) + " apart";
  };
  const Factor *last = nullptr; // of more than one rank
  for (const Factor &factor : factors) {
    if (!inside(factor.axis, mesh.sizes))
      return "expected factors of the " + std::to_string(mesh.sizes.size()) + " axes of mesh " +
             mesh.name + ", found one of axis " + std::to_string(factor.axis);
    int64_t size = mesh.sizes[static_cast<size_t>(factor.axis)];
    if (factor.stride < 1 || factor.size < 1 || factor.stride > size || factor.size > size ||
        size % (factor.stride * factor.size) != 0)
      return "expected factors that divide axis " + std::to_string(factor.axis) + " of mesh " +
             mesh.name + ", found " + describe(factor, " ranks that are ");
    if (factor.size == 1)
      continue;
    if (last && last->axis == factor.axis && factor.stride % (last->stride * last->size) != 0)
      return "expected factors of axis " + std::to_string(factor.axis) + " of mesh " + mesh.name +
             " that do not overlap, found " + describe(factor, " ranks that are ") + " beside " +
             describe(*last, " that are ");
    last = &factor;
  }
  return {};
}

std::string describePart(const Group &group) {
  constexpr size_t kMost = 3;
  if (group.part < 0)
    return {};
  const std::vector<Span> &spans = group.division.parts[static_cast<size_t>(group.part)];
  std::string text = group.division.axis == Division::Rows ? "rows" : "columns";
  for (size_t i = 0; i < spans.size() && i < kMost; ++i)
    text += (i ? ", " : " ") + std::to_string(spans[i].begin) + ":" + std::to_string(spans[i].end);
  if (spans.size() > kMost)
    text += " and " + std::to_string(spans.size() - kMost) + " more";
  return text + " of ";
}

bool stateExists(const Group &group, const State &state) {
  return !(state.master && group.parameterType == DType::F32);
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

std::vector<const Command *> Plan::starts() const {
  std::vector<const Command *> starts;
  for (const Command &command : commands)
    if (command.kind == CommandKind::Start)
      starts.push_back(&command);
  return starts;
}

} // namespace stepc::plan
