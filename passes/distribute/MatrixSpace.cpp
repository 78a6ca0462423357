//===- MatrixSpace.cpp - A rule's operations on whole blocks ---------------===//

#include "passes/distribute/GroupChain.h"
#include "passes/distribute/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using namespace stepc::distribute;
using optim::kindOf;
using optim::Space;

/// The batch that holds a rule value in that element type. Elementwise operations are fused into
/// one stage from the nearest values that are in memory.
Value GroupChain::materialize(Value value, Type element) {
  if (Value done = matrix.lookup(value))
    if (elementOf(done) == element)
      return done;
  StageBuilder stage(matrix, columns);
  stage.yield(value, batch(*kindOf(value.getType()), element));
  Value result = stage.create(builder, loc, segment, Distribution::Blocks).getResult(0);
  // A value stored in another type is a rounded copy: never read it in place of the value.
  if (elementOf(value) == element)
    matrix[value] = result;
  return result;
}

void GroupChain::buildMatrix() {
  for (Operation &op : rule.getBody().front()) {
    if (optim::spaceOf(&op) != Space::Matrix)
      continue;
    if (auto orthogonalize = dyn_cast<optim::OrthogonalizeOp>(op)) {
      Type element = orthogonalize.getSource().getType().getElementType();
      Value source = materialize(orthogonalize.getSource(), element);
      Type type = cast<RankedTensorType>(source.getType())
                      .clone(orthogonalize.getResult().getType().getElementType());
      auto created = optim::OrthogonalizeOp::create(builder, op.getLoc(), type, source,
                                                    orthogonalize.getCoefficientsAttr(),
                                                    orthogonalize.getEpsAttr());
      matrix[orthogonalize.getResult()] = created.getResult();
    } else if (auto reduce = dyn_cast<optim::ReduceOp>(op)) {
      Value source = materialize(reduce.getSource(), builder.getF32Type());
      ValueKind kind = *kindOf(reduce.getResult().getType());
      Value init = batch(kind, builder.getF32Type());
      auto created = optim::BlockReduceOp::create(builder, op.getLoc(), init.getType(),
                                                  reduce.getKind(), source, init);
      matrix[reduce.getResult()] = created.getResult();
    }
    // Elementwise operations are cloned into the stages that need them.
  }
}
