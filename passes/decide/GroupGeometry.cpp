//===- GroupGeometry.cpp - A group's geometry and modelled cost ------------===//

#include "passes/decide/GroupGeometry.h"

#include "passes/cost/ScratchBound.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

GroupGeometry::GroupGeometry(GroupOp op) : parameters(op.getParameters().size()) {
  ParameterOp p = op.getExemplar();
  mesh = optim::toPlan(lookupMesh(op, p.getMeshAttr()));
  group = op.toPlan();
  group.hops = op.getPlanHops();
  group.parameters = {0};
  int64_t blocks = group.blocksPerParameter();
  for (int64_t position = 0, e = mesh.ranks.size(); position < e; ++position) {
    std::vector<int64_t> &area = areas.emplace_back(blocks, 0);
    for (const geometry::Rect &rect :
         geometry::rectangles(group, mesh, position, plan::ValueKind::Full))
      area[rect.block] += rect.rows * rect.cols;
  }
}

int64_t GroupGeometry::firstHolder(int64_t block) const {
  for (auto [position, area] : llvm::enumerate(areas))
    if (area[block] > 0)
      return position;
  return 0;
}

Bases::Bases(const GroupGeometry &geometry) : mesh(geometry.mesh) {
  for (const plan::Hop &hop : geometry.group.hops) {
    owned.insert(owned.end(), hop.owned.begin(), hop.owned.end());
    of.resize(std::max(of.size(), hop.base.size()));
    for (auto [sum, base] : llvm::zip(of, hop.base))
      sum += plan::along(mesh, hop.owned, base);
  }
}

bool decide::hasMatrixSpace(RuleOp rule) {
  return llvm::is_contained(writesOf(rule), Space::Matrix) ||
         llvm::any_of(rule.getBody().front(),
                      [](Operation &op) { return spaceOf(&op) == Space::Matrix; });
}

int64_t decide::modelledFlops(RuleOp rule, int64_t rows, int64_t cols) {
  int64_t r = std::min(rows, cols), c = std::max(rows, cols);
  // At most 2^40 elements: every single term fits, their sum need not.
  int64_t flops = 16 * r * c;
  rule.walk([&](OrthogonalizeOp op) {
    for (std::array<double, 3> step : op.getSteps())
      flops = saturatingAdd(flops, 3 * r * r * c + (step[2] == 0.0 ? 0 : r * r * r));
  });
  return flops;
}

BlockBytes decide::modelledBytes(RuleOp rule, int64_t rows, int64_t cols) {
  int64_t r = std::min(rows, cols), c = std::max(rows, cols);
  BlockBytes bytes{4, 8 * r * c, cost::reduceScratchBound(rows)};
  rule.walk([&](OrthogonalizeOp op) {
    int64_t size = op.getType().getElementTypeBitWidth() / 8;
    // What travels has the operand's type.
    bytes.element = op.getSource().getType().getElementTypeBitWidth() / 8;
    // The last product of a step holds most: two iterates and the polynomial.
    bytes.work = size * (2 * r * c + r * r);
    // Of tall blocks the last product has the iterate on the left.
    int64_t last =
        rows > cols ? cost::productScratchBound(rows, r, r) : cost::productScratchBound(r, cols, r);
    bytes.scratch =
        std::max({cost::productScratchBound(r, r, c), cost::productScratchBound(r, r, r), last});
  });
  return bytes;
}
