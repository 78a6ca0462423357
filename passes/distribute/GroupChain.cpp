//===- GroupChain.cpp - in → exchange → matrix → exchange → out ------------===//

#include "passes/distribute/GroupChain.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using namespace stepc::distribute;
using optim::kindOf;
using optim::Space;
using optim::Strategy;

static std::optional<Space> spaceOf(Operation *op) {
  auto attr = op ? op->getAttrOfType<IntegerAttr>(optim::kSpaceAttr) : IntegerAttr();
  return attr ? optim::symbolizeSpace(attr.getInt()) : std::nullopt;
}

int64_t distribute::writeOf(optim::RuleOp rule, unsigned index) {
  Operation *yield = rule.getBody().front().getTerminator();
  return yield->getAttrOfType<DenseI64ArrayAttr>(optim::kWritesAttr)[index];
}

Crossings distribute::findCrossings(optim::RuleOp rule) {
  Crossings result;
  Block &body = rule.getBody().front();
  auto yield = cast<optim::YieldOp>(body.getTerminator());
  unsigned firstScalar = rule.getFirstScalarArgument();
  llvm::DenseSet<Value> usedOut; // on shards, after the exchange
  for (auto [index, value] : llvm::enumerate(yield.getOperands()))
    if (writeOf(rule, index) == int64_t(Space::Out))
      usedOut.insert(value);
  // What matrix space reads and does not make.
  auto bringIn = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getArgNumber() >= 2 && argument.getArgNumber() < firstScalar &&
        rule.getState(argument.getArgNumber() - 2).getKind() != ValueKind::Full)
      result.statesIn.insert(argument.getArgNumber() - 2);
    else if (spaceOf(value.getDefiningOp()) != Space::Matrix)
      result.fullIn.insert(value);
  };
  for (Operation &op : body) {
    std::optional<Space> space = spaceOf(&op);
    if (space == Space::Out)
      usedOut.insert_range(optim::placedOperands(&op));
    if (space != Space::Matrix)
      continue;
    result.hasMatrix = true;
    for (Value operand : optim::placedOperands(&op))
      bringIn(operand);
  }
  for (Operation &op : body)
    if (spaceOf(&op) == Space::Matrix && usedOut.contains(op.getResult(0)) &&
        kindOf(op.getResult(0).getType()) == ValueKind::Full)
      result.fullOut.insert(op.getResult(0));
  for (unsigned i = 0, e = rule.getNumStates(); i < e; ++i) {
    int64_t write = writeOf(rule, i + 1);
    if (write == int64_t(Space::Matrix)) {
      result.statesOut.push_back(i);
      result.hasMatrix = true;
      // A state may take another as it is: no operation reads that one.
      for (Value operand : optim::placedOperands(yield.getOperand(i + 1)))
        bringIn(operand);
    }
    if (write == int64_t(Space::In) && rule.getState(i).getType().isF32())
      result.stored.try_emplace(yield.getOperand(i + 1), i);
  }
  return result;
}

GroupChain::GroupChain(OpBuilder &builder, optim::GroupOp group, optim::RuleOp rule,
                       const Crossings &crossings, const ScalarColumns &columns, Value world)
    : builder(builder), group(group), rule(rule), crossings(crossings), columns(columns),
      world(world), loc(group.getLoc()), strategy(*group.getStrategy()),
      exemplar(group.getExemplar()), rows(group.getRows()), cols(group.getCols()) {
  for (unsigned i = 0, e = rule.getNumStates(); i < e; ++i)
    if (rule.getState(i).getMaster() && !exemplar.getType().isF32())
      master = i;
}

//===----------------------------------------------------------------------===//
// Shards
//===----------------------------------------------------------------------===//

Value GroupChain::shards(ShardsKind kind, StringRef state, Type type) {
  Value &value = shardsOf[{int(kind), state.str()}];
  if (!value) {
    auto symbol = FlatSymbolRefAttr::get(group.getSymNameAttr());
    value = ShardsOp::create(builder, loc, ShardsType::get(builder.getContext(), symbol, type),
                             kind, group.getSymName(),
                             state.empty() ? StringAttr() : builder.getStringAttr(state));
  }
  return value;
}

Value GroupChain::stateShards(unsigned state) {
  optim::StateAttr attr = rule.getState(state);
  return shards(ShardsKind::State, attr.getName().getValue(), attr.getType());
}

Value GroupChain::parameterSource() {
  return hasMaster() ? stateShards(master) : shards(ShardsKind::Parameter, "", exemplar.getType());
}

