//===- CheckFlow.cpp - What each buffer holds when it is read -------------===//

#include "passes/cost/Saturate.h"
#include "passes/verify/BufferStates.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;
using plan::Layout;
using plan::ValueKind;

namespace {

class FlowCheck {
public:
  explicit FlowCheck(const ProgramPlan &program)
      : program(program), plan(program.plan), buffers(program, facts.lives) {}

  LogicalResult run(func::FuncOp step) {
    for (Operation &op : step.getBody().front()) {
      buffers.advance();
      bool fine = llvm::TypeSwitch<Operation *, bool>(&op)
                      .Case([&](comm::ShardsOp op) { return checkType(op); })
                      .Case([&](comm::ExtentOp op) { return checkSegment(op); })
                      .Case([&](comm::ScalarsOp op) { return scalars(op); })
                      .Case([&](comm::StageOp op) { return stage(op); })
                      .Case([&](comm::CopyOp op) { return copy(op); })
                      .Case([&](comm::StartOp op) { return start(op); })
                      .Case([&](comm::WaitOp op) { return wait(op); })
                      .Case([&](optim::ProductOp op) { return product(op); })
                      .Case([&](optim::BlockReduceOp op) { return reduce(op); })
                      .Default([](Operation *) { return true; });
      // What follows a fault would only repeat it.
      if (!fine)
        return failure();
    }
    return success(buffers.checkAllRead());
  }

  StepFacts facts;

private:
  int64_t segmentOf(FlatSymbolRefAttr name) { return ProgramPlan::find(program.segments, name); }
  const plan::Group &groupOf(int64_t segment) { return plan.groups[plan.segments[segment].group]; }

  /// An operation that is not elementwise may not overwrite what it still reads.
  bool checkApart(Operation *user, Value out, ValueRange ins) {
    if (!llvm::is_contained(ins, out))
      return true;
    user->emitOpError(
        "expected an out that is not read by the operation, found it among the inputs");
    return false;
  }

  //===--- Needs ------------------------------------------------------------===//

  void need(Need::Unit unit, Operation *user, Value value, int64_t index, int64_t elements = 0) {
    facts.needs.push_back({unit, value.getDefiningOp<comm::BufferOp>(), user, index, elements});
  }

  /// A batch of computed blocks, of the shape `kind` where one is given.
  bool needBlocks(Operation *user, Value value, int64_t segment,
                  std::optional<ValueKind> kind = std::nullopt) {
    auto type = cast<MemRefType>(value.getType());
    geometry::View view = geometry::view(groupOf(segment), kind.value_or(ValueKind::Full));
    if (type.getRank() != 3 || !type.isDynamicDim(0) || type.isDynamicDim(1) ||
        type.isDynamicDim(2) ||
        (kind && (type.getDimSize(1) != view.rows || type.getDimSize(2) != view.cols))) {
      auto diag = user->emitOpError("expected a batch of computed blocks");
      if (kind)
        diag << " of " << view.rows << " x " << view.cols;
      diag << ", found " << type;
      return false;
    }
    need(Need::Blocks, user, value, segment, saturatingMul(type.getDimSize(1), type.getDimSize(2)));
    return true;
  }

  /// Records the use of the one table of an operation.
  int64_t useTable(Operation *op, bool reads = false, bool writes = false) {
    int64_t table = program.table(op);
    if (facts.userOf.try_emplace(table, op).second) {
      useIndex[table] = facts.program.uses.size();
      facts.program.uses.push_back({table, reads, writes});
    }
    TableUse &use = facts.program.uses[useIndex[table]];
    use.reads |= reads;
    use.writes |= writes;
    return table;
  }

  /// What was received is unpacked by `consumer`: a way is complete.
  void complete(const BufferState &state, int64_t consumer) {
    if (state.message < 0)
      return;
    Way way{state.producer, state.message, consumer};
    if (ways.insert({way.producer, way.message, way.consumer}).second)
      facts.program.ways.push_back(way);
  }

  //===--- Operations -----------------------------------------------------===//

  bool checkSegment(comm::ExtentOp op) {
    if (segmentOf(op.getSegmentAttr()) >= 0)
      return true;
    op.emitOpError("expected a segment, found no comm.segment named ") << op.getSegmentAttr();
    return false;
  }

  bool checkType(comm::ShardsOp op) {
    int64_t index = ProgramPlan::find(program.groups, op.getGroupAttr());
    if (index < 0) {
      op.emitOpError("expected a group, found no optim.group named ") << op.getGroupAttr();
      return false;
    }
    const plan::Group &group = plan.groups[index];
    plan::DType expected =
        op.getKind() == comm::ShardsKind::Parameter ? group.parameterType : group.gradientType;
    if (op.getKind() == comm::ShardsKind::State) {
      const plan::State *state = stateOf(op);
      if (!state) {
        op.emitOpError("expected a state of group @")
            << group.name << ", found " << op.getStateAttr();
        return false;
      }
      expected = state->dtype;
    }
    auto type = cast<comm::ShardsType>(op.getType());
    if (type.getGroup() == op.getGroupAttr() && optim::toPlan(type.getElementType()) == expected)
      return true;
    op.emitOpError("expected shards of ")
        << op.getGroupAttr() << " and " << plan::name(expected) << ", found " << type;
    return false;
  }

