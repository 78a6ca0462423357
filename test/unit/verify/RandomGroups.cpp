//===- RandomGroups.cpp - Meshes and groups drawn at random ----------------===//

#include "RandomGroups.h"

#include "runtime/geometry/Geometry.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <utility>

using namespace stepc;
using namespace stepc::test;

namespace {

using plan::Placement;
using plan::PlacementKind;

std::string attributeText(const Placement &placement) {
  std::string dim = std::to_string(placement.dim), factor = std::to_string(placement.factor);
  switch (placement.kind) {
  case PlacementKind::Replicate:
    return "#optim.replicate";
  case PlacementKind::Shard:
    return "#optim.shard<" + dim + ">";
  case PlacementKind::StridedShard:
    return "#optim.strided_shard<" + dim + ", " + factor + ">";
  case PlacementKind::InterleavedShard:
    return "#optim.interleaved_shard<" + dim + ", " + factor + ">";
  case PlacementKind::Owned:
    return "#optim.owned<" + std::to_string(placement.owner) + ">";
  case PlacementKind::PartialSum:
    return "#optim.partial_sum";
  case PlacementKind::PartialAverage:
    return "#optim.partial_average";
  case PlacementKind::Flat: {
    std::string cuts;
    for (int64_t cut : placement.cuts)
      cuts += (cuts.empty() ? "<" : ", ") + std::to_string(cut);
    return "#optim.flat" + cuts + (cuts.empty() ? "" : ">");
  }
  }
  return "";
}

bool hasChance(Random &random, int64_t percent) { return draw(random, 1, 100) <= percent; }

/// Turns an S(d) that later axes shard again into the _S(d, sf) that says so.
void drawStrided(Random &random, std::vector<Placement> &placements, const plan::Mesh &mesh) {
  for (size_t axis = 0; axis < mesh.sizes.size(); ++axis) {
    Placement &placement = placements[axis];
    int64_t later = 1;
    for (size_t other = axis + 1; other < mesh.sizes.size(); ++other)
      if (placement.kind == PlacementKind::Shard &&
          placements[other].kind == PlacementKind::Shard && placements[other].dim == placement.dim)
        later *= mesh.sizes[other];
    if (later > 1 && hasChance(random, 60))
      placement = {PlacementKind::StridedShard, placement.dim, later};
  }
}

/// Says where the ranges of flat placements begin.
void drawCuts(Random &random, std::vector<Placement> &placements, const std::vector<int64_t> &shape,
              const plan::Mesh &mesh) {
  std::vector<Placement> others = placements;
  Placement *first = nullptr;
  int64_t ranges = 1;
  for (size_t axis = 0; axis < mesh.sizes.size(); ++axis)
    if (placements[axis].kind == PlacementKind::Flat) {
      first = first ? first : &placements[axis];
      others[axis] = {};
      ranges *= mesh.sizes[axis];
    }
  if (!first || hasChance(random, 30) || geometry::checkPlacements(shape, others, mesh))
    return;
  int64_t most = geometry::mostElements(shape, others, mesh);
  first->cuts = {0, most};
  for (int64_t i = 1; i < ranges; ++i)
    first->cuts.push_back(draw(random, 0, most));
  std::sort(first->cuts.begin(), first->cuts.end());
}

class Drawing {
public:
  Drawing(Random &random, std::map<std::string, int> &histogram)
      : random(random), histogram(histogram) {}

  DrawnGroups run() {
    drawMeshes();
    for (int64_t left = draw(random, 1, 3); left > 0; --left)
      drawGroup();
    for (DrawnGroup &drawn : result.groups)
      for (std::vector<int64_t> &blocks : drawn.segments)
        std::shuffle(blocks.begin(), blocks.end(), random);
    return std::move(result);
  }

private:
  bool chance(int64_t percent) { return hasChance(random, percent); }

  void drawMeshes() {
    int64_t count = chance(25) ? 2 : 1;
    for (int64_t i = 0; i < count; ++i) {
      plan::Mesh mesh;
      int64_t axes = draw(random, 1, 3), ranks = 1;
      for (int64_t axis = 0; axis < axes; ++axis) {
        mesh.sizes.push_back(draw(random, 1, axes == 1 ? 5 : 3));
        ranks *= mesh.sizes.back();
      }
      std::vector<int64_t> all(ranks + 3);
      std::iota(all.begin(), all.end(), 0);
      std::shuffle(all.begin(), all.end(), random);
      mesh.ranks.assign(all.begin(), all.begin() + ranks);
      ++histogram["mesh axes " + std::to_string(axes)];
      result.meshes.push_back(mesh);
    }
  }

