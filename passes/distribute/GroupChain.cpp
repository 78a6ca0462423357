//===- GroupChain.cpp - in → collectives → matrix → collectives → out ------===//

#include "passes/distribute/GroupChain.h"

#include "runtime/geometry/Geometry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using namespace stepc::distribute;
using optim::kindOf;
using optim::Space;
using optim::spaceOf;

/// Whether a state still has its old value when a space writes rows, cols and one states. `write` is the
/// space that writes the state, if one does.
static bool hasOldValue(std::optional<Space> write, Space space) {
  return space == Space::In || write.value_or(Space::Out) == Space::Out;
}

Crossings distribute::findCrossings(optim::RuleOp rule) {
  Crossings result;
  Block &body = rule.getBody().front();
  auto yield = cast<optim::YieldOp>(body.getTerminator());
  optim::Writes writes = optim::writesOf(rule);
  auto isReducedOnShards = [](Value value) {
    Operation *op = value.getDefiningOp();
    return isa_and_present<optim::ReduceOp>(op) && spaceOf(op) != Space::Matrix;
  };
  /// The state of kind rows, cols or one whose old value this is.
  auto lineState = [&](Value value) -> std::optional<unsigned> {
    std::optional<unsigned> state = rule.findState(value);
    return state && rule.getState(*state).getKind() != ValueKind::Full ? state : std::nullopt;
  };
  // New states of kind rows, cols and one. Stages over shards read them instead of computing them once more,
  // those that matrix space makes if they are of f32.
  llvm::DenseSet<Value> made, madeIn, madeOut; // in matrix space, `in` and `out`
  llvm::DenseMap<Value, unsigned> stateOf, lineOf;
  for (unsigned i = 0, e = rule.getNumStates(); i < e; ++i) {
    Value value = yield.getOperand(i + 1);
    std::optional<Space> write = writes[i + 1];
    if (!value.getDefiningOp() || !write || rule.getState(i).getKind() == ValueKind::Full)
      continue;
    if (write == Space::Matrix && rule.getState(i).getType().isF32()) {
      made.insert(value);
      stateOf.try_emplace(value, i);
    } else if (write != Space::Matrix && !isReducedOnShards(value)) {
      (write == Space::In ? madeIn : madeOut).insert(value);
      lineOf.try_emplace(value, i);
    }
  }
  /// The lines that are there for a stage of a space: one that steps, or one before states are stored.
  auto linesFor = [&](Space space, bool steps) {
    llvm::DenseSet<Value> there;
    if (space == Space::Out)
      there.insert(made.begin(), made.end());
    if (space == Space::Out || steps)
      there.insert(madeIn.begin(), madeIn.end());
    if (space == Space::Out && steps)
      there.insert(madeOut.begin(), madeOut.end());
    return there;
  };
  llvm::DenseSet<Value> usedOut; // full values that `out` reads or stores
  // Notes the values that a stage over shards reads.
  auto readOnShards = [&](ArrayRef<Value> values, Space space) {
    for (Value value : values) {
      if (std::optional<unsigned> state = lineState(value))
        result.oldStates.insert(*state);
      else if (auto state = stateOf.find(value); space == Space::Out && state != stateOf.end())
        result.newStates.insert(state->second);
      else if (auto state = lineOf.find(value); state != lineOf.end())
        result.keptLines.insert(state->second);
      else if (isReducedOnShards(value))
        continue; // it is there
      else if (kindOf(value.getType()) != ValueKind::Full)
        result.linesOut.insert(value);
      else if (space == Space::Out)
        usedOut.insert(value);
    }
  };
  for (auto [index, value] : llvm::enumerate(yield.getOperands())) {
    if (writes[index] != Space::In && writes[index] != Space::Out)
      continue;
    ValueKind kind = *kindOf(value.getType());
    SmallVector<Value> read =
        optim::placedOperands(value, linesFor(*writes[index], kind == ValueKind::Full));
    if (kind != ValueKind::Full) {
      result.lineWrites.push_back({*writes[index], unsigned(index - 1)});
      // The stage that writes a state visits states of its kind, as long as they have their old values.
      llvm::erase_if(read, [&](Value each) {
        std::optional<unsigned> state = lineState(each);
        return state && kindOf(each.getType()) == kind &&
               hasOldValue(writes[*state + 1], *writes[index]);
      });
    }
    readOnShards(read, *writes[index]);
  }
  // Notes a value that matrix space reads, if another space computes it.
  auto bringIn = [&](Value value) {
    if (std::optional<unsigned> state = rule.findBlockState(value))
      result.blockStates.insert(*state);
    else if (std::optional<unsigned> state = lineState(value))
      result.statesIn.insert(*state);
    else if (isReducedOnShards(value))
      result.linesIn.insert(value);
    else if (spaceOf(value.getDefiningOp()) != Space::Matrix)
      result.fullIn.insert(value);
  };
  // What leads to a reduction is computed before states are stored, and what leads to the new values that a
  // stage stores or sends is computed after that. Some operations do both.
  llvm::DenseSet<Operation *> reduces, steps;
  for (Operation &op : llvm::reverse(body))
    for (Operation *user : op.getUsers()) {
      bool isReduced = isa<optim::ReduceOp>(user) && spaceOf(user) != Space::Matrix;
      bool isLast = isa<optim::YieldOp>(user) || spaceOf(user) == Space::Matrix;
      if (isReduced || reduces.contains(user))
        reduces.insert(&op);
      if (isLast || (!isReduced && steps.contains(user)))
        steps.insert(&op);
    }
  for (Operation &op : body) {
    std::optional<Space> space = spaceOf(&op);
    if (space == Space::Out || space == Space::In) {
      bool isReduction = isa<optim::ReduceOp>(op);
      if (isReduction || reduces.contains(&op))
        readOnShards(optim::placedOperands(&op, linesFor(*space, /*steps=*/false)), *space);
      if (!isReduction && steps.contains(&op))
        readOnShards(optim::placedOperands(&op, linesFor(*space, /*steps=*/true)), *space);
    }
    if (auto reduce = dyn_cast<optim::ReduceOp>(op); reduce && space != Space::Matrix)
      result.onShards.push_back(reduce);
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
    if (writes[i + 1] == Space::Matrix) {
      (rule.isBlockState(i) ? result.blockStatesOut : result.statesOut).push_back(i);
      result.hasMatrix = true;
      // The new value of a state may be another state as it is, which no operation reads.
      for (Value operand : optim::placedOperands(yield.getOperand(i + 1)))
        bringIn(operand);
    }
    if (writes[i + 1] == Space::In && rule.getState(i).getKind() == ValueKind::Full &&
        rule.getState(i).getType().isF32())
      result.stored.try_emplace(yield.getOperand(i + 1), i);
  }
  return result;
}

