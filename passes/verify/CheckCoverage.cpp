//===- CheckCoverage.cpp - Every block, by every kind of operation --------===//

#include "passes/verify/Verify.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

static std::string describeBlock(const plan::Plan &plan, int64_t group, int64_t block) {
  const plan::Group &g = plan.groups[group];
  int64_t each = viewOf(g, plan::ValueKind::Full).blocks;
  return plan::describeBlock(g, block % each) + "parameter '" +
         plan.parameters[g.parameters[block / each]].name + "'";
}

/// Also segments that no operation names.
LogicalResult verify::checkSegments(const plan::Plan &plan, ModuleOp module) {
  SmallVector<comm::SegmentOp> segments(module.getOps<comm::SegmentOp>());
  std::vector<llvm::DenseMap<int64_t, int64_t>> segmentOf(plan.groups.size());
  for (auto [index, segment] : llvm::enumerate(plan.segments)) {
    std::vector<int64_t> blocks = segment.blocks;
    for (int64_t block = 0, e = blockCountOf(plan.groups[segment.group]); segment.all && block < e;
         ++block)
      blocks.push_back(block);
    for (int64_t block : blocks) {
      auto [found, added] = segmentOf[segment.group].try_emplace(block, int64_t(index));
      if (added)
        continue;
      auto diag = segments[index].emitOpError("expected each block in one segment, found ")
                  << describeBlock(plan, segment.group, block) << " in another";
      diag.attachNote(segments[found->second].getLoc()) << "the other segment is here";
      return diag;
    }
  }
  return success();
}

namespace {

/// How often each block of a group was handled, and by what.
struct Count {
  std::vector<int64_t> times;                            // per block
  SmallVector<std::pair<Operation *, int64_t>> handlers; // and the segment
};

/// Operations of a group that differ in their segment and buffers alone.
struct OperationClass {
  Operation *exemplar;
  size_t pair; // of a comm.start
  Count count;
};

/// What distinguishes operations, beside their regions.
using Key = SmallVector<const void *>;

class CoverageCheck {
public:
  CoverageCheck(const ProgramPlan &program, ModuleOp module)
      : program(program), plan(program.plan), classes(plan.groups.size()),
        written(plan.groups.size()), module(module) {
    for (optim::RuleOp rule : module.getOps<optim::RuleOp>())
      rules.push_back(rule);
    for (optim::GroupOp group : module.getOps<optim::GroupOp>())
      groups.push_back(group);
    for (auto [i, group] : llvm::enumerate(plan.groups))
      written[i].resize(1 + plan.rules[group.rule].states.size());
  }

