//===- Phase.cpp - A run of launches as a function -------------------------===//

#include "passes/kernels/Phase.h"
#include "passes/kernels/products/Products.h"
#include "passes/cost/Saturate.h"
#include "stepc/kernel_abi.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace stepc::kernels {

Phase::Phase(ModuleOp module, ProgramPlan &program, MostBlocks &mostBlocks,
             const TargetShape &shape, KernelCache &cache, StringRef name)
    : module(module), program(program), mostBlocks(mostBlocks), shape(shape), cache(cache),
      b(module.getContext(), UnknownLoc::get(module.getContext())) {
  b.setInsertionPointToEnd(module.getBody());
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {b.pointer, b.pointer});
  phase = LLVM::LLVMFuncOp::create(b, b.loc, name, type, LLVM::Linkage::Internal, true);
  // A copy in the step's loop would make its size depend on how many phases there are.
  phase.setNoInline(true);
  Block *entry = phase.addEntryBlock(b);
  context = entry->getArgument(0);
  numberList = entry->getArgument(1);
  b.setInsertionPointToStart(entry);
  b.setInsertionPoint(LLVM::ReturnOp::create(b, b.loc, ValueRange{}));
}

LogicalResult Phase::lower(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](comm::StageOp op) { return lowerStage(op); })
      .Case([&](comm::ScalarsOp op) { return lowerScalars(op); })
      .Case([&](comm::CopyOp op) { return lowerCopy(op); })
      .Case([&](comm::StartOp op) { return lowerStart(op); })
      .Case([&](comm::WaitOp op) { return lowerWait(op); })
      .Case([&](optim::ProductOp op) { return lowerBatch(op, emitProduct); })
      .Case([&](optim::BlockReduceOp op) { return lowerBatch(op, emitBlockReduce); })
      .Default([](Operation *op) {
        return op->emitOpError(
            "expected operations of a scheduled program, this one has no kernel");
      });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value Phase::call(StringRef name, Type result, ValueRange arguments) {
  SmallVector<Value> all = {context};
  llvm::append_range(all, arguments);
  SmallVector<Type> types(ValueRange(all).getTypes());
  auto function = declare(module, name, result, types);
  auto made = LLVM::CallOp::create(b, b.loc, function, all);
  return made.getNumResults() ? made.getResult() : Value();
}

Value Phase::lookUp(StringRef name, int64_t key, llvm::function_ref<Value()> argument) {
  SmallVector<Type> types = {b.pointer};
  if (argument)
    types.push_back(b.getI64Type());
  Value &known = lookUps[{declare(module, name, b.pointer, types), key}];
  if (!known)
    known = call(name, b.pointer, argument ? ValueRange(argument()) : ValueRange());
  return known;
}

Value Phase::number(int64_t value) {
  Value at = b.address(numberList, b.getI64Type(), int64_t(list.size()));
  list.push_back(value);
  return b.load(b.getI64Type(), at);
}

FailureOr<int64_t> Phase::stateOf(comm::ShardsOp op) {
  int64_t group = ProgramPlan::find(program.groups, op.getGroupAttr());
  if (group < 0 || !op.getState())
    return op.emitOpError("expected a state of a group of the program");
  const plan::Rule &rule = program.plan.rules[program.plan.groups[group].rule];
  for (auto [index, state] : llvm::enumerate(rule.states))
    if (state.name == *op.getState())
      return int64_t(index);
  return op.emitOpError("expected a state of rule '")
         << rule.name << "', found '" << *op.getState() << "'";
}

FailureOr<Value> Phase::pointerOf(Value value) {
  if (Value known = bases.lookupOrNull(value))
    return known;
  if (auto cast = value.getDefiningOp<memref::CastOp>())
    return pointerOf(cast.getSource());
  if (auto buffer = value.getDefiningOp<comm::BufferOp>()) {
    Value arena = lookUp("stepc_rt_arena");
    Value base = b.address(arena, b.getI8Type(), number(buffer.getOffset()));
    bases.map(value, base);
    return base;
  }
  auto shards = value.getDefiningOp<comm::ShardsOp>();
  if (!shards) {
    emitError(value.getLoc()) << "expected a buffer of the workspace or shards, found "
                              << value.getType();
    return failure();
  }
  switch (shards.getKind()) {
  case comm::ShardsKind::Parameter:
    return lookUp("stepc_rt_parameters");
  case comm::ShardsKind::Gradient:
    return lookUp("stepc_rt_gradients");
  case comm::ShardsKind::State:
    break;
  }
  FailureOr<int64_t> state = stateOf(shards);
  if (failed(state))
    return failure();
  return lookUp("stepc_rt_states", *state, [&] { return b.constant(*state); });
}