void GroupChain::addShardLeaves(llvm::DenseMap<Value, Value> &leaves) {
  leaves[rule.getParameterArgument()] = parameterSource();
  leaves[rule.getGradientArgument()] = shards(ShardsKind::Gradient, "", exemplar.getGradient());
  for (unsigned i = 0, e = rule.getNumStates(); i < e; ++i)
    if (!rule.getState(i).getMaster() && rule.getState(i).getKind() == ValueKind::Full)
      leaves[rule.getStateArgument(i)] = stateShards(i);
}

void GroupChain::addWrites(StageBuilder &stage, Space space) {
  auto yield = cast<optim::YieldOp>(rule.getBody().front().getTerminator());
  if (writeOf(rule, 0) == int64_t(space)) {
    stage.write(yield.getOperand(0), shards(ShardsKind::Parameter, "", exemplar.getType()));
    if (hasMaster())
      stage.write(yield.getOperand(0), stateShards(master));
  }
  for (unsigned i = 0, e = rule.getNumStates(); i < e; ++i)
    if (!rule.getState(i).getMaster() && writeOf(rule, i + 1) == int64_t(space))
      stage.write(yield.getOperand(i + 1), stateShards(i));
}

//===----------------------------------------------------------------------===//
// Staging
//===----------------------------------------------------------------------===//

Value GroupChain::extent(Direction direction, ValueKind kind, Layout layout) {
  Value &value = extents[{int(direction), int(kind), int(layout)}];
  if (!value)
    value = ExtentOp::create(builder, loc, builder.getIndexType(), segment.getValue(), direction,
                             kind, layout);
  return value;
}

Value GroupChain::staging(Direction direction, ValueKind kind, Layout layout, Type element) {
  Value size = extent(direction, kind, layout);
  return tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{ShapedType::kDynamic}, element,
                                 ValueRange{size});
}

Value GroupChain::batch(ValueKind kind, Type element) {
  int64_t r = kind == ValueKind::Cols || kind == ValueKind::One ? 1 : rows;
  int64_t c = kind == ValueKind::Rows || kind == ValueKind::One ? 1 : cols;
  Value count = extent(Direction::ToMatrix, ValueKind::Full, Layout::Blocks);
  return tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{ShapedType::kDynamic, r, c},
                                 element, ValueRange{count});
}

Value GroupChain::copy(Direction direction, ValueKind kind, Layout from, Layout to, Value source,
                       Value target) {
  bool toShards = isa<ShardsType>(target.getType());
  auto op = CopyOp::create(builder, loc, toShards ? TypeRange() : TypeRange(target.getType()),
                           segment.getValue(), direction, kind, from, to, source,
                           toShards ? target : Value(), toShards ? Value() : target);
  return toShards ? Value() : op.getResult();
}

SmallVector<Value> GroupChain::exchange(Direction direction, ValueRange sends,
                                        ArrayRef<ValueKind> kinds) {
  SmallVector<Value> receives;
  SmallVector<Type> types;
  SmallVector<int64_t> numbers;
  for (auto [send, kind] : llvm::zip(sends, kinds)) {
    Type element = cast<ShapedType>(send.getType()).getElementType();
    receives.push_back(staging(direction, kind, Layout::Receive, element));
    types.push_back(receives.back().getType());
    numbers.push_back(int64_t(kind));
  }
  ArrayAttr segments = builder.getArrayAttr(SmallVector<Attribute>(sends.size(), segment));
  Operation *op;
  if (strategy == Strategy::Gather)
    op = AllGatherOp::create(builder, loc, types, world, direction, sends, receives, segments,
                             segments, numbers);
  else
    op = ExchangeOp::create(builder, loc, types, world, direction, sends, receives, segments,
                            segments, numbers);
  return SmallVector<Value>(op->getResults());
}

//===----------------------------------------------------------------------===//
// The chain
//===----------------------------------------------------------------------===//

void GroupChain::build(FlatSymbolRefAttr name) {
  segment = name;
  matrix.clear();
  back.clear();
  extents.clear();
  buildIn();
  if (!crossings.hasMatrix)
    return;
  buildMatrix();
  buildOut();
}

