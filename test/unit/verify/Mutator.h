//===- Mutator.h - Plants one fault in a program ----------------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_VERIFY_MUTATOR_H
#define STEPC_TEST_UNIT_VERIFY_MUTATOR_H

#include "RandomProgram.h"

#include "dialects/comm/Comm.h"
#include "dialects/optim/Optim.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace stepc::test {

using namespace mlir;

/// What an operation does to a memory: a buffer, or the shards of a segment.
struct Access {
  const void *buffer;
  std::string shards;
  bool writes;
  bool conflicts(const Access &other) const {
    return buffer == other.buffer && shards == other.shards && (writes || other.writes);
  }
};

class Mutator {
public:
  /// `tight`: no buffer has more bytes than some rank needs.
  Mutator(ModuleOp module, Random &random, bool tight)
      : module(module), random(random), tight(tight) {
    Block &body = step().getBody().front();
    // Sizes and places stand in front, so that only the order of effects is drawn.
    Operation *first = nullptr;
    for (Operation &op : llvm::make_early_inc_range(body)) {
      if (isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>()) {
        if (first)
          op.moveBefore(first);
      } else if (!first) {
        first = &op;
      }
    }
    for (Operation &op : body)
      if (first && (&op == first || first->isBeforeInBlock(&op)) &&
          !op.hasTrait<OpTrait::IsTerminator>())
        effects.push_back(&op);
    for (auto segment : module.getOps<comm::SegmentOp>())
      if (segment.getAll() || !segment.getBlocks()->empty())
        segments.push_back(FlatSymbolRefAttr::get(segment.getSymNameAttr()));
    llvm::append_range(buffers, step().getOps<comm::BufferOp>());
  }

  /// What was planted; nothing when the draw could have been harmless.
  std::string mutate() {
    if (effects.empty())
      return {};
    Operation *op = pick(effects);
    switch (draw(random, 0, buffers.empty() ? 6 : 9)) {
    case 0:
      return drop(op);
    case 1:
      return twice(op);
    case 2:
      return passBy(op);
    case 3:
      return otherValue(op);
    case 4:
      return otherSegment(op);
    case 5:
      return otherWord(op);
    case 6:
      return otherNumber();
    case 7:
      return otherExtent();
    case 8:
      return otherPlace();
    default:
      return fewerBytes();
    }
  }

private:
  func::FuncOp step() { return *module.getOps<func::FuncOp>().begin(); }
  template <typename List> typename List::value_type pick(const List &list) {
    return list[size_t(draw(random, 0, int64_t(list.size()) - 1))];
  }

  FlatSymbolRefAttr segmentOf(Operation *op) {
    return op->getAttrOfType<FlatSymbolRefAttr>("segment");
  }
  /// Nothing happens on an empty segment, so nothing is wrong there.
  bool isEmpty(Operation *op) {
    FlatSymbolRefAttr segment = segmentOf(op);
    return segment && !llvm::is_contained(segments, segment);
  }

  std::string drop(Operation *op) {
    if (isEmpty(op))
      return {};
    if (auto start = dyn_cast<comm::StartOp>(op)) {
      auto names = start.getSendSegments().getAsRange<FlatSymbolRefAttr>();
      if (llvm::none_of(names, [&](auto name) { return llvm::is_contained(segments, name); }))
        return {};
      (*start.getToken().user_begin())->erase();
    }
    op->erase();
    return "dropped";
  }

  std::string twice(Operation *op) {
    auto stage = dyn_cast<comm::StageOp>(op);
    auto copy = dyn_cast<comm::CopyOp>(op);
    if (isEmpty(op) || !((stage && !stage.getWrites().empty()) || (copy && copy.getTarget())))
      return {};
    OpBuilder builder(op->getBlock(), std::next(op->getIterator()));
    builder.clone(*op);
    return "doubled";
  }

