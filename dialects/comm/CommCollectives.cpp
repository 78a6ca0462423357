//===- CommCollectives.cpp - What all collectives must obey ----------------===//

#include "dialects/comm/Comm.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

LogicalResult comm::detail::verifyCollective(Operation *op) {
  auto collective = cast<CollectiveOpInterface>(op);
  OperandRange sends = collective.getSends(), receives = collective.getReceives();
  if (receives.size() != sends.size())
    return op->emitOpError("expected as many sends as receives, found ")
           << sends.size() << " and " << receives.size();
  if (sends.empty())
    return op->emitOpError("expected at least one value to send, found none");
  for (auto [send, receive] : llvm::zip(sends, receives)) {
    PlaceAttr from = placeOf(send), to = placeOf(receive);
    if (!from.isPacked() || !to.isPacked() || !from.toPlan(0).travelsTo(to.toPlan(0)))
      return op->emitOpError("expected what is sent and what is received by one move, found ")
             << from << " and " << to;
    auto a = cast<ShapedType>(send.getType()), b = cast<ShapedType>(receive.getType());
    if (a.getElementType() != b.getElementType())
      return op->emitOpError("expected equal element types, found ")
             << a.getElementType() << " and " << b.getElementType();
  }
  return success();
}

ParseResult comm::parseFactors(AsmParser &parser, SmallVector<plan::Factor> &factors) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    FailureOr<plan::Factor> factor = FieldParser<plan::Factor>::parse(parser);
    if (succeeded(factor))
      factors.push_back(*factor);
    return success(succeeded(factor));
  });
}

void comm::printFactors(AsmPrinter &printer, ArrayRef<plan::Factor> factors) {
  printer << '[';
  llvm::interleaveComma(factors, printer.getStream(),
                        [&](const plan::Factor &factor) { printer << factor; });
  printer << ']';
}

plan::Communicator CommunicatorAttr::toPlan(int64_t mesh) const {
  return {mesh, getFactors().vec()};
}

CommunicatorAttr CommunicatorAttr::join(CommunicatorAttr one, CommunicatorAttr other,
                                        const plan::Mesh &mesh) {
  if (one == other)
    return one;
  if (one.getMesh() != other.getMesh())
    return {};
  SmallVector<plan::Factor> axes;
  for (const plan::Factor &axis : plan::wholeAxes(mesh)) {
    auto isAlong = [&](const plan::Factor &factor) {
      return factor.axis == axis.axis && factor.size > 1;
    };
    if (llvm::any_of(one.getFactors(), isAlong) || llvm::any_of(other.getFactors(), isAlong))
      axes.push_back(axis);
  }
  return get(one.getContext(), one.getMesh(), axes);
}

std::optional<CommunicatorAttr> comm::ranksOf(Value communicator) {
  Operation *made = communicator.getDefiningOp();
  if (isa_and_nonnull<WorldOp>(made))
    return CommunicatorAttr();
  if (auto op = dyn_cast_or_null<CommunicatorOp>(made))
    return op.getRanks();
  return std::nullopt;
}

LogicalResult comm::verifyRanks(Operation *op, CommunicatorAttr ranks, SymbolTableCollection &) {
  optim::MeshOp mesh = optim::lookupMesh(op, ranks.getMesh()); // an optim.mesh is no symbol
  if (!mesh)
    return op->emitOpError("expected a mesh, found no optim.mesh named ") << ranks.getMesh();
  if (std::string wrong = plan::checkFactors(optim::toPlan(mesh), ranks.getFactors().vec());
      !wrong.empty())
    return op->emitOpError(wrong);
  return success();
}

LogicalResult CommunicatorOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyRanks(*this, getRanks(), symbols);
}

LogicalResult StartOp::verify() {
  SmallVector<Operation *> waits(getToken().getUsers());
  if (waits.size() == 1 && isa<WaitOp>(waits.front()) &&
      waits.front()->getBlock() == (*this)->getBlock())
    return success();
  auto diag = emitOpError("expected one comm.wait for its token, found ") << waits.size();
  for (Operation *wait : waits)
    diag.attachNote(wait->getLoc()) << "the token is used here";
  return diag;
}

CollectiveKind ExchangeOp::getKind() { return CollectiveKind::Exchange; }
CollectiveKind AllGatherOp::getKind() { return CollectiveKind::AllGather; }

FailureOr<std::pair<StartOp, int64_t>> comm::startOf(Operation *user, Value packed) {
  std::optional<std::pair<StartOp, int64_t>> found;
  for (OpOperand &use : packed.getUses()) {
    auto start = dyn_cast<StartOp>(use.getOwner());
    if (!start)
      continue;
    if (found) {
      auto diag = found->first.emitOpError("expected each value to be sent once, found ")
                  << placeOf(packed) << " again"; // MLIR lists the last use first
      diag.attachNote(start.getLoc()) << "it is sent here";
      return failure();
    }
    // Operand 0 is the communicator.
    int64_t index = int64_t(use.getOperandNumber()) - 1, sends = start.getSends().size();
    found = {start, index < sends ? index : index - sends};
  }
  if (found)
    return *found;
  return user->emitOpError("expected a comm.start that takes what is packed along, found none for ")
         << placeOf(packed);
}
