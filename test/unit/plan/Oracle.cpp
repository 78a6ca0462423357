//===- Oracle.cpp - Shards element by element, and the tables to try ------===//

#include "test/unit/plan/Simulation.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace stepc::test {

using namespace plan;

namespace {

using Ids = std::vector<int64_t>;

std::vector<Ids> split(const Ids &list, size_t count) {
  std::vector<Ids> result(count);
  size_t length = (list.size() + count - 1) / count;
  for (size_t i = 0; i < list.size(); ++i)
    result[i / length].push_back(list[i]);
  return result;
}

/// The coordinates of a position along the axes of a mesh.
Ids coordinatesOf(const Mesh &mesh, int64_t position) {
  Ids coords(mesh.sizes.size());
  for (size_t axis = coords.size(); axis-- > 0; position /= mesh.sizes[axis])
    coords[axis] = position % mesh.sizes[axis];
  return coords;
}

/// The indices of tensor axis `dim` that a rank holds.
Ids axisIndices(const Group &group, const Mesh &mesh, int64_t position, int64_t dim) {
  Ids list(static_cast<size_t>(group.shape[static_cast<size_t>(dim)]));
  std::iota(list.begin(), list.end(), 0);
  Ids coords = coordinatesOf(mesh, position);
  for (size_t axis = 0; axis < coords.size(); ++axis) {
    const Placement &p = group.placements[axis];
    if (!p.isShard() || p.dim != dim)
      continue;
    size_t factor = p.kind == PlacementKind::Shard ? 1 : static_cast<size_t>(p.factor);
    Ids next;
    for (const Ids &piece : split(list, factor)) {
      Ids mine =
          split(piece, static_cast<size_t>(mesh.sizes[axis]))[static_cast<size_t>(coords[axis])];
      next.insert(next.end(), mine.begin(), mine.end());
    }
    list = next;
  }
  return list;
}

/// What flat placements leave of a shard.
Ids flatPart(const Group &group, const Mesh &mesh, int64_t position, const Ids &shard) {
  Ids coords = coordinatesOf(mesh, position), cuts;
  size_t ranks = 1, rank = 0, own = 0, others = 1, other = 0;
  bool isFlat = false;
  for (size_t axis = 0; axis < coords.size(); ++axis)
    if (const Placement &p = group.placements[axis]; p.kind == PlacementKind::Flat) {
      auto size = static_cast<size_t>(mesh.sizes[axis]), at = static_cast<size_t>(coords[axis]);
      isFlat = true;
      ranks *= size;
      rank = rank * size + at;
      if (!p.cuts.empty()) {
        cuts = p.cuts;
        own = at;
      } else {
        others *= size;
        other = other * size + at;
      }
    }
  if (!isFlat)
    return shard;
  if (cuts.empty())
    return split(shard, ranks)[rank];
  bool ofAll = cuts.size() == ranks + 1;
  size_t range = ofAll ? rank : own;
  Ids result;
  for (size_t i = 0; i < shard.size(); ++i)
    if (static_cast<int64_t>(i) >= cuts[range] && static_cast<int64_t>(i) < cuts[range + 1])
      result.push_back(shard[i]);
  return ofAll ? result : split(result, others)[other];
}

bool isOwnedElsewhere(const Group &group, const Mesh &mesh, int64_t position) {
  Ids coords = coordinatesOf(mesh, position);
  for (size_t axis = 0; axis < coords.size(); ++axis)
    if (group.placements[axis].kind == PlacementKind::Owned &&
        group.placements[axis].owner != coords[axis])
      return true;
  return false;
}

/// Of a row or column of divided matrices: which of the group's parts has it, and its place there; -1: none.
std::pair<int64_t, int64_t> placeInParts(const Group &group, int64_t index) {
  for (size_t number = 0; number < group.parts.size(); ++number) {
    int64_t place = 0;
    for (const Span &span : group.division.parts[static_cast<size_t>(group.parts[number])])
      for (int64_t i = span.begin; i < span.end; ++i, ++place)
        if (i == index)
          return {static_cast<int64_t>(number), place};
  }
  return {-1, -1};
}

/// An element of a shard: its matrix, row and column, and the part where there is an element per part.
struct Element {
  int64_t batch = 0, row = 0, col = 0, part = -1;
};

/// Every element so far with each index of one more axis, of `size`.
std::vector<Element> withAxis(const std::vector<Element> &elements, int64_t Element::*field,
                              const Ids &held, int64_t size) {
  std::vector<Element> result;
  for (Element element : elements)
    for (int64_t before = element.*field; int64_t index : held) {
      element.*field = before * size + index;
      result.push_back(element);
    }
  return result;
}

} // namespace

