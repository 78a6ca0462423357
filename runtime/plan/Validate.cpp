//===- Validate.cpp - What makes a plan safe to expand -------------------===//
//
// A library's bytes may be damaged, and the compiler may be wrong: whatever
// passes here can be expanded without an index out of range or an overflow,
// into tables whose size follows the size of the model.
//
//===----------------------------------------------------------------------===//

#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Checks.h"
#include "runtime/plan/Tables.h"

#include <algorithm>

namespace stepc::plan {

namespace {

// Far above any model, far below what would overflow or exhaust memory in
// `expand`.
constexpr int64_t kMaxElements = int64_t(1) << 42;   // of a group
constexpr int64_t kMaxRectangles = int64_t(1) << 24; // of one shard; also blocks of a group
constexpr int64_t kMaxFactor = int64_t(1) << 20;     // of a strided placement

class Validator {
public:
  explicit Validator(const Plan &plan) : plan(plan) {}

  std::string run() {
    if (plan.arenaBytes < 0 || plan.arenaBytes > kMostArenaBytes)
      return "the workspace has " + std::to_string(plan.arenaBytes) + " bytes";
    if (plan.scratchBytes < 0 || plan.scratchBytes > kMostArenaBytes)
      return "the scratch has " + std::to_string(plan.scratchBytes) + " bytes";
    each("mesh", plan.meshes, &Validator::mesh);
    each("rule", plan.rules, &Validator::rule);
    each("route", plan.routes, &Validator::route);
    each("group", plan.groups, &Validator::group);
    each("parameter", plan.parameters, &Validator::parameter);
    each("segment", plan.segments, &Validator::segment);
    each("table", plan.tables, &Validator::table);
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
    if (!known(group.parameterType, DType::F64) || !known(group.gradientType, DType::F64) ||
        !known(group.strategy, Strategy::Gather))
      return "unknown type or strategy";
    if (Check message = shape(group); !message.empty())
      return message;
    if (Check message = placements(group); !message.empty())
      return message;
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      if (!inside(group.parameters[i], plan.parameters))
        return outside("parameter", group.parameters[i]);
      const Parameter &parameter = at(plan.parameters, group.parameters[i]);
      if (parameter.group != index || parameter.indexInGroup != static_cast<int64_t>(i))
        return "parameter " + parameter.name + " says that it stands elsewhere";
    }
    return strategy(group);
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

  Check placements(const Group &group) {
    const Mesh &mesh = at(plan.meshes, group.mesh);
    if (group.placements.size() != mesh.sizes.size())
      return "expected a placement per axis of mesh " + mesh.name + ", found " +
             std::to_string(group.placements.size());
    std::vector<int64_t> runs(group.shape.size(), 1);
    for (const Placement &placement : group.placements) {
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

  Check strategy(const Group &group) {
    const Mesh &mesh = at(plan.meshes, group.mesh);
    if (group.strategy != Strategy::Elementwise &&
        static_cast<int64_t>(group.shape.size()) > group.batchAxes + 2)
      return "expected strategy elementwise for axes that are neither a matrix "
             "nor declared";
    if (group.strategy == Strategy::Local && !geometry::blocksAreWhole(group, mesh))
      return "expected whole blocks on every rank for strategy local";
    if (group.strategy != Strategy::Owner)
      return group.owners.empty() ? Check() : Check("owners are for strategy owner");
    if (static_cast<int64_t>(group.owners.size()) != group.blockCount())
      return "expected " + std::to_string(group.blockCount()) + " owners, found " +
             std::to_string(group.owners.size());
    for (int64_t owner : group.owners)
      if (!inside(owner, mesh.ranks))
        return "owner " + std::to_string(owner) + " is outside of mesh " + mesh.name;
    return {};
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
    if (!known(place.value, ValueKind::One) || !known(place.from, Distribution::Blocks) ||
        !known(place.to, Distribution::Blocks) || !known(place.end, End::Received))
      return "unknown value, distribution or end of a move";
    if (!inside(place.segment, plan.segments))
      return outside("segment", place.segment);
    if (place.isPacked() == (place.from == place.to))
      return "expected two distributions of a move, and one of what is at rest";
    return {};
  }

  Check table(const Table &table, int64_t) {
    for (const Place &each : {table.from, table.to})
      if (Check message = place(each); !message.empty())
        return message;
    if (table.elementBytes < 0 || table.elementBytes > 8)
      return "elements have " + std::to_string(table.elementBytes) + " bytes";
    bool moves = table.kind == TableKind::Copy || table.kind == TableKind::Message;
    if (moves && table.elementBytes < 1)
      return "expected the bytes of an element";
    switch (table.kind) {
    case TableKind::ShardChunks:
      if (!table.from.isResting(Distribution::Shards))
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

  template <typename T> static const T &at(const std::vector<T> &list, int64_t index) {
    return list[static_cast<size_t>(index)];
  }

  const Plan &plan;
  std::string error;
};

} // namespace

std::string validate(const Plan &plan) { return Validator(plan).run(); }

} // namespace stepc::plan
