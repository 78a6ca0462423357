//===- Validate.cpp - What makes a plan safe to expand -------------------===//
//
// A library's bytes may be damaged, and the compiler may be wrong: whatever
// passes here can be expanded without an index out of range or an overflow,
// into tables whose size follows the size of the model.
//
//===----------------------------------------------------------------------===//

#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Checks.h"
#include "runtime/plan/Parcels.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

namespace stepc::plan {

namespace {

// Far above any model, far below what would overflow or exhaust memory in
// `expand`.
constexpr int64_t kMaxElements = int64_t(1) << 42;   // of a group
constexpr int64_t kMaxRectangles = int64_t(1) << 24; // of one shard; also blocks of a group
constexpr int64_t kMaxFactor = int64_t(1) << 20;     // of a strided placement
constexpr int64_t kMaxMessage = int64_t(1) << 62;    // bytes that a start moves, of all ranks

class Validator {
public:
  explicit Validator(const Plan &plan) : plan(plan) {}

  std::string run() {
    if (plan.arenaBytes < 0 || plan.arenaBytes > kMostArenaBytes)
      return "the workspace has " + std::to_string(plan.arenaBytes) + " bytes";
    if (plan.chunkElements < 1 || plan.chunkElements > kMostChunkElements)
      return "rows of tables have up to " + std::to_string(plan.chunkElements) + " elements";
    if (plan.scratchBytes < 0 || plan.scratchBytes > kMostArenaBytes)
      return "the scratch has " + std::to_string(plan.scratchBytes) + " bytes";
    each("mesh", plan.meshes, &Validator::mesh);
    each("rule", plan.rules, &Validator::rule);
    each("route", plan.routes, &Validator::route);
    each("group", plan.groups, &Validator::group);
    each("group", plan.groups, &Validator::parts);
    each("parameter", plan.parameters, &Validator::parameter);
    each("segment", plan.segments, &Validator::segment);
    each("table", plan.tables, &Validator::table);
    each("command", plan.commands, &Validator::command);
    each("pool", plan.pools, &Validator::pool);
    return error;
  }

private:
  using Check = std::string;

  /// Stops at the first error: later checks rely on earlier ones.
  template <typename List, typename Item>
  void each(const char *what, const List &list, Check (Validator::*check)(const Item &, int64_t)) {
    for (size_t i = 0; i < list.size() && error.empty(); ++i)
      if (Check message = (this->*check)(list[i], static_cast<int64_t>(i)); !message.empty())
        error = std::string(what) + " " + std::to_string(i) + ": " + message;
  }

  template <typename Enum> static bool known(Enum value, Enum last) {
    return static_cast<int64_t>(value) >= 0 && value <= last;
  }
  /// The product of a · b, or a number above `limit` when it is larger.
  static int64_t product(int64_t a, int64_t b, int64_t limit) {
    return a != 0 && b > limit / a ? limit + 1 : a * b;
  }

  Check mesh(const Mesh &mesh, int64_t) {
    if (mesh.axes.size() != mesh.sizes.size())
      return "expected a name per axis";
    int64_t count = 1;
    for (int64_t size : mesh.sizes) {
      if (size < 1)
        return "expected axes of size 1 or more, found " + std::to_string(size);
      count = product(count, size, kMaxRectangles);
    }
    if (count != static_cast<int64_t>(mesh.ranks.size()))
      return "expected as many ranks as the axes span, found " + std::to_string(mesh.ranks.size());
    std::vector<int64_t> sorted = mesh.ranks;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.front() < 0)
      return "expected ranks of 0 or more, found " + std::to_string(sorted.front());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      return "expected distinct ranks";
    return {};
  }

  Check rule(const Rule &rule, int64_t) {
    for (const State &state : rule.states)
      if (!known(state.dtype, DType::F64) || !known(state.kind, ValueKind::One))
        return "state " + state.name + " has an unknown type or kind";
    return {};
  }

  Check route(const Route &route, int64_t) {
    if (!inside(route.rule, plan.rules))
      return outside("rule", route.rule);
    if (route.defaults.size() != at(plan.rules, route.rule).hyperparameters.size())
      return "expected a default per hyperparameter, found " +
             std::to_string(route.defaults.size());
    if (!known(route.missingGrad, MissingGrad::Zero))
      return "unknown treatment of missing gradients";
    return {};
  }

