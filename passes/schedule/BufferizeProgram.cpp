//===- BufferizeProgram.cpp - One-Shot bufferization -----------------------===//

#include "passes/schedule/Passes.h"

#include "dialects/comm/Comm.h"

#include "mlir/Dialect/Bufferization/Transforms/Bufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace stepc;

namespace stepc::schedule {
#define GEN_PASS_DEF_BUFFERIZEPROGRAM
#include "passes/schedule/Passes.h.inc"
} // namespace stepc::schedule

namespace {

class BufferizeProgram : public schedule::impl::BufferizeProgramBase<BufferizeProgram> {
  void runOnOperation() override {
    bufferization::OneShotBufferizationOptions options;
    options.defaultMemorySpaceFn = [](TensorType type) {
      return std::optional<Attribute>(comm::placeOf(type));
    };
    bufferization::BufferizationState state;
    for (auto step : getOperation().getOps<func::FuncOp>()) {
      if (failed(bufferization::runOneShotBufferize(step, options, state)))
        return signalPassFailure();
      WalkResult result = step.walk([](Operation *op) {
        if (!isa<memref::CopyOp>(op))
          return WalkResult::advance();
        op->emitError("expected a program without copies, found that bufferization needs one here");
        return WalkResult::interrupt();
      });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
  }
};

} // namespace
