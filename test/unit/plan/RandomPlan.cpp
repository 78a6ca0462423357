//===- RandomPlan.cpp - Plans drawn from a seed ---------------------------===//

#include "test/unit/plan/RandomPlan.h"
#include "runtime/geometry/Geometry.h"

#include <algorithm>
#include <numeric>

namespace stepc::test {

using namespace plan;

namespace {

class Drawer {
public:
  Drawer(uint64_t seed, Histogram &histogram) : random(seed), histogram(histogram) {}

  Drawn run() {
    Plan &plan = drawn.plan;
    plan.name = "drawn";
    plan.rules = {{"Rule", {"lr"}, {{"m", DType::F32, ValueKind::Full, 0.0, false}}}};
    plan.routes = {{"Rule", 0, {0.1}, MissingGrad::Error}};
    int64_t meshes = range(1, 2), groups = range(1, 3);
    for (int64_t i = 0; i < meshes; ++i)
      mesh();
    for (int64_t i = 0; i < groups; ++i)
      group(static_cast<int64_t>(plan.groups.size()));
    // A plan lists parameters in the trainer's order, not group by group.
    std::vector<int64_t> order(plan.parameters.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Parameter> shuffled(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      shuffled[static_cast<size_t>(order[i])] = plan.parameters[i];
    for (Group &group : plan.groups)
      for (int64_t &parameter : group.parameters)
        parameter = order[static_cast<size_t>(parameter)];
    plan.parameters = shuffled;
    for (size_t i = 0; i < plan.groups.size(); ++i)
      segments(static_cast<int64_t>(i));
    return std::move(drawn);
  }

private:
  int64_t range(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  bool chance(int percent) { return range(1, 100) <= percent; }
  void count(const std::string &trait) { ++histogram[trait]; }

  void mesh() {
    Mesh mesh;
    int64_t axes = chance(10) ? range(4, 5) : range(1, 3), total = 1;
    for (int64_t axis = 0; axis < axes; ++axis) {
      int64_t size = range(1, 5);
      if (total * size > 24)
        size = 1;
      total *= size;
      mesh.axes.push_back("a" + std::to_string(axis));
      mesh.sizes.push_back(size);
    }
    // Ranks in any order and with gaps: positions are not world ranks.
    std::vector<int64_t> all(static_cast<size_t>(total + range(0, 4)));
    std::iota(all.begin(), all.end(), range(0, 3));
    if (chance(60))
      std::shuffle(all.begin(), all.end(), random);
    mesh.ranks.assign(all.begin(), all.begin() + total);
    mesh.name = "mesh" + std::to_string(drawn.plan.meshes.size());
    drawn.plan.meshes.push_back(mesh);
  }

  void group(int64_t index) {
    Plan &plan = drawn.plan;
    Group g;
    g.name = "group" + std::to_string(index);
    g.mesh = range(0, static_cast<int64_t>(plan.meshes.size()) - 1);
    const Mesh &mesh = plan.meshes[static_cast<size_t>(g.mesh)];
    int64_t axes = std::min<int64_t>(4, range(0, 5));
    g.batchAxes = axes > 2 ? (chance(80) ? axes - 2 : 0) : axes == 2 && chance(10) ? 1 : 0;
    if (axes > 2 && chance(35)) {
      g.batchAxes = axes > 3 && chance(40) ? 1 : 0;
      g.flatten = range(g.batchAxes + 1, axes - 1);
    }
    bool collapsed = g.flatten == 0 && axes > g.batchAxes + 2;
    for (int64_t axis = 0; axis < axes; ++axis)
      g.shape.push_back(chance(2) ? 0 : range(1, axis < axes - 2 ? 4 : 13));
    if (axes == 2 && chance(8)) // large enough to be split
      g.shape = {range(90, 150), range(150, 260)};
    bool local = !collapsed && chance(20);
    int64_t matrix = g.flatten ? axes - g.batchAxes : std::min<int64_t>(2, axes - g.batchAxes);
    g.placements = drawPlacements(random, g.shape, mesh, local ? axes - matrix : axes, !local);

    auto parameters = range(1, 4);
    for (int64_t i = 0; i < parameters; ++i) {
      g.parameters.push_back(static_cast<int64_t>(plan.parameters.size()));
      plan.parameters.push_back({g.name + "." + std::to_string(i), 0, index, i});
    }
    if (!collapsed && axes - g.batchAxes >= 2 && chance(30))
      divide(g);
    g.specified = !g.division.parts.empty() && chance(50);
    g.flattenSpecified = g.flatten && chance(50);
    for (const std::vector<int64_t> &parts : partsOfGroups(g)) {
      g.parts = parts;
      if (parts.size() > 1)
        count("several parts");
      g.name = "group" + std::to_string(plan.groups.size());
      addGroup(g, mesh, local);
    }
  }

  /// Parts of equal size together, most of them.
  std::vector<std::vector<int64_t>> partsOfGroups(const Group &g) {
    std::vector<std::vector<int64_t>> result;
    const auto &all = g.division.parts;
    for (size_t part = 0; part < all.size(); ++part) {
      auto same = std::find_if(result.begin(), result.end(), [&](const auto &parts) {
        return extentOf(all[static_cast<size_t>(parts[0])]) == extentOf(all[part]);
      });
      if (same == result.end() || chance(20))
        result.push_back({static_cast<int64_t>(part)});
      else
        same->push_back(static_cast<int64_t>(part));
    }
    if (result.empty())
      result.push_back({}); // whole matrices
    return result;
  }

  /// Cuts rows or columns into runs, and gives these to two parts or more.
  void divide(Group &g) {
    Division division{chance(50) ? Division::Rows : Division::Columns, {}};
    int64_t size = division.axis == Division::Rows ? g.rows() : g.cols();
    if (size < 2)
      return;
    if (chance(35)) { // as many as there are of one size, as of experts and their projections
      std::vector<int64_t> sizes;
      for (int64_t each = 1; each <= size / 2; ++each)
        if (size % each == 0)
          sizes.push_back(each);
      int64_t each = sizes[static_cast<size_t>(range(0, static_cast<int64_t>(sizes.size()) - 1))];
      for (int64_t begin = 0; begin < size; begin += each)
        division.parts.push_back({{begin, begin + each}});
      count("equal blocks");
      g.division = std::move(division);
      return;
    }
    division.parts.resize(static_cast<size_t>(range(2, std::min<int64_t>(4, size))));
    std::vector<int64_t> part(static_cast<size_t>(size));
    int64_t run = range(1, 4), parts = static_cast<int64_t>(division.parts.size()), of = 0;
    for (int64_t i = 0; i < size; ++i) {
      of = i % run == 0 ? range(0, parts - 1) : of;
      part[static_cast<size_t>(i)] = i < parts ? i : of; // each has one at least
    }
    for (int64_t i = 0; i < size; ++i) {
      std::vector<Span> &spans = division.parts[static_cast<size_t>(part[static_cast<size_t>(i)])];
      if (!spans.empty() && spans.back().end == i && chance(90))
        ++spans.back().end;
      else
        spans.push_back({i, i + 1});
    }
    count(division.axis == Division::Rows ? "divided rows" : "divided columns");
    g.division = std::move(division);
  }

  void addGroup(Group g, const Mesh &mesh, bool local) {
    auto axes = static_cast<int64_t>(g.shape.size());
    bool collapsed = g.flatten == 0 && axes > g.batchAxes + 2;
    // Values of all kinds are drawn.
    bool mayBeLocal = geometry::blocksAreWhole(g, mesh, {}, ShardsKind::Parameter,
                                               {ValueKind::Rows, ValueKind::Cols, ValueKind::One});
    Strategy strategy = collapsed || chance(8)                ? Strategy::Elementwise
                        : mayBeLocal && (local || chance(30)) ? Strategy::Local
                        : chance(65)                          ? Strategy::Owner
                                                              : Strategy::Gather;
    setStrategy(g, mesh, strategy,
                [&](int64_t) { return range(0, static_cast<int64_t>(mesh.ranks.size()) - 1); });
    constexpr const char *kNames[] = {"elementwise", "local", "owner", "gather"};
    count(std::string("strategy ") + kNames[static_cast<size_t>(strategy)]);
    traits(g, mesh);
    drawn.plan.groups.push_back(g);
  }

  void segments(int64_t index) {
    Plan &plan = drawn.plan;
    const Group &g = plan.groups[static_cast<size_t>(index)];
    std::vector<int64_t> blocks(static_cast<size_t>(g.blockCount()));
    std::iota(blocks.begin(), blocks.end(), 0);
    if (chance(40)) {
      plan.segments.push_back({g.name + ".all", index, {}, true});
      count("segment all");
    } else {
      // Waves take blocks in the order of their cost: any order.
      if (chance(50))
        std::shuffle(blocks.begin(), blocks.end(), random);
      size_t cut = static_cast<size_t>(range(0, static_cast<int64_t>(blocks.size())));
      auto middle = blocks.begin() + static_cast<int64_t>(cut);
      plan.segments.push_back({g.name + ".0", index, {blocks.begin(), middle}, false});
      plan.segments.push_back({g.name + ".1", index, {middle, blocks.end()}, false});
      count("segment list");
    }
    for (size_t s = 0; s < plan.segments.size(); ++s)
      if (plan.segments[s].group == index)
        for (int64_t kind = 0; kind < 4; ++kind)
          drawn.values.push_back(addTables(plan, static_cast<int64_t>(s),
                                           kNamedKinds[static_cast<size_t>(kind)].second));
  }

  void traits(const Group &g, const Mesh &mesh) {
    count("mesh axes " + std::to_string(mesh.sizes.size()));
    count("tensor axes " + std::to_string(g.shape.size()));
    for (const Placement &p : g.placements) {
      std::string text = toString(p);
      count("placement " + text.substr(0, text.find('(')));
    }
    std::vector<int64_t> first =
        geometry::localShape(g.shape, g.placements, mesh, geometry::coordinates(mesh, 0));
    bool uneven = false, empty = false;
    for (size_t position = 0; position < mesh.ranks.size(); ++position) {
      auto coords = geometry::coordinates(mesh, static_cast<int64_t>(position));
      auto shape = geometry::localShape(g.shape, g.placements, mesh, coords);
      uneven |= shape != first;
      empty |= geometry::elements(shape) == 0;
    }
    if (uneven)
      count("uneven");
    if (empty)
      count("empty shard");
    if (g.batchAxes > 0)
      count("batched");
    if (g.flatten > 0)
      count("flattened");
    if (geometry::elements(g.shape) > kChunkElements)
      count("large");
  }

  std::mt19937_64 random;
  Histogram &histogram;
  Drawn drawn;
};

} // namespace

Drawn drawPlan(uint64_t seed, Histogram &histogram) { return Drawer(seed, histogram).run(); }

Drawn simplePlan(std::vector<int64_t> sizes, std::vector<Placement> placements,
                 std::vector<int64_t> shape, int64_t batchAxes, Strategy strategy,
                 int64_t parameters) {
  Drawn drawn;
  Plan &plan = drawn.plan;
  plan.name = "simple";
  plan.rules = {{"Rule", {"lr"}, {{"m", DType::F32, ValueKind::Full, 0.0, false}}}};
  plan.routes = {{"Rule", 0, {0.1}, MissingGrad::Error}};
  Mesh mesh{"mesh", std::vector<std::string>(sizes.size(), "a"), sizes, {}};
  mesh.ranks.resize(static_cast<size_t>(geometry::elements(sizes)));
  std::iota(mesh.ranks.begin(), mesh.ranks.end(), 0);
  Group group;
  group.name = "group";
  group.shape = shape;
  group.batchAxes = batchAxes;
  group.placements = placements;
  for (int64_t i = 0; i < parameters; ++i) {
    group.parameters.push_back(i);
    plan.parameters.push_back({"p" + std::to_string(i), 0, 0, i});
  }
  setStrategy(group, mesh, strategy,
              [&](int64_t block) { return block % static_cast<int64_t>(mesh.ranks.size()); });
  plan.meshes = {mesh};
  plan.groups = {group};
  plan.segments = {{"all", 0, {}, true}};
  for (int64_t kind = 0; kind < 4; ++kind)
    drawn.values.push_back(addTables(plan, 0, kNamedKinds[static_cast<size_t>(kind)].second));
  return drawn;
}

void setShards(Plan &plan, Distribution::Kind kind) {
  for (Table &table : plan.tables)
    for (Place *place : {&table.from, &table.to})
      for (Distribution *each : {&place->from, &place->to})
        each->kind = each->isShards() ? kind : each->kind;
}

Plan richPlan() {
  constexpr Placement R{}, S0{PlacementKind::Shard, 0, 1};
  Plan plan =
      simplePlan({2, 2}, {{PlacementKind::StridedShard, 0, 2}, S0}, {6, 4}, 0, Strategy::Owner, 3)
          .plan;
  plan.chip = "znver5";
  plan.numerics = "fast";
  plan.arenaBytes = 4096;
  plan.scratchBytes = 128;
  plan.chunkElements = 100;
  plan.programHash = 0xfedcba9876543210;
  plan.rules[0].states.push_back({"w", DType::F64, ValueKind::Cols, -1.5, true});
  plan.rules[0].definition = 0x0123456789abcdef;
  plan.routes[0].defaults = {std::numeric_limits<double>::quiet_NaN()};
  plan.routes[0].missingGrad = MissingGrad::Zero;
  plan.groups[0].parameterType = DType::BF16;
  plan.groups[0].gradientType = DType::F16;
  plan.groups[0].gradientPlacements = {R, R};
  plan.groups[0].statePlacements = {S0, R};
  plan.groups[0].division = {Division::Columns, {{{0, 1}, {1, 4}}}};
  plan.groups[0].parts = {0};
  plan.segments.push_back({"first", 0, {2, 0}, false});
  using enum Distribution::Kind;
  plan.tables.push_back({TableKind::Message,
                         {1, ValueKind::Rows, Blocks, Shards, End::Sent},
                         {0, ValueKind::Rows, Blocks, Shards, End::Received},
                         2});
  setShards(plan, StateShards);
  auto last = static_cast<int64_t>(plan.tables.size()) - 1;
  plan.kernels = {{"scalars", {}},
                  {"double", LaunchShape{Grid::Resident, 384, 2, 1024, 204800}}};
  Operand place{OperandKind::Workspace, 64, 128}, scalars{OperandKind::Scalars, 64, 12};
  Operand whole{OperandKind::Batch, 64, 128, -1, 0, 6, 4, DType::BF16};
  Operand square{OperandKind::Batch, 192, 128, -1, 0, 4, 4, DType::F16};
  Product product;
  product.table = 1;
  product.kernels = {{1, 7}};
  product.scratchBytes = 64;
  product.lhs = product.rhs = whole;
  product.addend = product.out = square;
  product.accumulation = Accumulation::RoundedChain;
  product.alpha = 0.5;
  product.beta = -2;
  product.shift = 1.5;
  product.transposeLhs = product.symmetric = true;
  plan.commands = {
      DispatchParameters{0, {{0, {scalars}}}},
      Start{CollectiveKind::AllGather, {0, {{1, 1, 2}}}, {last, last}, place, place, {}}, product,
      Await{0, {}}, AdvanceSteps{}};
  return plan;
}

} // namespace stepc::test
