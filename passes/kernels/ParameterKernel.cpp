//===- ParameterKernel.cpp - What a kernel computes of a parameter ---------===//

#include "passes/kernels/ParameterKernel.h"
#include "passes/kernels/StageKernel.h"
#include "stepc/kernel_abi.h"

#include "llvm/ADT/SmallVectorExtras.h"

#include <cstddef>

using namespace mlir;

namespace stepc::kernels {

LogicalResult checkParameterKernel(func::FuncOp function,
                                   ArrayRef<exec::DispatchParametersOp> dispatches) {
  Block &body = function.getBody().front();
  if (Operation *illegal = findNotElementwise(body))
    return illegal->emitOpError("expected in a kernel over parameters operations on scalars alone");
  Type f64 = Float64Type::get(function.getContext()), f32 = Float32Type::get(function.getContext());
  TypeRange takes = body.getArgumentTypes(), gives = function.getResultTypes();
  if (takes.size() < 4 || llvm::any_of(takes, [&](Type type) { return type != f64; }) ||
      llvm::any_of(gives, [&](Type type) { return type != f32; }))
    return function.emitOpError(
               "expected a kernel over parameters from hyperparameters, step, rows, "
               "cols and numel of f64 to scalars of f32, found ")
           << function.getFunctionType();
  for (exec::DispatchParametersOp dispatch : dispatches) {
    for (auto group : dispatch.getGroups().getAsRange<FlatSymbolRefAttr>()) {
      auto of = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(dispatch, group);
      auto rule = SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(of, of.getRuleAttr());
      if (!rule || rule.getNumHyperparameters() + 4 != int64_t(takes.size()))
        return dispatch.emitOpError("expected a kernel of the hyperparameters of group ")
               << group << ", found one of " << takes.size() - 4;
    }
    if (dispatch.getArgs().size() != dispatch.getGroups().size())
      return dispatch.emitOpError("expected one table of scalars per group");
    for (auto scalars : dispatch.getArgs().getAsRange<exec::ScalarsAttr>())
      if (scalars.getColumns() != int64_t(gives.size()))
        return dispatch.emitOpError("expected scalars of as many columns as the kernel returns, ")
               << gives.size() << ", found " << scalars;
  }
  return success();
}

Value recordOf(KernelBuilder &b, Value records, Value parameter) {
  return b.address(records, b.getI8Type(),
                   b.mul(parameter, b.constant(sizeof(stepc_parameter_record))));
}

Value stepsTaken(KernelBuilder &b, Value record) {
  return b.load(b.pointer, b.address(record, b.getI8Type(),
                                     int64_t(offsetof(stepc_parameter_record, steps_taken))));
}

void emitParameters(KernelBuilder &b, ElementwiseBody &region, Block &body,
                    const ParameterArguments &arguments, Value item, int64_t width) {
  Type f64 = b.getF64Type(), f32 = b.getF32Type(), i64 = b.getI64Type();
  int64_t lanes = std::max<int64_t>(width, 1);
  SmallVector<Value> each, outs;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    // A row has two words: the parameter's number, and the offset of its scalars in the workspace.
    Value at = lane ? b.add(item, b.constant(lane)) : item;
    Value row = b.address(arguments.rows, i64, b.mul(at, b.constant(2)));
    each.push_back(recordOf(b, arguments.records, b.load(i64, row)));
    outs.push_back(
        b.address(arguments.workspace, b.getI8Type(), b.load(i64, b.address(row, i64, 1))));
  }
  auto gather = [&](function_ref<Value(Value record)> load) -> Value {
    SmallVector<Value> loaded = llvm::map_to_vector(each, load);
    if (!width)
      return loaded[0];
    return vector::FromElementsOp::create(b, b.loc, VectorType::get({width}, f64), loaded);
  };
  auto field = [&](Value record, Type type, size_t offset) {
    return b.load(type, b.address(record, b.getI8Type(), int64_t(offset)));
  };
  SmallVector<Value> given, values;
  for (Value record : each)
    given.push_back(field(record, b.pointer, offsetof(stepc_parameter_record, hyperparameters)));
  for (int64_t i = 0, e = body.getNumArguments() - 4; i < e; ++i)
    values.push_back(gather(
        [&, lane = 0](Value) mutable { return b.load(f64, b.address(given[lane++], f64, i)); }));
  // The order of the kernel's arguments: step, rows, cols, numel.
  values.push_back(gather([&](Value record) -> Value {
    Value step = b.add(b.load(i64, stepsTaken(b, record)), b.constant(1));
    return arith::SIToFPOp::create(b, b.loc, f64, step);
  }));
  for (size_t offset :
       {offsetof(stepc_parameter_record, rows), offsetof(stepc_parameter_record, cols),
        offsetof(stepc_parameter_record, numel)})
    values.push_back(gather([&](Value record) { return field(record, f64, offset); }));
  for (auto [k, value] : llvm::enumerate(region.emit(b, values, width)))
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value one = width ? vector::ExtractOp::create(b, b.loc, value, lane).getResult() : value;
      b.store(one, b.address(outs[lane], f32, int64_t(k)));
    }
}

} // namespace stepc::kernels
