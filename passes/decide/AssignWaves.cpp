//===- AssignWaves.cpp - Divide the blocks into waves ----------------------===//

#include "passes/decide/Passes.h"

#include "dialects/comm/Comm.h"
#include "dialects/optim/Optim.h"
#include "passes/decide/GroupGeometry.h"
#include "passes/kernels/TargetShape.h"
#include "passes/plan/Saturate.h"

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
  std::vector<GroupGeometry> geometries;
  std::vector<BlockBytes> bytesOf;   // per group
  std::map<int64_t, int64_t> totals; // bytes per rank

  void collect() {
    std::optional<TargetShape> target;
    if (auto chip = getOperation()->getAttrOfType<StringAttr>(kChipAttr)) {
      llvm::Expected<TargetShape> shape = shapeOfChip(chip.getValue());
      if (shape)
        target = *shape;
      else // whoever needs it says so
        llvm::consumeError(shape.takeError());
    }
    for (auto group : getOperation().getOps<GroupOp>()) {
      std::optional<Strategy> strategy = group.getStrategy();
      if (!strategy || *strategy == Strategy::Elementwise || group.getWaves())
        continue;
      auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
      GroupGeometry geometry(group);
      BlockBytes model =
          modelledBytes(rule, group.getRows(), group.getCols(), target ? &*target : nullptr);
      int64_t bytes = model.work;
      for (int64_t block = 0, e = geometry.blockCount(); block < e; ++block) {
        int64_t rank = -1;
        if (*strategy == Strategy::Owner)
          rank = geometry.mesh.ranks[(*group.getOwners())[block]];
        else if (*strategy == Strategy::Local)
          rank = geometry.mesh.ranks[geometry.firstHolder(block % geometry.blocksPerParameter())];
        items.push_back({groups.size(), block, rank, bytes});
        totals[rank] = saturatingAdd(totals[rank], bytes);
      }
      groups.push_back(group);
      geometries.push_back(std::move(geometry));
      bytesOf.push_back(model);
    }
  }

  /// Waves of all items when there are `count` at most: each rank's bytes are divided evenly, in
  /// order.
  std::vector<int64_t> assign(int64_t count) const {
    std::map<int64_t, int64_t> before;
    std::vector<int64_t> result;
    for (const Item &item : items) {
      int64_t total = std::max<int64_t>(1, totals.at(item.rank));
      int64_t &sum = before[item.rank];
      // The middle of the item decides, so that equal items divide evenly.
      double middle = double(sum) + double(item.bytes) / 2;
      result.push_back(
          int64_t(std::min(double(count - 1), std::floor(middle * double(count) / double(total)))));
      sum = saturatingAdd(sum, item.bytes);
    }
    // Numbers without holes.
    std::map<int64_t, int64_t> numbers;
    for (int64_t wave : result)
      numbers[wave] = 0;
    for (auto [index, entry] : llvm::enumerate(numbers))
      entry.second = index;
    for (int64_t &wave : result)
      wave = numbers.at(wave);
    return result;
  }

  /// What a group's blocks of one wave take, on the rank that needs most of each.
  struct Need {
    int64_t held = 0;  ///< bytes of shards that travel: what is sent there and received back
    int64_t whole = 0; ///< bytes of whole blocks: what is received there and sent back
    int64_t work = 0;
  };

  Need need(size_t group, ArrayRef<int64_t> blocks) const {
    const GroupGeometry &geometry = geometries[group];
    GroupOp op = groups[group];
    std::vector<int64_t> held(geometry.mesh.ranks.size()), computed(held.size());
    Strategy strategy = *op.getStrategy();
    for (int64_t block : blocks)
      for (int64_t position = 0, e = held.size(); position < e; ++position) {
        int64_t area = geometry.held(position, block % geometry.blocksPerParameter());
        held[position] = saturatingAdd(held[position], area);
        computed[position] += strategy == Strategy::Gather ||
                              (strategy == Strategy::Local && area > 0) ||
                              (strategy == Strategy::Owner && (*op.getOwners())[block] == position);
      }
    int64_t element = bytesOf[group].element, most = *llvm::max_element(computed);
    Need result;
    result.work = saturatingMul(most, bytesOf[group].work);
    if (strategy != Strategy::Local) {
      result.held = saturatingMul(*llvm::max_element(held), element);
      result.whole = saturatingMul(most, element * op.getRows() * op.getCols());
    }
    return result;
  }

  /// Modelled workspace: while a group is computed, the next wave travels there, the one before it
  /// back, and the wave's other groups wait to be unpacked or are packed.
  int64_t workspace(const std::vector<int64_t> &wavesOf) const {
    std::map<std::pair<int64_t, size_t>, std::vector<int64_t>> blocks;
    for (auto [item, wave] : llvm::zip(items, wavesOf))
      blocks[{wave, item.group}].push_back(item.block);
    std::vector<std::vector<Need>> waves;
    std::vector<int64_t> travel; // one way, and the other
    for (auto &[key, list] : blocks) {
      waves.resize(key.first + 1);
      travel.resize(key.first + 1);
      const Need &last = waves.back().emplace_back(need(key.second, list));
      travel.back() = saturatingAdd(travel.back(), saturatingAdd(last.held, last.whole));
    }
    int64_t most = 0;
    for (size_t wave = 0; wave < waves.size(); ++wave) {
      int64_t flying = saturatingAdd(wave > 0 ? travel[wave - 1] : 0,
                                     wave + 1 < waves.size() ? travel[wave + 1] : 0);
      int64_t others = 0;
      for (const Need &n : waves[wave])
        others = saturatingAdd(others, n.whole);
      most = std::max(most, saturatingAdd(flying, travel[wave]));
      for (const Need &n : waves[wave])
        most = std::max(most, saturatingAdd(flying, saturatingAdd(others - n.whole, n.work)));
    }
    // Buffers of several sizes leave gaps between them; those of one chain do not.
    return blocks.size() > 1 ? saturatingAdd(most, most / 4) : most;
  }

  /// Says what was decided, and what could not be had.
  void report(int64_t count, int64_t needed, int64_t target, bool isLimit) {
    Location loc = getOperation().getLoc();
    auto named = [](StringRef name) {
      return remark::RemarkOpts::name(name).category("optim-assign-waves");
    };
    StringRef bound = isLimit ? "the limit" : "target-bytes";
    int64_t most = items.size();
    if (waves > count)
      remark::missed(loc, named("fewer-waves"))
          << remark::metric("asked", int64_t(waves)) << remark::metric("waves", count)
          << remark::reason("{0} blocks, divided evenly, fill no more", most);
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
        << (waves > 0          ? remark::reason("forced by option waves")
            : count == 1       ? remark::reason("all blocks at once stay within {0}", bound)
            : needed <= target ? remark::reason("doubled until the blocks stay within {0}", bound)
                               : remark::reason("as many as there are blocks to tell apart"));
  }

  void runOnOperation() override {
    getOperation()->setAttr(comm::kLevelAttr, StringAttr::get(&getContext(), "decided"));
    groups.clear();
    items.clear();
    geometries.clear();
    bytesOf.clear();
    totals.clear();
    collect();
    if (items.empty())
      return;
    auto limit = getOperation()->getAttrOfType<IntegerAttr>(comm::kLimitAttr);
    int64_t target = limit ? limit.getInt() : int64_t(targetBytes);
    int64_t most = items.size();
    int64_t count = waves > 0 ? std::min<int64_t>(waves, most) : 1;
    std::vector<int64_t> assigned = assign(count);
    int64_t needed = workspace(assigned);
    // Doubling, then the arena says exactly whether the limit holds.
    while (waves <= 0 && needed > target && count < most) {
      count = std::min(2 * count, most);
      assigned = assign(count);
      needed = workspace(assigned);
    }
    report(*llvm::max_element(assigned) + 1, needed, target, bool(limit));
    std::vector<std::vector<int64_t>> lists(groups.size());
    for (auto [item, wave] : llvm::zip(items, assigned))
      lists[item.group].push_back(wave);
    for (auto [group, list] : llvm::zip(groups, lists))
      group.setWavesAttr(DenseI64ArrayAttr::get(&getContext(), list));
  }
};

} // namespace