static Distribution standsAfter(const plan::Group &group, size_t hops, Distribution home) {
  return hops == 0 ? home : Distribution::after(group, int64_t(hops));
}

Moves distribute::movesThere(const plan::Group &group, Distribution home) {
  Moves moves;
  for (size_t hop = 0; hop < group.hops.size(); ++hop)
    if (!plan::chooses(group.hops, hop))
      moves.push_back({standsAfter(group, hop, home), standsAfter(group, hop + 1, home)});
  return moves;
}

Moves distribute::movesBack(const plan::Group &group, Distribution home) {
  Moves moves;
  for (auto [from, to] : plan::waysBack(group.hops))
    moves.push_back({standsAfter(group, from, home), standsAfter(group, to, home)});
  return moves;
}

GroupChain::GroupChain(OpBuilder &builder, optim::GroupOp group, optim::RuleOp rule,
                       const Crossings &crossings, const ScalarColumns &columns, Value active,
                       Communicators &communicators)
    : builder(builder), group(group), rule(rule), crossings(crossings), columns(columns),
      active(active), communicators(communicators), loc(group.getLoc()),
      exemplar(group.getExemplar()), layout(group.toPlan()) {
  plan::Rule kept = optim::toPlan(rule);
  for (auto [index, state] : llvm::enumerate(kept.states))
    if (state.master && plan::stateExists(layout, state))
      master = int(index);
  layout.hops = group.getPlanHops();
  mesh = optim::toPlan(optim::lookupMesh(group, exemplar.getMeshAttr()));
  home = plan::home(layout, kept);
  ofModel = plan::modelShards(layout, kept, mesh);
  apart =
      home != standing(plan::ShardsKind::Parameter) || home != standing(plan::ShardsKind::Gradient);
}

