//===- MatrixSpace.cpp - A rule's operations on whole blocks ---------------===//

#include "passes/distribute/GroupChain.h"
#include "passes/distribute/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using namespace stepc::distribute;
using optim::kindOf;
using optim::Space;

/// The batch that holds a value of the rule in the type `element`. If there is none, one fused stage computes
/// the value from the nearest values that are in memory.
Value GroupChain::materialize(Value value, Type element) {
  // A value that was stored in the type already is not extended and rounded once more.
  if (auto wide = value.getDefiningOp<arith::ExtFOp>(); wide && elementOf(wide.getIn()) == element)
    value = wide.getIn();
  if (Value done = matrix.lookup(value))
    if (elementOf(done) == element)
      return done;
  StageBuilder stage(matrix, columns);
  stage.yield(value, batch(*kindOf(value.getType()), element));
  Value result = stage.create(builder, loc, segment, Distribution::Blocks).getResult(0);
  // A batch of another type is a rounded copy of the value. No operation may read it in place of the value.
  if (elementOf(value) == element)
    matrix[value] = result;
  return result;
}

void GroupChain::buildMatrix() {
  for (Operation &op : rule.getBody().front()) {
    // Elementwise operations are cloned into the stages that need them.
    if (optim::spaceOf(&op) != Space::Matrix || !isa<optim::MatrixOpInterface>(op))
      continue;
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(materialize(operand, elementOf(operand)));
    Value result = op.getResult(0);
    OperationState state(op.getLoc(), op.getName(), operands,
                         TypeRange(batchType(*kindOf(result.getType()), elementOf(result))),
                         op.getAttrs());
    state.attributes.erase(optim::kSpaceAttr);
    matrix[result] = builder.create(state)->getResult(0);
  }
}
