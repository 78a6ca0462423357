//===- PinnedProducts.cpp - Which algorithms of a table fit a product ------===//

#include "passes/kernels/PinnedProducts.h"
#include "runtime/plan/Pinned.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {

// The type of an operand's elements; null if there is no operand.
static Type typeOf(std::optional<exec::BatchAttr> batch) {
  return batch ? batch->getType() : Type();
}
static Type typeOf(Value value) { return value ? getElementTypeOrSelf(value) : Type(); }

template <typename Op, typename Out> static ProductShape shapeOf(Op op, Out out) {
  auto [m, n, k] = op.getSizes();
  return {m,
          n,
          k,
          typeOf(op.getLhs()),
          typeOf(op.getRhs()),
          typeOf(op.getAddend()),
          typeOf(out),
          op.getTransposeLhs(),
          op.getTransposeRhs(),
          op.getSymmetric()};
}

ProductShape shapeOf(exec::ProductOp op) { return shapeOf(op, op.getOut()); }
ProductShape shapeOf(optim::ProductOp op) { return shapeOf(op, op.getInit()); }

FailureOr<ArrayAttr> tableOfModule(ModuleOp module) {
  Attribute given = module->getAttr(exec::kProductsAttr);
  if (!given)
    return ArrayAttr();
  auto table = dyn_cast<ArrayAttr>(given);
  if (table && llvm::all_of(table, llvm::IsaPred<exec::ProductEntryAttr>))
    return table;
  return module.emitError("expected ")
         << exec::kProductsAttr << " to be entries of a table of products, found " << given;
}

int64_t mostWorkspace(ModuleOp module, int64_t arenaBytes) {
  auto limit = module->getAttrOfType<IntegerAttr>(comm::kLimitAttr);
  return limit ? limit.getInt() - plan::aligned(arenaBytes) : std::numeric_limits<int64_t>::max();
}

/// Why cuBLASLt cannot compute a product of this shape, whatever the table has. Empty if it can.
static std::string refusalOf(const ProductShape &shape) {
  std::optional<plan::DType> addend;
  if (shape.addend)
    addend = optim::toPlan(shape.addend);
  return plan::checkMultiplies(*optim::toPlan(shape.lhs), *optim::toPlan(shape.rhs), addend,
                               *optim::toPlan(shape.out), shape.isSymmetric);
}

Pinning pin(ArrayAttr table, const ProductShape &shape, int64_t chip, int64_t mostWorkspace) {
  Pinning made;
  made.refusal = refusalOf(shape);
  if (!made.refusal.empty())
    return made;
  made.refusal = "no entry of the table";
  std::vector<int64_t> dense = plan::denseLeading(shape.m, shape.n, shape.k, shape.transposeLhs,
                                                  shape.transposeRhs, bool(shape.addend));
  using Machine = std::tuple<int64_t, int64_t, int64_t>;
  llvm::MapVector<Machine, exec::PinnedAlgorithmAttr> best;
  for (auto entry : table.getAsRange<exec::ProductEntryAttr>()) {
    if (std::tuple(entry.getM(), entry.getN(), entry.getK()) !=
            std::tuple(shape.m, shape.n, shape.k) ||
        std::tuple(entry.getLhs(), entry.getRhs(), entry.getAddend(), entry.getOut()) !=
            std::tuple(shape.lhs, shape.rhs, shape.addend, shape.out) ||
        entry.getTransposeLhs() != shape.transposeLhs ||
        entry.getTransposeRhs() != shape.transposeRhs)
      continue;
    plan::PinnedAlgorithm found = entry.getAlgorithm().getValue();
    // A later reason replaces an earlier one. Each is true of some entry.
    if (entry.getLeading() != ArrayRef(dense)) {
      made.refusal = "an entry for rows further apart";
    } else if (found.chip != chip) {
      made.refusal = llvm::formatv("an entry for sm_{0}, which is not asked for", found.chip).str();
    } else if (found.alignment > comm::kAlignment) {
      made.refusal =
          llvm::formatv("an entry for operands at multiples of {0} bytes, these are at {1}",
                        found.alignment, comm::kAlignment)
              .str();
    } else if (scratchOf(found.workspaceBytes) > mostWorkspace) {
      made.refusal =
          llvm::formatv("an entry that needs {0} bytes of workspace, the limit leaves {1}",
                        found.workspaceBytes, std::max<int64_t>(mostWorkspace, 0))
              .str();
    } else {
      exec::PinnedAlgorithmAttr &known = best[{found.cublasLt, found.chip, found.multiprocessors}];
      if (!known || known.getValue().alignment < found.alignment)
        known = entry.getAlgorithm();
    }
  }
  for (auto [machine, algorithm] : best)
    made.algorithms.push_back(algorithm);
  if (!made.algorithms.empty())
    made.refusal.clear();
  return made;
}

} // namespace stepc::kernels
