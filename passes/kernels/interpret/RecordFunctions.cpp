//===- RecordFunctions.cpp - Functions that become records ------------------===//

#include "passes/kernels/interpret/Records.h"

#include "passes/kernels/ChunkKernel.h"
#include "passes/kernels/ParameterKernel.h"
#include "passes/kernels/RandomNumbers.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace stepc::kernels {

namespace {

interpret::Reach reachOf(ChunkOperand::Place place) {
  switch (place) {
  case ChunkOperand::Place::Shards:
    return interpret::Reach::Shards;
  case ChunkOperand::Place::Staged:
    return interpret::Reach::Staged;
  case ChunkOperand::Place::Block:
    return interpret::Reach::Block;
  case ChunkOperand::Place::Row:
    return interpret::Reach::Row;
  case ChunkOperand::Place::Column:
    return interpret::Reach::Column;
  case ChunkOperand::Place::RowNumber:
    return interpret::Reach::RowNumber;
  case ChunkOperand::Place::ColumnNumber:
    return interpret::Reach::ColumnNumber;
  case ChunkOperand::Place::ElementNumber:
    return interpret::Reach::ElementNumber;
  }
  llvm_unreachable("all places are there");
}

void setRecord(LLVM::LLVMFuncOp function, const interpret::NamedKernel &kernel) {
  std::vector<uint8_t> bytes = interpret::encode({kernel});
  StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  function->setAttr(kRecordAttr, StringAttr::get(function.getContext(), text));
}

/// Makes a function whose arguments are the arguments of `body` and then a pointer for each value that `body`
/// yields. It stores these values to the pointers.
LLVM::LLVMFuncOp functionOf(func::FuncOp kernel, Block &body) {
  KernelBuilder b(kernel.getContext(), kernel.getLoc());
  SmallVector<Type> types(body.getArgumentTypes());
  types.append(body.getTerminator()->getNumOperands(), b.pointer);
  LLVM::LLVMFuncOp made =
      beginKernel(kernel->getParentOfType<ModuleOp>(), kernel.getSymName(), b, types);
  IRMapping values;
  values.map(body.getArguments(), made.getArguments().take_front(body.getNumArguments()));
  for (Operation &op : body.without_terminator()) {
    auto given = [&](Value value) { return values.lookup(value); };
    if (auto rounding = dyn_cast<optim::StochasticOp>(op)) {
      values.map(rounding, emitStochastic(b, b.loc, given(rounding.getSource()),
                                          given(rounding.getUniform())));
      continue;
    }
    auto random = dyn_cast<optim::RandomOp>(op);
    if (!random) {
      b.clone(op, values);
      continue;
    }
    DrawOperands operands = operandsOf(random, given);
    Value drawn = emitNumbers(b, b.loc, random.getDraw(), given(random.getElement()), operands,
                              uint32_t(random.getCall()))
                      .front();
    // There are no branches, so numbers are drawn in every step.
    if (operands.condition) {
      Value none = arith::ConstantOp::create(b, b.loc, b.getZeroAttr(drawn.getType()));
      drawn = arith::SelectOp::create(b, b.loc, operands.condition, drawn, none);
    }
    values.map(random.getResult(), drawn);
  }
  for (auto [value, to] : llvm::zip_equal(body.getTerminator()->getOperands(),
                                          made.getArguments().drop_front(body.getNumArguments())))
    LLVM::StoreOp::create(b, b.loc, values.lookupOrDefault(value), to);
  return made;
}

} // namespace

FailureOr<LLVM::LLVMFuncOp> recordFunction(func::FuncOp function,
                                           ArrayRef<exec::DispatchChunksOp> dispatches) {
  FailureOr<ChunkKernel> kernel = ChunkKernel::read(function, dispatches);
  if (failed(kernel))
    return failure();
  interpret::ChunkKernel record;
  record.isOverShards = kernel->overShards;
  record.isFlat = kernel->flat;
  record.reduction = kernel->reduction;
  record.sums = kernel->sums;
  for (size_t i = 0; i < kernel->each; ++i)
    record.isShards.push_back(isa<exec::ShardsAttr>(kernel->operand(i)));
  // Arguments of the function: what is read, columns of scalars, and a pointer for what is written.
  int64_t next = 0;
  auto valueOf = [&](const ChunkOperand &operand) {
    auto type = optim::toPlan(operand.element).value_or(plan::DType::F32);
    return interpret::ChunkValue{reachOf(operand.place), type,
                                 operand.isNumber() ? -1 : int64_t(operand.slot), next++};
  };
  for (const ChunkOperand &read : kernel->reads)
    record.reads.push_back(valueOf(read));
  for (int64_t column : kernel->columns)
    record.columns.push_back({column, next++});
  if (kernel->readsKey)
    record.key = next++;
  for (const ChunkOperand &write : kernel->writes)
    record.writes.push_back(valueOf(write));
  record.body.registers = next;
  // The outs of the kernel's region are not read.
  kernel->body->eraseArguments(unsigned(kernel->reads.size() + kernel->columns.size()) +
                                   unsigned(kernel->readsKey),
                               unsigned(kernel->writes.size()));
  LLVM::LLVMFuncOp made = functionOf(function, *kernel->body);
  setRecord(made, {function.getSymName().str(), record});
  return made;
}

FailureOr<LLVM::LLVMFuncOp> recordFunction(func::FuncOp function,
                                           ArrayRef<exec::DispatchParametersOp> dispatches) {
  FailureOr<ParameterForm> form = checkParameterKernel(function, dispatches);
  if (failed(form))
    return failure();
  Block &body = function.getBody().front();
  interpret::ParameterKernel record;
  int64_t inputs = body.getNumArguments(), outputs = body.getTerminator()->getNumOperands();
  for (int64_t i = 0; i < inputs; ++i)
    record.inputs.push_back(i);
  record.numbers.assign(form->numbers.begin(), form->numbers.end());
  for (int64_t i = 0; i < outputs; ++i)
    record.outputs.push_back(inputs + i);
  record.body.registers = inputs + outputs;
  LLVM::LLVMFuncOp made = functionOf(function, body);
  setRecord(made, {function.getSymName().str(), record});
  return made;
}

LLVM::LLVMFuncOp recordFunction(SymbolTable &symbols, Location loc, interpret::NamedKernel kernel) {
  if (auto known = symbols.lookup<LLVM::LLVMFuncOp>(kernel.name))
    return known;
  KernelBuilder b(symbols.getOp()->getContext(), loc);
  LLVM::LLVMFuncOp made = beginKernel(cast<ModuleOp>(symbols.getOp()), kernel.name, b);
  symbols.insert(made);
  setRecord(made, kernel);
  return made;
}

} // namespace stepc::kernels