Extent blockExtent(const Group &group, ValueKind kind) {
  bool rows = kind == ValueKind::Full || kind == ValueKind::Rows;
  bool cols = kind == ValueKind::Full || kind == ValueKind::Cols;
  return {rows ? group.rows() : 1, cols ? group.cols() : 1};
}

std::vector<int64_t> shardIdentities(const Group &group, const Mesh &mesh, int64_t position,
                                     ValueKind kind) {
  auto axes = static_cast<int64_t>(group.shape.size());
  if (isOwnedElsewhere(group, mesh, position))
    return {};
  // Where rows and columns begin.
  int64_t rows = axes - std::min<int64_t>(2, axes - group.batchAxes);
  int64_t cols = axes > group.batchAxes ? axes - 1 : axes;
  if (group.flatten) {
    rows = group.batchAxes;
    cols = group.flatten;
  }
  bool divides = !group.parts.empty(), byRows = group.division.axis == Division::Rows;
  bool keepsRows = kind == ValueKind::Full || kind == ValueKind::Rows;
  bool keepsCols = kind == ValueKind::Full || kind == ValueKind::Cols;
  std::vector<Element> elements{{}};
  for (int64_t axis = 0; axis < axes; ++axis) {
    Ids held = axisIndices(group, mesh, position, axis);
    int64_t size = group.shape[static_cast<size_t>(axis)];
    bool isRow = axis >= rows && axis < cols, isCol = axis >= cols;
    if (isRow ? keepsRows : isCol ? keepsCols : axis < group.batchAxes || kind != ValueKind::One) {
      elements = withAxis(elements,
                          isRow   ? &Element::row
                          : isCol ? &Element::col
                                  : &Element::batch,
                          held, size);
    } else if (divides && (byRows ? axis == rows : axis == cols) && (isRow || isCol)) {
      Ids parts(group.division.parts.size()); // one value per part, on every rank
      std::iota(parts.begin(), parts.end(), 0);
      for (Element &element : elements)
        element.part = 0;
      elements = withAxis(elements, &Element::part, parts, 0);
    }
  }
  Extent extent = blockExtent(group, kind);
  auto count = std::max<int64_t>(1, static_cast<int64_t>(group.parts.size()));
  Ids ids;
  for (Element element : elements) {
    int64_t number = 0;
    if (divides && element.part >= 0) {
      auto found = std::find(group.parts.begin(), group.parts.end(), element.part);
      number = found == group.parts.end() ? -1 : found - group.parts.begin();
    } else if (divides) {
      int64_t &index = byRows ? element.row : element.col;
      std::tie(number, index) = placeInParts(group, index);
    }
    ids.push_back(number < 0 ? -1
                             : ((element.batch * count + number) * extent.rows + element.row) *
                                       extent.cols +
                                   element.col);
  }
  return kind == ValueKind::Full ? flatPart(group, mesh, position, ids) : ids;
}