  void drawGroup() {
    DrawnGroup drawn;
    plan::Group &group = drawn.group;
    drawn.meshIndex = draw(random, 0, int64_t(result.meshes.size()) - 1);
    const plan::Mesh &mesh = result.meshes[drawn.meshIndex];
    drawn.strategy = std::vector<std::string>{"owner", "owner", "gather", "local",
                                              "elementwise"}[draw(random, 0, 4)];
    bool matrix = drawn.strategy != "elementwise";
    if (matrix) {
      group.batchAxes = chance(40) || drawn.strategy == "local" ? 1 : 0;
      group.shape = {draw(random, 1, 7), draw(random, 1, 7)};
      if (chance(8)) // rows of tables are cut at plan::kChunkElements
        group.shape[draw(random, 0, 1)] *= 4000, ++histogram["long"];
      if (drawn.strategy != "local" && chance(20)) { // a convolution
        group.shape[draw(random, 0, 1)] = draw(random, 1, 3);
        for (int64_t more = draw(random, 1, 2); more > 0; --more)
          group.shape.push_back(draw(random, 1, 3));
        group.flatten = group.batchAxes + draw(random, 1, int64_t(group.shape.size()) - 1);
        ++histogram["flattened"];
      }
      if (group.batchAxes)
        group.shape.insert(group.shape.begin(), draw(random, 1, 5));
    } else {
      for (int64_t axes = draw(random, 0, 3); axes > 0; --axes)
        group.shape.push_back(draw(random, 1, 7));
    }
    group.placements =
        drawPlacements(group.shape, mesh, drawn.strategy == "local" ? 1 : group.shape.size());
    if (!matrix && chance(60)) {
      group.gradientPlacements = drawPlacements(group.shape, mesh, group.shape.size());
      if (group.gradientPlacements == group.placements)
        group.gradientPlacements.clear();
      else
        ++histogram["gradient apart"];
    }
    if (!matrix && chance(30))
      drawPartial(group, mesh);
    drawn.parameterCount = draw(random, 1, 4);
    if (matrix && chance(50))
      drawn.stateKind = std::vector<std::string>{"rows", "cols", "one"}[draw(random, 0, 2)];
    group.parameters.resize(drawn.parameterCount);
    drawn.source = result.groups.size();
    if (matrix && chance(30))
      drawDivision(group);
    if (group.division.parts.empty())
      return drawWork(drawn);
    ++histogram["divided"];
    std::map<int64_t, std::vector<int64_t>> bySize; // equal parts mostly share a group
    for (int64_t part = 0, e = group.division.parts.size(); part < e; ++part)
      bySize[chance(80) ? plan::extentOf(group.division.parts[part]) : -1 - part].push_back(part);
    bool isFirst = true;
    for (const auto &[size, parts] : bySize) {
      DrawnGroup one = drawn;
      one.group.parts = parts;
      if (parts.size() > 1)
        ++histogram["several parts"];
      if (!std::exchange(isFirst, false))
        one.strategy =
            std::vector<std::string>{"owner", "owner", "gather", "local"}[draw(random, 0, 3)];
      drawWork(one);
    }
  }

  /// Two or three parts of some runs of rows or columns each.
  void drawDivision(plan::Group &group) {
    bool rows = chance(50);
    int64_t size = rows ? group.rows() : group.cols();
    if (size < 2)
      return;
    if (chance(30)) { // as experts and their projections
      int64_t each = size % 2 == 0 && size < 100 ? draw(random, 1, 2) : size < 100 ? 1 : size / 2;
      each = size % each == 0 ? each : 1;
      group.division.axis = rows ? plan::Division::Rows : plan::Division::Columns;
      for (int64_t begin = 0; begin < size && size / each < 64; begin += each)
        group.division.parts.push_back({{begin, begin + each}});
      return;
    }
    std::set<int64_t> cuts;
    for (int64_t left = draw(random, 1, 5); left > 0; --left)
      cuts.insert(draw(random, 1, size - 1));
    cuts.insert(size);
    std::vector<size_t> partOf(cuts.size());
    auto parts = std::min(cuts.size(), size_t(draw(random, 2, 3)));
    for (size_t run = 0; run < partOf.size(); ++run)
      partOf[run] = run < parts ? run : size_t(draw(random, 0, int64_t(parts) - 1));
    std::shuffle(partOf.begin(), partOf.end(), random);
    group.division.axis = rows ? plan::Division::Rows : plan::Division::Columns;
    group.division.parts.resize(parts);
    int64_t begin = 0;
    size_t run = 0;
    for (int64_t end : cuts) {
      group.division.parts[partOf[run++]].push_back({begin, end});
      begin = end;
    }
  }

