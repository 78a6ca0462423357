//===- Checks.cpp - What factors of a mesh may be ------------------------===//

#include "runtime/plan/Checks.h"

#include <algorithm>
#include <tuple>

namespace stepc::plan {

std::string checkFactors(const Mesh &mesh, std::vector<Factor> factors) {
  std::sort(factors.begin(), factors.end(), [](const Factor &a, const Factor &b) {
    return std::tie(a.axis, a.stride, a.size) < std::tie(b.axis, b.stride, b.size);
  });
  int64_t axis = -1, end = 1;
  for (const Factor &factor : factors) {
    if (!inside(factor.axis, mesh.sizes))
      return outside("axis", factor.axis);
    int64_t size = mesh.sizes[static_cast<size_t>(factor.axis)];
    if (factor.stride < 1 || factor.size < 1 || factor.stride > size || factor.size > size ||
        size % (factor.stride * factor.size) != 0)
      return "expected factors that divide axis " + std::to_string(factor.axis) + " of mesh " +
             mesh.name + ", found " + std::to_string(factor.size) + " ranks that are " +
             std::to_string(factor.stride) + " apart";
    end = factor.axis == axis ? end : 1;
    axis = factor.axis;
    if (factor.size == 1)
      continue;
    if (factor.stride % end != 0)
      return "expected factors of axis " + std::to_string(axis) + " of mesh " + mesh.name +
             " that do not overlap";
    end = factor.stride * factor.size;
  }
  return {};
}

} // namespace stepc::plan
