//===- GpuParameterKernel.cpp - A parameter per thread ---------------------===//

#include "passes/kernels/ParameterKernel.h"
#include "passes/kernels/gpu/GpuKernels.h"

using namespace mlir;

namespace stepc::kernels {

/// A parameter is a few operations, for which a thread is enough.
static const plan::LaunchShape kThreadPerItem = {.grid = plan::Grid::Threads, .threads = kThreads};

/// Returns the number of this thread's parameter. Code after this call is emitted inside a check that the
/// parameter exists.
static Value beginItem(KernelBuilder &b, Value count) {
  Value item = b.add(b.mul(blockIndex(b), b.constant(kThreads)), threadIndex(b));
  Value exists = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::slt, item, count);
  auto guard = scf::IfOp::create(b, b.loc, exists, /*withElseRegion=*/false);
  b.setInsertionPointToStart(guard.thenBlock());
  return item;
}

FailureOr<gpu::GPUFuncOp> addGpuParameterKernel(gpu::GPUModuleOp code, func::FuncOp function,
                                                ArrayRef<exec::DispatchParametersOp> dispatches) {
  FailureOr<ParameterForm> form = checkParameterKernel(function, dispatches);
  if (failed(form))
    return failure();
  KernelBuilder b(function.getContext(), function.getLoc(), kGlobal);
  gpu::GPUFuncOp made =
      beginGpuKernel(code, function.getSymName(), {b.pointer, b.pointer, b.pointer, b.getI64Type()},
                     b, kThreadPerItem);
  Block &body = function.getBody().front();
  ElementwiseBody region(body, body.getNumArguments());
  ParameterArguments arguments{made.getArgument(0), made.getArgument(1), made.getArgument(2)};
  Value item = beginItem(b, made.getArgument(3));
  Value parameter = b.load(b.getI64Type(), b.address(arguments.rows, b.getI64Type(),
                                                     b.mul(item, b.constant(form->words()))));
  ifActive(b, arguments.records, parameter, [&] {
    region.emitUniform(b, {});
    emitParameters(b, region, *form, arguments, item, /*width=*/0);
  });
  return made;
}

GpuKernels addGpuAdvanceKernel(gpu::GPUModuleOp code, exec::AdvanceStepsOp op) {
  constexpr StringLiteral name = "stepc_advance_steps";
  if (auto known = code.lookupSymbol<gpu::GPUFuncOp>(name))
    return {{known, 1}};
  KernelBuilder b(op.getContext(), op.getLoc(), kGlobal);
  Type i64 = b.getI64Type();
  gpu::GPUFuncOp made = beginGpuKernel(code, name, {b.pointer, i64}, b, kThreadPerItem);
  Value records = made.getArgument(0), item = beginItem(b, made.getArgument(1));
  Value record = recordOf(b, records, item);
  ifActive(b, records, item, [&] {
    Value counts = b.load(i64, fieldOf(b, record, offsetof(stepc_parameter_record, counts)));
    Value isFirst =
        arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::ne, counts, b.constant(0));
    auto first = scf::IfOp::create(b, b.loc, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard keep(b);
    b.setInsertionPointToStart(first.thenBlock());
    Value taken = stepsTaken(b, record);
    b.store(b.add(b.load(i64, taken), b.constant(1)), taken);
  });
  b.store(b.constant(1), fieldOf(b, record, offsetof(stepc_parameter_record, active)));
  return {{made, 1}};
}

GpuKernels addGpuSkipKernel(gpu::GPUModuleOp code, exec::SkipOp op) {
  constexpr StringLiteral name = "stepc_skip";
  if (auto known = code.lookupSymbol<gpu::GPUFuncOp>(name))
    return {{known, 1}};
  KernelBuilder b(op.getContext(), op.getLoc(), kGlobal);
  gpu::GPUFuncOp made =
      beginGpuKernel(code, name, {b.pointer, b.pointer, b.getI64Type()}, b, kThreadPerItem);
  Value item = beginItem(b, made.getArgument(2));
  Value number = b.load(b.getF32Type(), made.getArgument(1));
  Value zero = arith::ConstantOp::create(b, b.loc, b.getF32FloatAttr(0));
  Value skips = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::UNE, number, zero);
  auto guard = scf::IfOp::create(b, b.loc, skips, /*withElseRegion=*/false);
  b.setInsertionPointToStart(guard.thenBlock());
  b.store(b.constant(0), fieldOf(b, recordOf(b, made.getArgument(0), item),
                                 offsetof(stepc_parameter_record, active)));
  return {{made, 1}};
}

} // namespace stepc::kernels