  LogicalResult run(func::FuncOp step) {
    for (Operation &op : step.getBody().front())
      collect(&op);
    bool fine = succeeded(checkSegments(plan, module));
    for (size_t group = 0; group < plan.groups.size(); ++group) {
      for (OperationClass &each : classes[group])
        fine &= checkClass(group, each);
      // A missing operation is missing as a writer, too: say it once.
      for (size_t target = 0; target < written[group].size() && fine; ++target)
        fine &= checkWritten(group, target);
    }
    return success(fine);
  }

private:
  void collect(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](comm::StageOp op) {
          Key key = keyOf(op, {int64_t(op.getIteration()), int64_t(op.getIns().size())});
          add(op, 0, op.getSegmentAttr(), key);
          for (Value value : op.getWrites())
            addWrite(op, op.getSegmentAttr(), value);
        })
        .Case([&](comm::CopyOp op) {
          add(op, 0, op.getSegmentAttr(), keyOf(op, {}));
          if (op.getTarget())
            addWrite(op, op.getSegmentAttr(), op.getTarget());
        })
        .Case([&](comm::SumOp op) {
          add(op, 0, op.getSegmentAttr(), keyOf(op, {int64_t(op.getDivisor())}));
        })
        .Case([&](optim::ProductOp op) {
          Key key = keyOf(op, {op.getTransposeLhs(), op.getTransposeRhs(), op.getSymmetric()});
          key.push_back(op.getAlphaAttr().getAsOpaquePointer());
          key.push_back(op.getBetaAttr().getAsOpaquePointer());
          add(op, 0, comm::segmentOfBatch(op), key);
        })
        .Case([&](optim::BlockReduceOp op) {
          add(op, 0, comm::segmentOfBatch(op),
              keyOf(op, {int64_t(op.getKind()), int64_t(op.getExponent())}));
        })
        .Case([&](comm::StartOp op) {
          for (auto [i, pair] : llvm::enumerate(llvm::zip(op.getSends(), op.getReceives()))) {
            auto [send, receive] = pair;
            // Of any kind: what travels beside a value may differ from wave to wave.
            Key key{op->getName().getAsOpaquePointer()};
            addType(key, send.getType());
            add(op, i, comm::placeOf(receive).getSymbol(), key);
          }
        });
  }

  static const void *number(int64_t value) {
    return reinterpret_cast<const void *>(static_cast<intptr_t>(value));
  }

  Key keyOf(Operation *op, std::initializer_list<int64_t> numbers) {
    Key key{op->getName().getAsOpaquePointer()};
    for (int64_t each : numbers)
      key.push_back(number(each));
    for (Value value : op->getOperands()) {
      addType(key, value.getType());
      // Shards are the same in every wave; buffers are not.
      if (auto shards = value.getDefiningOp<comm::ShardsOp>())
        key.push_back(shards->getAttrDictionary().getAsOpaquePointer());
    }
    return key;
  }

  /// A type without its segment.
  static void addType(Key &key, Type type) {
    auto place = comm::placeOf(type);
    if (!place || place.isScalars())
      return key.push_back(type.getAsOpaquePointer());
    auto shaped = cast<ShapedType>(type);
    for (int64_t word :
         {int64_t(place.getHolds()), int64_t(place.getFrom().kind), place.getFrom().hop,
          int64_t(place.getTo().kind), place.getTo().hop, int64_t(place.getEnd())})
      key.push_back(number(word));
    for (int64_t size : shaped.getShape())
      key.push_back(number(size));
    key.push_back(shaped.getElementType().getAsOpaquePointer());
  }

  void add(Operation *op, size_t pair, FlatSymbolRefAttr segmentName, const Key &key) {
    int64_t segment = ProgramPlan::find(program.segments, segmentName);
    int64_t group = plan.segments[segment].group;
    constexpr auto flags = OperationEquivalence::Flags::IgnoreLocations;
    SmallVector<size_t> &sameKey = byKey[{group, key}];
    for (size_t index : sameKey) {
      OperationClass &known = classes[group][index];
      if (known.exemplar->getNumRegions() == 0 ||
          OperationEquivalence::isRegionEquivalentTo(&known.exemplar->getRegion(0),
                                                     &op->getRegion(0), flags))
        return count(known.count, op, segment);
    }
    sameKey.push_back(classes[group].size());
    classes[group].push_back({op, pair, {}});
    count(classes[group].back().count, op, segment);
  }

  void count(Count &count, Operation *op, int64_t index) {
    const plan::Segment &segment = plan.segments[index];
    count.times.resize(blockCountOf(plan.groups[segment.group]), 0);
    count.handlers.push_back({op, index});
    if (segment.all)
      for (int64_t &times : count.times)
        ++times;
    for (int64_t block : segment.blocks)
      ++count.times[block];
  }

  void addWrite(Operation *op, FlatSymbolRefAttr segmentName, Value value) {
    auto shards = value.getDefiningOp<comm::ShardsOp>();
    if (shards.getKind() == comm::ShardsKind::Gradient)
      return; // refused elsewhere
    int64_t segment = ProgramPlan::find(program.segments, segmentName);
    int64_t group = plan.segments[segment].group;
    size_t target = 0;
    if (shards.getKind() == comm::ShardsKind::State)
      for (auto [i, state] : llvm::enumerate(plan.rules[plan.groups[group].rule].states))
        if (shards.getState() == StringRef(state.name))
          target = 1 + i;
    count(written[group][target], op, segment);
  }

  /// The handlers of a block, as notes.
  void attachHandlers(InFlightDiagnostic &diag, const Count &count, int64_t block) {
    for (auto [op, index] : count.handlers) {
      const plan::Segment &segment = plan.segments[index];
      if (segment.all || llvm::is_contained(segment.blocks, block))
        diag.attachNote(op->getLoc()) << "segment @" << segment.name << " has it here";
    }
  }

  bool checkClass(int64_t group, OperationClass &each) {
    auto [fewest, most] = std::minmax_element(each.count.times.begin(), each.count.times.end());
    if (each.count.times.empty())
      return true;
    auto stage = dyn_cast<comm::StageOp>(each.exemplar);
    bool overShards = stage && stage.getIteration() != comm::Iteration::Blocks;
    // Matrix space repeats itself within a wave; a stage over shards would write twice.
    int64_t expected = overShards ? 1 : *most;
    if (*fewest == expected && *most == expected)
      return true;
    auto wrong = *most > expected ? most : fewest;
    auto diag = each.exemplar->emitOpError("expected each block of group @")
                << plan.groups[group].name << " to be handled "
                << (expected == 1 ? "once" : std::to_string(expected) + " times")
                << " by operations of this form, found "
                << describeBlock(plan, group, wrong - each.count.times.begin()) << " handled "
                << *wrong << " times";
    attachHandlers(diag, each.count, wrong - each.count.times.begin());
    return false;
  }

  /// Whether the rule gives a value back as it came.
  bool isUnchanged(int64_t group, size_t target) {
    optim::RuleOp rule = rules[plan.groups[group].rule];
    size_t argument = target == 0 ? 0 : target + 1;
    return rule.getBody().front().getTerminator()->getOperand(target) ==
           rule.getBody().getArgument(argument);
  }

  bool checkWritten(int64_t group, size_t target) {
    const plan::Group &g = plan.groups[group];
    const plan::State *state = target ? &plan.rules[g.rule].states[target - 1] : nullptr;
    if (state && !plan::stateExists(g, *state))
      return true;
    Count &count = written[group][target];
    count.times.resize(blockCountOf(g), 0);
    // A master's own yield is ignored: it changes as the parameter does.
    bool unchanged = isUnchanged(group, state && state->master ? 0 : target);
    auto wrong = llvm::find_if(count.times, [](int64_t times) { return times != 1; });
    if (wrong == count.times.end() || (unchanged && count.handlers.empty()))
      return true;
    int64_t block = wrong - count.times.begin();
    auto diag = groups[group].emitOpError("expected ");
    diag << (state ? "state \"" + state->name + "\"" : "the parameter")
         << " of every block to be written once, found " << describeBlock(plan, group, block)
         << " written " << *wrong << " times";
    attachHandlers(diag, count, block);
    return false;
  }

  const ProgramPlan &program;
  const plan::Plan &plan;
  std::vector<std::vector<OperationClass>> classes; // per group
  std::vector<std::vector<Count>> written;          // per group: parameter, states
  std::map<std::pair<int64_t, Key>, SmallVector<size_t>> byKey;
  SmallVector<optim::RuleOp> rules;
  SmallVector<optim::GroupOp> groups;
  ModuleOp module;
};

} // namespace

LogicalResult verify::checkCoverage(const ProgramPlan &program, ModuleOp module,
                                    func::FuncOp step) {
  return CoverageCheck(program, module).run(step);
}
