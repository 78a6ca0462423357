//===- CheckFlow.cpp - What each buffer holds when it is read -------------===//

#include "passes/cost/Saturate.h"
#include "passes/verify/BufferStates.h"
#include "runtime/plan/Parcels.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;
using plan::ValueKind;

namespace {

class FlowCheck {
public:
  explicit FlowCheck(const ProgramPlan &program)
      : program(program), plan(program.plan), buffers(facts.lives) {}

  LogicalResult run(func::FuncOp step) {
    for (Operation &op : step.getBody().front()) {
      buffers.advance();
      bool fine = llvm::TypeSwitch<Operation *, bool>(&op)
                      .Case([&](comm::ShardsOp op) { return checkType(op); })
                      .Case([&](comm::ScalarsOp op) { return scalars(op); })
                      .Case([&](comm::StageOp op) { return stage(op); })
                      .Case([&](comm::CopyOp op) { return copy(op); })
                      .Case([&](comm::SumOp op) { return sum(op); })
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
    auto buffer = value.getDefiningOp<comm::BufferOp>();
    int64_t size = cast<MemRefType>(value.getType()).getElementTypeBitWidth() / 8;
    facts.needs.push_back({unit, buffer, int64_t(buffer.getBytes()), size, user, index, elements});
  }

  /// How much of a staged operand an operation reaches: of a batch all computed blocks, of kept
  /// shards what its table says. What travels is shown to stay in the parts of its start.
  bool needStaged(Operation *user, Value value, int64_t table, Need::Unit unit) {
    comm::PlaceAttr place = comm::placeOf(value);
    if (place.isBatch())
      return needBlocks(user, value);
    if (place.isMoving())
      return succeeded(comm::startOf(user, value));
    need(unit, user, value, table);
    return true;
  }

  bool needBlocks(Operation *user, Value value) {
    comm::PlaceAttr place = comm::placeOf(value);
    int64_t segment = segmentOf(place.getSymbol());
    if (segment < 0 || !place.isBatch()) {
      user->emitOpError("expected computed blocks of a segment, found ") << place;
      return false;
    }
    auto type = cast<MemRefType>(value.getType());
    plan::View view = computedOf(groupOf(segment), place.toPlan(segment).value);
    bool whole = !place.isPartial();
    if (type.getRank() != 3 || !type.isDynamicDim(0) || type.isDynamicDim(1) ||
        type.isDynamicDim(2) ||
        (whole && (type.getDimSize(1) != view.rows || type.getDimSize(2) != view.cols))) {
      auto diag = user->emitOpError("expected a batch of computed blocks");
      if (whole)
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
    return buffers.write(op, op.getInit());
  }

  bool stage(comm::StageOp op) {
    int64_t segment = segmentOf(op.getSegmentAttr());
    if (op.getScalars() && !buffers.read(op, op.getScalars()))
      return false;
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
    for (Value value : op.getIns()) {
      if (isShards(value))
        continue;
      BufferState *state = buffers.read(op, value);
      if (!state || !needStaged(op, value, table, Need::From))
        return false;
      complete(*state, table);
    }
    for (Value value : op.getOuts()) {
      if (leavesZeros(plan, plan.tables[table]) && !buffers.read(op, value))
        return false;
      // Element by element, so that an input may be overwritten in place.
      BufferState *state = buffers.write(op, value);
      if (!state || !needStaged(op, value, table, Need::From))
        return false;
      state->producer = table;
    }
    return true;
  }

  bool copy(comm::CopyOp op) {
    int64_t segment = segmentOf(op.getSegmentAttr()), table = useTable(op);
    auto kind = ValueKind(op.getPlace().getHolds());
    if (isa<comm::ShardsType>(op.getSource().getType())) {
      if (!checkShards(op, op.getSource(), segment, kind))
        return false;
    } else {
      BufferState *state = buffers.read(op, op.getSource());
      if (!state || !needStaged(op, op.getSource(), table, Need::From))
        return false;
      complete(*state, table);
    }
    if (op.getTarget())
      return checkShards(op, op.getTarget(), segment, kind) && checkWritable(op, op.getTarget());
    if (leavesZeros(plan, plan.tables[table]) && !buffers.read(op, op.getInit()))
      return false;
    BufferState *state = buffers.write(op, op.getInit());
    if (!state || !needStaged(op, op.getInit(), table, Need::To))
      return false;
    state->producer = table;
    return true;
  }

  bool sum(comm::SumOp op) {
    int64_t table = useTable(op);
    BufferState *from = buffers.read(op, op.getSource());
    if (!from || !needStaged(op, op.getSource(), table, Need::From))
      return false;
    complete(*from, table);
    BufferState *to = buffers.write(op, op.getInit());
    if (!to || !needStaged(op, op.getInit(), table, Need::To))
      return false;
    to->producer = table;
    return true;
  }

  bool start(comm::StartOp op) {
    ArrayRef<int64_t> tables = program.tables.find(op)->second;
    if (!shareBuffers(op, op.getSends()) || !shareBuffers(op, op.getReceives()))
      return false;
    SmallVector<int64_t> producers;
    for (size_t i = 0; i < tables.size(); ++i) {
      BufferState *state = buffers.read(op, op.getSends()[i]);
      if (!state || failed(comm::startOf(op, op.getSends()[i])))
        return false;
      state->leaving = op;
      producers.push_back(state->producer);
      facts.userOf.try_emplace(tables[i], op);
      need(Need::Sent, op, op.getSends()[i], op.getOrder());
    }
    for (size_t i = 0; i < tables.size(); ++i) {
      BufferState *state = buffers.write(op, op.getReceives()[i]);
      if (!state)
        return false;
      state->arriving = op;
      state->producer = producers[i];
      state->message = tables[i];
      need(Need::Received, op, op.getReceives()[i], op.getOrder());
    }
    return true;
  }

  /// What travels together on one side stands in one buffer.
  bool shareBuffers(comm::StartOp op, OperandRange values) {
    comm::BufferOp first;
    for (Value value : values) {
      auto buffer = value.getDefiningOp<comm::BufferOp>();
      first = first ? first : buffer;
      if (!buffer ||
          (buffer.getOffset() == first.getOffset() && buffer.getBytes() == first.getBytes()))
        continue;
      auto diag = op.emitOpError("expected all that travels together in one buffer, found ")
                  << buffer.getBytes() << " bytes at byte " << buffer.getOffset() << " beside "
                  << first.getBytes() << " bytes at byte " << first.getOffset();
      diag.attachNote(first.getLoc()) << "the one is here";
      diag.attachNote(buffer.getLoc()) << "the other is here";
      return false;
    }
    return true;
  }

  bool wait(comm::WaitOp op) {
    buffers.land(op.getToken().getDefiningOp<comm::StartOp>(), op);
    return true;
  }

  bool product(optim::ProductOp op) {
    SmallVector<Value> ins{op.getLhs(), op.getRhs()};
    if (op.getAddend())
      ins.push_back(op.getAddend());
    // The addend is read where the result goes, but for the half that is mirrored.
    ValueRange kept = op.getSymmetric() ? ValueRange(ins) : ValueRange(ins).take_front(2);
    return batchOperation(op, ins, op.getInit()) && checkApart(op, op.getInit(), kept);
  }

  bool reduce(optim::BlockReduceOp op) {
    return batchOperation(op, op.getSource(), op.getInit()) &&
           checkApart(op, op.getInit(), op.getSource());
  }

  /// All operands are of one segment: that of the first, of which the table is.
  bool batchOperation(Operation *op, ValueRange ins, Value out) {
    useTable(op);
    for (Value value : op->getOperands())
      if (comm::PlaceAttr place = comm::placeOf(value);
          !place || place.getSymbol() != comm::segmentOfBatch(op)) {
        op->emitOpError("expected computed blocks of segment ")
            << comm::segmentOfBatch(op) << ", found " << value.getType();
        return false;
      }
    for (Value value : ins)
      if (!buffers.read(op, value) || !needBlocks(op, value))
        return false;
    return buffers.write(op, out) && needBlocks(op, out);
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
