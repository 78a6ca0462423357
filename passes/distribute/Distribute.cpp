//===- Distribute.cpp - One program for all ranks --------------------------===//

#include "passes/distribute/Passes.h"

#include "passes/distribute/ModelNumbers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

namespace stepc::distribute {
#define GEN_PASS_DEF_DISTRIBUTE
#include "passes/distribute/Passes.h.inc"
} // namespace stepc::distribute

using namespace stepc::distribute;

namespace {

/// The values that cross the cut of a rule, and its scalars. They are found once for all groups of the rule.
struct RuleInfo {
  Crossings crossings;
  ScalarColumns columns;
};

/// Verifies that only matrix space reads and stores states that stay with blocks.
LogicalResult checkBlockStates(optim::RuleOp rule, const optim::Writes &writes) {
  auto readsOne = [&](ArrayRef<Value> values) {
    return llvm::any_of(values, [&](Value value) { return bool(rule.findBlockState(value)); });
  };
  StringRef expected =
      "expected matrix space alone to read and store states that stay with blocks, ";
  for (Operation &op : rule.getBody().front())
    if (optim::spaceOf(&op).value_or(optim::Space::Matrix) != optim::Space::Matrix &&
        readsOne(optim::placedOperands(&op)))
      return op.emitError(expected) << "found a reader in " << stringifySpace(*optim::spaceOf(&op));
  Operation *yield = rule.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(yield->getOperands())) {
    bool stays = index > 0 && rule.isBlockState(unsigned(index - 1));
    std::optional<optim::Space> write = writes[index];
    if (stays ? write && write != optim::Space::Matrix
              : write && readsOne(optim::placedOperands(value)))
      return yield->emitError(expected)
             << "found value " << index << " stored in " << stringifySpace(*write);
  }
  return success();
}

/// Verifies the cut of a rule. Every operation that needs a space has one, and not an earlier one than its
/// operands. Every yielded value has an entry in optim.writes, and is not stored before it is computed.
LogicalResult checkDecided(optim::RuleOp rule) {
  for (Operation &op : rule.getBody().front()) {
    std::optional<optim::Space> space = optim::spaceOf(&op);
    if (!optim::hasSpace(&op)) {
      if (space)
        return op.emitError("expected no optim.space on what runs wherever it is used, found ")
               << stringifySpace(*space);
      continue;
    }
    if (!space)
      return op.emitError("expected an optim.space, found none");
    for (Value operand : optim::placedOperands(&op))
      if (auto from = optim::spaceOf(operand.getDefiningOp()); from && *from > *space)
        return op.emitError("expected spaces that do not decrease, found ")
               << stringifySpace(*space) << " after " << stringifySpace(*from);
  }
  Operation *yield = rule.getBody().front().getTerminator();
  optim::Writes writes = optim::writesOf(rule);
  if (writes.size() != yield->getNumOperands())
    return yield->emitError("expected optim.writes with one entry per value, ")
           << yield->getNumOperands() << ", found " << writes.size();
  for (auto [index, write] : llvm::enumerate(writes)) {
    for (Value placed : optim::placedOperands(yield->getOperand(index)))
      if (std::optional<optim::Space> space = optim::spaceOf(placed.getDefiningOp());
          space && write && *write < *space)
        return yield->emitError("expected value ")
               << index << " to be stored no earlier than it is made, found optim.writes of "
               << stringifySpace(*write);
  }
  return checkBlockStates(rule, writes);
}

