//===- CommCollectives.cpp - What all collectives must obey ----------------===//

#include "dialects/comm/Comm.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

LogicalResult comm::detail::verifyCollective(Operation *op) {
  auto collective = cast<CollectiveOpInterface>(op);
  OperandRange sends = collective.getSends(), receives = collective.getReceives();
  ArrayAttr from = collective.getSendSegments(), to = collective.getReceiveSegments();
  size_t count = sends.size();
  if (receives.size() != count || from.size() != count || to.size() != count ||
      collective.getKinds().size() != count)
    return op->emitOpError("expected as many sends, receives, segments and kinds, found ")
           << count << ", " << receives.size() << ", " << from.size() << " and " << to.size()
           << ", " << collective.getKinds().size();
  for (int64_t kind : collective.getKinds())
    if (!optim::symbolizeValueKind(kind))
      return op->emitOpError("expected kinds between 0 and 3, found ") << kind;
  for (auto [send, receive] : llvm::zip(sends, receives)) {
    auto a = cast<ShapedType>(send.getType()), b = cast<ShapedType>(receive.getType());
    if (a.getRank() != 1 || b.getRank() != 1)
      return op->emitOpError("expected one-dimensional buffers, found ") << a << " and " << b;
    if (a.getElementType() != b.getElementType())
      return op->emitOpError("expected equal element types, found ") << a << " and " << b;
  }
  return success();
}