//===----------------------------------------------------------------------===//
// Shards
//===----------------------------------------------------------------------===//

Value GroupChain::shards(ShardsKind kind, StringRef state, Type type, Distribution in) {
  Value &value = shardsOf[{int(kind), state.str()}];
  if (!value) {
    auto symbol = FlatSymbolRefAttr::get(group.getSymNameAttr());
    value = ShardsOp::create(builder, loc, ShardsType::get(builder.getContext(), symbol, type, in),
                             kind, group.getSymName(),
                             state.empty() ? StringAttr() : builder.getStringAttr(state));
  }
  return value;
}

Value GroupChain::stateShards(unsigned state) {
  optim::StateAttr attr = rule.getState(state);
  return shards(ShardsKind::State, attr.getName().getValue(), attr.getType(),
                standing(layout.shardsOfState(state)));
}

Value GroupChain::parameterShards() {
  return shards(ShardsKind::Parameter, "", exemplar.getType(),
                standing(plan::ShardsKind::Parameter));
}

Value GroupChain::parameterSource() {
  return hasMaster() ? stateShards(master) : parameterShards();
}

void GroupChain::addShardLeaves(llvm::DenseMap<Value, Value> &leaves) {
  leaves[rule.getParameterArgument()] = parameterSource();
  leaves[rule.getGradientArgument()] = shards(ShardsKind::Gradient, "", exemplar.getGradient(),
                                              standing(plan::ShardsKind::Gradient));
  for (unsigned i = 0, e = rule.getNumStates(); i < e; ++i)
    if (!rule.getState(i).getMaster() && rule.getState(i).getKind() == ValueKind::Full &&
        !rule.isBlockState(i))
      leaves[rule.getStateArgument(i)] = stateShards(i);
}

bool GroupChain::addWrites(StageBuilder &stage, Space space) {
  auto yield = cast<optim::YieldOp>(rule.getBody().front().getTerminator());
  optim::Writes stored = optim::writesOf(rule);
  bool writes = stored[0] == space;
  bool stays = home == standing(plan::ShardsKind::Parameter);
  if (writes && stays)
    stage.write(yield.getOperand(0), parameterShards());
  if (writes && hasMaster())
    stage.write(yield.getOperand(0), stateShards(master));
  for (unsigned i = 0, e = rule.getNumStates(); i < e; ++i)
    if (!rule.getState(i).getMaster() && stored[i + 1] == space &&
        rule.getState(i).getKind() == ValueKind::Full)
      stage.write(yield.getOperand(i + 1), stateShards(i));
  if (writes && !stays)
    stage.yield(yield.getOperand(0), emptyCopy(exemplar.getType()));
  return writes && !stays;
}

//===----------------------------------------------------------------------===//
// Shards with different placements
//===----------------------------------------------------------------------===//

Value GroupChain::emptyCopy(Type element) { return emptyCopy(element, home); }
Value GroupChain::emptyCopy(Type element, Distribution in) {
  return empty(PlaceAttr::packed(segment, ValueKind::Full, in, in, End::Kept), element);
}

Value GroupChain::emptyLine(ValueKind kind, Type element) {
  return empty(PlaceAttr::packed(segment, kind, home, home, End::Kept), element);
}

Value GroupChain::reduce(Value contributions) {
  if (Value known = reduced.lookup(segment))
    return known;
  Distribution in = standing(plan::ShardsKind::Reduced);
  Type element = elementOf(contributions);
  Value sent =
      copy(contributions, send(ValueKind::Full, standing(plan::ShardsKind::Gradient), in, element));
  Value init = emptyCopy(element, in);
  return reduced[segment] =
             SumOp::create(builder, loc, init.getType(), plan::contributions(layout, mesh).divisor,
                           ReductionAttr(), exchange(sent).front(), init)
                 .getResult();
}

