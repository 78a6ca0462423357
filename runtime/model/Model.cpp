//===- Model.cpp - Names, views and checks of a model ----------------------===//

#include "runtime/model/Model.h"
#include "runtime/text/Plural.h"

#include <algorithm>
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

std::string_view describe(ShardsKind kind) {
  return kind == ShardsKind::Reduced       ? "reduced gradient"
         : kind == ShardsKind::LineParts   ? "parts of lines"
         : kind == ShardsKind::LineSums    ? "sums of lines"
         : kind == ShardsKind::StateBlocks ? "states of blocks"
                                           : name(kind);
}

std::string toString(const Placement &placement) {
  switch (placement.kind) {
  case PlacementKind::Replicate:
    return "R";
  case PlacementKind::Shard:
    return "S(" + std::to_string(placement.dim) + ")";
  case PlacementKind::StridedShard:
    return "_S(" + std::to_string(placement.dim) + ", " + std::to_string(placement.factor) + ")";
  case PlacementKind::InterleavedShard:
    return "IS(" + std::to_string(placement.dim) + ", " + std::to_string(placement.factor) + ")";
  case PlacementKind::Owned:
    return "owned(" + std::to_string(placement.owner) + ")";
  case PlacementKind::PartialSum:
    return "P(sum)";
  case PlacementKind::PartialAverage:
    return "P(avg)";
  case PlacementKind::Flat: {
    std::string cuts;
    for (int64_t cut : placement.cuts)
      cuts += (cuts.empty() ? "(" : ", ") + std::to_string(cut);
    return "flat" + cuts + (cuts.empty() ? "" : ")");
  }
  }
  return "?";
}

