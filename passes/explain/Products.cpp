//===- Products.cpp - What a target makes of products ----------------------===//

#include "passes/explain/Explain.h"
#include "passes/kernels/PinnedProducts.h"
#include "passes/kernels/TargetShape.h"
#include "runtime/plan/TileLists.h"

#include <tuple>

using namespace mlir;
using namespace stepc;
using namespace stepc::explain;

static std::string typeOf(Type shaped, bool transposed) {
  std::string text;
  llvm::raw_string_ostream(text) << cast<ShapedType>(shaped).getElementType()
                                 << (transposed ? "ᵀ" : "");
  return text;
}

StringRef ProductReport::kernel() const {
  switch (tile.kernel) {
  case cost::ProductKernel::Warpgroup:
    return "warpgroup";
  case cost::ProductKernel::TensorCore:
    return "mma.sync";
  default:
    return accumulation == exec::Accumulation::RoundedChain ? "rounded chain" : "fused chain";
  }
}

LogicalResult explain::addProducts(ModuleOp module, const ProgramPlan &program,
                                   const kernels::Target &target, Report &report) {
  FailureOr<ArrayAttr> table = kernels::tableOfModule(module);
  if (failed(table))
    return failure();
  report.hasTable = bool(*table);
  std::vector<ProductReport> &found = report.products;
  int64_t most = kernels::mostWorkspace(module, program.plan.arenaBytes);
  auto equal = [](const ProductReport &a, const ProductReport &b) {
    return std::tie(a.shape, a.lhs, a.rhs, a.addend, a.out) ==
           std::tie(b.shape, b.lhs, b.rhs, b.addend, b.out);
  };
  std::optional<GpuTarget> gpu = gpuOfChip(target.chip());
  // All waves of a group do the same with other blocks, so the first wave is reported.
  llvm::DenseMap<int64_t, int64_t> waveOf;
  module.walk([&](optim::ProductOp op) {
    int64_t segment = ProgramPlan::find(program.segments, comm::segmentOfBatch(op));
    int64_t group = program.plan.segments[segment].group;
    if (waveOf.try_emplace(group, segment).first->second != segment)
      return;
    Type lhs = op.getLhs().getType(), rhs = op.getRhs().getType();
    ProductReport one{blockProductOf(op),
                      typeOf(lhs, op.getTransposeLhs()),
                      typeOf(rhs, op.getTransposeRhs()),
                      typeOf(op.getInit().getType(), false),
                      op.getAddend() ? typeOf(op.getAddend().getType(), false) : "",
                      {},
                      target.accumulation(getElementTypeOrSelf(lhs), getElementTypeOrSelf(rhs)),
                      {},
                      gpu && gpu->hasWarpgroups() ? checkWarpgroups(op) : "",
                      {},
                      {}};
    if (*table) {
      kernels::Pinning pinning =
          kernels::pin(*table, kernels::shapeOf(op), target.libraryChip().value_or(0), most);
      for (exec::PinnedAlgorithmAttr algorithm : pinning.algorithms) {
        one.pinned.push_back(algorithm.getValue());
        report.scratch =
            std::max(report.scratch, kernels::scratchOf(algorithm.getValue().workspaceBytes));
      }
      one.notPinned = pinning.refusal;
    }
    auto known =
        llvm::find_if(found, [&](const ProductReport &other) { return equal(one, other); });
    if (known == found.end()) {
      one.tile = target.productTile(one.shape, one.accumulation);
      known = found.insert(found.end(), std::move(one));
    }
    const std::string &name = program.plan.groups[group].name;
    auto mine = llvm::find_if(known->groups, [&](const auto &one) { return one.first == name; });
    if (mine == known->groups.end())
      mine = known->groups.insert(known->groups.end(), {name, 0});
    ++mine->second;
  });
  return success();
}