namespace {

int64_t along(const Mesh &mesh, const Factor &factor, int64_t position) {
  return coordinatesOf(mesh, position)[static_cast<size_t>(factor.axis)] / factor.stride %
         factor.size;
}

/// Whether two positions differ along resolved factors alone.
bool agree(const Group &group, const Mesh &mesh, int64_t a, int64_t b) {
  Ids left = coordinatesOf(mesh, a), other = coordinatesOf(mesh, b);
  for (const Hop &hop : group.hops)
    for (const auto *factors : {&hop.owned, &hop.replicated})
      for (const Factor &factor : *factors) {
        auto axis = static_cast<size_t>(factor.axis);
        left[axis] -= along(mesh, factor, a) * factor.stride;
        other[axis] -= along(mesh, factor, b) * factor.stride;
      }
  return left == other;
}

} // namespace

std::vector<int64_t> computedBlocks(const Group &group, const Mesh &mesh, int64_t position,
                                    const std::vector<int64_t> &blocks) {
  if (!group.computes)
    return {};
  std::set<int64_t> held;
  int64_t size =
      group.rows() * group.cols(); // of a block; of one without elements its single value is held
  for (int64_t holder = 0; holder < static_cast<int64_t>(mesh.ranks.size()); ++holder)
    if (agree(group, mesh, position, holder))
      for (int64_t element :
           shardIdentities(group, mesh, holder, size ? ValueKind::Full : ValueKind::One))
        if (element >= 0) // -1: another part's
          held.insert(element / std::max<int64_t>(size, 1));
  Ids result;
  for (int64_t block : blocks) {
    bool here = held.count(block % group.blocksPerParameter()) > 0;
    for (const Hop &hop : group.hops)
      for (const Factor &factor : hop.owned)
        here &= along(mesh, factor, position) ==
                along(mesh, factor, hop.base[static_cast<size_t>(block)]);
    if (here)
      result.push_back(block);
  }
  return result;
}

ValueTables addTables(Plan &plan, int64_t segment, ValueKind kind) {
  ValueTables t;
  t.segment = segment;
  t.kind = kind;
  auto add = [&](TableKind table, const Place &from, const Place &to) {
    plan.tables.push_back({table, from, to, 4});
    return static_cast<int64_t>(plan.tables.size()) - 1;
  };
  using enum TableKind;
  using enum Distribution::Kind;
  Place shards = t.shards(), blocks = t.blocks();
  Place sent = t.packed(Shards, End::Sent), received = t.packed(Shards, End::Received);
  Place backSent = t.packed(Blocks, End::Sent), backReceived = t.packed(Blocks, End::Received);
  const Group &group =
      plan.groups[static_cast<size_t>(plan.segments[static_cast<size_t>(segment)].group)];
  t.untouched = add(ShardChunks, shards, shards);
  t.compute = add(BlockChunks, blocks, blocks);
  if (!group.hops.empty()) {
    t.pack = add(ShardChunks, shards, sent);
    t.packCopy = add(Copy, shards, sent);
    t.gather = add(TableKind::Message, sent, received);
    t.place = add(Copy, received, blocks);
    t.unplace = add(Copy, blocks, backSent);
    t.scatter = add(TableKind::Message, backSent, backReceived);
    t.unpack = add(ShardChunks, shards, backReceived);
    t.unpackCopy = add(Copy, backReceived, shards);
  }
  if (group.computes && (group.hops.empty() || group.hops[0].owned.empty())) {
    t.in = add(ShardChunks, shards, blocks);
    t.inCopy = add(Copy, shards, blocks);
    t.out = add(ShardChunks, shards, blocks);
    t.outCopy = add(Copy, blocks, shards);
  }
  if (kind == ValueKind::Full)
    t.lines = add(LineChunks, shards, shards);
  return t;
}

std::vector<RankTables> expandAll(const Plan &plan) {
  std::vector<RankTables> result;
  Expander expander(plan);
  for (size_t rank = 0; rank < plan.world().size(); ++rank)
    result.push_back(expander.tables(static_cast<int64_t>(rank)));
  return result;
}

} // namespace stepc::test
