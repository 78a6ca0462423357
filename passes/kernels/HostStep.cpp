//===- HostStep.cpp - The step function ------------------------------------===//
//
// What differs between ranks is in the tables, what differs between waves in the
// numbers: the step calls phase after phase and knows neither. It returns early where
// the runtime says that a call failed.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/HostStep.h"
#include "passes/kernels/PlanAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Handles and sizes: their users ask for what they need.
bool isHandle(Operation *op) {
  return isa<comm::WorldOp, comm::ShardsOp, comm::ExtentOp, comm::BufferOp, memref::CastOp,
             arith::ConstantOp, func::ReturnOp>(op);
}

/// On which side of the exchanges a table is walked.
StringRef roleOf(const plan::Table &table) {
  bool onShards = table.kind == plan::TableKind::ShardChunks ||
                  (table.kind == plan::TableKind::Copy &&
                   (table.from == plan::Layout::Shard || table.to == plan::Layout::Shard));
  if (!onShards)
    return "matrix";
  if (table.from == plan::Layout::None && table.to == plan::Layout::None)
    return "elementwise";
  return table.direction == plan::Direction::ToMatrix ? "in" : "out";
}

} // namespace

std::string HostStep::keyOf(Operation *op, int64_t position, std::string &name) {
  if (isa<comm::StartOp, comm::WaitOp>(op)) {
    name = isa<comm::StartOp>(op) ? "phase_start" : "phase_wait";
    return name + std::to_string(position); // each is a phase of its own
  }
  if (auto scalars = dyn_cast<comm::ScalarsOp>(op)) {
    auto group = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(op, scalars.getGroupAttr());
    name = (group.getRule() + "_phase_scalars").str();
    return name + group.getSymName().str();
  }
  if (!program.tables.count(op)) {
    name = "phase";
    return name;
  }
  const plan::Table &table = program.plan.tables[program.table(op)];
  const plan::Segment &segment = program.plan.segments[table.segment];
  int64_t rule = program.plan.groups[segment.group].rule;
  StringRef role = roleOf(table);
  name = program.plan.rules[rule].name + "_phase_" + role.str();
  return name + " " + segment.name;
}

LogicalResult HostStep::lower(Block &body) {
  std::optional<Phase> phase;
  std::string current;
  int64_t position = 0;
  for (Operation &op : body) {
    if (isHandle(&op))
      continue;
    std::string name, key = keyOf(&op, position++, name);
    if (phase && key != current) {
      add(*phase);
      phase.reset();
    }
    current = key;
    if (!phase)
      phase.emplace(module, program, mostBlocks, shape, cache, name);
    if (failed(phase->lower(&op)))
      return failure();
  }
  if (phase)
    add(*phase);
  writeTables();
  writeStep();
  return success();
}

void HostStep::add(Phase &phase) {
  LLVM::LLVMFuncOp function = phase.function();
  auto [it, isNew] = known.try_emplace(fingerprint(function.getBody()), int64_t(phases.size()));
  if (isNew) {
    phases.push_back(function);
    cache.enter(function, function.getSymName().str());
  } else {
    function.erase();
  }
  numbers.push_back(it->second);
  numbers.push_back(int64_t(phase.numbers().size()));
  llvm::append_range(numbers, phase.numbers());
  ++rows;
}

void HostStep::writeTables() {
  numbers[0] = rows;
  SymbolTable symbols(module);
  b.setInsertionPointToEnd(module.getBody());
  auto numbersType = LLVM::LLVMArrayType::get(b.getI64Type(), numbers.size());
  LLVM::GlobalOp::create(b, b.loc, numbersType, /*isConstant=*/true, LLVM::Linkage::Internal,
                         kNumbers, b.getI64TensorAttr(numbers));
  auto phasesType = LLVM::LLVMArrayType::get(b.pointer, phases.size());
  auto table = LLVM::GlobalOp::create(b, b.loc, phasesType, /*isConstant=*/true,
                                      LLVM::Linkage::Internal, kPhases, Attribute());
  b.setInsertionPointToStart(b.createBlock(&table.getInitializerRegion()));
  Value all = LLVM::UndefOp::create(b, b.loc, phasesType);
  for (auto [index, phase] : llvm::enumerate(phases)) {
    Value address = LLVM::AddressOfOp::create(b, b.loc, b.pointer, phase.getSymName());
    all = LLVM::InsertValueOp::create(b, b.loc, all, address, int64_t(index));
  }
  LLVM::ReturnOp::create(b, b.loc, all);
}

/// for (row = numbers + 1, left = numbers[0]; left; --left, row += 2 + row[1])
///   { phases[row[0]](context, row + 2); if (failed(context)) return; }
void HostStep::writeStep() {
  b.setInsertionPointToEnd(module.getBody());
  Type none = LLVM::LLVMVoidType::get(b.getContext()), i64 = b.getI64Type();
  auto step = LLVM::LLVMFuncOp::create(b, b.loc, kStepFunction,
                                       LLVM::LLVMFunctionType::get(none, {b.pointer}));
  Block *entry = step.addEntryBlock(b);
  Value context = entry->getArgument(0);
  Block *head = b.createBlock(&step.getBody(), {}, {i64, b.pointer}, {b.loc, b.loc});
  Block *body = b.createBlock(&step.getBody());
  Block *done = b.createBlock(&step.getBody());
  LLVM::ReturnOp::create(b, b.loc, ValueRange{});
  // Volatile, or the optimizer would unroll the loop where it knows that there are few rows.
  auto constant = [&](Value base, int64_t index, Type type) {
    return LLVM::LoadOp::create(b, b.loc, type, b.address(base, type, index), /*alignment=*/8,
                                /*isVolatile=*/true);
  };

  b.setInsertionPointToEnd(entry);
  Value table = LLVM::AddressOfOp::create(b, b.loc, b.pointer, kNumbers);
  Value functions = LLVM::AddressOfOp::create(b, b.loc, b.pointer, kPhases);
  LLVM::BrOp::create(b, b.loc, ValueRange{constant(table, 0, i64), b.address(table, i64, 1)}, head);

  b.setInsertionPointToEnd(head);
  Value left = head->getArgument(0), row = head->getArgument(1);
  Value more = LLVM::ICmpOp::create(b, b.loc, LLVM::ICmpPredicate::sgt, left, b.constant(0));
  LLVM::CondBrOp::create(b, b.loc, more, body, done);

  b.setInsertionPointToEnd(body);
  Value function = constant(b.address(functions, b.pointer, constant(row, 0, i64)), 0, b.pointer);
  Value list = b.address(row, i64, 2), count = constant(row, 1, i64);
  auto type = LLVM::LLVMFunctionType::get(none, {b.pointer, b.pointer});
  LLVM::CallOp::create(b, b.loc, type, ValueRange{function, context, list});
  // What would come next reads what did not arrive.
  auto asked = declare(module, "stepc_rt_failed", b.getI32Type(), {b.pointer});
  Value failed = LLVM::CallOp::create(b, b.loc, asked, context).getResult();
  Value zero = LLVM::ConstantOp::create(b, b.loc, b.getI32Type(), 0);
  Value isFailed = LLVM::ICmpOp::create(b, b.loc, LLVM::ICmpPredicate::ne, failed, zero);
  Value next = b.address(list, i64, count);
  Value rest = b.add(left, b.constant(-1));
  LLVM::CondBrOp::create(b, b.loc, isFailed, done, ValueRange{}, head, ValueRange{rest, next});
  attachProgram(step, program.plan);
}

} // namespace stepc::kernels
