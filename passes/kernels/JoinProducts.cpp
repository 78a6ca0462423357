//===- JoinProducts.cpp - One launch for products of one kernel ------------===//

#include "dialects/exec/Exec.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/Target.h"
#include "runtime/plan/TileLists.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_JOINPRODUCTS
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

/// Whether one product writes what the other reads or writes.
bool depend(exec::ProductOp a, exec::ProductOp b) {
  auto touches = [](exec::ProductOp writer, exec::ProductOp other) {
    return llvm::any_of(other.getBatches(), [&](Attribute batch) {
      return plan::mayShareBytes(writer.getOut().toPlan(), cast<exec::BatchAttr>(batch).toPlan());
    });
  };
  return touches(a, b) || touches(b, a);
}

struct JoinProducts : impl::JoinProductsBase<JoinProducts> {
  /// Products that begin together. They stand one after another.
  struct Together {
    SmallVector<exec::ProductOp> products;
    double tiles = 0; // at most
  };

  /// A bound of the product's tiles, for any rank.
  double mostTiles(exec::ProductOp product) {
    Attribute name = product.getTable().getFrom().getSymbol();
    auto [blocks, isNew] = blocksOf.try_emplace(name, 0);
    if (isNew) {
      auto segment = SymbolTable::lookupNearestSymbolFrom<comm::SegmentOp>(
          product, cast<FlatSymbolRefAttr>(name));
      auto group =
          SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(product, segment.getGroupAttr());
      blocks->second = group.toPlan().blockCount();
    }
    plan::Operand out = product.getOut().toPlan();
    return plan::mostTiles(out.rows, out.cols, blocks->second);
  }

  void join(exec::ProgramOp program, const Target &target) {
    SmallVector<Together> run; // since the last other command
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
      auto product = dyn_cast<exec::ProductOp>(op);
      if (!product) {
        run.clear();
        continue;
      }
      Together *joined = nullptr;
      for (Together &before : llvm::reverse(run)) {
        if (llvm::any_of(before.products,
                         [&](exec::ProductOp other) { return depend(other, product); }))
          break;
        exec::ProductOp first = before.products.front();
        if (!product.getPinned() && !first.getPinned() && target.canJoin(first, product) &&
            before.tiles + mostTiles(product) <= plan::kMostTiles) {
          joined = &before;
          break;
        }
      }
      if (!joined) {
        run.push_back({{product}, mostTiles(product)});
        continue;
      }
      product->moveAfter(joined->products.back());
      product.setJoins(true);
      joined->products.push_back(product);
      joined->tiles += mostTiles(product);
      ++joinedProducts;
    }
  }

  void runOnOperation() override {
    FailureOr<std::unique_ptr<Target>> target = targetOfModule(getOperation());
    if (failed(target))
      return signalPassFailure();
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      join(program, **target);
  }

  llvm::DenseMap<Attribute, int64_t> blocksOf; // blocks of a segment's group
};

} // namespace
} // namespace stepc::kernels