  Check group(const Group &group, int64_t index) {
    if (!inside(group.rule, plan.rules))
      return outside("rule", group.rule);
    if (!inside(group.mesh, plan.meshes))
      return outside("mesh", group.mesh);
    if (!known(group.parameterType, DType::F64) || !known(group.gradientType, DType::F64))
      return "unknown type";
    if (Check message = shape(group); !message.empty())
      return message;
    // Shards by one list are cut where those by another end: their pieces count together.
    std::vector<int64_t> runs(group.shape.size(), 1);
    if (Check message = division(group, runs); !message.empty())
      return message;
    if (Check message = placements(group, group.placements, runs); !message.empty())
      return message;
    for (const auto *list : {&group.gradientPlacements, &group.statePlacements}) {
      if (list->empty())
        continue;
      if (Check message = placements(group, *list, runs); !message.empty())
        return message;
      if (*list == group.placements)
        return "expected no placements of the gradient or the states that are the parameter's";
    }
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      if (!inside(group.parameters[i], plan.parameters))
        return outside("parameter", group.parameters[i]);
      const Parameter &parameter = at(plan.parameters, group.parameters[i]);
      if (!inside(parameter.group, plan.groups) ||
          parameter.indexInGroup != static_cast<int64_t>(i))
        return "parameter " + parameter.name + " says that it stands elsewhere";
      if (i == 0 && !partsOf[parameter.group].insert(group.part).second)
        return "expected another part of " + parameter.name + " than " + std::to_string(group.part);
      const Group &first = at(plan.groups, parameter.group);
      if (parameter.group == index)
        continue;
      if (parameter.group != at(plan.parameters, group.parameters[0]).group ||
          !areOfEqualShards(group, first))
        return "parameter " + parameter.name + " says that it stands elsewhere";
      if (i == 0 && group.parameters != first.parameters)
        return "expected the parameters of group " + first.name +
               ", which has another part of them";
    }
    return hops(group);
  }

  static bool areOfEqualShards(const Group &a, const Group &b) {
    auto fields = [](const Group &g) {
      return std::tie(g.rule, g.mesh, g.shape, g.batchAxes, g.parameterType, g.gradientType,
                      g.placements, g.gradientPlacements, g.statePlacements, g.division);
    };
    return a.part >= 0 && b.part >= 0 && fields(a) == fields(b);
  }

  /// Every row or column stands in one part. `runs`: the pieces of each axis.
  Check division(const Group &group, std::vector<int64_t> &runs) {
    const auto &parts = group.division.parts;
    if (parts.empty())
      return group.part == -1 ? Check() : "expected no part of matrices that are not divided";
    if (!known(group.division.axis, Division::Columns) ||
        static_cast<int64_t>(group.shape.size()) != group.batchAxes + 2)
      return "expected a division of the rows or the columns of matrices";
    if (group.part != -1 && !inside(group.part, parts))
      return outside("part", group.part);
    size_t axis = group.shape.size() - (group.division.axis == Division::Rows ? 2 : 1);
    if (Check message = checkDivision(group.division, group.shape[axis]); !message.empty())
      return message;
    for (const std::vector<Span> &part : parts)
      runs[axis] = std::max(runs[axis], static_cast<int64_t>(part.size()));
    return {};
  }

  /// All parts of a parameter stand in some group.
  Check parts(const Group &group, int64_t index) {
    auto found = partsOf.find(index);
    size_t expected = group.part < 0 ? 1 : group.division.parts.size();
    if (found == partsOf.end() || found->second.size() == expected)
      return {};
    return "expected groups of all " + std::to_string(expected) + " parts, found " +
           std::to_string(found->second.size());
  }

