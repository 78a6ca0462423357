//===- HostStep.cpp - The step function ------------------------------------===//
//
// Straight-line code: what differs between ranks is in the tables. It returns early
// only where an exchange failed; everything else that fails is found by the runtime,
// whose calls do nothing from then on.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/HostStep.h"
#include "passes/kernels/PlanAttributes.h"
#include "passes/kernels/products/Products.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace stepc::kernels {

HostStep::HostStep(ModuleOp module, ProgramPlan &program, const TargetShape &shape)
    : module(module), program(program), shape(shape), cache(module),
      b(module.getContext(), UnknownLoc::get(module.getContext())) {}

LogicalResult HostStep::lower(Block &body) {
  b.setInsertionPointToEnd(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {b.pointer});
  step = LLVM::LLVMFuncOp::create(b, b.loc, kStepFunction, type);
  entry = step.addEntryBlock(b);
  context = entry->getArgument(0);
  Block *start = b.createBlock(&step.getBody());
  done = b.createBlock(&step.getBody());
  LLVM::ReturnOp::create(b, b.loc, ValueRange{});
  b.setInsertionPointToEnd(entry);
  LLVM::BrOp::create(b, b.loc, start);

  b.setInsertionPointToEnd(start);
  for (Operation &op : body)
    if (failed(lowerOp(&op)))
      return failure();
  LLVM::BrOp::create(b, b.loc, done);
  done->moveBefore(&step.getBody(), step.getBody().end());
  writeNumbers();
  attachProgram(step, program.plan);
  return success();
}

void HostStep::writeNumbers() {
  if (numbers.empty())
    return;
  b.setInsertionPoint(step);
  auto type = LLVM::LLVMArrayType::get(b.getI64Type(), numbers.size());
  LLVM::GlobalOp::create(b, b.loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, kNumbers,
                         b.getI64TensorAttr(numbers));
}

LogicalResult HostStep::lowerOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](comm::StageOp op) { return lowerStage(op); })
      .Case([&](comm::ScalarsOp op) { return lowerScalars(op); })
      .Case([&](comm::CopyOp op) { return lowerCopy(op); })
      .Case([&](comm::StartOp op) { return lowerStart(op); })
      .Case([&](comm::WaitOp op) { return lowerWait(op); })
      .Case([&](optim::ProductOp op) { return lowerBatch(op, emitProduct); })
      .Case([&](optim::BlockReduceOp op) { return lowerBatch(op, emitBlockReduce); })
      // Handles and sizes: their users ask for what they need.
      .Case<comm::WorldOp, comm::ShardsOp, comm::ExtentOp, comm::BufferOp, memref::CastOp,
            arith::ConstantOp, func::ReturnOp>([](Operation *) { return success(); })
      .Default([](Operation *op) {
        return op->emitOpError(
            "expected operations of a scheduled program, this one has no kernel");
      });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value HostStep::call(StringRef name, Type result, ValueRange arguments) {
  SmallVector<Value> all = {context};
  llvm::append_range(all, arguments);
  SmallVector<Type> types(ValueRange(all).getTypes());
  auto function = declare(module, name, result, types);
  auto made = LLVM::CallOp::create(b, b.loc, function, all);
  return made.getNumResults() ? made.getResult() : Value();
}

Value HostStep::lookUp(StringRef name, ValueRange arguments, int64_t key) {
  SmallVector<Type> types = {b.pointer};
  llvm::append_range(types, arguments.getTypes());
  auto function = declare(module, name, b.pointer, types);
  Value &known = lookUps[{function, key}];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(entry->getTerminator());
  SmallVector<Value> copies;
  for (Value argument : arguments)
    copies.push_back(b.clone(*argument.getDefiningOp())->getResult(0));
  return known = call(name, b.pointer, copies);
}

Value HostStep::number(int64_t value) {
  Value all = LLVM::AddressOfOp::create(b, b.loc, b.pointer, kNumbers);
  Value at = b.address(all, b.getI64Type(), int64_t(numbers.size()));
  numbers.push_back(value);
  // Volatile, or the optimizer would put the number back into the code.
  return LLVM::LoadOp::create(b, b.loc, b.getI64Type(), at, /*alignment=*/8, /*isVolatile=*/true);
}

FailureOr<int64_t> HostStep::stateOf(comm::ShardsOp op) {
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

FailureOr<Value> HostStep::pointerOf(Value value) {
  if (Value known = bases.lookupOrNull(value))
    return known;
  if (auto cast = value.getDefiningOp<memref::CastOp>())
    return pointerOf(cast.getSource());
  if (auto buffer = value.getDefiningOp<comm::BufferOp>()) {
    Value arena = lookUp("stepc_rt_arena", {}, 0);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(entry->getTerminator());
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
    return lookUp("stepc_rt_parameters", {}, 0);
  case comm::ShardsKind::Gradient:
    return lookUp("stepc_rt_gradients", {}, 0);
  case comm::ShardsKind::State:
    break;
  }
  FailureOr<int64_t> state = stateOf(shards);
  if (failed(state))
    return failure();
  return lookUp("stepc_rt_states", b.constant(*state), *state);
}

Value HostStep::fill(Scratch &scratch, Type element, ValueRange values) {
  if (!scratch.array) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(entry);
    scratch.array = LLVM::AllocaOp::create(b, b.loc, b.pointer, element, b.constant(0));
  }
  if (int64_t(values.size()) > scratch.size) {
    scratch.size = int64_t(values.size());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(scratch.array);
    scratch.array.getArraySizeMutable().assign(b.constant(scratch.size));
  }
  for (auto [index, value] : llvm::enumerate(values))
    b.store(value, b.address(scratch.array, element, int64_t(index)));
  return scratch.array;
}

