//===- BufferizationModels.cpp - How our operations bufferize --------------===//

#include "passes/schedule/Passes.h"

#include "dialects/comm/Comm.h"
#include "dialects/optim/Optim.h"

#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace stepc;

namespace {

/// All of ours alike: tensors become memrefs, the regions move, results are the destinations.
template <typename Op>
struct DestinationModel : DstBufferizableOpInterfaceExternalModel<DestinationModel<Op>, Op> {
  /// Destinations are overwritten whole, so what was in them does not matter. The exception is a batch that
  /// has zeros after a slab, into which a stage or a copy brings the slab.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand, const AnalysisState &) const {
    return !cast<DestinationStyleOpInterface>(op).isDpsInit(&operand) ||
           (isa<comm::StageOp, comm::CopyOp>(op) && operand.get().getDefiningOp<comm::StageOp>());
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    rewriter.setInsertionPoint(op);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (!isa<TensorType>(operand.getType())) {
        operands.push_back(operand);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      operands.push_back(*buffer);
    }
    OperationState created(op->getLoc(), op->getName(), operands, TypeRange(), op->getAttrs());
    for ([[maybe_unused]] Region &region : op->getRegions())
      created.addRegion();
    Operation *replacement = rewriter.create(created);
    for (auto [from, to] : llvm::zip(op->getRegions(), replacement->getRegions()))
      rewriter.inlineRegionBefore(from, to, to.begin());
    SmallVector<Value> results;
    auto destination = cast<DestinationStyleOpInterface>(replacement);
    for (OpOperand &init : destination.getDpsInitsMutable())
      results.push_back(init.get());
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

template <typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<DestinationModel<Ops>>(*context), ...);
}

} // namespace

void schedule::registerBufferizationModels(DialectRegistry &registry) {
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  registry.addExtension(+[](MLIRContext *context, comm::CommDialect *) {
    attach<comm::ScalarsOp, comm::StageOp, comm::CopyOp, comm::SumOp, comm::ExchangeOp,
           comm::AllGatherOp>(context);
  });
  registry.addExtension(+[](MLIRContext *context, optim::OptimDialect *) {
    attach<optim::ProductOp, optim::ApplyOp>(context);
  });
}