int64_t Phase::firstParameter(FlatSymbolRefAttr group) {
  return program.plan.groups[ProgramPlan::find(program.groups, group)].parameters.front();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void Phase::launch(plan::LaunchKind kind, LLVM::LLVMFuncOp kernel, ValueRange values, int64_t index,
                   int64_t itemsPerBlock) {
  if (int64_t(values.size()) > argumentCount) {
    argumentCount = int64_t(values.size());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&phase.getBody().front());
    Value count = b.constant(argumentCount);
    if (arguments)
      arguments.getArraySizeMutable().assign(count);
    else
      arguments = LLVM::AllocaOp::create(b, b.loc, b.pointer, b.pointer, count);
    arguments->moveAfter(count.getDefiningOp());
  }
  for (auto [slot, value] : llvm::enumerate(values))
    b.store(value, b.address(arguments, b.pointer, int64_t(slot)));
  Value address = LLVM::AddressOfOp::create(b, b.loc, b.pointer, kernel.getSymName());
  SmallVector<Value> operands = {address, arguments, number(index)};
  Type none = LLVM::LLVMVoidType::get(b.getContext());
  switch (kind) {
  case plan::LaunchKind::Chunks:
    call("stepc_rt_launch_chunks", none, operands);
    break;
  case plan::LaunchKind::Group:
    call("stepc_rt_launch_group", none, operands);
    break;
  case plan::LaunchKind::Blocks:
    operands.push_back(b.constant(itemsPerBlock));
    call("stepc_rt_launch_blocks", none, operands);
    break;
  case plan::LaunchKind::Copy:
    llvm_unreachable("copies are no kernels");
  }
  program.plan.launches.push_back({kind, index, itemsPerBlock});
}

LogicalResult Phase::lowerStage(comm::StageOp op) {
  FailureOr<StageKernel> made = cache.stage(op);
  if (failed(made))
    return failure();
  int64_t table = program.table(op);
  auto segment = SymbolTable::lookupNearestSymbolFrom<comm::SegmentOp>(op, op.getSegmentAttr());
  auto group = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(op, segment.getGroupAttr());
  SmallVector<Value> values;
  for (const KernelArgument &argument : made->arguments) {
    if (argument.kind == KernelArgument::Chunks) {
      values.push_back(lookUp("stepc_rt_chunks", table, [&] { return number(table); }));
      continue;
    }
    if (argument.kind == KernelArgument::BlockRows) {
      values.push_back(LLVM::IntToPtrOp::create(b, b.loc, b.pointer, b.constant(group.getRows())));
      continue;
    }
    FailureOr<Value> base = pointerOf(argument.value);
    if (failed(base))
      return failure();
    if (argument.kind == KernelArgument::Scalars) {
      int64_t columns = cast<ShapedType>(argument.value.getType()).getDimSize(1);
      int64_t before = firstParameter(segment.getGroupAttr()) * columns;
      base = b.address(*base, b.getF32Type(), number(-before));
    }
    values.push_back(*base);
  }
  launch(plan::LaunchKind::Chunks, made->kernel, values, table);
  return success();
}

LogicalResult Phase::lowerScalars(comm::ScalarsOp op) {
  FailureOr<LLVM::LLVMFuncOp> kernel = cache.scalars(op);
  FailureOr<Value> table = pointerOf(op.getInit());
  if (failed(kernel) || failed(table))
    return failure();
  Value records = lookUp("stepc_rt_records");
  Value first = b.address(records, b.getI64Type(),
                          number(firstParameter(op.getGroupAttr()) *
                                 int64_t(sizeof(stepc_parameter_record) / sizeof(int64_t))));
  launch(plan::LaunchKind::Group, *kernel, {first, *table},
         ProgramPlan::find(program.groups, op.getGroupAttr()));
  return success();
}