  SmallVector<Access> accesses(Operation *op) {
    SmallVector<Access> result;
    auto add = [&](Value value, bool writes) {
      std::string shards;
      if (auto handle = value.getDefiningOp<comm::ShardsOp>())
        shards = std::to_string(int64_t(handle.getKind())) + handle.getState().value_or("").str() +
                 segmentOf(op).getValue().str();
      result.push_back({shards.empty() ? value.getAsOpaquePointer() : nullptr, shards, writes});
    };
    if (auto wait = dyn_cast<comm::WaitOp>(op)) {
      auto start = wait.getToken().getDefiningOp<comm::StartOp>();
      for (Value value : start.getSends())
        add(value, false);
      for (Value value : start.getReceives())
        add(value, true);
      return result;
    }
    SmallVector<MemoryEffects::EffectInstance> instances;
    cast<MemoryEffectOpInterface>(op).getEffects(instances);
    for (auto &instance : instances)
      if (Value value = instance.getValue())
        add(value, isa<MemoryEffects::Write>(instance.getEffect()));
    return result;
  }

  /// Moves an operation past the next one that conflicts with it.
  std::string passBy(Operation *op) {
    if (isEmpty(op))
      return {};
    SmallVector<Access> mine = accesses(op);
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
      if (next->hasTrait<OpTrait::IsTerminator>() || isEmpty(next))
        continue;
      // A token's order is checked by the language itself.
      if (isa<comm::StartOp>(op) && isa<comm::WaitOp>(next) &&
          next->getOperand(0) == op->getResult(0))
        return {};
      bool conflict = llvm::any_of(accesses(next), [&](const Access &access) {
        return llvm::any_of(mine, [&](const Access &own) { return own.conflicts(access); });
      });
      if (!conflict)
        continue;
      op->moveAfter(next);
      return "moved past a conflict";
    }
    return {};
  }

  std::string otherValue(Operation *op) {
    if (isEmpty(op) || isa<comm::WaitOp>(op))
      return {};
    OpOperand &operand = op->getOpOperand(unsigned(draw(random, 0, op->getNumOperands() - 1)));
    SmallVector<Value> others;
    for (Operation &each : step().getBody().front())
      if (isa<comm::BufferOp, comm::ShardsOp>(each) && each.getResult(0) != operand.get() &&
          each.getResult(0).getType() == operand.get().getType())
        others.push_back(each.getResult(0));
    if (others.empty())
      return {};
    operand.set(pick(others));
    return "another value";
  }

  std::string otherSegment(Operation *op) {
    if (segments.size() < 2)
      return {};
    FlatSymbolRefAttr segment = pick(segments);
    if (auto start = dyn_cast<comm::StartOp>(op)) {
      const char *name = draw(random, 0, 1) ? "send_segments" : "receive_segments";
      SmallVector<Attribute> list(start->getAttrOfType<ArrayAttr>(name).getValue());
      size_t at = size_t(draw(random, 0, int64_t(list.size()) - 1));
      if (list[at] == segment)
        return {};
      list[at] = segment;
      start->setAttr(name, ArrayAttr::get(start.getContext(), list));
      return "another segment";
    }
    if (isEmpty(op) || !segmentOf(op) || segmentOf(op) == segment)
      return {};
    op->setAttr("segment", segment);
    return "another segment";
  }

  /// Another direction, layout or kind, where it says something.
  std::string otherWord(Operation *op) {
    if (isEmpty(op))
      return {};
    if (auto stage = dyn_cast<comm::StageOp>(op)) {
      bool packed =
          stage.getLayout() == comm::Layout::Send || stage.getLayout() == comm::Layout::Receive;
      if (stage.getIteration() == comm::Iteration::Blocks || !packed)
        return {};
      if (draw(random, 0, 1))
        stage.setDirection(comm::Direction(1 - int64_t(stage.getDirection())));
      else
        stage.setLayout(comm::Layout(3 - int64_t(stage.getLayout())));
      return "another direction or layout";
    }
    if (auto copy = dyn_cast<comm::CopyOp>(op)) {
      if (draw(random, 0, 1))
        copy.setDirection(comm::Direction(1 - int64_t(copy.getDirection())));
      else
        copy.setValue(comm::ValueKind((int64_t(copy.getValue()) + draw(random, 1, 3)) % 4));
      return "another direction or kind";
    }
    if (auto start = dyn_cast<comm::StartOp>(op)) {
      if (draw(random, 0, 1)) {
        start.setDirection(comm::Direction(1 - int64_t(start.getDirection())));
      } else {
        SmallVector<int64_t> kinds(start.getKinds());
        int64_t &kind = kinds[size_t(draw(random, 0, int64_t(kinds.size()) - 1))];
        kind = (kind + draw(random, 1, 3)) % 4;
        start.setKinds(kinds);
      }
      return "another direction or kind";
    }
    return {};
  }

  /// A literal of a stage or of the scalars, a factor of a product, or the scale of a norm.
  std::string otherNumber() {
    SmallVector<std::pair<Operation *, StringAttr>> numbers;
    step().walk([&](Operation *op) {
      Operation *effect = op;
      while (effect->getParentOp() != step().getOperation() && effect->getParentOp() != module)
        effect = effect->getParentOp();
      if (op == step().getOperation() || isEmpty(effect))
        return;
      auto add = [&](StringRef name) {
        numbers.push_back({op, StringAttr::get(op->getContext(), name)});
      };
      if (auto literal = dyn_cast<arith::ConstantOp>(op); literal && !op->use_empty())
        if (isa<FloatAttr>(literal.getValue()))
          add("value");
      if (auto product = dyn_cast<optim::ProductOp>(op)) {
        add("alpha");
        if (product.getAddend())
          add("beta");
      }
    });
    if (numbers.empty())
      return {};
    auto [op, name] = pick(numbers);
    auto old = op->getAttrOfType<FloatAttr>(name);
    // An ulp of f32 at least: what is less is rounded away.
    double value = old.getValueAsDouble();
    double other = draw(random, 0, 1) ? -value : value * (1 + double(draw(random, 1, 9)) * 0x1p-23);
    if (float(other) == float(value))
      return {};
    op->setAttr(name, FloatAttr::get(old.getType(), other));
    return "another number";
  }

  std::string otherExtent() {
    comm::ExtentOp extent = pick(SmallVector<comm::ExtentOp>(step().getOps<comm::ExtentOp>()));
    bool blocks = extent.getLayout() == comm::Layout::Blocks;
    switch (draw(random, 0, blocks ? 1 : 3)) {
    case 0:
      if (FlatSymbolRefAttr segment = pick(segments); segment != extent.getSegmentAttr())
        extent.setSegmentAttr(segment);
      else
        return {};
      break;
    case 1:
      extent.setLayout(comm::Layout((int64_t(extent.getLayout()) + draw(random, 1, 4)) % 5));
      break;
    case 2:
      extent.setDirection(comm::Direction(1 - int64_t(extent.getDirection())));
      break;
    default:
      extent.setValue(comm::ValueKind((int64_t(extent.getValue()) + draw(random, 1, 3)) % 4));
    }
    return "another extent";
  }

  /// The first and the last operation that needs a buffer; what travels is needed until the wait.
  std::pair<Operation *, Operation *> lifeOf(comm::BufferOp buffer) {
    std::pair<Operation *, Operation *> life = {nullptr, nullptr};
    auto include = [&](Operation *op) {
      if (!life.first || op->isBeforeInBlock(life.first))
        life.first = op;
      if (!life.second || life.second->isBeforeInBlock(op))
        life.second = op;
    };
    for (Operation *user : buffer->getUsers()) {
      include(user);
      if (auto start = dyn_cast<comm::StartOp>(user))
        include(*start.getToken().user_begin());
    }
    return life;
  }

  std::string otherPlace() {
    comm::BufferOp one = pick(buffers), two = pick(buffers);
    auto [begin, end] = lifeOf(one);
    auto [otherBegin, otherEnd] = lifeOf(two);
    if (one == two || !one.getBytes() || !two.getBytes() || !begin || !otherBegin ||
        end->isBeforeInBlock(otherBegin) || otherEnd->isBeforeInBlock(begin))
      return {};
    one.setOffset(two.getOffset());
    return "another place";
  }

  std::string fewerBytes() {
    comm::BufferOp buffer = pick(buffers);
    if (!tight || !buffer.getBytes() || buffer.use_empty())
      return {};
    buffer.setBytes(uint64_t(draw(random, 0, int64_t(buffer.getBytes()) - 1)));
    return "fewer bytes";
  }

  ModuleOp module;
  Random &random;
  bool tight;
  SmallVector<Operation *> effects;
  SmallVector<comm::BufferOp> buffers;
  SmallVector<FlatSymbolRefAttr> segments;
};

} // namespace stepc::test

#endif