  const plan::State *stateOf(comm::ShardsOp op) {
    const plan::Group &group = plan.groups[ProgramPlan::find(program.groups, op.getGroupAttr())];
    for (const plan::State &state : plan.rules[group.rule].states)
      if (op.getState() == StringRef(state.name) && plan::stateExists(group, state))
        return &state;
    return nullptr;
  }

  /// Shards of the segment's group and of a kind.
  bool checkShards(Operation *user, Value value, int64_t segment, ValueKind kind) {
    auto shards = value.getDefiningOp<comm::ShardsOp>();
    if (!shards) {
      user->emitOpError("expected comm.shards, found ") << value;
      return false;
    }
    const plan::State *state = stateOf(shards);
    ValueKind found = state ? state->kind : ValueKind::Full;
    StringRef group = groupOf(segment).name;
    if (shards.getGroup() == group && found == kind)
      return true;
    auto diag = user->emitOpError("expected ")
                << plan::name(kind) << " shards of group @" << group << ", found "
                << plan::name(found) << " shards of group " << shards.getGroupAttr();
    diag.attachNote(shards.getLoc()) << "the shards are here";
    return false;
  }

  /// Gradients are the trainer's.
  bool checkWritable(Operation *user, Value value) {
    auto shards = value.getDefiningOp<comm::ShardsOp>();
    if (shards.getKind() != comm::ShardsKind::Gradient)
      return true;
    auto diag = user->emitOpError("expected writes of parameters and states, because gradients "
                                  "belong to the trainer, found one of the gradient");
    diag.attachNote(shards.getLoc()) << "the shards are here";
    return false;
  }

  bool scalars(comm::ScalarsOp op) {
    int64_t group = ProgramPlan::find(program.groups, op.getGroupAttr());
    auto type = cast<MemRefType>(op.getInit().getType());
    need(Need::Elements, op, op.getInit(), group, type.getNumElements());
    return buffers.write(op, op.getInit(), {Meaning::Scalars, group});
  }

  bool readScalars(comm::StageOp op, int64_t segment) {
    return !op.getScalars() ||
           buffers.read(op, op.getScalars(), {Meaning::Scalars, plan.segments[segment].group});
  }

  /// Over blocks every operand is what the rows of the table walk, or constant along an axis; an
  /// out that is constant would be written by many elements.
  bool checkBroadcast(comm::StageOp op, int64_t index) {
    const plan::Table &table = plan.tables[index];
    geometry::View view = geometry::view(groupOf(table.segment), table.value);
    for (Value value : op.getOperands()) {
      auto type = dyn_cast<MemRefType>(value.getType());
      if (!type || value == op.getScalars())
        continue;
      bool isOut = llvm::is_contained(op.getOuts(), value);
      auto fits = [&](int64_t size, int64_t walked) {
        return size == walked || (size == 1 && !isOut);
      };
      if (fits(type.getDimSize(1), view.rows) && fits(type.getDimSize(2), view.cols))
        continue;
      op.emitOpError("expected ") << (isOut ? "outs of " : "operands of ") << view.rows << " x "
                                  << view.cols << (isOut ? "" : " or 1")
                                  << ", because that is what the stage runs over, found " << type;
      return false;
    }
    return true;
  }

  bool stage(comm::StageOp op) {
    int64_t segment = segmentOf(op.getSegmentAttr());
    if (!readScalars(op, segment))
      return false;
    bool overBlocks = op.getIteration() == comm::Iteration::Blocks;
    bool inBlocks = overBlocks || op.getLayout() == comm::Layout::Blocks;
    Meaning meaning{Meaning::Staged, segment, Layout(op.getLayout()),
                    plan::Direction(op.getDirection()), ValueKind::Full};
    if (inBlocks)
      meaning = Meaning::blocks(segment);
    auto isShards = [](Value value) { return isa<comm::ShardsType>(value.getType()); };
    for (Value value :
         llvm::concat<Value>(SmallVector<Value>(op.getIns()), SmallVector<Value>(op.getWrites())))
      if (isShards(value) && !checkShards(op, value, segment, ValueKind::Full))
        return false;
    for (Value value : op.getWrites())
      if (!checkWritable(op, value))
        return false;
    bool reads = llvm::any_of(op.getIns(), [&](Value value) { return !isShards(value); });
    int64_t table = useTable(op, reads, !op.getOuts().empty());
    if (overBlocks && !checkBroadcast(op, table))
      return false;
    auto needed = [&](Value value) {
      if (overBlocks)
        return needBlocks(op, value, segment);
      if (inBlocks)
        return needBlocks(op, value, segment, ValueKind::Full);
      need(Need::From, op, value, table);
      return true;
    };
    for (Value value : op.getIns()) {
      if (isShards(value))
        continue;
      BufferState *state = buffers.read(op, value, meaning);
      if (!state || !needed(value))
        return false;
      complete(*state, table);
    }
    for (Value value : op.getOuts()) {
      // Element by element, so that an input may be overwritten in place.
      BufferState *state = buffers.write(op, value, meaning);
      if (!state || !needed(value))
        return false;
      state->producer = table;
    }
    return true;
  }