  Check shape(const Group &group) {
    auto axes = static_cast<int64_t>(group.shape.size());
    if (group.batchAxes < 0 || group.batchAxes > axes)
      return "expected at most " + std::to_string(axes) + " batch axes, found " +
             std::to_string(group.batchAxes);
    // Zeros are left out, so that a block of an empty tensor is bounded, too.
    int64_t total = std::max<int64_t>(1, static_cast<int64_t>(group.parameters.size()));
    int64_t blocks = total;
    int64_t blockAxes = axes - std::min<int64_t>(2, axes - group.batchAxes);
    for (int64_t axis = 0; axis < axes; ++axis) {
      int64_t size = at(group.shape, axis);
      if (size < 0)
        return "expected sizes of 0 or more, found " + std::to_string(size);
      total = product(total, std::max<int64_t>(1, size), kMaxElements);
      if (axis < blockAxes)
        blocks = product(blocks, std::max<int64_t>(1, size), kMaxRectangles);
    }
    if (total > kMaxElements || blocks > kMaxRectangles)
      return "its parameters are too large";
    return {};
  }

  Check placements(const Group &group, const std::vector<Placement> &list,
                   std::vector<int64_t> &runs) {
    const Mesh &mesh = at(plan.meshes, group.mesh);
    if (list.size() != mesh.sizes.size())
      return "expected a placement per axis of mesh " + mesh.name + ", found " +
             std::to_string(list.size());
    for (const Placement &placement : list) {
      if (!known(placement.kind, PlacementKind::StridedShard))
        return "unknown placement";
      if (placement.kind == PlacementKind::Replicate)
        continue;
      if (!inside(placement.dim, group.shape))
        return "placement " + toString(placement) + " shards an axis that does not exist";
      if (placement.factor < 1 || placement.factor > kMaxFactor)
        return "placement " + toString(placement) + " has a factor out of range";
      int64_t &count = runs[static_cast<size_t>(placement.dim)];
      if (placement.kind == PlacementKind::StridedShard)
        count = std::min(product(count, placement.factor, kMaxElements),
                         std::max<int64_t>(1, at(group.shape, placement.dim)));
    }
    int64_t rectangles = group.blocksPerParameter();
    for (size_t axis = group.shape.size() - std::min<size_t>(2, group.shape.size());
         axis < group.shape.size(); ++axis)
      rectangles = product(rectangles, runs[axis], kMaxRectangles);
    if (rectangles > kMaxRectangles)
      return "its shards have too many pieces";
    return {};
  }

  Check hops(const Group &group) {
    const Mesh &mesh = at(plan.meshes, group.mesh);
    if (!group.computes)
      return group.hops.empty() ? Check() : Check("expected no hops where nothing is computed");
    if (static_cast<int64_t>(group.shape.size()) > group.batchAxes + 2)
      return "expected no matrix space for axes that are neither a matrix nor declared";
    std::vector<Factor> resolved;
    for (const Hop &hop : group.hops) {
      resolved.insert(resolved.end(), hop.owned.begin(), hop.owned.end());
      resolved.insert(resolved.end(), hop.replicated.begin(), hop.replicated.end());
      int64_t count = hop.owned.empty() ? 0 : group.blockCount();
      if (static_cast<int64_t>(hop.base.size()) != count)
        return "expected " + std::to_string(count) + " positions for the blocks of a hop, found " +
               std::to_string(hop.base.size());
      for (int64_t base : hop.base)
        if (!inside(base, mesh.ranks))
          return "position " + std::to_string(base) + " is outside of mesh " + mesh.name;
    }
    if (Check wrong = checkFactors(mesh, resolved); !wrong.empty())
      return wrong;
    return geometry::blocksAreWhole(group, mesh, resolved)
               ? Check()
               : Check("expected whole blocks on every rank after " +
                       std::to_string(group.hops.size()) + " hops");
  }

  Check parameter(const Parameter &parameter, int64_t index) {
    if (!inside(parameter.route, plan.routes))
      return outside("route", parameter.route);
    if (!inside(parameter.group, plan.groups))
      return outside("group", parameter.group);
    const Group &group = at(plan.groups, parameter.group);
    if (!inside(parameter.indexInGroup, group.parameters) ||
        at(group.parameters, parameter.indexInGroup) != index)
      return "group " + group.name + " does not list " + parameter.name;
    if (at(plan.routes, parameter.route).rule != group.rule)
      return "the route of " + parameter.name + " and its group differ in their rule";
    return {};
  }

