//===- CheckPlacements.cpp - Whether a tensor can be placed so -------------===//

#include "runtime/geometry/Flat.h"
#include "runtime/text/Plural.h"

#include <algorithm>
#include <map>
#include <set>

namespace stepc::geometry {

using plan::Mesh;
using plan::Placement;
using plan::PlacementKind;

namespace {

std::string text(int64_t number) { return std::to_string(number); }

int64_t chunkLength(int64_t size, int64_t count, int64_t index) {
  auto [begin, end] = chunk(size, count, index);
  return end - begin;
}

class Checker {
public:
  Checker(const std::vector<int64_t> &shape, const std::vector<Placement> &placements,
          const Mesh &mesh, bool mayBePartial)
      : shape(shape), placements(placements), mesh(mesh), mayBePartial(mayBePartial),
        lengths(shape.size()), pasts(shape.size(), 0) {
    for (size_t dim = 0; dim < shape.size(); ++dim)
      lengths[dim] = {shape[dim]};
  }

  std::optional<WrongPlacement> run() {
    auto checkAll = [&](auto check) -> std::optional<WrongPlacement> {
      for (size_t axis = 0; axis < placements.size(); ++axis)
        if (std::string wrong = (this->*check)(axis); !wrong.empty())
          return WrongPlacement{axis, wrong + ", found '" + toString(placements[axis]) + "'"};
      return std::nullopt;
    };
    if (auto wrong = checkAll(&Checker::check))
      return wrong;
    if (auto wrong = checkStrided())
      return wrong;
    // Flat ranges cut the shard that all other placements leave, so these are checked first.
    return checkAll(&Checker::checkFlat);
  }

private:
  /// What is expected in the place of the placement at an axis of the mesh; empty if the placement is right.
  std::string check(size_t axis) {
    const Placement &placement = placements[axis];
    int64_t ranks = mesh.sizes[axis];
    if (!placement.cuts.empty() && placement.kind != PlacementKind::Flat)
      return "expected ranges of flat placements alone";
    if (placement.kind == PlacementKind::Owned)
      return placement.owner >= 0 && placement.owner < ranks
                 ? std::string()
                 : "expected an owner from 0 to " + text(ranks - 1);
    if (placement.isPartial() && !mayBePartial)
      return "expected no partial sum but of a gradient";
    if (!placement.isShard())
      return {};
    if (shape.empty())
      return "expected " + std::string(mayBePartial ? "R, P, owned" : "R, owned") +
             " or flat for a parameter without dimensions";
    if (placement.dim < 0 || placement.dim >= static_cast<int64_t>(shape.size()))
      return "expected a dimension from 0 to " + text(static_cast<int64_t>(shape.size()) - 1);
    if (placement.factor < 1 || placement.factor > kMaxFactor)
      return std::string("expected ") +
             (placement.kind == PlacementKind::InterleavedShard ? "stripes" : "a split factor") +
             " from 1 to " + text(kMaxFactor);
    std::string dimension = "dimension " + text(placement.dim);
    std::set<int64_t> &left = lengths[static_cast<size_t>(placement.dim)];
    for (int64_t length : left)
      if (placement.kind == PlacementKind::InterleavedShard && length % placement.factor)
        return "expected stripes that divide the " + text(length) + " indices of " + dimension +
               " that earlier axes leave on a rank";
    if (int64_t most = *left.rbegin();
        most < ranks && ++pasts[static_cast<size_t>(placement.dim)] == 2)
      return "expected " + dimension + " to be sharded past its size of " +
             text(shape[static_cast<size_t>(placement.dim)]) +
             " once at most: earlier axes leave " + plural(most, "index", "indices") + " for " +
             plural(ranks, "rank");
    shorten(left, placement, ranks);
    return {};
  }

  /// Replaces lengths by the lengths of the shards into which they are cut.
  static void shorten(std::set<int64_t> &lengths, const Placement &placement, int64_t ranks) {
    int64_t stripes = placement.kind == PlacementKind::Shard ? 1 : placement.factor;
    std::set<int64_t> result;
    for (int64_t length : lengths) {
      // All stripes are equally long, except a shorter one and empty ones after it. The chunks of a stripe
      // are, too. So a rank's length differs from the length of the rank before it in two places only:
      // where the full chunks of either stripe end, and after the chunk that follows.
      int64_t stripe = chunkLength(length, stripes, 0), count = stripe ? length / stripe : 0;
      int64_t last = length - count * stripe;
      std::set<int64_t> starts{0};
      for (int64_t size : {stripe, last})
        if (size > 0) {
          int64_t full = size / chunkLength(size, ranks, 0);
          starts.insert({full, full + 1});
        }
      for (int64_t rank : starts)
        if (rank < ranks)
          result.insert(count * chunkLength(stripe, ranks, rank) + chunkLength(last, ranks, rank));
    }
    lengths = std::move(result);
  }