  bool copy(comm::CopyOp op) {
    int64_t segment = segmentOf(op.getSegmentAttr()), table = useTable(op);
    auto kind = ValueKind(op.getValue());
    auto meaning = [&](comm::Layout layout) {
      return layout == comm::Layout::Blocks ? Meaning::blocks(segment)
                                            : Meaning{Meaning::Staged, segment, Layout(layout),
                                                      plan::Direction(op.getDirection()), kind};
    };
    auto needed = [&](Value value, comm::Layout layout, Need::Unit unit) {
      if (layout == comm::Layout::Blocks)
        return needBlocks(op, value, segment, kind);
      need(unit, op, value, table);
      return true;
    };
    if (op.getFrom() == comm::Layout::Shard) {
      if (!checkShards(op, op.getSource(), segment, kind))
        return false;
    } else {
      BufferState *state = buffers.read(op, op.getSource(), meaning(op.getFrom()));
      if (!state || !needed(op.getSource(), op.getFrom(), Need::From))
        return false;
      complete(*state, table);
    }
    if (op.getTo() == comm::Layout::Shard)
      return checkShards(op, op.getTarget(), segment, kind) && checkWritable(op, op.getTarget());
    BufferState *state = buffers.write(op, op.getInit(), meaning(op.getTo()));
    if (!state || !needed(op.getInit(), op.getTo(), Need::To))
      return false;
    state->producer = table;
    return true;
  }

  bool start(comm::StartOp op) {
    ArrayRef<int64_t> tables = program.tables.find(op)->second;
    auto meaning = [&](ArrayAttr segments, size_t i, Layout layout) {
      return Meaning{Meaning::Staged, segmentOf(cast<FlatSymbolRefAttr>(segments[i])), layout,
                     plan::Direction(op.getDirection()), ValueKind(op.getKinds()[i])};
    };
    SmallVector<int64_t> producers;
    for (size_t i = 0; i < tables.size(); ++i) {
      BufferState *state =
          buffers.read(op, op.getSends()[i], meaning(op.getSendSegments(), i, Layout::Send));
      if (!state)
        return false;
      if (state->sentBy) {
        auto diag = op.emitOpError("expected each value to be sent once, found ")
                    << buffers.describe(state->holds) << " again";
        diag.attachNote(state->sentBy.getLoc()) << "it is sent here";
        return false;
      }
      state->sentBy = state->leaving = op;
      producers.push_back(state->producer);
      facts.userOf.try_emplace(tables[i], op);
      need(Need::From, op, op.getSends()[i], tables[i]);
    }
    for (size_t i = 0; i < tables.size(); ++i) {
      BufferState *state = buffers.write(op, op.getReceives()[i],
                                         meaning(op.getReceiveSegments(), i, Layout::Receive));
      if (!state)
        return false;
      state->arriving = op;
      state->producer = producers[i];
      state->message = tables[i];
      need(Need::To, op, op.getReceives()[i], tables[i]);
    }
    return true;
  }

  bool wait(comm::WaitOp op) {
    buffers.land(op.getToken().getDefiningOp<comm::StartOp>(), op);
    return true;
  }

  bool product(optim::ProductOp op) {
    int64_t segment = segmentOf(op.getSegmentAttr());
    SmallVector<Value> ins{op.getLhs(), op.getRhs()};
    if (op.getAddend())
      ins.push_back(op.getAddend());
    // The addend is read where the result goes, but for the half that is mirrored.
    ValueRange kept = op.getSymmetric() ? ValueRange(ins) : ValueRange(ins).take_front(2);
    return batchOperation(op, segment, ins, op.getInit()) && checkApart(op, op.getInit(), kept);
  }

  bool reduce(optim::BlockReduceOp op) {
    return batchOperation(op, segmentOf(op.getSegmentAttr()), op.getSource(), op.getInit()) &&
           checkApart(op, op.getInit(), op.getSource());
  }

  bool batchOperation(Operation *op, int64_t segment, ValueRange ins, Value out) {
    useTable(op);
    for (Value value : ins)
      if (!buffers.read(op, value, Meaning::blocks(segment)) || !needBlocks(op, value, segment))
        return false;
    return buffers.write(op, out, Meaning::blocks(segment)) && needBlocks(op, out, segment);
  }

  const ProgramPlan &program;
  const plan::Plan &plan;
  BufferStates buffers;
  llvm::DenseMap<int64_t, size_t> useIndex;
  llvm::DenseSet<std::tuple<int64_t, int64_t, int64_t>> ways;
};

} // namespace

FailureOr<StepFacts> verify::checkFlow(const ProgramPlan &program, func::FuncOp step) {
  FlowCheck check(program);
  if (failed(check.run(step)))
    return failure();
  return std::move(check.facts);
}