void GroupChain::giveBack(Value parameter) {
  Distribution to = standing(plan::ShardsKind::Parameter);
  if (!geometry::holdsAll(layout, mesh, home.whose(), to.whose()))
    parameter =
        exchange(copy(parameter, send(ValueKind::Full, home, to, elementOf(parameter)))).front();
  copy(parameter, parameterShards());
}

StageOp GroupChain::createStage(StageBuilder &stage, llvm::DenseMap<Value, Value> &leaves) {
  llvm::MapVector<Value, Value> coming; // shards → the value sent from them; all travel together
  for (Value read : stage.reads()) {
    Value leaf = leaves[read];
    auto type = dyn_cast<ShardsType>(leaf.getType());
    if (!type || type.getDistribution() == home || copies.contains(leaf) || coming.contains(leaf))
      continue;
    Distribution from = type.getDistribution();
    Type element = type.getElementType();
    if (from == standing(plan::ShardsKind::Gradient) && !layout.reducedPlacements.empty()) {
      Value sum = reduce(leaf);
      from = standing(plan::ShardsKind::Reduced);
      if (from == home)
        copies[leaf] = sum;
      else
        coming[leaf] = copy(sum, send(ValueKind::Full, from, home, element));
      continue;
    }
    if (geometry::holdsAll(layout, mesh, from.whose(), home.whose()))
      copies[leaf] = copy(leaf, emptyCopy(element));
    else
      coming[leaf] = copy(leaf, send(ValueKind::Full, from, home, element));
  }
  for (auto &[leaf, value] : coming)
    value = exchange(value).front();
  for (auto &[leaf, value] : coming)
    copies[leaf] = copy(value, emptyCopy(elementOf(value)));
  for (Value read : stage.reads())
    if (Value brought = copies.lookup(leaves[read]))
      leaves[read] = brought;
  return stage.create(builder, loc, segment, home.kind, active);
}

//===----------------------------------------------------------------------===//
// Buffers, copies and exchanges
//===----------------------------------------------------------------------===//

Value GroupChain::empty(PlaceAttr place, Type element, std::array<int64_t, 2> shape) {
  // All batches of a segment have one extent, the number of blocks, whatever their kind.
  PlaceAttr counted = place.isBatch() ? PlaceAttr::blocks(segment, ValueKind::Full) : place;
  Value &size = extents[counted];
  if (!size)
    size = ExtentOp::create(builder, loc, builder.getIndexType(), counted);
  SmallVector<int64_t> sizes = {ShapedType::kDynamic};
  if (place.isBatch())
    llvm::append_range(sizes, shape);
  return tensor::EmptyOp::create(builder, loc, sizes, element, ValueRange{size}, place);
}

RankedTensorType GroupChain::batchType(ValueKind kind, Type element) const {
  auto [blocks, r, c] = plan::computedView(layout, kind);
  return RankedTensorType::get({ShapedType::kDynamic, r, c}, element,
                               PlaceAttr::blocks(segment, kind));
}

Value GroupChain::batch(ValueKind kind, Type element) {
  RankedTensorType type = batchType(kind, element);
  return empty(PlaceAttr::blocks(segment, kind), element, {type.getDimSize(1), type.getDimSize(2)});
}

Value GroupChain::filled(Value batch) {
  if (placeOf(batch).getValue() != ValueKind::Full || !plan::hasPadding(layout))
    return batch;
  auto stage = StageOp::create(builder, loc, TypeRange(batch.getType()), segment.getValue(),
                               Distribution::Blocks, ValueRange(), ValueRange(), ValueRange(batch),
                               Value(), Value(), WalkedAttr(), ReductionAttr());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&stage.getBody());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(elementOf(batch), 0.0));
  comm::YieldOp::create(builder, loc, zero);
  return stage.getResult(0);
}

Value GroupChain::send(ValueKind kind, Distribution from, Distribution to, Type element) {
  return empty(PlaceAttr::packed(segment, kind, from, to, End::Sent), element);
}

Value GroupChain::copy(Value source, Value target) {
  bool toShards = isa<ShardsType>(target.getType());
  bool onShards = toShards || isa<ShardsType>(source.getType());
  auto op = CopyOp::create(builder, loc, toShards ? TypeRange() : TypeRange(target.getType()),
                           source, toShards ? target : Value(), toShards ? Value() : target,
                           onShards ? active : Value());
  return toShards ? Value() : op.getResult();
}