std::string toString(const std::vector<Placement> &placements) {
  std::string result;
  for (const Placement &placement : placements)
    result += (result.empty() ? "" : ", ") + toString(placement);
  return "[" + result + "]";
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

/// The number of the first hop before `hop` that replicates `factor`; `hop` itself if none does.
static size_t firstReplicating(const std::vector<Hop> &hops, size_t hop, const Factor &factor) {
  size_t before = 0;
  while (before < hop &&
         std::count(hops[before].replicated.begin(), hops[before].replicated.end(), factor) == 0)
    ++before;
  return before;
}

bool chooses(const std::vector<Hop> &hops, size_t hop) {
  const std::vector<Factor> &owned = hops[hop].owned;
  return !owned.empty() && hops[hop].replicated.empty() &&
         std::all_of(owned.begin(), owned.end(), [&](const Factor &factor) {
           return firstReplicating(hops, hop, factor) < hop;
         });
}

size_t returnsTo(const std::vector<Hop> &hops, size_t hop) {
  size_t result = hop;
  for (const Factor &factor : hops[hop].owned)
    if (chooses(hops, hop))
      result = std::min(result, firstReplicating(hops, hop, factor));
  return result;
}

std::vector<std::pair<size_t, size_t>> waysBack(const std::vector<Hop> &hops) {
  std::vector<std::pair<size_t, size_t>> ways;
  size_t from = hops.size(), to = from;
  auto skip = [&] {
    while (to > 0 && hops[to - 1].owned.empty())
      --to;
  };
  for (skip(); to > 0; from = to) {
    to = returnsTo(hops, to - 1);
    skip();
    ways.push_back({from, to});
  }
  return ways;
}

std::vector<Factor> resolvedFactors(const std::vector<Hop> &hops, size_t count) {
  std::vector<Factor> result;
  for (size_t hop = 0; hop < count; ++hop)
    if (!chooses(hops, hop))
      for (const auto *factors : {&hops[hop].owned, &hops[hop].replicated})
        result.insert(result.end(), factors->begin(), factors->end());
  return result;
}

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
  const Factor *last = nullptr; // the last factor of more than one rank
  for (const Factor &factor : factors) {
    if (factor.axis < 0 || factor.axis >= static_cast<int64_t>(mesh.sizes.size()))
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

/// If `joined` is above 0, all axes form one matrix, whose columns begin at axis `joined`.
static KeptAxes keptAxes(const Group &group, ValueKind kind, int64_t joined) {
  KeptAxes kept;
  size_t axes = group.shape.size();
  if (joined > 0) {
    for (size_t axis = 0; axis < axes; ++axis)
      (axis < static_cast<size_t>(joined) ? kept.rows : kept.cols).push_back(axis);
    return kept;
  }
  auto batch = static_cast<size_t>(group.batchAxes);
  // The axes at which rows and columns begin.
  size_t rows = axes - std::min<size_t>(2, axes - batch), cols = axes - (axes > batch);
  if (group.flatten > 0) {
    rows = batch;
    cols = static_cast<size_t>(group.flatten);
  }
  // For these kinds only declared batch axes count blocks. Without them the tensor is one logical parameter
  // with one value, whatever its number of axes.
  bool ofBlock = kind == ValueKind::One || !kind.isStored();
  size_t leading = ofBlock ? batch : rows;
  for (size_t axis = 0; axis < axes; ++axis) {
    if (axis < leading)
      kept.leading.push_back(axis);
    else if (axis >= rows && axis < cols && kind.isStored() && kind.rows == ValueKind::OfRows)
      kept.rows.push_back(axis);
    else if (axis >= cols && kind.isStored() && kind.cols == ValueKind::OfCols)
      kept.cols.push_back(axis);
  }
  return kept;
}

KeptAxes keptAxes(const Group &group, ValueKind kind) {
  return keptAxes(group, kind, kind == ValueKind::Full ? group.joined : 0);
}

View matrixView(const std::vector<int64_t> &shape, int64_t batchAxes, int64_t flatten) {
  Group group;
  group.shape = shape;
  group.batchAxes = batchAxes;
  group.flatten = flatten;
  return view(group, ValueKind::Full);
}

View view(const std::vector<int64_t> &shape, int64_t batchAxes) {
  return matrixView(shape, batchAxes, 0);
}

static View viewOf(const Group &group, const KeptAxes &kept) {
  View result{1, 1, 1};
  for (auto [axes, size] :
       {std::pair(&kept.leading, &result.blocks), std::pair(&kept.rows, &result.rows),
        std::pair(&kept.cols, &result.cols)})
    for (size_t axis : *axes)
      *size *= group.shape[axis];
  if (group.division.parts.empty())
    return result;
  bool columns = group.division.axis == plan::Division::Columns;
  int64_t &extent = columns ? result.cols : result.rows;
  bool drops = (columns ? kept.cols : kept.rows).empty();
  if (group.parts.empty()) {
    extent = drops ? static_cast<int64_t>(group.division.parts.size()) : extent;
    return result;
  }
  result.blocks *= static_cast<int64_t>(group.parts.size());
  if (!drops)
    extent = extentOf(group.division.parts[static_cast<size_t>(group.parts[0])]);
  return result;
}

std::pair<int64_t, int64_t> ValueKind::extents(int64_t ofRows, int64_t ofCols, int64_t ofSmaller,
                                               const std::vector<int64_t> &sizes) const {
  auto extent = [&](int64_t of) {
    if (auto size = static_cast<size_t>(OfFirstSize - of); of <= OfFirstSize)
      return size < sizes.size() ? sizes[size] : 0;
    return of == OfRows ? ofRows : of == OfCols ? ofCols : of == OfSmaller ? ofSmaller : of;
  };
  return {extent(rows), extent(cols)};
}

bool isKnown(ValueKind kind) {
  auto known = [](int64_t extent) {
    return extent >= -static_cast<int64_t>(kExtents.size()) && extent != 0 && extent <= kMostExtent;
  };
  return known(kind.rows) && known(kind.cols);
}

static std::string extentName(int64_t extent) {
  return extent < 0 ? std::string(kExtents[static_cast<size_t>(-extent - 1)])
                    : std::to_string(extent);
}

std::string name(ValueKind kind) {
  if (!isKnown(kind))
    return "?";
  for (auto [word, named] : kNamedKinds)
    if (named == kind)
      return std::string(word);
  return "[" + extentName(kind.rows) + ", " + extentName(kind.cols) + "]";
}

View view(const Group &group, ValueKind kind) {
  if (!kind.isStored()) {
    // A block has such a value, so a divided matrix has one for each part.
    View full = view(group, ValueKind::Full);
    int64_t blocks = view(group, ValueKind::One).blocks;
    if (const auto &parts = group.division.parts; group.parts.empty() && !parts.empty()) {
      (group.division.axis == Division::Rows ? full.rows : full.cols) = extentOf(parts.front());
      blocks *= static_cast<int64_t>(parts.size());
    }
    auto [rows, cols] =
        kind.extents(full.rows, full.cols, std::min(full.rows, full.cols), group.sizes);
    return {blocks, rows, cols};
  }
  return viewOf(group, keptAxes(group, kind));
}

std::string name(const Group &group, ValueKind kind) {
  if (kind.isStored() || !isKnown(kind))
    return name(kind);
  auto extent = [&](int64_t of) {
    auto size = static_cast<size_t>(ValueKind::OfFirstSize - of);
    bool isSize = of <= ValueKind::OfFirstSize && size < group.sizes.size();
    return isSize ? std::to_string(group.sizes[size]) : extentName(of);
  };
  return "[" + extent(kind.rows) + ", " + extent(kind.cols) + "]";
}

View computedView(const Group &group, ValueKind kind) {
  View result = view(group, kind);
  if (kind == ValueKind::Full && !group.slabs.factors.empty())
    (group.slabs.axis == Division::Rows ? result.rows : result.cols) = group.slabs.longest;
  return result;
}

int64_t slabsPerBlock(const Group &group) {
  int64_t extent = group.slabs.axis == Division::Rows ? group.rows() : group.cols();
  int64_t longest = std::max<int64_t>(1, group.slabs.longest);
  return std::max<int64_t>(1, (extent + longest - 1) / longest);
}

bool Group::staysWithBlocks(int64_t state) const {
  return std::binary_search(blockStates.begin(), blockStates.end(), state);
}

const std::vector<Placement> &Group::placementsOf(ShardsKind kind) const {
  if (kind == ShardsKind::Reduced)
    return reducedPlacements.empty() ? placementsOf(ShardsKind::Gradient) : reducedPlacements;
  const auto &own = kind == ShardsKind::Gradient ? gradientPlacements : statePlacements;
  return kind == ShardsKind::Parameter || own.empty() ? placements : own;
}

Contributions contributions(const Group &group, const Mesh &mesh) {
  Contributions result;
  const std::vector<Placement> &placements = group.placementsOf(ShardsKind::Gradient);
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    result.count *= placements[axis].isPartial() ? mesh.sizes[axis] : 1;
    result.divisor *= placements[axis].kind == PlacementKind::PartialAverage ? mesh.sizes[axis] : 1;
  }
  return result;
}

int64_t contributionOf(const Group &group, const Mesh &mesh, int64_t position) {
  const std::vector<Placement> &placements = group.placementsOf(ShardsKind::Gradient);
  int64_t number = 0, stride = 1;
  for (size_t axis = placements.size(); axis-- > 0; position /= mesh.sizes[axis])
    if (placements[axis].isPartial()) {
      number += position % mesh.sizes[axis] * stride;
      stride *= mesh.sizes[axis];
    }
  return number;
}

int64_t Group::blocksPerParameter() const { return view(*this, ValueKind::Full).blocks; }
int64_t Group::blockCount() const {
  return blocksPerParameter() * static_cast<int64_t>(parameters.size());
}
View Group::matrix() const { return viewOf(*this, keptAxes(*this, ValueKind::Full, 0)); }
int64_t Group::rows() const { return matrix().rows; }
int64_t Group::cols() const { return matrix().cols; }
double Group::numel() const {
  View each = matrix();
  int64_t matrices = batchAxes > 0 || !parts.empty() ? 1 : each.blocks;
  return double(matrices * each.rows * each.cols);
}

int64_t bestJoined(const Group &group) {
  int64_t best = 0;
  double fewest = 0;
  for (size_t columns = 1; columns < group.shape.size(); ++columns) {
    double rectangles = 0;
    for (ShardsKind kind :
         {ShardsKind::Parameter, ShardsKind::Gradient, ShardsKind::State, ShardsKind::Reduced}) {
      // A shard has a run for each index of the joined axes before the last axis that is cut.
      double runs = 1, before = 1;
      for (size_t axis = 0; axis < group.shape.size(); ++axis) {
        before = axis == columns ? 1 : before;
        for (const Placement &placement : group.placementsOf(kind))
          if (placement.isShard() && placement.dim == static_cast<int64_t>(axis)) {
            runs *= before;
            before = 1;
            break;
          }
        before *= static_cast<double>(group.shape[axis]);
      }
      rectangles += runs;
    }
    if (best == 0 || rectangles < fewest) {
      best = static_cast<int64_t>(columns);
      fewest = rectangles;
    }
  }
  return best;
}

std::string_view describe(Initial start) {
  switch (start) {
  case Initial::Number:
    break;
  case Initial::Param:
    return "the parameter";
  case Initial::Identity:
    return "the identity matrix";
  case Initial::Normal:
    return "random numbers";
  }
  return "a number";
}

ElementOrder::ElementOrder(const Group &group, ValueKind kind) {
  View whole = view(group, kind);
  if (group.parts.empty() || !kind.isStored()) { // a value of other sizes counts parts as matrices
    matrix = whole.rows * whole.cols;
    begins = {0};
    return;
  }
  int64_t across = group.division.axis == Division::Rows ? whole.cols : whole.rows;
  std::vector<int64_t> all; // of all parts
  matrix = 0;
  for (const std::vector<Span> &part : group.division.parts) {
    all.push_back(matrix);
    matrix += extentOf(part) * across;
  }
  for (int64_t part : group.parts)
    begins.push_back(all[static_cast<size_t>(part)]);
}

std::string checkJoined(const Group &group, const std::vector<State> &states) {
  if (group.joined == 0)
    return {};
  auto axes = static_cast<int64_t>(group.shape.size());
  if (group.joined < 1 || group.joined >= axes)
    return "expected columns of joined axes from axis 1 to " + std::to_string(axes - 1) +
           " on, found " + std::to_string(group.joined);
  if (group.computes || !group.parts.empty())
    return std::string("expected no joined axes where ") +
           (group.computes ? "whole blocks are computed" : "parts of matrices are blocks") +
           ", found columns from axis " + std::to_string(group.joined) + " on";
  for (const State &state : states)
    if (state.kind != ValueKind::Full)
      return "expected no joined axes with state '" + state.name + "' of a value per " +
             (state.kind == ValueKind::Rows   ? "row"
              : state.kind == ValueKind::Cols ? "column"
                                              : "matrix") +
             ", found columns from axis " + std::to_string(group.joined) + " on";
  return {};
}

std::string checkFlatten(size_t axes, int64_t batchAxes, int64_t flatten) {
  int64_t left = static_cast<int64_t>(axes) - batchAxes;
  if (left < 3)
    return "expected three axes or more to flatten, found " + std::to_string(left);
  if (flatten <= batchAxes || flatten >= static_cast<int64_t>(axes))
    return "expected columns from axis " + std::to_string(batchAxes + 1) + " to " +
           std::to_string(axes - 1) + " on, found " + std::to_string(flatten);
  return {};
}

int64_t extentOf(const std::vector<Span> &part) {
  int64_t extent = 0;
  for (const Span &span : part)
    extent += span.end - span.begin;
  return extent;
}

bool haveEqualParts(const Division &division) {
  return std::all_of(division.parts.begin(), division.parts.end(), [&](const auto &part) {
    return extentOf(part) == extentOf(division.parts.front());
  });
}

static std::string describePart(const Division &division, int64_t part) {
  constexpr size_t kMost = 3;
  const std::vector<Span> &spans = division.parts[static_cast<size_t>(part)];
  std::string text(name(division.axis));
  for (size_t i = 0; i < spans.size() && i < kMost; ++i)
    text += (i ? ", " : " ") + std::to_string(spans[i].begin) + ":" + std::to_string(spans[i].end);
  if (spans.size() > kMost)
    text += " and " + std::to_string(spans.size() - kMost) + " more";
  return text + " of ";
}

std::string describeParts(const Group &group) {
  if (group.parts.size() < 2)
    return group.parts.empty() ? "" : describePart(group.division, group.parts[0]);
  bool isRows = group.division.axis == Division::Rows;
  int64_t extent = isRows ? group.rows() : group.cols();
  return std::to_string(group.parts.size()) + " blocks of " +
         plural(extent, isRows ? "row" : "column") + " each of ";
}

std::string describeBlock(const Group &group, int64_t within) {
  auto parts = std::max<int64_t>(1, static_cast<int64_t>(group.parts.size()));
  std::string text;
  if (group.blocksPerParameter() > parts)
    text = "block " + std::to_string(within / parts) + " of ";
  if (!group.parts.empty())
    text += describePart(group.division, group.parts[static_cast<size_t>(within % parts)]);
  return text;
}

bool stateExists(const Group &group, const State &state) {
  return !(state.master && group.parameterType == DType::F32);
}

} // namespace stepc::plan
