//===- OptimModel.cpp - What a step does for all parameters at once --------===//

#include "dialects/optim/Optim.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

ModelOp optim::findModel(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto models = module.getOps<ModelOp>();
  return models.empty() ? ModelOp() : *models.begin();
}

/// The number of an operation that has one; -1 if the attribute is none of i64.
static int64_t numberOf(Operation *op) {
  auto number = dyn_cast<IntegerAttr>(op->getAttr(kNumberAttr));
  return number && number.getType().isSignlessInteger(64) ? number.getInt() : -1;
}

SmallVector<Operation *> ModelOp::getNumbers() {
  SmallVector<Operation *> numbered;
  for (Operation &op : getBody().front())
    if (op.hasAttr(kNumberAttr))
      numbered.push_back(&op);
  SmallVector<Operation *> numbers(numbered.size());
  for (Operation *op : llvm::reverse(numbered)) // of two with one number, an error, the first stays
    if (int64_t number = numberOf(op); number >= 0 && number < int64_t(numbers.size()))
      numbers[size_t(number)] = op;
  return numbers;
}

Value ModelOp::getSkipped() {
  return getSkips() ? getBody().front().getTerminator()->getOperands().back() : Value();
}

OperandRange ModelOp::getNewStates() {
  OperandRange all = getBody().front().getTerminator()->getOperands();
  return all.slice(1 + getValues().size(), getStates().size());
}

int64_t ModelStateOp::getIndex() {
  for (auto [index, state] :
       llvm::enumerate(getParentOp<ModelOp>().getStates().getAsRange<StateAttr>()))
    if (state.getName() == getNameAttr())
      return int64_t(index);
  return -1;
}

bool ModelStateOp::isRead() {
  unsigned own = getParentOp<ModelOp>().getNewStates().getBeginOperandIndex() + getIndex();
  return llvm::any_of(getOperation()->getUses(), [&](OpOperand &use) {
    return !isa<YieldOp>(use.getOwner()) || use.getOperandNumber() != own;
  });
}

IRMapping ModelOp::inlineFor(OpBuilder &builder, Value parameter, Value gradient) {
  IRMapping made;
  made.map(getParameterArgument(), parameter);
  made.map(getGradientArgument(), gradient);
  for (Operation &op : getBody().front().without_terminator()) {
    if (auto number = op.getAttrOfType<IntegerAttr>(kNumberAttr)) {
      Value scalar =
          ModelNumberOp::create(builder, op.getLoc(), builder.getF64Type(), number.getInt());
      made.map(
          op.getResult(0),
          SplatOp::create(builder, op.getLoc(), op.getResult(0).getType(), scalar).getResult());
    } else if (isa<ShapedType>(op.getResult(0).getType()) || isa<arith::ConstantOp>(op)) {
      builder.clone(op, made); // other scalars only lead to numbers
    }
  }
  return made;
}

LogicalResult ModelOp::verify() {
  if (ModelOp other = findModel(*this); other != *this) {
    auto diag = emitOpError("expected one per module, found another");
    diag.attachNote(other.getLoc()) << "the other is here";
    return diag;
  }
  SmallVector<Attribute> states;
  for (auto state : getStates().getAsRange<StateAttr>()) {
    if (state.getKind() != ValueKind::One || !state.getType().isF32() || state.getMaster() ||
        state.getInput())
      return emitOpError("expected states of f32 and kind one, and no master, found ") << state;
    states.push_back(state.getName());
  }
  for (ArrayAttr list : {getHyperparameters(), getValues(), ArrayAttr::get(getContext(), states)}) {
    llvm::StringSet<> names;
    for (StringRef name : list.getAsValueRange<StringAttr>())
      if (!names.insert(name).second)
        return emitOpError("expected distinct names, found '") << name << "' twice";
  }
  if (getDefaults().size() != getHyperparameters().size())
    return emitOpError("expected a default per hyperparameter, ")
           << getHyperparameters().size() << ", found " << getDefaults().size();
  return success();
}

/// Verifies that each number from 0 on is that of one operation.
static LogicalResult verifyNumbers(ModelOp model) {
  SmallVector<Operation *> numbers = model.getNumbers();
  for (Operation &op : model.getBody().front()) {
    if (!op.hasAttr(kNumberAttr))
      continue;
    int64_t number = numberOf(&op);
    if (number < 0 || number >= int64_t(numbers.size()))
      return op.emitOpError("expected numbers of i64 below ")
             << numbers.size() << ", found " << op.getAttr(kNumberAttr);
    if (numbers[size_t(number)] != &op)
      return op.emitOpError("expected distinct numbers, found ") << number << " twice";
  }
  return success();
}

LogicalResult ModelOp::verifyRegions() {
  Block &block = getBody().front();
  Builder b(getContext());
  Type full = tensorType(ValueKind::Full, b.getF32Type()),
       one = tensorType(ValueKind::One, b.getF32Type());
  SmallVector<Type> expected(2, full), yields{full};
  expected.append(getHyperparameters().size() + 1, b.getF64Type());
  yields.append(getValues().size() + getStates().size() + getSkips(), one);
  if (failed(verifyBodyTypes(*this, expected, yields)))
    return failure();
  for (Operation &op : block.without_terminator()) {
    if (failed(verifyInRule(&op)))
      return failure();
    auto reduce = dyn_cast<ReduceOp>(op);
    if ((isa<MatrixOpInterface>(op) && !reduce) || op.getNumRegions() > 0 ||
        isa<ModelValueOp, ModelNumberOp>(op) ||
        (reduce && kindOf(reduce.getType()) != ValueKind::One))
      return op.emitOpError("expected elementwise operations and reductions to one value in a "
                            "model, found another");
  }
  return verifyNumbers(*this);
}

LogicalResult ModelValueOp::verifySymbolUses(SymbolTableCollection &) {
  ModelOp model = findModel(*this);
  if (!model || !llvm::is_contained(model.getValues(), getNameAttr()))
    return emitOpError("expected a value of the module's optim.model, found ") << getNameAttr();
  if (kindOf(getType()) != ValueKind::One)
    return emitOpError("expected one value, found ") << getType();
  return success();
}

LogicalResult ModelStateOp::verifySymbolUses(SymbolTableCollection &) {
  int64_t index = getIndex();
  if (index < 0)
    return emitOpError("expected a state of the model, found ") << getNameAttr();
  if (cast<StateAttr>(getParentOp<ModelOp>().getStates()[size_t(index)]).getMetric())
    return emitOpError("expected a state of the model that is no metric, found ") << getNameAttr();
  if (kindOf(getType()) != ValueKind::One)
    return emitOpError("expected one value, found ") << getType();
  return success();
}

LogicalResult ModelNumberOp::verifySymbolUses(SymbolTableCollection &) {
  ModelOp model = findModel(*this);
  if (!model)
    return emitOpError("expected an optim.model in the module, found none");
  int64_t count = int64_t(model.getNumbers().size()), number = getNumber();
  if (number >= 0 && number < count)
    return success();
  return emitOpError("expected a number below ")
         << count << ", as the module's optim.model has, found " << number;
}