SmallVector<Value> GroupChain::exchange(ValueRange sends, bool gathers) {
  SmallVector<Value> receives;
  for (Value send : sends) {
    PlaceAttr from = placeOf(send);
    receives.push_back(empty(
        PlaceAttr::packed(segment, from.getValue(), from.getFrom(), from.getTo(), End::Received),
        elementOf(send)));
  }
  TypeRange types = ValueRange(receives).getTypes();
  PlaceAttr first = placeOf(sends.front());
  Value ranks = communicators.get(
      builder, loc, exemplar.getMeshAttr(),
      first.getFrom().isOfLines() ? factorsOfLines(layout, mesh, first.getValue())
                                  : factorsOf(layout, mesh, home, first.getFrom(), first.getTo()));
  Operation *op;
  if (gathers)
    op = AllGatherOp::create(builder, loc, types, ranks, sends, receives);
  else
    op = ExchangeOp::create(builder, loc, types, ranks, sends, receives);
  return SmallVector<Value>(op->getResults());
}

//===----------------------------------------------------------------------===//
// The chain
//===----------------------------------------------------------------------===//

void GroupChain::begin(FlatSymbolRefAttr name) {
  segment = name;
  matrix.clear();
  back.clear();
  extents.clear();
  copies.clear();
  lines.clear();
  if (reducesAgain)
    reduced.clear();
}

void GroupChain::build(FlatSymbolRefAttr name) {
  begin(name);
  buildIn();
  if (!crossings.hasMatrix)
    return;
  buildMatrix();
  buildOut();
}

void GroupChain::buildIn() {
  // Copied first, because `out` also reads old states, which have new values by then.
  for (unsigned state : crossings.oldStates) {
    optim::StateAttr attr = rule.getState(state);
    lines[rule.getStateArgument(state)] =
        copy(stateShards(state), emptyLine(attr.getKind(), attr.getType()));
  }
  llvm::DenseMap<Value, Value> leaves = lines;
  addShardLeaves(leaves);
  reduceOnShards(Space::In, leaves);
  Moves moves = movesThere(layout, home);
  /// The destination of a value after `hops` moves: the sends of the next move or, after the last, a batch.
  auto next = [&](size_t hops, ValueKind kind, Type element) {
    return hops < moves.size() ? send(kind, moves[hops].first, moves[hops].second, element)
                               : filled(batch(kind, element));
  };
  auto staged = [&](ValueKind kind, Type element) { return next(0, kind, element); };
  // Copies the old states that matrix space reads. They must be copied before they get new values.
  SmallVector<Value> oldStates;
  auto copyStates = [&] {
    for (unsigned state : ArrayRef(crossings.statesIn.getArrayRef()).drop_front(oldStates.size())) {
      optim::StateAttr attr = rule.getState(state);
      oldStates.push_back(copy(stateShards(state), staged(attr.getKind(), attr.getType())));
    }
  };
  bool writesLines =
      llvm::any_of(crossings.lineWrites, [](auto write) { return write.first == Space::In; });
  if (writesLines) {
    copyStates();
    writeLines(Space::In, leaves);
  }
  StageBuilder stage(leaves, columns);
  // The values that matrix space reads, as values of the rule, and the buffer that now holds each.
  SmallVector<Value> values, places;
  for (Value value : crossings.fullIn) {
    Type element = elementOf(value);
    stage.yield(value, apart ? emptyCopy(element) : staged(ValueKind::Full, element));
  }
  bool givesBack = addWrites(stage, Space::In);
  if (!stage.empty()) {
    SmallVector<Value> results = createStage(stage, leaves).getResults();
    if (givesBack)
      giveBack(results.pop_back_val());
    llvm::append_range(values, crossings.fullIn);
    // All staged operands of a stage have one place. If these are kept copies of shards, a comm.copy packs
    // the results for sending.
    for (Value result : results)
      places.push_back(apart ? copy(result, staged(ValueKind::Full, elementOf(result))) : result);
  }
  for (Value line : crossings.linesIn) {
    values.push_back(line);
    places.push_back(copy(lines[line], staged(placeOf(lines[line]).getValue(), elementOf(line))));
  }
  copyStates();
  for (auto [state, place] : llvm::zip(crossings.statesIn, oldStates)) {
    values.push_back(rule.getStateArgument(state));
    places.push_back(place);
  }
  for (size_t move = 0; move < moves.size() && !places.empty(); ++move) {
    places = exchange(places, layout.hops[moves[move].second.level(layout) - 1].owned.empty());
    for (Value &place : places)
      place = copy(place, next(move + 1, placeOf(place).getValue(), elementOf(place)));
  }
  for (auto [value, place] : llvm::zip(values, places))
    matrix[value] = place;
  for (unsigned state : crossings.blockStates) {
    optim::StateAttr attr = rule.getState(state);
    matrix[rule.getStateArgument(state)] =
        copy(stateShards(state), batch(attr.getKind(), attr.getType()));
  }
}