void GroupChain::buildIn() {
  llvm::DenseMap<Value, Value> leaves;
  addShardLeaves(leaves);
  StageBuilder stage(leaves, columns);
  bool wire = strategy == Strategy::Owner || strategy == Strategy::Gather;
  Layout layout = crossings.fullIn.empty() ? Layout::None : wire ? Layout::Send : Layout::Blocks;
  for (Value value : crossings.fullIn) {
    Type element = cast<ShapedType>(value.getType()).getElementType();
    stage.yield(value, wire ? staging(Direction::ToMatrix, ValueKind::Full, Layout::Send, element)
                            : batch(ValueKind::Full, element));
  }
  addWrites(stage, Space::In);
  SmallVector<Value> sends;
  SmallVector<ValueKind> kinds;
  if (!stage.empty()) {
    StageOp op =
        stage.create(builder, loc, segment, Iteration::Shards, Direction::ToMatrix, layout);
    for (auto [value, result] : llvm::zip(crossings.fullIn, op.getResults())) {
      matrix[value] = result;
      sends.push_back(result);
      kinds.push_back(ValueKind::Full);
    }
  }
  if (!wire) {
    for (unsigned state : crossings.statesIn) {
      optim::StateAttr attr = rule.getState(state);
      matrix[rule.getStateArgument(state)] =
          copy(Direction::ToMatrix, attr.getKind(), Layout::Shard, Layout::Blocks,
               stateShards(state), batch(attr.getKind(), attr.getType()));
    }
    return;
  }
  for (unsigned state : crossings.statesIn) {
    optim::StateAttr attr = rule.getState(state);
    sends.push_back(
        copy(Direction::ToMatrix, attr.getKind(), Layout::Shard, Layout::Send, stateShards(state),
             staging(Direction::ToMatrix, attr.getKind(), Layout::Send, attr.getType())));
    kinds.push_back(attr.getKind());
  }
  if (sends.empty())
    return;
  SmallVector<Value> received = exchange(Direction::ToMatrix, sends, kinds);
  size_t next = 0;
  auto unpack = [&](ValueKind kind, Type element) {
    return copy(Direction::ToMatrix, kind, Layout::Receive, Layout::Blocks, received[next++],
                batch(kind, element));
  };
  for (Value value : crossings.fullIn)
    matrix[value] = unpack(ValueKind::Full, cast<ShapedType>(value.getType()).getElementType());
  for (unsigned state : crossings.statesIn)
    matrix[rule.getStateArgument(state)] =
        unpack(rule.getState(state).getKind(), rule.getState(state).getType());
}

void GroupChain::buildOut() {
  auto yield = cast<optim::YieldOp>(rule.getBody().front().getTerminator());
  // New rows, cols and one states, rounded to their storage type.
  SmallVector<Value> states;
  for (unsigned state : crossings.statesOut)
    states.push_back(materialize(yield.getOperand(state + 1), rule.getState(state).getType()));
  for (Value value : crossings.fullOut)
    back[value] = materialize(value, cast<ShapedType>(value.getType()).getElementType());

  bool wire = strategy == Strategy::Owner; // with gather every rank has every block
  if (wire) {
    SmallVector<Value> sends;
    SmallVector<ValueKind> kinds;
    auto pack = [&](Value value, ValueKind kind) {
      Type element = cast<ShapedType>(value.getType()).getElementType();
      sends.push_back(copy(Direction::ToShards, kind, Layout::Blocks, Layout::Send, value,
                           staging(Direction::ToShards, kind, Layout::Send, element)));
      kinds.push_back(kind);
    };
    for (Value value : crossings.fullOut)
      pack(back[value], ValueKind::Full);
    for (auto [state, value] : llvm::zip(crossings.statesOut, states))
      pack(value, rule.getState(state).getKind());
    if (!sends.empty()) {
      SmallVector<Value> received = exchange(Direction::ToShards, sends, kinds);
      size_t next = 0;
      for (Value value : crossings.fullOut)
        back[value] = received[next++];
      for (Value &value : states)
        value = received[next++];
    }
  }
  for (auto [state, value] : llvm::zip(crossings.statesOut, states))
    copy(Direction::ToShards, rule.getState(state).getKind(),
         wire ? Layout::Receive : Layout::Blocks, Layout::Shard, value, stateShards(state));

  llvm::DenseMap<Value, Value> leaves = back;
  addShardLeaves(leaves);
  for (auto [value, state] : crossings.stored)
    leaves[value] = stateShards(state);
  StageBuilder stage(leaves, columns);
  addWrites(stage, Space::Out);
  Layout layout = crossings.fullOut.empty() ? Layout::None
                  : wire                    ? Layout::Receive
                                            : Layout::Blocks;
  if (!stage.empty())
    stage.create(builder, loc, segment, Iteration::Shards, Direction::ToShards, layout);
}
