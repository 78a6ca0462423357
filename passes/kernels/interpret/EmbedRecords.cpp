//===- EmbedRecords.cpp - Functions as records in the program ----------------===//
//
// In the interpreter a register holds a strip, which is one value of up to 256 elements. A register is used
// again after the last use of its value, so that all registers stay in the cache. A bitcast is no
// instruction, because a register holds bits.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/interpret/Records.h"

#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/ProgramImages.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

using Kind = interpret::Operation;
using RecordType = interpret::Type;

std::optional<RecordType> typeOf(Type type) {
  if (type.isF32())
    return RecordType::F32;
  if (type.isF64())
    return RecordType::F64;
  if (type.isF16() || type.isBF16() || type.isInteger(16))
    return RecordType::I16;
  if (type.isInteger(1))
    return RecordType::I1;
  if (type.isInteger(32))
    return RecordType::I32;
  if (type.isInteger(64))
    return RecordType::I64;
  return std::nullopt;
}

std::optional<Kind> operationOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Kind>>(op)
      .Case<arith::AddFOp>([](auto) { return Kind::AddF; })
      .Case<arith::SubFOp>([](auto) { return Kind::SubF; })
      .Case<arith::MulFOp>([](auto) { return Kind::MulF; })
      .Case<arith::DivFOp>([](auto) { return Kind::DivF; })
      .Case<arith::NegFOp>([](auto) { return Kind::NegF; })
      .Case<math::AbsFOp>([](auto) { return Kind::AbsF; })
      .Case<math::FloorOp>([](auto) { return Kind::Floor; })
      .Case<math::SqrtOp>([](auto) { return Kind::Sqrt; })
      .Case<math::FmaOp>([](auto) { return Kind::Fma; })
      .Case<arith::MaximumFOp>([](auto) { return Kind::MaximumF; })
      .Case<arith::MinimumFOp>([](auto) { return Kind::MinimumF; })
      .Case<math::CopySignOp>([](auto) { return Kind::CopySign; })
      .Case<arith::CmpFOp>([](auto) { return Kind::CompareF; })
      .Case<arith::AddIOp>([](auto) { return Kind::AddI; })
      .Case<arith::SubIOp>([](auto) { return Kind::SubI; })
      .Case<arith::MulIOp>([](auto) { return Kind::MulI; })
      .Case<arith::AndIOp>([](auto) { return Kind::AndI; })
      .Case<arith::OrIOp>([](auto) { return Kind::OrI; })
      .Case<arith::XOrIOp>([](auto) { return Kind::XorI; })
      .Case<arith::ShLIOp>([](auto) { return Kind::ShiftLeft; })
      .Case<arith::ShRUIOp>([](auto) { return Kind::ShiftRight; })
      .Case<arith::ShRSIOp>([](auto) { return Kind::ShiftRightSigned; })
      .Case<arith::CmpIOp>([](auto) { return Kind::CompareI; })
      .Case<arith::SelectOp>([](auto) { return Kind::Select; })
      .Case<arith::ExtFOp>([](auto) { return Kind::ExtendF; })
      .Case<arith::TruncFOp>([](auto) { return Kind::TruncateF; })
      .Case<arith::ExtUIOp>([](auto) { return Kind::ExtendUnsigned; })
      .Case<arith::ExtSIOp>([](auto) { return Kind::ExtendSigned; })
      .Case<arith::TruncIOp>([](auto) { return Kind::TruncateI; })
      .Case<arith::FPToSIOp>([](auto) { return Kind::FloatToSigned; })
      .Case<arith::SIToFPOp>([](auto) { return Kind::SignedToFloat; })
      .Default(std::nullopt);
}