void GroupChain::buildOut() {
  auto yield = cast<optim::YieldOp>(rule.getBody().front().getTerminator());
  for (unsigned state : crossings.blockStatesOut)
    copy(materialize(yield.getOperand(state + 1), rule.getState(state).getType()),
         stateShards(state));
  // New rows, cols and one states, rounded to their storage type.
  SmallVector<Value> states;
  for (unsigned state : crossings.statesOut)
    states.push_back(materialize(yield.getOperand(state + 1), rule.getState(state).getType()));
  for (Value value : crossings.fullOut)
    back[value] = materialize(value, elementOf(value));

  SmallVector<Value> results;
  for (Value value : crossings.fullOut)
    results.push_back(back[value]);
  llvm::append_range(results, states);
  for (Value value : crossings.linesOut)
    results.push_back(materialize(value, elementOf(value)));
  for (auto [from, to] : movesBack(layout, home)) {
    if (results.empty())
      break;
    for (Value &value : results)
      value = copy(value, send(placeOf(value).getValue(), from, to, elementOf(value)));
    results = exchange(results);
  }
  ArrayRef<Value> arrived = results;
  for (Value value : crossings.fullOut)
    back[value] = arrived.consume_front();
  auto keep = [&](Value line, Value arrived) {
    lines[line] = copy(arrived, emptyLine(placeOf(arrived).getValue(), elementOf(arrived)));
  };
  for (unsigned state : crossings.statesOut) {
    Value value = arrived.consume_front(), line = yield.getOperand(state + 1);
    if (crossings.newStates.contains(state))
      keep(line, value);
    copy(value, stateShards(state));
  }
  for (Value line : crossings.linesOut)
    keep(line, arrived.consume_front());

  if (apart)
    for (Value value : crossings.fullOut)
      back[value] = copy(back[value], emptyCopy(elementOf(value)));

  llvm::DenseMap<Value, Value> leaves = back;
  leaves.insert(lines.begin(), lines.end());
  addShardLeaves(leaves);
  for (auto [value, state] : crossings.stored)
    leaves[value] = stateShards(state);
  reduceOnShards(Space::Out, leaves);
  writeLines(Space::Out, leaves);
  StageBuilder stage(leaves, columns);
  bool givesBack = addWrites(stage, Space::Out);
  if (stage.empty())
    return;
  StageOp op = createStage(stage, leaves);
  if (givesBack)
    giveBack(op.getResults().back());
}

//===----------------------------------------------------------------------===//
// Lines that are made on shards
//===----------------------------------------------------------------------===//

/// How many exchanges of parts of lines come before the result of each reduction of a space, counted from the
/// first reduction. The exchanges of reductions with equal numbers can be one.
static llvm::DenseMap<Operation *, unsigned> roundsOf(ArrayRef<optim::ReduceOp> ops, Space space) {
  llvm::DenseMap<Operation *, unsigned> rounds;
  for (optim::ReduceOp op : ops) {
    unsigned before = 0;
    SmallVector<Value> next{op.getSource()};
    llvm::DenseSet<Value> seen;
    while (!next.empty()) {
      Value value = next.pop_back_val();
      Operation *from = value.getDefiningOp();
      if (!from || !seen.insert(value).second || spaceOf(from).value_or(space) != space)
        continue;
      if (auto known = rounds.find(from); known != rounds.end())
        before = std::max(before, known->second + from->hasAttr(optim::kCutAttr));
      else
        llvm::append_range(next, from->getOperands());
    }
    if (spaceOf(op) == space)
      rounds[op] = before;
  }
  return rounds;
}

