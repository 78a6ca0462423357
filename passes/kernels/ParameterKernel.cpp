//===- ParameterKernel.cpp - What a kernel computes of a parameter ---------===//

#include "passes/kernels/ParameterKernel.h"
#include "passes/kernels/StageKernel.h"
#include "stepc/kernel_abi.h"

#include "llvm/ADT/SmallVectorExtras.h"

#include <cstddef>
#include <numeric>

using namespace mlir;

namespace stepc::kernels {

int64_t ParameterForm::arguments() const {
  return hyperparameters + 4 + std::accumulate(numbers.begin(), numbers.end(), int64_t(0));
}

/// How many numbers of the model each operand behind the first of a dispatch's groups has.
static SmallVector<int64_t> numbersOf(ArrayRef<Attribute> operands) {
  return llvm::map_to_vector(operands.drop_front(), [](Attribute operand) {
    auto scalars = dyn_cast<exec::ScalarsAttr>(operand);
    return scalars ? int64_t(scalars.getColumns()) : int64_t(1);
  });
}

FailureOr<ParameterForm> checkParameterKernel(func::FuncOp function,
                                              ArrayRef<exec::DispatchParametersOp> dispatches) {
  Block &body = function.getBody().front();
  if (Operation *illegal = findNotElementwise(body, /*ofScalars=*/true))
    return illegal->emitOpError("expected in a kernel over parameters operations on scalars alone");
  Type f64 = Float64Type::get(function.getContext()), f32 = Float32Type::get(function.getContext());
  TypeRange takes = body.getArgumentTypes(), gives = function.getResultTypes();
  if (takes.size() < 4 || llvm::any_of(takes, [&](Type type) { return type != f64; }) ||
      llvm::any_of(gives, [&](Type type) { return type != f32; }))
    return function.emitOpError(
               "expected a kernel over parameters from hyperparameters, step, rows, "
               "cols, numel and numbers of f64 to scalars of f32, found ")
           << function.getFunctionType();
  ParameterForm form;
  exec::DispatchParametersOp first = dispatches.front();
  form.numbers = numbersOf(
      first.getArgs().getValue().take_front(first.getArgs().size() / first.getGroups().size()));
  form.hyperparameters = int64_t(takes.size()) - form.arguments();
  for (exec::DispatchParametersOp dispatch : dispatches) {
    size_t each = dispatch.getArgs().size() / dispatch.getGroups().size();
    for (auto [index, group] :
         llvm::enumerate(dispatch.getGroups().getAsRange<FlatSymbolRefAttr>())) {
      auto of = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(dispatch, group);
      auto rule = SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(of, of.getRuleAttr());
      ArrayRef<Attribute> operands = dispatch.getArgs().getValue().slice(index * each, each);
      if (!rule || rule.getNumHyperparameters() != form.hyperparameters ||
          numbersOf(operands) != form.numbers)
        return dispatch.emitOpError(
                   "expected a kernel of the hyperparameters and numbers of group ")
               << group << ", found one of " << takes.size() - 4;
      if (cast<exec::ScalarsAttr>(operands[0]).getColumns() != int64_t(gives.size()))
        return dispatch.emitOpError("expected scalars of as many columns as the kernel returns, ")
               << gives.size() << ", found " << operands[0];
    }
  }
  return form;
}

Value recordOf(KernelBuilder &b, Value records, Value parameter) {
  return b.address(records, b.getI8Type(),
                   b.mul(parameter, b.constant(sizeof(stepc_parameter_record))));
}

Value fieldOf(KernelBuilder &b, Value record, size_t offset) {
  return b.address(record, b.getI8Type(), int64_t(offset));
}

Value stepsTaken(KernelBuilder &b, Value record) {
  return b.load(b.pointer, fieldOf(b, record, offsetof(stepc_parameter_record, steps_taken)));
}

void emitParameters(KernelBuilder &b, ElementwiseBody &region, const ParameterForm &form,
                    const ParameterArguments &arguments, Value item, int64_t width) {
  Type f64 = b.getF64Type(), f32 = b.getF32Type(), i64 = b.getI64Type();
  int64_t lanes = std::max<int64_t>(width, 1);
  SmallVector<Value> each, outs, rows;
  auto inWorkspace = [&](Value row, int64_t word) {
    return b.address(arguments.workspace, b.getI8Type(), b.load(i64, b.address(row, i64, word)));
  };
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value at = lane ? b.add(item, b.constant(lane)) : item;
    rows.push_back(b.address(arguments.rows, i64, b.mul(at, b.constant(form.words()))));
    each.push_back(recordOf(b, arguments.records, b.load(i64, rows.back())));
    outs.push_back(inWorkspace(rows.back(), 1));
  }
  auto gather = [&](function_ref<Value(Value record)> load) -> Value {
    SmallVector<Value> loaded = llvm::map_to_vector(each, load);
    if (!width)
      return loaded[0];
    return vector::FromElementsOp::create(b, b.loc, VectorType::get({width}, f64), loaded);
  };
  auto field = [&](Value record, Type type, size_t offset) {
    return b.load(type, fieldOf(b, record, offset));
  };
  SmallVector<Value> given, values;
  for (Value record : each)
    given.push_back(field(record, b.pointer, offsetof(stepc_parameter_record, hyperparameters)));
  for (int64_t i = 0; i < form.hyperparameters; ++i)
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
  for (auto [operand, count] : llvm::enumerate(form.numbers))
    for (int64_t i = 0; i < count; ++i)
      values.push_back(gather([&, lane = 0](Value) mutable -> Value {
        Value numbers = inWorkspace(rows[lane++], 2 + int64_t(operand));
        return arith::ExtFOp::create(b, b.loc, f64, b.load(f32, b.address(numbers, f32, i)));
      }));
  for (auto [k, value] : llvm::enumerate(region.emit(b, values, width)))
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value one = width ? vector::ExtractOp::create(b, b.loc, value, lane).getResult() : value;
      b.store(one, b.address(outs[lane], f32, int64_t(k)));
    }
}

} // namespace stepc::kernels