  Check segment(const Segment &segment, int64_t) {
    if (!inside(segment.group, plan.groups))
      return outside("group", segment.group);
    if (segment.all)
      return segment.blocks.empty() ? Check() : Check("expected no list beside all blocks");
    int64_t count = at(plan.groups, segment.group).blockCount();
    std::vector<int64_t> sorted = segment.blocks;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      return "a block stands in it twice";
    if (!sorted.empty() && (sorted.front() < 0 || sorted.back() >= count))
      return "expected blocks below " + std::to_string(count);
    return {};
  }

  Check place(const Place &place) {
    if (!known(place.value, ValueKind::One) || !known(place.end, End::Kept))
      return "unknown value or end of a move";
    if (!inside(place.segment, plan.segments))
      return outside("segment", place.segment);
    const Group &group = at(plan.groups, at(plan.segments, place.segment).group);
    for (const Distribution &each : {place.from, place.to}) {
      if (!known(each.kind, Distribution::StateShards))
        return "unknown distribution";
      bool between = each.kind == Distribution::Pieces;
      if (each.hop < 0 || each.hop >= (between ? static_cast<int64_t>(group.hops.size()) - 1 : 1))
        return "expected a hop before the last one, found hop " + std::to_string(each.hop);
      if (between && !place.isMoving())
        return "expected nothing at rest between hops";
    }
    if (place.isMoving() == (place.from == place.to))
      return "expected two distributions of a move, and one of what is at rest";
    if (place.end == End::Kept && !place.from.isShards())
      return "expected a copy of shards, found one in " + name(place.from);
    return {};
  }

  Check table(const Table &table, int64_t) {
    for (const Place &each : {table.from, table.to})
      if (Check message = place(each); !message.empty())
        return message;
    bool moves = table.kind == TableKind::Copy || table.kind == TableKind::Message;
    if (table.elementBytes < 0 || table.elementBytes > 8 ||
        (moves && !std::has_single_bit(static_cast<uint64_t>(table.elementBytes))))
      return "elements have " + std::to_string(table.elementBytes) + " bytes";
    switch (table.kind) {
    case TableKind::ShardChunks:
      if (!table.from.isBound())
        return "expected shards to be walked";
      return table.to == table.from || table.to.isAddressableFrom(table.from)
                 ? Check()
                 : "its staged operands do not stand where this rank's shards lead";
    case TableKind::BlockChunks:
      return table.from.isResting(Distribution::Blocks) && table.to == table.from
                 ? Check()
                 : "expected computed blocks to be walked";
    case TableKind::Copy:
      return table.from.copiesTo(table.to) ? Check() : "no value is copied between its places";
    case TableKind::Message:
      return table.from.travelsTo(table.to) ? Check() : "its places are not the ends of one move";
    }
    return "unknown kind";
  }

  /// What starts move is expanded, too; the rest of the program is validateProgram's.
  Check command(const Command &command, int64_t) {
    if (command.kind != CommandKind::Start)
      return {};
    // At most, each of a group's elements goes to every rank of its mesh.
    int64_t bytes = 0;
    for (int64_t index : command.tables) {
      if (!inside(index, plan.tables) || at(plan.tables, index).kind != TableKind::Message)
        return "table " + std::to_string(index) + " is not a message table";
      if (!travelTogether(plan, at(plan.tables, command.tables[0]).from,
                          at(plan.tables, index).from))
        return "expected values of which the same ranks share copies";
      const Table &table = at(plan.tables, index);
      const Group &moved = at(plan.groups, at(plan.segments, table.from.segment).group);
      int64_t most = product(moved.blockCount(), moved.rows() * moved.cols(), kMaxElements);
      most = product(most, static_cast<int64_t>(at(plan.meshes, moved.mesh).ranks.size()),
                     kMaxMessage);
      bytes += product(most, table.elementBytes, kMaxMessage - bytes);
      if (bytes > kMaxMessage)
        return "expected at most " + std::to_string(kMaxMessage) +
               " bytes for all ranks, found more";
    }
    return {};
  }

  Check pool(const Pool &pool, int64_t) { return checkPool(plan, pool); }

  template <typename T> static const T &at(const std::vector<T> &list, int64_t index) {
    return list[static_cast<size_t>(index)];
  }

  const Plan &plan;
  std::string error;
  std::map<int64_t, std::set<int64_t>> partsOf; // per first group of its parameters
};

} // namespace

std::string validate(const Plan &plan) { return Validator(plan).run(); }

} // namespace stepc::plan