void GroupChain::reduceOnShards(Space space, llvm::DenseMap<Value, Value> &leaves) {
  llvm::DenseMap<Operation *, unsigned> rounds = roundsOf(crossings.onShards, space);
  auto keep = [&](optim::ReduceOp op, Value line) {
    leaves[op.getResult()] = lines[op.getResult()] = line;
  };
  for (unsigned round = 0, done = 0; done < rounds.size(); ++round) {
    std::vector<CutLines> cut; // by the ranks that have parts of the same lines
    for (optim::ReduceOp op : crossings.onShards) {
      auto known = rounds.find(op);
      if (known == rounds.end() || known->second != round)
        continue;
      ++done;
      Value result = reduceStage(op, leaves);
      if (!op->hasAttr(optim::kCutAttr)) {
        keep(op, result);
        continue;
      }
      std::vector<plan::Factor> factors =
          factorsOfLines(layout, mesh, *kindOf(op.getResult().getType()));
      auto same =
          llvm::find_if(cut, [&](const CutLines &lines) { return lines.factors == factors; });
      if (same == cut.end())
        same = cut.insert(same, {std::move(factors), {}, {}, {}});
      same->ops.push_back(op);
      same->kinds.push_back(op.getKind());
      same->parts.push_back(result);
    }
    for (CutLines &lines : cut)
      for (auto [op, line] : llvm::zip(lines.ops, addUp(lines.kinds, lines.parts)))
        keep(op, line);
  }
}

Value GroupChain::reduceStage(optim::ReduceOp op, llvm::DenseMap<Value, Value> &leaves) {
  StageBuilder stage(leaves, columns);
  stage.reduce(op.getKind());
  Value line = op.getResult();
  ValueKind kind = *kindOf(line.getType());
  Value init = emptyLine(kind, elementOf(line));
  if (op->hasAttr(optim::kCutAttr)) {
    int64_t sums = geometry::sumsPerValue(layout, mesh, kind);
    init = empty(PlaceAttr::packed(segment, kind, Distribution::LineParts, Distribution::LineParts,
                                   End::Kept),
                 lineSumsType(builder.getContext(), op.getKind(), sums));
  }
  stage.yield(op.getSource(), init);
  // Terms that are equal along a line say nothing of its length, so the stage visits the parameter with them.
  if (llvm::none_of(stage.reads(),
                    [](Value read) { return kindOf(read.getType()) == ValueKind::Full; }))
    stage.visitAlso(rule.getParameterArgument());
  return createStage(stage, leaves).getResults().front();
}

SmallVector<Value> GroupChain::partsOfModel(FlatSymbolRefAttr name, optim::RuleOp scratch,
                                            ArrayRef<plan::Reduction> kinds, ValueRange sources,
                                            const ScalarColumns &columns) {
  begin(name);
  llvm::SaveAndRestore stays(home, ofModel);
  llvm::DenseMap<Value, Value> leaves;
  addShardLeaves(leaves);
  leaves[scratch.getParameterArgument()] = leaves.lookup(rule.getParameterArgument());
  leaves[scratch.getGradientArgument()] = leaves.lookup(rule.getGradientArgument());
  SmallVector<Value> parts;
  for (auto [kind, source] : llvm::zip(kinds, sources)) {
    StageBuilder stage(leaves, columns);
    stage.reduce(kind);
    auto place = PlaceAttr::packed(segment, ValueKind::One, Distribution::ModelParts,
                                   Distribution::ModelParts, End::Kept);
    stage.yield(source, empty(place, lineSumsType(builder.getContext(), kind, /*count=*/1)));
    // Terms may be equal for all elements. The number of elements still counts.
    if (stage.reads().empty())
      stage.visitAlso(scratch.getParameterArgument());
    parts.push_back(createStage(stage, leaves).getResults().front());
  }
  return parts;
}