Value HostStep::kernelAddress(LLVM::LLVMFuncOp kernel) {
  return LLVM::AddressOfOp::create(b, b.loc, b.pointer, kernel.getSymName());
}

int64_t HostStep::firstParameter(FlatSymbolRefAttr group) {
  return program.plan.groups[ProgramPlan::find(program.groups, group)].parameters.front();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void HostStep::launch(plan::LaunchKind kind, LLVM::LLVMFuncOp kernel, ValueRange arguments,
                      int64_t index, int64_t itemsPerBlock) {
  Type none = LLVM::LLVMVoidType::get(b.getContext());
  SmallVector<Value> operands = {kernelAddress(kernel), fill(pointers, b.pointer, arguments),
                                 b.constant(index)};
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

LogicalResult HostStep::lowerStage(comm::StageOp op) {
  FailureOr<StageKernel> made = cache.stage(op);
  if (failed(made))
    return failure();
  int64_t table = program.table(op);
  auto segment = SymbolTable::lookupNearestSymbolFrom<comm::SegmentOp>(op, op.getSegmentAttr());
  auto group = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(op, segment.getGroupAttr());
  SmallVector<Value> arguments;
  for (const KernelArgument &argument : made->arguments) {
    if (argument.kind == KernelArgument::Chunks) {
      arguments.push_back(lookUp("stepc_rt_chunks", b.constant(table), table));
      continue;
    }
    if (argument.kind == KernelArgument::BlockRows) {
      arguments.push_back(
          LLVM::IntToPtrOp::create(b, b.loc, b.pointer, b.constant(group.getRows())));
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
    arguments.push_back(*base);
  }
  launch(plan::LaunchKind::Chunks, made->kernel, arguments, table);
  return success();
}

LogicalResult HostStep::lowerScalars(comm::ScalarsOp op) {
  FailureOr<LLVM::LLVMFuncOp> kernel = cache.scalars(op);
  FailureOr<Value> table = pointerOf(op.getInit());
  if (failed(kernel) || failed(table))
    return failure();
  constexpr int64_t kRecordWords = 8; // stepc_parameter_record
  Value records = lookUp("stepc_rt_records", {}, 0);
  Value first =
      b.address(records, b.getI64Type(), number(firstParameter(op.getGroupAttr()) * kRecordWords));
  launch(plan::LaunchKind::Group, *kernel, {first, *table},
         ProgramPlan::find(program.groups, op.getGroupAttr()));
  return success();
}

template <typename Op, typename Emit> LogicalResult HostStep::lowerBatch(Op op, Emit emit) {
  auto launches = emit(module, op, shape);
  if (failed(launches))
    return failure();
  for (const KernelLaunch &made : *launches) {
    SmallVector<Value> arguments;
    for (Value buffer : made.buffers) {
      FailureOr<Value> base = pointerOf(buffer);
      if (failed(base))
        return failure();
      arguments.push_back(*base);
    }
    launch(plan::LaunchKind::Blocks, made.kernel, arguments, program.table(op), made.itemsPerBlock);
  }
  return success();
}

LogicalResult HostStep::lowerCopy(comm::CopyOp op) {
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
       {b.constant(table), from, to, b.constant(state)});
  program.plan.launches.push_back({plan::LaunchKind::Copy, table, 1});
  return success();
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

LogicalResult HostStep::lowerStart(comm::StartOp op) {
  SmallVector<Value> numbers, sent, received;
  for (int64_t table : program.tables.lookup(op))
    numbers.push_back(b.constant(table));
  for (auto [values, list] :
       {std::pair(op.getSends(), &sent), std::pair(op.getReceives(), &received)})
    for (Value value : values) {
      FailureOr<Value> base = pointerOf(value);
      if (failed(base))
        return failure();
      list->push_back(*base);
    }
  call("stepc_rt_exchange_start", LLVM::LLVMVoidType::get(b.getContext()),
       {b.constant(op.getOrder()), b.constant(int64_t(numbers.size())),
        fill(tables, b.getI64Type(), numbers), fill(sends, b.pointer, sent),
        fill(receives, b.pointer, received)});
  return success();
}

LogicalResult HostStep::lowerWait(comm::WaitOp op) {
  auto start = op.getToken().getDefiningOp<comm::StartOp>();
  if (!start)
    return op.emitOpError("expected the token of a comm.start, found ") << op.getToken();
  call("stepc_rt_exchange_wait", LLVM::LLVMVoidType::get(b.getContext()),
       b.constant(start.getOrder()));
  // What would come next reads what did not arrive.
  Value failed = call("stepc_rt_failed", b.getI32Type(), {});
  Value isFailed = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::ne, failed,
                                         arith::ConstantIntOp::create(b, b.loc, 0, 32));
  Block *next = step.addBlock();
  LLVM::CondBrOp::create(b, b.loc, isFailed, done, next);
  b.setInsertionPointToEnd(next);
  return success();
}

} // namespace stepc::kernels
