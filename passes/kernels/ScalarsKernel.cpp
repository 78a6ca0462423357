//===- ScalarsKernel.cpp - Kernels of scalar stages ------------------------===//
//
// One item per parameter of the group: hyperparameters, step and block sizes in
// f64 go in, the columns of the table come out, each rounded once to f32.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/StageKernel.h"
#include "stepc/kernel_abi.h"

#include <cstddef>

using namespace mlir;

namespace stepc::kernels {

FailureOr<LLVM::LLVMFuncOp> KernelCache::scalars(comm::ScalarsOp op) {
  auto group = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(op, op.getGroupAttr());
  Block &body = op.getBody().front();
  for (Operation &inner : body.without_terminator())
    if (inner.getNumRegions() || !isMemoryEffectFree(&inner))
      return inner.emitOpError(
          "expected an operation on scalars without effects in a scalar stage");

  std::string name = (group.getRule() + "_scalars").str();
  return get(name + fingerprint(op.getBody()), name, op.getLoc(),
             [&](KernelBuilder &b, LLVM::LLVMFuncOp kernel) {
               Value records = b.argument(kernel.getArgument(0), 0),
                     table = b.argument(kernel.getArgument(0), 1);
               int64_t columns = body.getTerminator()->getNumOperands();
               int64_t hyperparameters = body.getNumArguments() - 4;
               b.loop(kernel.getArgument(1), kernel.getArgument(2), 1, [&](Value item) {
                 Type f64 = b.getF64Type();
                 Value record = b.address(records, b.getI8Type(),
                                          b.mul(item, b.constant(sizeof(stepc_parameter_record))));
                 auto field = [&](Type type, size_t offset) {
                   return b.load(type, b.address(record, b.getI8Type(), int64_t(offset)));
                 };
                 IRMapping values;
                 Value given = field(b.pointer, offsetof(stepc_parameter_record, hyperparameters));
                 for (int64_t i = 0; i < hyperparameters; ++i)
                   values.map(body.getArgument(i), b.load(f64, b.address(given, f64, i)));
                 // The order of the region's arguments: step, rows, cols, numel.
                 size_t offsets[] = {offsetof(stepc_parameter_record, step),
                                     offsetof(stepc_parameter_record, rows),
                                     offsetof(stepc_parameter_record, cols),
                                     offsetof(stepc_parameter_record, numel)};
                 for (auto [i, offset] : llvm::enumerate(offsets))
                   values.map(body.getArgument(hyperparameters + i), field(f64, offset));
                 for (Operation &inner : body.without_terminator())
                   b.clone(inner, values);
                 Value row = b.address(table, b.getF32Type(), b.mul(item, b.constant(columns)));
                 for (auto [k, value] : llvm::enumerate(body.getTerminator()->getOperands()))
                   b.store(arith::TruncFOp::create(b, b.loc, b.getF32Type(), values.lookup(value)),
                           b.address(row, b.getF32Type(), int64_t(k)));
               });
               return success();
             });
}

} // namespace stepc::kernels