SmallVector<Value> GroupChain::addUpModel(FlatSymbolRefAttr name, ArrayRef<plan::Reduction> kinds,
                                          ArrayRef<SmallVector<Value>> parts, int64_t terms) {
  begin(name);
  SmallVector<Value> own;
  auto place = PlaceAttr::packed(segment, ValueKind::One, Distribution::LineParts,
                                 Distribution::LineParts, End::Kept);
  for (auto [kind, sources] : llvm::zip_equal(kinds, parts)) {
    Value init = empty(place, lineSumsType(builder.getContext(), kind, /*count=*/1));
    own.push_back(
        CollectOp::create(builder, loc, init.getType(), kind, active, sources, init).getResult());
  }
  return addUp(kinds, own, terms);
}

Value GroupChain::valueOfModel(FlatSymbolRefAttr name, Value source, const ScalarColumns &columns) {
  begin(name);
  llvm::DenseMap<Value, Value> none;
  StageBuilder stage(none, columns);
  stage.visit(ValueKind::One);
  stage.yield(source, emptyLine(ValueKind::One, builder.getF32Type()));
  return createStage(stage, none).getResults().front();
}

Value GroupChain::stateOfModel(FlatSymbolRefAttr name, unsigned state) {
  begin(name);
  return copy(stateShards(state), emptyLine(ValueKind::One, builder.getF32Type()));
}

SmallVector<Value> GroupChain::addUp(ArrayRef<plan::Reduction> kinds, ValueRange parts,
                                     std::optional<int64_t> given) {
  plan::View block = plan::view(layout, ValueKind::Full);
  SmallVector<Value> values;
  for (Value part : parts)
    values.push_back(copy(part, send(placeOf(part).getValue(), Distribution::LineParts,
                                     Distribution::LineSums, elementOf(part))));
  values = exchange(values);
  for (auto [reduction, value] : llvm::zip(kinds, values)) {
    ValueKind kind = placeOf(value).getValue();
    plan::View line = plan::view(layout, kind);
    int64_t terms = given.value_or(block.rows / line.rows * (block.cols / line.cols));
    Value init = empty(
        PlaceAttr::packed(segment, kind, Distribution::LineSums, Distribution::LineSums, End::Kept),
        builder.getF32Type());
    value = SumOp::create(builder, loc, init.getType(), terms,
                          ReductionAttr::get(builder.getContext(), reduction), value, init)
                .getResult();
    value = copy(value, send(kind, Distribution::LineSums, home, elementOf(value)));
  }
  values = exchange(values);
  for (Value &value : values)
    value = copy(value, emptyLine(placeOf(value).getValue(), elementOf(value)));
  return values;
}

void GroupChain::writeLines(Space space, llvm::DenseMap<Value, Value> &stepping) {
  auto yield = cast<optim::YieldOp>(rule.getBody().front().getTerminator());
  optim::Writes writes = optim::writesOf(rule);
  for (ValueKind kind : {ValueKind::Rows, ValueKind::Cols, ValueKind::One}) {
    llvm::DenseMap<Value, Value> leaves = lines;
    for (unsigned i = 0, e = rule.getNumStates(); i < e; ++i)
      if (rule.getState(i).getKind() == kind && hasOldValue(writes[i + 1], space))
        leaves[rule.getStateArgument(i)] = stateShards(i);
    StageBuilder stage(leaves, columns);
    stage.visit(kind);
    SmallVector<Value> kept;
    for (auto [stored, state] : crossings.lineWrites) {
      if (stored != space || rule.getState(state).getKind() != kind)
        continue;
      Value line = yield.getOperand(state + 1);
      stage.write(line, stateShards(state));
      if (!crossings.keptLines.contains(state))
        continue;
      stage.yield(line, emptyLine(kind, elementOf(line)));
      kept.push_back(line);
    }
    if (stage.empty())
      continue;
    for (auto [line, result] : llvm::zip(kept, createStage(stage, leaves).getResults()))
      stepping[line] = lines[line] = result;
  }
}