int64_t predicateOf(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return int64_t(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return int64_t(compare.getPredicate());
  return 0;
}

/// Follows bitcasts back to the value with the same bits that is no bitcast.
Value rootOf(Value value) {
  while (auto cast = value.getDefiningOp<arith::BitcastOp>())
    value = cast.getIn();
  return value;
}

/// Makes the body of a record from a function, and says which registers its arguments have.
class BodyBuilder {
public:
  /// `isUniform`: whether an argument is the same for all elements.
  BodyBuilder(LLVM::LLVMFuncOp function, llvm::function_ref<bool(unsigned)> isUniform)
      : block(function.getBody().front()) {
    for (BlockArgument argument : block.getArguments())
      if (!isa<LLVM::LLVMPointerType>(argument.getType()) && isUniform(argument.getArgNumber()))
        uniform.insert(argument);
  }

  LogicalResult build() {
    findLastUses();
    // Values that are equal for all strips come first. Their registers are never used again.
    for (Value argument : uniform.getArrayRef())
      placeOf[argument] = take();
    for (Operation &op : block.without_terminator())
      if (failed(addUniform(op)))
        return failure();
    for (BlockArgument argument : block.getArguments())
      if (!isa<LLVM::LLVMPointerType>(argument.getType()) && !placeOf.contains(argument))
        placeOf[argument] = take();
    for (Operation &op : block.without_terminator())
      if (failed(addEach(op)))
        return failure();
    return success();
  }

  /// The register of an argument; of a pointer, the one that is stored to it.
  int64_t place(unsigned argument) const {
    Value value = block.getArgument(argument);
    auto stored = storedTo.find(value);
    return placeOf.lookup(stored == storedTo.end() ? value : stored->second);
  }

  interpret::Body body;

private:
  void findLastUses() {
    int64_t number = 0;
    for (Operation &op : block.without_terminator()) {
      for (Value operand : op.getOperands())
        lastUse[rootOf(operand)] = number;
      ++number;
    }
    // Stored values keep their registers to the end.
    for (auto store : block.getOps<LLVM::StoreOp>()) {
      Value value = rootOf(store.getValue());
      lastUse[value] = number;
      storedTo[store.getAddr()] = value;
    }
  }

  int64_t take() {
    if (free.empty())
      return body.registers++;
    return free.pop_back_val();
  }

  LogicalResult addUniform(Operation &op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      std::optional<RecordType> type = typeOf(op.getResult(0).getType());
      if (!type)
        return refuse(op);
      llvm::APInt bits = isa<FloatAttr>(constant.getValue())
                             ? cast<FloatAttr>(constant.getValue()).getValue().bitcastToAPInt()
                             : cast<IntegerAttr>(constant.getValue()).getValue();
      int64_t result = placeOf[op.getResult(0)] = take();
      body.constants.push_back({result, *type, bits.getSExtValue()});
      uniform.insert(op.getResult(0));
      return success();
    }
    if (isa<LLVM::StoreOp>(op) ||
        !llvm::all_of(op.getOperands(), [&](Value v) { return uniform.contains(rootOf(v)); }))
      return success();
    if (isa<arith::BitcastOp>(op))
      return success();
    uniform.insert(op.getResult(0));
    return add(op, body.uniform);
  }

  LogicalResult addEach(Operation &op) {
    int64_t here = number++;
    if (isa<arith::ConstantOp, arith::BitcastOp, LLVM::StoreOp>(op) ||
        uniform.contains(op.getResult(0)))
      return success();
    if (failed(add(op, body.each)))
      return failure();
    for (Value operand : op.getOperands())
      if (Value root = rootOf(operand);
          !uniform.contains(root) && lastUse.lookup(root) == here && freed.insert(root).second)
        free.push_back(placeOf.lookup(root));
    return success();
  }

  LogicalResult add(Operation &op, std::vector<interpret::Instruction> &list) {
    std::optional<Kind> operation = operationOf(&op);
    Value typed = op.getOperands().back(); // for a select, not its condition
    std::optional<RecordType> type = typeOf(typed.getType()),
                              to = typeOf(op.getResult(0).getType());
    bool isSmall = llvm::any_of(op.getOperandTypes(), isSmallFloat) ||
                   llvm::any_of(op.getResultTypes(), isSmallFloat);
    if (!operation || !type || !to || (isSmall && !isa<arith::SelectOp>(op)))
      return refuse(op);
    interpret::Instruction made;
    made.operation = *operation;
    made.type = *type;
    made.to = *to;
    made.predicate = predicateOf(&op);
    int64_t *places[] = {&made.first, &made.second, &made.third};
    for (auto [place, operand] : llvm::zip(places, op.getOperands()))
      *place = placeOf.lookup(rootOf(operand));
    made.result = placeOf[op.getResult(0)] = take();
    list.push_back(made);
    return success();
  }

  static bool isSmallFloat(Type type) { return type.isF16() || type.isBF16(); }
  static LogicalResult refuse(Operation &op) {
    return op.emitOpError("expected an operation that the target interpret knows, on i1, i16, i32, "
                          "i64, f32 and f64");
  }

  Block &block;
  llvm::SetVector<Value> uniform;
  llvm::DenseMap<Value, int64_t> placeOf, lastUse;
  llvm::DenseMap<Value, Value> storedTo;
  llvm::DenseSet<Value> freed;
  SmallVector<int64_t> free;
  int64_t number = 0;
};

