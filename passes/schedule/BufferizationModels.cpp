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

/// How all our destination-style operations bufferize: tensors become memrefs, regions move to the new
/// operation, and the destinations replace the results.
template <typename Op>
struct DestinationModel : DstBufferizableOpInterfaceExternalModel<DestinationModel<Op>, Op> {
  /// Operations overwrite their destinations completely, so they do not read them. The exception is a stage
  /// or copy that brings slabs into a batch that a stage has set to zero: the zeros after a slab must remain.
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

/// How comm.skip bufferizes, which reads a tensor and gives no tensor.
struct SkipModel : BufferizableOpInterface::ExternalModel<SkipModel, comm::SkipOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &, const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    FailureOr<Value> buffer =
        getBuffer(rewriter, cast<comm::SkipOp>(op).getValue(), options, state);
    if (failed(buffer))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { cast<comm::SkipOp>(op).getValueMutable().assign(*buffer); });
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
    attach<comm::ScalarsOp, comm::StageOp, comm::CopyOp, comm::SumOp, comm::CollectOp,
           comm::ExchangeOp, comm::AllGatherOp>(context);
    comm::SkipOp::attachInterface<SkipModel>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, optim::OptimDialect *) {
    attach<optim::ProductOp, optim::ApplyOp>(context);
  });
}
