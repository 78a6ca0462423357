//===- AssignWaves.cpp - Divide the blocks into waves ----------------------===//

#include "passes/decide/Passes.h"

#include "dialects/comm/Comm.h"
#include "dialects/optim/Optim.h"
#include "passes/decide/GroupGeometry.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_ASSIGNWAVES
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

using namespace stepc::decide;

namespace {

/// A block and what computing it takes, on the rank that stands for it (its owner, its first
/// holder, or -1: all ranks).
struct Item {
  size_t group;
  int64_t block, rank, bytes;
};

class AssignWaves : public stepc::decide::impl::AssignWavesBase<AssignWaves> {
public:
  using AssignWavesBase::AssignWavesBase;

private:
  SmallVector<GroupOp> groups;
  std::vector<Item> items;
  std::map<int64_t, int64_t> totals; // bytes per rank

  void collect() {
    for (auto group : getOperation().getOps<GroupOp>()) {
      std::optional<Strategy> strategy = group.getStrategy();
      if (!strategy || *strategy == Strategy::Elementwise || group.getWaves())
        continue;
      auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
      GroupGeometry geometry(group);
      int64_t bytes = modelledBytes(rule, group.getRows(), group.getCols());
      for (int64_t block = 0, e = geometry.blockCount(); block < e; ++block) {
        int64_t rank = -1;
        if (*strategy == Strategy::Owner)
          rank = geometry.mesh.ranks[(*group.getOwners())[block]];
        else if (*strategy == Strategy::Local)
          rank = geometry.mesh.ranks[geometry.firstHolder(block % geometry.blocksPerParameter())];
        items.push_back({groups.size(), block, rank, bytes});
        totals[rank] += bytes;
      }
      groups.push_back(group);
    }
  }

  /// Waves of all items when there are `count`: each rank's bytes are divided evenly, in order.
  std::vector<int64_t> assign(int64_t count) const {
    std::map<int64_t, int64_t> before;
    std::vector<int64_t> result;
    for (const Item &item : items) {
      int64_t total = std::max<int64_t>(1, totals.at(item.rank));
      int64_t &sum = before[item.rank];
      // The middle of the item decides, so that equal items divide evenly.
      double middle = double(sum) + double(item.bytes) / 2;
      result.push_back(std::min(count - 1, int64_t(middle * double(count) / double(total))));
      sum += item.bytes;
    }
    return result;
  }

  /// Modelled workspace with three waves in flight, on the rank that needs most.
  int64_t workspace(const std::vector<int64_t> &wavesOf, int64_t count) const {
    std::map<int64_t, std::vector<int64_t>> bytes;
    for (auto [item, wave] : llvm::zip(items, wavesOf)) {
      std::vector<int64_t> &list = bytes[item.rank];
      list.resize(count);
      list[wave] += item.bytes;
    }
    std::vector<int64_t> everywhere = bytes.count(-1) ? bytes[-1] : std::vector<int64_t>(count);
    int64_t most = 0;
    for (auto &[rank, list] : bytes)
      for (int64_t wave = 0; wave < count; ++wave) {
        int64_t sum = 0;
        for (int64_t w = std::max<int64_t>(0, wave - 1); w <= std::min(count - 1, wave + 1); ++w)
          sum += list[w] + (rank == -1 ? 0 : everywhere[w]);
        most = std::max(most, sum);
      }
    return most;
  }

  /// Says what was decided, and what could not be had.
  void report(int64_t count, int64_t needed, int64_t target, bool isLimit) {
    Location loc = getOperation().getLoc();
    auto named = [](StringRef name) {
      return remark::RemarkOpts::name(name).category("optim-assign-waves");
    };
    StringRef bound = isLimit ? "the limit" : "target-bytes";
    int64_t most = items.size();
    if (waves > most)
      remark::missed(loc, named("fewer-waves"))
          << remark::metric("asked", int64_t(waves)) << remark::metric("waves", count)
          << remark::reason("there are {0} blocks to divide", most);
    if (needed > target)
      remark::missed(loc, named("workspace-above-target"))
          << remark::metric("modelled-bytes", needed) << remark::metric("target-bytes", target)
          << remark::metric("waves", count)
          << (waves > 0 ? remark::reason("the number of waves is forced")
                        : remark::reason("more waves than blocks do not exist, and {0} is below "
                                         "what three waves in flight need",
                                         bound));
    remark::passed(loc, named("waves-assigned"))
        << remark::metric("blocks", most) << remark::metric("modelled-bytes", needed)
        << remark::metric("target-bytes", target) << remark::metric("waves", count)
        << (waves > 0      ? remark::reason("forced by option waves")
            : count == 1   ? remark::reason("all blocks at once stay within {0}", bound)
            : count < most ? remark::reason("the least power of two that stays within {0}", bound)
                           : remark::reason("as many as there are blocks"));
  }

  void runOnOperation() override {
    getOperation()->setAttr(comm::kLevelAttr, StringAttr::get(&getContext(), "decided"));
    groups.clear();
    items.clear();
    totals.clear();
    collect();
    if (items.empty())
      return;
    auto limit = getOperation()->getAttrOfType<IntegerAttr>(comm::kLimitAttr);
    int64_t target = limit ? limit.getInt() : int64_t(targetBytes);
    int64_t most = items.size();
    int64_t count = waves > 0 ? std::min<int64_t>(waves, most) : 1;
    std::vector<int64_t> assigned = assign(count);
    int64_t needed = workspace(assigned, count);
    // Doubling, then the arena says exactly whether the limit holds.
    while (waves <= 0 && needed > target && count < most) {
      count = std::min(2 * count, most);
      assigned = assign(count);
      needed = workspace(assigned, count);
    }
    report(count, needed, target, bool(limit));
    std::vector<std::vector<int64_t>> lists(groups.size());
    for (auto [item, wave] : llvm::zip(items, assigned))
      lists[item.group].push_back(wave);
    for (auto [group, list] : llvm::zip(groups, lists))
      group.setWavesAttr(DenseI64ArrayAttr::get(&getContext(), list));
  }
};

} // namespace
