//===- Mutator.h - Plants one fault in a program ----------------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_VERIFY_MUTATOR_H
#define STEPC_TEST_UNIT_VERIFY_MUTATOR_H

#include "Accesses.h"
#include "RandomProgram.h"
#include "TooFewRanks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace stepc::test {

using namespace mlir;

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
    switch (draw(random, 0, buffers.empty() ? 8 : 11)) {
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
      return otherCollective();
    case 8:
      return otherCommunicator();
    case 9:
      return otherExtent();
    case 10:
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

  /// Nothing happens on an empty segment, so nothing is wrong there.
  bool isEmpty(Operation *op) {
    FlatSymbolRefAttr segment = segmentOf(op);
    return segment && !llvm::is_contained(segments, segment);
  }

  std::string drop(Operation *op) {
    if (isEmpty(op))
      return {};
    if (auto start = dyn_cast<comm::StartOp>(op)) {
      if (llvm::none_of(start.getSends(), [&](Value value) {
            return llvm::is_contained(segments, comm::placeOf(value).getSymbol());
          }))
        return {};
      (*start.getToken().user_begin())->erase();
    }
    op->erase();
    return "dropped";
  }

  std::string twice(Operation *op) {
    auto stage = dyn_cast<comm::StageOp>(op);
    auto copy = dyn_cast<comm::CopyOp>(op);
    bool writes = (stage && !stage.getWrites().empty()) || (copy && copy.getTarget()) ||
                  isa<comm::AdvanceStepsOp>(op);
    if (isEmpty(op) || !writes)
      return {};
    OpBuilder builder(op->getBlock(), std::next(op->getIterator()));
    builder.clone(*op);
    return "doubled";
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
      // A step counts once all of it is done.
      bool conflict =
          isa<comm::AdvanceStepsOp>(next) ||
          llvm::any_of(accesses(next), [&](const Access &access) {
            return llvm::any_of(mine, [&](const Access &own) { return own.conflicts(access); });
          });
      if (!conflict)
        continue;
      op->moveAfter(next);
      return "moved past a conflict";
    }
    return {};
  }

  /// A type that says nothing of places.
  static Type unplaced(Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return memref ? MemRefType::get(memref.getShape(), memref.getElementType()) : type;
  }

  /// Whether what stands in one buffer is copied to the other: either may be read.
  static bool isCopied(Value from, Value to) {
    return llvm::any_of(from.getUsers(), [&](Operation *user) {
      auto copy = dyn_cast<comm::CopyOp>(user);
      return copy && copy.getSource() == from && copy.getDestination() == to;
    });
  }

  std::string otherValue(Operation *op) {
    if (isEmpty(op) || isa<comm::WaitOp>(op))
      return {};
    OpOperand &operand = op->getOpOperand(unsigned(draw(random, 0, op->getNumOperands() - 1)));
    SmallVector<Value> others;
    for (Operation &each : step().getBody().front())
      if (isa<comm::BufferOp, comm::ShardsOp>(each))
        for (Value value : each.getResults())
          if (value != operand.get() &&
              unplaced(value.getType()) == unplaced(operand.get().getType()) &&
              !isCopied(value, operand.get()))
            others.push_back(value);
    if (others.empty())
      return {};
    operand.set(pick(others));
    return "another value";
  }

  std::string otherSegment(Operation *op) {
    if (segments.size() < 2)
      return {};
    FlatSymbolRefAttr segment = pick(segments);
    // Of a stage its own, else that of one buffer that the operation uses.
    auto stage = dyn_cast<comm::StageOp>(op);
    if (stage && draw(random, 0, 1)) {
      if (isEmpty(op) || stage.getSegmentAttr() == segment)
        return {};
      stage.setSegmentAttr(segment);
      return "another segment";
    }
    return changePlace(op, "another segment", [&](comm::PlaceAttr place) {
      return place.isScalars() ? place
                               : comm::PlaceAttr::get(place.getContext(), segment,
                                                      place.getContents(), place.getPlace());
    });
  }

  /// Changes the place of a buffer that an operation uses, and with it that of its extent: so that
  /// only what is said of the buffer's use is wrong.
  std::string changePlace(Operation *op, const char *what,
                          llvm::function_ref<comm::PlaceAttr(comm::PlaceAttr)> change) {
    SmallVector<Value> used;
    for (Value value : op->getOperands())
      if (value.getDefiningOp<comm::BufferOp>())
        used.push_back(value);
    if (used.empty() || isEmpty(op))
      return {};
    Value buffer = pick(used);
    auto type = cast<MemRefType>(buffer.getType());
    comm::PlaceAttr place = comm::placeOf(type), other = change(place);
    if (place == other || place.isScalars())
      return {};
    if (!llvm::is_contained(segments, place.getSymbol()))
      return {};
    buffer.setType(
        MemRefType::get(type.getShape(), type.getElementType(), type.getLayout(), other));
    for (Value size : buffer.getDefiningOp<comm::BufferOp>().getExtentsOf(buffer))
      if (auto extent = size.getDefiningOp<comm::ExtentOp>(); extent && size.hasOneUse())
        extent.setPlaceAttr(other);
    return what;
  }

  /// An exchange told as a gather. The other way round it is another library, but no fault.
  std::string otherCollective() {
    SmallVector<comm::StartOp> starts;
    for (auto start : step().getOps<comm::StartOp>())
      if (start.getKind() == comm::CollectiveKind::Exchange && hasOwners(start))
        starts.push_back(start);
    if (starts.empty())
      return {};
    pick(starts).setKind(comm::CollectiveKind::AllGather);
    return "another kind of collective";
  }

  /// Ranks meet among which one of the messages does not stay.
  std::string otherCommunicator() {
    SmallVector<comm::StartOp> starts(step().getOps<comm::StartOp>());
    if (starts.empty())
      return {};
    comm::StartOp start = pick(starts);
    comm::CommunicatorAttr ranks = tooFewRanks(module, start, random);
    if (!ranks)
      return {};
    OpBuilder builder(start);
    start.getCommunicatorMutable().assign(comm::CommunicatorOp::create(
        builder, start.getLoc(), start.getCommunicator().getType(), ranks));
    return "another communicator";
  }

  static comm::PlaceAttr reversed(comm::PlaceAttr attribute) {
    plan::Place place = attribute.getPlace();
    std::swap(place.from, place.to);
    return comm::PlaceAttr::get(attribute.getContext(), attribute.getSymbol(),
                                attribute.getContents(), place);
  }

  static comm::PlaceAttr otherKind(comm::PlaceAttr attribute, int64_t by) {
    plan::Place place = attribute.getPlace();
    constexpr auto &all = plan::kNamedKinds;
    auto at = llvm::find_if(all, [&](const auto &one) { return one.second == place.value; });
    place.value = all[size_t(at - all.begin() + by) % 4].second; // full, rows, cols or one
    return comm::PlaceAttr::get(attribute.getSymbol(), place);
  }

  /// Another end or direction of a move, or kind of a value.
  std::string otherWord(Operation *op) {
    int64_t by = draw(random, 1, 3);
    switch (draw(random, 0, 2)) {
    case 0:
      return changePlace(op, "another end", [](comm::PlaceAttr place) {
        if (!place.isPacked())
          return place;
        return comm::PlaceAttr::packed(
            place.getSymbol(), place.getValue(), place.getFrom(), place.getTo(),
            place.getEnd() == comm::End::Sent ? comm::End::Received : comm::End::Sent);
      });
    case 1:
      return changePlace(op, "another direction",
                         [](comm::PlaceAttr place) { return reversed(place); });
    default:
      return changePlace(op, "another kind",
                         [&](comm::PlaceAttr place) { return otherKind(place, by); });
    }
  }

  /// Some value of an owner group on several ranks: an all-gather of it is none.
  bool hasOwners(comm::StartOp start) {
    return llvm::any_of(start.getReceives(), [&](Value value) {
      auto segment = SymbolTable::lookupNearestSymbolFrom<comm::SegmentOp>(
          start, comm::placeOf(value).getSymbol());
      auto group =
          SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(start, segment.getGroupAttr());
      auto mesh = optim::lookupMesh(group, group.getExemplar().getMeshAttr());
      std::vector<plan::Hop> hops = group.getPlanHops();
      return !hops.empty() && !hops[0].owned.empty() && mesh.getRanks().size() > 1 &&
             llvm::is_contained(segments, FlatSymbolRefAttr::get(segment.getSymNameAttr()));
    });
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
    comm::PlaceAttr place = extent.getPlace(), other = place;
    bool batch = place.isBatch();
    switch (draw(random, 0, batch ? 0 : 3)) {
    case 0:
      other = comm::PlaceAttr::get(place.getContext(), pick(segments), place.getContents(),
                                   place.getPlace());
      break;
    case 1:
      other = draw(random, 0, 1)
                  ? comm::PlaceAttr::blocks(place.getSymbol(), place.getValue())
                  : comm::PlaceAttr::packed(
                        place.getSymbol(), place.getValue(), place.getFrom(), place.getTo(),
                        place.getEnd() == comm::End::Sent ? comm::End::Received : comm::End::Sent);
      break;
    case 2:
      other = reversed(place);
      break;
    default:
      other = otherKind(place, draw(random, 1, 3));
    }
    if (other == place)
      return {};
    extent.setPlaceAttr(other);
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

  /// Whether a buffer is of a segment without blocks: nothing is written there.
  static bool isOfNothing(comm::BufferOp buffer) {
    auto segment = SymbolTable::lookupNearestSymbolFrom<comm::SegmentOp>(
        buffer, comm::placeOf(buffer.getViews().front()).getSymbol());
    return segment && segment.getBlocks() && segment.getBlocks()->empty();
  }

  std::string otherPlace() {
    comm::BufferOp one = pick(buffers), two = pick(buffers);
    if (isOfNothing(one) || isOfNothing(two))
      return {};
    auto [begin, end] = lifeOf(one);
    auto [otherBegin, otherEnd] = lifeOf(two);
    if (one == two || one.getOffset() == two.getOffset() || !one.getBytes() || !two.getBytes() ||
        !begin || !otherBegin || end->isBeforeInBlock(otherBegin) ||
        otherEnd->isBeforeInBlock(begin))
      return {};
    // A stage may write its results over what it reads, element by element.
    if ((end == otherBegin && isa<comm::StageOp>(end)) ||
        (otherEnd == begin && isa<comm::StageOp>(begin)))
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
