//===- Factors.cpp - Parts of a mesh's axes, as strategies need them -------===//

#include "dialects/optim/strategies/Factors.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

/// The distance in positions of ranks at neighbouring coordinates of an axis: the product of later axes'
/// sizes.
static int64_t apart(const plan::Mesh &mesh, int64_t axis) {
  int64_t result = 1;
  for (size_t inner = axis + 1; inner < mesh.sizes.size(); ++inner)
    result *= mesh.sizes[inner];
  return result;
}

/// Cuts an axis into stretches of `part` coordinates. Returns whether ranks that differ only within a stretch
/// always share a domain, which has `domain` ranks.
static bool shareDomains(const plan::Mesh &mesh, int64_t axis, int64_t part, int64_t domain) {
  int64_t step = apart(mesh, axis);
  for (auto [position, rank] : llvm::enumerate(mesh.ranks)) {
    int64_t within = int64_t(position) / step % mesh.sizes[axis] % part;
    if (rank / domain != mesh.ranks[position - within * step] / domain)
      return false;
  }
  return true;
}

std::vector<Factors> optim::factorsByLevel(const StrategyQuery &query) {
  const plan::Mesh &mesh = query.mesh;
  std::vector<int64_t> done(mesh.sizes.size(), 1); // per axis, the size of earlier levels' factors
  std::vector<Factors> result;
  std::vector<int64_t> domains = query.domains;
  domains.push_back(std::numeric_limits<int64_t>::max());
  for (int64_t domain : domains) {
    Factors &factors = result.emplace_back();
    for (auto [axis, size] : llvm::enumerate(mesh.sizes)) {
      int64_t part = size;
      while (part > done[axis] && (size % part != 0 || part % done[axis] != 0 ||
                                   !shareDomains(mesh, axis, part, domain)))
        --part;
      if (part > done[axis])
        factors.push_back({int64_t(axis), done[axis], part / done[axis]});
      done[axis] = std::max(part, done[axis]);
    }
    if (factors.empty())
      result.pop_back();
  }
  return result;
}

std::optional<std::vector<Factors>> optim::divided(const Factors &factors, int64_t most) {
  std::vector<Factors> result(1);
  int64_t ranks = 1;
  for (plan::Factor left : factors)
    while (left.size > 1) {
      int64_t part = std::min(left.size, most / ranks);
      while (left.size % part != 0)
        --part;
      if (part > 1) {
        result.back().push_back({left.axis, left.stride, part});
        left.stride *= part;
        left.size /= part;
        ranks *= part;
      } else if (ranks == 1) {
        return std::nullopt;
      } else {
        result.emplace_back();
        ranks = 1;
      }
    }
  if (result.back().empty())
    result.pop_back();
  return result;
}

Factors optim::factorsOfBlocks(const StrategyQuery &query) {
  const plan::Mesh &mesh = query.mesh;
  std::vector<bool> replicated =
      geometry::replicatedAxes(query.group, plan::ValueKind::Full, query.home);
  Factors result;
  for (auto [axis, size] : llvm::enumerate(mesh.sizes)) {
    if (replicated[axis] || size == 1)
      continue;
    int64_t step = apart(mesh, axis);
    // Per block, the first and the last coordinate along the axis at which a rank holds an element of the
    // block.
    std::vector<std::pair<int64_t, int64_t>> ends;
    for (auto [position, areas] : llvm::enumerate(query.held)) {
      int64_t at = int64_t(position) / step % size;
      ends.resize(areas.size(), {size, -1});
      for (auto [area, end] : llvm::zip(areas, ends))
        if (area > 0)
          end = {std::min(end.first, at), std::max(end.second, at)};
    }
    int64_t part = 1;
    while (size % part != 0 || llvm::any_of(ends, [&](const std::pair<int64_t, int64_t> &end) {
             return end.second >= 0 && end.first / part != end.second / part;
           }))
      ++part;
    if (part > 1)
      result.push_back({int64_t(axis), 1, part});
  }
  return result;
}

std::string optim::describe(const plan::Mesh &mesh, const Factors &factors) {
  std::string text;
  for (const plan::Factor &factor : factors) {
    text += text.empty() ? "" : " and ";
    if (factor.size < mesh.sizes[factor.axis])
      text += std::to_string(factor.size) + " of ";
    text += mesh.axes[factor.axis];
  }
  return text;
}