class Distribute : public stepc::distribute::impl::DistributeBase<Distribute> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    setLevel(module, "comm");
    OpBuilder builder(&getContext());
    SmallVector<optim::GroupOp> groups(module.getOps<optim::GroupOp>());
    int64_t waves = 1;
    for (auto rule : module.getOps<optim::RuleOp>())
      if (failed(checkDecided(rule)))
        return signalPassFailure();
    for (optim::GroupOp group : groups) {
      auto rule = SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(group, group.getRuleAttr());
      bool undecided = !group.getHops() && findCrossings(rule).hasMatrix;
      if (undecided || group.lacksBases()) {
        group.emitError("expected a decided group, found no ") << (undecided ? "hops" : "bases");
        return signalPassFailure();
      }
      for (int64_t wave : group.getWaves().value_or(ArrayRef<int64_t>()))
        waves = std::max(waves, wave + 1);
    }
    optim::ModelOp model = optim::findModel(module);
    if (model && !groups.empty() &&
        llvm::none_of(groups, [](optim::GroupOp group) { return group.isOfModel(); })) {
      model.emitError(
          "expected a group of the parameter that stands for the model alone, found none");
      return signalPassFailure();
    }
    builder.setInsertionPointToEnd(module.getBody());
    auto step =
        func::FuncOp::create(builder, module.getLoc(), "step", builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(step.addEntryBlock());
    Location loc = module.getLoc();
    StepHandles handles = {
        HyperparametersOp::create(builder, loc, builder.getType<HyperparametersType>()),
        StepsOp::create(builder, loc, builder.getType<StepsType>()),
        ActiveOp::create(builder, loc, builder.getType<ActiveType>())};
    Communicators communicators;
    std::map<std::string, RuleInfo> rules;
    std::vector<std::unique_ptr<ScalarColumns>> columns;
    std::vector<std::unique_ptr<GroupChain>> chains;
    SmallVector<ChainOfGroup> all;
    for (optim::GroupOp group : groups) {
      auto rule = SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(group, group.getRuleAttr());
      auto [it, isNew] = rules.try_emplace(rule.getSymName().str());
      if (isNew)
        it->second = {findCrossings(rule), collectColumns(rule)};
      ScalarColumns &table =
          *columns.emplace_back(std::make_unique<ScalarColumns>(it->second.columns));
      chains.push_back(std::make_unique<GroupChain>(builder, group, rule, it->second.crossings,
                                                    table, handles.active, communicators));
      if (module->hasAttr(kReducesAgainAttr))
        chains.back()->reduceAgain();
      ChainOfGroup &each =
          all.emplace_back(ChainOfGroup{group, rule, chains.back().get(), &table, {}});
      for (int64_t wave = 0; wave < waves; ++wave)
        each.segments.push_back(createSegment(builder, group, wave, waves));
    }
    KnownNumbers known;
    if (model && !groups.empty()) {
      known = buildModelNumbers(builder, handles, model, all);
      handles.active = known.active;
      for (ChainOfGroup &each : all)
        each.chain->setActive(known.active);
    }
    llvm::erase_if(all, [](ChainOfGroup &each) { return each.group.isOfModel(); });
    for (ChainOfGroup &each : all)
      if (!each.columns->values.empty())
        each.columns->table =
            createScalars(builder, handles, each.group, each.rule, *each.columns, known);
    // Waves in order, and within a wave the groups in order; elementwise groups belong to wave 0.
    for (int64_t wave = 0; wave < waves; ++wave)
      for (ChainOfGroup &each : all)
        if (FlatSymbolRefAttr segment = each.segments[wave])
          each.chain->build(segment);
    AdvanceStepsOp::create(builder, loc, handles.steps, handles.active);
    func::ReturnOp::create(builder, loc);
  }

  /// Creates the group's segment of a wave. Returns null if the group has no blocks in the wave.
  FlatSymbolRefAttr createSegment(OpBuilder &builder, optim::GroupOp group, int64_t wave,
                                  int64_t waves) {
    std::optional<ArrayRef<int64_t>> list = group.getWaves();
    bool all = !list || waves == 1;
    if (all && wave > 0)
      return {};
    SmallVector<int64_t> blocks;
    if (!all)
      for (auto [block, assigned] : llvm::enumerate(*list))
        if (assigned == wave)
          blocks.push_back(block);
    if (!all && blocks.empty())
      return {};
    std::string name = (group.getSymName() + ".w" + Twine(wave)).str();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(lastSymbol ? lastSymbol : lastGroup());
    auto segment =
        SegmentOp::create(builder, group.getLoc(), builder.getStringAttr(name),
                          FlatSymbolRefAttr::get(group.getSymNameAttr()),
                          builder.getI64IntegerAttr(wave), all ? builder.getUnitAttr() : UnitAttr(),
                          all ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(blocks));
    lastSymbol = segment;
    return FlatSymbolRefAttr::get(segment.getSymNameAttr());
  }

  Operation *lastGroup() {
    Operation *last = nullptr;
    for (auto group : getOperation().getOps<optim::GroupOp>())
      last = group;
    return last;
  }

  Operation *lastSymbol = nullptr;
};

} // namespace