Value Phase::scratchBase() {
  if (!scratch) {
    Value arena = lookUp("stepc_rt_arena");
    scratch = b.address(arena, b.getI8Type(), number(program.plan.scratchOffset()));
  }
  return scratch;
}

template <typename Op, typename Emit> LogicalResult Phase::lowerBatch(Op op, Emit emit) {
  FailureOr<BatchKernels> kernels = emit(cache.symbols(), op, shape);
  if (failed(kernels))
    return failure();
  int64_t bytes = kernels->scratchBytesPerBlock, bound = scratchBoundPerBlock(op);
  if (bytes > bound)
    return op.emitOpError("expected kernels that need at most ")
           << bound << " bytes of scratch per block, which the workspace allows for, found "
           << bytes;
  if (bytes > 0) {
    int64_t blocks = mostBlocks(ProgramPlan::find(program.segments, op.getSegmentAttr()));
    program.plan.scratchBytes = std::max(program.plan.scratchBytes, saturatingMul(bytes, blocks));
  }
  for (const KernelLaunch &made : kernels->launches) {
    SmallVector<Value> values;
    for (Value buffer : made.buffers) {
      FailureOr<Value> base = buffer ? pointerOf(buffer) : scratchBase();
      if (failed(base))
        return failure();
      values.push_back(*base);
    }
    launch(plan::LaunchKind::Blocks, made.kernel, values, program.table(op), made.itemsPerBlock);
  }
  return success();
}

LogicalResult Phase::lowerCopy(comm::CopyOp op) {
  Value null = LLVM::ZeroOp::create(b, b.loc, b.pointer), from = null, to = null;
  int64_t state = 0; // looked at only where a side is shards
  for (auto [value, pointer] :
       {std::pair(op.getSource(), &from),
        std::pair(op.getTarget() ? Value(op.getTarget()) : op.getInit(), &to)}) {
    if (auto shards = value.getDefiningOp<comm::ShardsOp>()) {
      FailureOr<int64_t> index = stateOf(shards);
      if (failed(index))
        return failure();
      state = *index;
      continue;
    }
    FailureOr<Value> base = pointerOf(value);
    if (failed(base))
      return failure();
    *pointer = *base;
  }
  int64_t table = program.table(op);
  call("stepc_rt_copy", LLVM::LLVMVoidType::get(b.getContext()),
       {number(table), from, to, b.constant(state)});
  program.plan.launches.push_back({plan::LaunchKind::Copy, table, 1});
  return success();
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

LogicalResult Phase::lowerStart(comm::StartOp op) {
  const auto &tables = program.tables.lookup(op);
  Value order = number(op.getOrder()), count = number(int64_t(tables.size()));
  // Three lists of `count` follow, so that one function starts exchanges of any number of groups.
  Value tableList = b.address(numberList, b.getI64Type(), int64_t(list.size()));
  Value sendList = b.address(tableList, b.getI64Type(), count);
  Value receiveList = b.address(sendList, b.getI64Type(), count);
  llvm::append_range(list, tables);
  for (auto values : {op.getSends(), op.getReceives()})
    for (Value value : values) {
      while (auto cast = value.getDefiningOp<memref::CastOp>())
        value = cast.getSource();
      auto buffer = value.getDefiningOp<comm::BufferOp>();
      if (!buffer)
        return op.emitOpError("expected buffers of the workspace, found ") << value;
      list.push_back(buffer.getOffset());
    }
  call("stepc_rt_exchange_start", LLVM::LLVMVoidType::get(b.getContext()),
       {order, count, tableList, sendList, receiveList});
  return success();
}

LogicalResult Phase::lowerWait(comm::WaitOp op) {
  auto start = op.getToken().getDefiningOp<comm::StartOp>();
  if (!start)
    return op.emitOpError("expected the token of a comm.start, found ") << op.getToken();
  call("stepc_rt_exchange_wait", LLVM::LLVMVoidType::get(b.getContext()), number(start.getOrder()));
  return success();
}

} // namespace stepc::kernels