  /// Who computes the blocks, and when.
  void drawWork(DrawnGroup drawn) {
    const plan::Group &group = drawn.group;
    const plan::Mesh &mesh = result.meshes[drawn.meshIndex];
    std::vector<plan::ValueKind> states;
    for (auto [name, kind] :
         {std::pair("rows", plan::ValueKind::Rows), std::pair("cols", plan::ValueKind::Cols),
          std::pair("one", plan::ValueKind::One)})
      if (drawn.stateKind == name)
        states.push_back(kind);
    if (drawn.strategy == "local" &&
        !geometry::blocksAreWhole(group, mesh, {}, plan::ShardsKind::Parameter, states))
      drawn.strategy = "gather";
    int64_t blocks = group.blockCount();
    if (drawn.strategy == "owner")
      for (int64_t block = 0; block < blocks; ++block)
        drawn.owners.push_back(draw(random, 0, int64_t(mesh.ranks.size()) - 1));
    drawn.waves = draw(random, 1, 3);
    drawn.segments.resize(drawn.waves);
    for (int64_t block = 0; block < blocks; ++block)
      drawn.segments[draw(random, 0, drawn.waves - 1)].push_back(block);
    ++histogram["strategy " + drawn.strategy];
    ++histogram["waves " + std::to_string(drawn.waves)];
    if (!drawn.stateKind.empty())
      ++histogram["state " + drawn.stateKind];
    if (group.batchAxes)
      ++histogram["batched"];
    for (const Placement &placement : group.placements) {
      std::string text = toString(placement);
      ++histogram["placement " + text.substr(0, text.find('('))];
    }
    result.groups.push_back(drawn);
  }

  std::vector<Placement> drawPlacements(const std::vector<int64_t> &shape, const plan::Mesh &mesh,
                                        int64_t axes) {
    return test::drawPlacements(random, shape, mesh, axes);
  }

  /// Has ranks contribute to the gradient.
  void drawPartial(plan::Group &group, const plan::Mesh &mesh) {
    std::vector<Placement> placements = test::drawPartial(random, group.shape, mesh);
    if (placements.empty())
      return;
    group.gradientPlacements = placements;
    group.reducedPlacements = geometry::reducedPlacements(group, mesh, plan::ShardsKind::Parameter);
    ++histogram["partial gradient"];
  }

  Random &random;
  std::map<std::string, int> &histogram;
  DrawnGroups result;
};

} // namespace

std::string test::attributeText(const std::vector<plan::Placement> &placements) {
  std::string text;
  for (const Placement &placement : placements)
    text += (text.empty() ? "" : ", ") + ::attributeText(placement);
  return "[" + text + "]";
}

std::vector<Placement> test::drawPlacements(Random &random, const std::vector<int64_t> &shape,
                                            const plan::Mesh &mesh, int64_t axes) {
  auto chance = [&](int64_t percent) { return hasChance(random, percent); };
  for (int attempt = 0; attempt < 50; ++attempt) {
    std::vector<Placement> result;
    bool mayBeFlat = axes == int64_t(shape.size()) && chance(20);
    for (int64_t size : mesh.sizes) {
      Placement &placement = result.emplace_back();
      if (chance(6))
        placement = {PlacementKind::Owned, 0, 1, draw(random, 0, size - 1)};
      else if (mayBeFlat && chance(60))
        placement.kind = PlacementKind::Flat;
      else if (axes > 0 && chance(15))
        placement = {PlacementKind::InterleavedShard, draw(random, 0, axes - 1),
                     draw(random, 1, 3)};
      else if (axes > 0 && chance(75))
        placement = {PlacementKind::Shard, draw(random, 0, axes - 1)};
    }
    drawStrided(random, result, mesh);
    drawCuts(random, result, shape, mesh);
    if (!geometry::checkPlacements(shape, result, mesh))
      return result;
  }
  return std::vector<Placement>(mesh.sizes.size());
}

std::vector<Placement> test::drawPartial(Random &random, const std::vector<int64_t> &shape,
                                         const plan::Mesh &mesh) {
  std::vector<Placement> placements = drawPlacements(random, shape, mesh, int64_t(shape.size()));
  bool isPartial = false;
  for (size_t axis = 0; axis < mesh.sizes.size(); ++axis)
    if (mesh.sizes[axis] > 1 && (axis == 0 || hasChance(random, 60))) {
      placements[axis] = {hasChance(random, 50) ? PlacementKind::PartialSum
                                                : PlacementKind::PartialAverage};
      isPartial = true;
    }
  bool canBe = isPartial && !geometry::checkPlacements(shape, placements, mesh, true);
  return canBe ? placements : std::vector<Placement>();
}

DrawnGroups test::drawGroups(Random &random, std::map<std::string, int> &histogram) {
  return Drawing(random, histogram).run();
}