  /// Checks the cuts of a flat axis.
  std::string checkFlat(size_t axis) {
    const std::vector<int64_t> &cuts = placements[axis].cuts;
    if (cuts.empty())
      return {};
    bool isFirst = true, areOnly = true;
    int64_t ranks = 1, own = mesh.sizes[axis];
    for (size_t other = 0; other < placements.size(); ++other)
      if (placements[other].kind == PlacementKind::Flat) {
        isFirst &= other >= axis;
        areOnly &= other >= axis || placements[other].cuts.empty();
        ranks *= mesh.sizes[other];
      }
    if (!areOnly)
      return "expected the ranges of one flat axis";
    std::vector<Placement> others = placements;
    for (Placement &other : others)
      other = other.kind == PlacementKind::Flat ? Placement() : other;
    int64_t most = mostElements(shape, others, mesh);
    auto ranges = static_cast<int64_t>(cuts.size()) - 1;
    if (ranges != own && (!isFirst || ranges != ranks))
      return "expected a begin for each of " + plural(isFirst ? ranks : own, "rank") +
             " and an end";
    if (!std::is_sorted(cuts.begin(), cuts.end()))
      return "expected ranges that do not overlap";
    if (cuts.front() != 0 || cuts.back() != most)
      return "expected ranges that begin at 0 and end at " + text(most) +
             ", the elements of the largest shard";
    return {};
  }

  /// A strided shard says "the later axes have already cut this dimension into sf pieces". Walking from the
  /// last axis to the first, `cuts` lists the sizes of the axes that shard the dimension in the order in
  /// which they cut it. A plain shard cuts before all later axes. A strided shard cuts after as many later
  /// axes as multiply to its split factor. If no number of axes does, the placement is wrong.
  std::optional<WrongPlacement> checkStrided() {
    std::map<int64_t, std::vector<int64_t>> cutsOfDim;
    std::set<int64_t> interleaved;
    for (size_t axis = placements.size(); axis-- > 0;) {
      const Placement &placement = placements[axis];
      if (!placement.isShard())
        continue;
      if (placement.kind == PlacementKind::InterleavedShard) {
        interleaved.insert(placement.dim);
        continue; // stripes cut what earlier axes leave
      }
      auto wrong = [&](std::string reason) {
        return WrongPlacement{axis, reason + " in '" + toString(placement) + "'"};
      };
      std::string dimension = "dimension " + text(placement.dim);
      bool isStrided = placement.kind == PlacementKind::StridedShard && placement.factor != 1;
      if (isStrided && interleaved.count(placement.dim))
        return wrong("expected axes in the order in which they cut " + dimension +
                     ", found a later one that cuts it into stripes");
      std::vector<int64_t> &cuts = cutsOfDim[placement.dim];
      std::vector<int64_t> legal{1};
      std::string products = "1";
      for (int64_t cut : cuts) {
        legal.push_back(legal.back() * cut);
        products += ", " + text(legal.back());
      }
      int64_t factor = placement.kind == PlacementKind::StridedShard ? placement.factor : 1;
      auto found = std::find(legal.begin(), legal.end(), factor);
      if (found == legal.end() && cuts.empty())
        return wrong("expected a later axis of mesh '" + mesh.name + "' that shards " + dimension +
                     " into " + text(factor) + " pieces first, found none");
      if (found == legal.end())
        return wrong("expected a split factor that the later axes which shard " + dimension +
                     " multiply to (" + products + "), found " + text(factor));
      cuts.insert(cuts.begin() + (found - legal.begin()), mesh.sizes[axis]);
    }
    return std::nullopt;
  }

  const std::vector<int64_t> &shape;
  const std::vector<Placement> &placements;
  const Mesh &mesh;
  bool mayBePartial;
  std::vector<std::set<int64_t>> lengths; // per dimension, the lengths of shards so far
  std::vector<int> pasts; // per dimension, how many mesh axes had more ranks than indices were left
};

} // namespace

std::optional<WrongPlacement> checkPlacements(const std::vector<int64_t> &shape,
                                              const std::vector<Placement> &placements,
                                              const Mesh &mesh, bool isGradient) {
  return Checker(shape, placements, mesh, isGradient).run();
}

} // namespace stepc::geometry
