//===- GpuParameterKernel.cpp - A parameter per thread ---------------------===//

#include "passes/kernels/ParameterKernel.h"
#include "passes/kernels/gpu/GpuKernels.h"

using namespace mlir;

namespace stepc::kernels {

FailureOr<gpu::GPUFuncOp> addGpuParameterKernel(gpu::GPUModuleOp code, func::FuncOp function,
                                                ArrayRef<exec::DispatchParametersOp> dispatches) {
  if (failed(checkParameterKernel(function, dispatches)))
    return failure();
  KernelBuilder b(function.getContext(), function.getLoc(), kGlobal);
  gpu::GPUFuncOp made = beginGpuKernel(code, function.getSymName(),
                                       {b.pointer, b.pointer, b.pointer, b.getI64Type()}, b);
  Block &body = function.getBody().front();
  ElementwiseBody region(body, body.getNumArguments());
  ParameterArguments arguments{made.getArgument(0), made.getArgument(1), made.getArgument(2)};
  Value item = b.add(b.mul(blockIndex(b), b.constant(kThreads)), threadIndex(b));
  Value exists =
      arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::slt, item, made.getArgument(3));
  auto guard = scf::IfOp::create(b, b.loc, exists, /*withElseRegion=*/false);
  b.setInsertionPointToStart(guard.thenBlock());
  // A row is the parameter, and where its scalars stand.
  Value parameter =
      b.load(b.getI64Type(), b.address(arguments.rows, b.getI64Type(), b.mul(item, b.constant(2))));
  ifActive(b, arguments.records, parameter, [&] {
    region.emitUniform(b, {});
    emitParameters(b, region, body, arguments, item, /*width=*/0);
  });
  return made;
}

} // namespace stepc::kernels