LogicalResult fillBody(LLVM::LLVMFuncOp function, interpret::ChunkKernel &kernel) {
  auto isColumn = [&](unsigned argument) {
    return argument >= kernel.reads.size() &&
           argument < kernel.reads.size() + kernel.columns.size() + kernel.key.has_value();
  };
  BodyBuilder builder(function, isColumn);
  if (failed(builder.build()))
    return failure();
  auto place = [&](int64_t &argument) { argument = builder.place(unsigned(argument)); };
  for (auto *list : {&kernel.reads, &kernel.writes})
    for (interpret::ChunkValue &value : *list)
      place(value.place);
  for (interpret::ScalarColumn &column : kernel.columns)
    place(column.place);
  if (kernel.key)
    place(*kernel.key);
  kernel.body = std::move(builder.body);
  return success();
}

LogicalResult fillBody(LLVM::LLVMFuncOp function, interpret::ParameterKernel &kernel) {
  BodyBuilder builder(function, [](unsigned) { return false; });
  if (failed(builder.build()))
    return failure();
  for (auto *list : {&kernel.inputs, &kernel.outputs})
    for (int64_t &argument : *list)
      argument = builder.place(unsigned(argument));
  kernel.body = std::move(builder.body);
  return success();
}

template <typename Other> LogicalResult fillBody(LLVM::LLVMFuncOp, Other &) { return success(); }

FailureOr<interpret::NamedKernel> recordOf(LLVM::LLVMFuncOp function) {
  StringRef bytes = function->getAttrOfType<StringAttr>(kRecordAttr).getValue();
  std::vector<interpret::NamedKernel> kernels;
  std::string wrong = interpret::decode(bytes.bytes_begin(), int64_t(bytes.size()), kernels);
  if (wrong.empty() && kernels.size() != 1)
    wrong = "expected one kernel, found " + std::to_string(kernels.size());
  if (!wrong.empty())
    return function.emitOpError("expected the record of a kernel in ")
           << kRecordAttr << ": " << wrong;
  interpret::NamedKernel kernel = std::move(kernels.front());
  kernel.name = function.getSymName();
  if (failed(std::visit([&](auto &each) { return fillBody(function, each); }, kernel.kernel)))
    return failure();
  if (wrong = interpret::check(kernel.kernel); !wrong.empty())
    return function.emitOpError("expected a kernel that the target interpret can run: ") << wrong;
  return kernel;
}

} // namespace

LogicalResult embedRecords(ModuleOp module, const plan::Plan &plan) {
  SymbolTable symbols(module);
  std::vector<interpret::NamedKernel> kernels;
  for (const auto &[name, launch] : plan.kernels) {
    auto function = symbols.lookup<LLVM::LLVMFuncOp>(name);
    if (!function || !function->hasAttr(kRecordAttr)) {
      if (Operation *found = symbols.lookup(name))
        return found->emitOpError("expected a kernel with the attribute ") << kRecordAttr;
      return module.emitError("expected a kernel named ") << name << ", found none";
    }
    FailureOr<interpret::NamedKernel> record = recordOf(function);
    if (failed(record))
      return failure();
    kernels.push_back(std::move(*record));
  }
  for (auto function : llvm::make_early_inc_range(module.getOps<LLVM::LLVMFuncOp>()))
    if (function->hasAttr(kRecordAttr))
      function.erase();
  std::vector<uint8_t> bytes = interpret::encode(kernels);
  KernelBuilder b(module.getContext(), module.getLoc());
  b.setInsertionPointToStart(module.getBody());
  embedImages(b, {{"stepc_program_records", "stepc_program_chip", "interpret", 0, 0,
                   STEPC_IMAGE_RECORDS, std::string(bytes.begin(), bytes.end())}});
  return success();
}

} // namespace stepc::kernels
