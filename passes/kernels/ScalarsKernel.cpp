//===- ScalarsKernel.cpp - Kernels of scalar stages ------------------------===//
//
// One item per parameter: hyperparameters, step and block sizes in
// f64 go in, the columns of the table come out, each rounded once to f32. Several items are
// computed at once, by the operations that compute one.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/StageKernel.h"
#include "stepc/kernel_abi.h"

#include <cstddef>

using namespace mlir;

namespace stepc::kernels {

namespace {

/// Parameters that are computed at once. The functions of f64 are long chains, which wait less so.
constexpr int64_t kWidth = 8;

/// What a kernel over parameters is given (kernel_abi.h).
struct Arguments {
  Value rows, workspace, records;
};

/// Emits the region for the parameters from `item` on: kWidth of them, or one where `width` is 0.
void emitItems(KernelBuilder &b, ElementwiseBody &region, Block &body, const Arguments &arguments,
               Value item, int64_t width) {
  Type f64 = b.getF64Type(), f32 = b.getF32Type(), i64 = b.getI64Type();
  int64_t lanes = std::max<int64_t>(width, 1);
  SmallVector<Value> each, outs;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    // A row is the parameter, and where its scalars stand.
    Value at = lane ? b.add(item, b.constant(lane)) : item;
    Value row = b.address(arguments.rows, i64, b.mul(at, b.constant(2)));
    each.push_back(b.address(arguments.records, b.getI8Type(),
                             b.mul(b.load(i64, row), b.constant(sizeof(stepc_parameter_record)))));
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
  // The order of the region's arguments: step, rows, cols, numel.
  for (size_t offset :
       {offsetof(stepc_parameter_record, step), offsetof(stepc_parameter_record, rows),
        offsetof(stepc_parameter_record, cols), offsetof(stepc_parameter_record, numel)})
    values.push_back(gather([&](Value record) { return field(record, f64, offset); }));
  for (auto [k, value] : llvm::enumerate(region.emit(b, values, width))) {
    Type type = width ? Type(VectorType::get({width}, f32)) : f32;
    Value rounded = arith::TruncFOp::create(b, b.loc, type, value);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value one = width ? vector::ExtractOp::create(b, b.loc, rounded, lane).getResult() : rounded;
      b.store(one, b.address(outs[lane], f32, int64_t(k)));
    }
  }
}

} // namespace

FailureOr<LLVM::LLVMFuncOp> KernelCache::scalars(comm::ScalarsOp op) {
  auto group = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(op, op.getGroupAttr());
  Block &body = op.getBody().front();
  ElementwiseBody region(body, body.getNumArguments());
  if (Operation *illegal = region.illegal())
    return illegal->emitOpError(
        "expected an operation on scalars without effects in a scalar stage");

  std::string name = (group.getRule() + "_scalars").str();
  return get(name + fingerprint(op.getBody()), name, op.getLoc(),
             [&](KernelBuilder &b, LLVM::LLVMFuncOp kernel) {
               Value list = kernel.getArgument(0);
               Arguments arguments{b.argument(list, 0), b.argument(list, 1), b.argument(list, 2)};
               Value first = kernel.getArgument(1), last = kernel.getArgument(2);
               Value count = arith::SubIOp::create(b, b.loc, last, first);
               Value tail = arith::RemSIOp::create(b, b.loc, count, b.constant(kWidth));
               Value whole = arith::SubIOp::create(b, b.loc, last, tail);
               region.emitUniform(b, {});
               auto emit = [&](int64_t width) {
                 return
                     [&, width](Value item) { emitItems(b, region, body, arguments, item, width); };
               };
               b.loop(first, whole, kWidth, emit(kWidth));
               b.loop(whole, last, 1, emit(0));
               return success();
             });
}

} // namespace stepc::kernels
