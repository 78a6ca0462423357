//===- CpuParameterKernel.cpp - Loops over the parameters of a kernel ------===//
//
// An item is one parameter. Several parameters are computed at once, by the same operations as one.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/CpuKernels.h"
#include "passes/kernels/ParameterKernel.h"

using namespace mlir;

namespace stepc::kernels {

/// The number of parameters that are computed at once. Functions of f64 are long chains of operations, and
/// several chains beside each other wait less.
constexpr int64_t kParameterWidth = 8;

FailureOr<LLVM::LLVMFuncOp> lowerParameterKernel(func::FuncOp function,
                                                 ArrayRef<exec::DispatchParametersOp> dispatches) {
  FailureOr<ParameterForm> form = checkParameterKernel(function, dispatches);
  if (failed(form))
    return failure();
  Block &body = function.getBody().front();
  KernelBuilder b(function.getContext(), function.getLoc());
  LLVM::LLVMFuncOp kernel =
      beginKernel(function->getParentOfType<ModuleOp>(), function.getSymName(), b);
  ElementwiseBody region(body, body.getNumArguments());
  Value list = kernel.getArgument(0);
  ParameterArguments arguments{b.argument(list, 0), b.argument(list, 1), b.argument(list, 2)};
  Value first = kernel.getArgument(1), last = kernel.getArgument(2);
  Value count = arith::SubIOp::create(b, b.loc, last, first);
  Value tail = arith::RemSIOp::create(b, b.loc, count, b.constant(kParameterWidth));
  Value whole = arith::SubIOp::create(b, b.loc, last, tail);
  region.emitUniform(b, {});
  auto emit = [&](int64_t width) {
    return [&, width](Value item) { emitParameters(b, region, *form, arguments, item, width); };
  };
  b.loop(first, whole, kParameterWidth, emit(kParameterWidth));
  b.loop(whole, last, 1, emit(0));
  return kernel;
}

} // namespace stepc::kernels
