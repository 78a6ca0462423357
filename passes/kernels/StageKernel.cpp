//===- StageKernel.cpp - Stages and scalar stages as functions -------------===//
//
// The kernel of a stage is a function of what one chunk sees: the row of scalars of its parameter, and a view
// of each operand. All results come from one linalg.generic. So every operand is read before any is written,
// and is passed over once.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/StageKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace stepc::kernels {

Operation *findNotElementwise(Block &body, bool ofScalars) {
  for (Operation &op : body.without_terminator())
    if (op.getNumRegions() ||
        !(isa<arith::ConstantOp>(op) || (!ofScalars && optim::dependsOnPlace(&op)) ||
          OpTrait::hasElementwiseMappableTraits(&op)))
      return &op;
  return nullptr;
}

namespace {

/// How a chunk sees an operand: the type of its view, and which element of it belongs to (row, column).
struct View {
  MemRefType type;
  AffineMap map;
};

/// Checks the extents of outs. A stage over blocks walks a block's rows and columns, so it would write past
/// the end of an out with other extents.
LogicalResult checkExtents(comm::StageOp op, optim::GroupOp group) {
  if (op.getOuts().empty())
    return op.emitOpError("expected an out over blocks");
  for (Value out : op.getOuts()) {
    plan::ValueKind kind = comm::placeOf(out).getValue();
    kind = kind.isStored() ? plan::ValueKind::Full : kind;
    auto [blocks, rows, cols] = plan::computedView(group.toPlan(), kind);
    if (auto type = dyn_cast<MemRefType>(out.getType());
        type && ((type.getDimSize(1) != 1 && type.getDimSize(1) != rows) ||
                 (type.getDimSize(2) != 1 && type.getDimSize(2) != cols)))
      return op.emitOpError("expected outs of ")
             << rows << " x " << cols << " (or 1) over the blocks of group " << group.getSymName()
             << ", found " << type;
  }
  return success();
}

FailureOr<View> viewOf(comm::StageOp op, Value value) {
  MLIRContext *context = op.getContext();
  // A stage that reduces yields f32 whatever becomes of it.
  Type element = op.isReduced(value) ? Float32Type::get(context) : comm::elementOf(value);
  constexpr int64_t any = ShapedType::kDynamic;
  AffineMap map = AffineMap::getMultiDimIdentityMap(2, context);
  if (!isa<comm::ShardsType>(value.getType())) {
    auto type = dyn_cast<MemRefType>(value.getType());
    if (!type)
      return op.emitOpError("expected memrefs at this level, found ") << value.getType();
    if (op.isLine(value)) {
      plan::ValueKind kind = comm::placeOf(value).getValue();
      SmallVector<AffineExpr> axes;
      if (kind.rows != 1)
        axes.push_back(getAffineDimExpr(0, context));
      if (kind.cols != 1)
        axes.push_back(getAffineDimExpr(1, context));
      map = AffineMap::get(2, 0, axes, context);
    } else if (op.getIteration() == plan::Distribution::Blocks) {
      // If an axis is 1 and the out's is not, the operand has one value per block, row or column.
      auto walked = cast<MemRefType>(op.getOuts().front().getType()).getShape().drop_front();
      auto own = type.getShape().drop_front();
      SmallVector<AffineExpr> axes;
      for (auto [axis, size] : llvm::enumerate(own)) {
        if (own == walked || (size != 1 && size == walked[axis]))
          axes.push_back(getAffineDimExpr(axis, context));
        else if (size != 1)
          return op.emitOpError("expected operands that broadcast to the out's shape, found ")
                 << type;
      }
      map = AffineMap::get(2, 0, axes, context);
    }
  }
  SmallVector<int64_t> shape(map.getNumResults(), any);
  auto layout = StridedLayoutAttr::get(context, 0, {any, 1});
  return View{shape.size() == 2 ? MemRefType::get(shape, element, layout)
                                : MemRefType::get(shape, element),
              map};
}

/// How many exact sums of a line's terms a stage that reduces writes for each number; 0 if it writes results.
int64_t sumsPerValue(comm::StageOp op) {
  return comm::lineSumsIn(comm::elementOf(op.getOuts().front()), *op.getReduction());
}

/// What a stage does: "in" stages for matrix space, "out" reads what was staged, "elementwise" does
/// neither, "blocks" is in matrix space, "lines" visits values per row, column or block. A stage that reduces
/// has the name of the reduction.
StringRef roleOf(comm::StageOp op) {
  if (op.getIteration() == plan::Distribution::Blocks)
    return "blocks";
  if (op.getReduction())
    return plan::name(*op.getReduction());
  if (op.getWalked())
    return "lines";
  return !op.getOuts().empty() ? "in" : op.getStaged().empty() ? "elementwise" : "out";
}

/// The name of a group's rule as the user wrote it.
StringRef writtenName(optim::GroupOp group) {
  return SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(group, group.getRuleAttr())
      .getWrittenName();
}

/// The name of a kernel: the rule, the role of the stage, and the types in the order of their first use.
std::string nameOf(comm::StageOp op, optim::GroupOp group) {
  std::string name = (writtenName(group) + "_" + roleOf(op)).str();
  SmallVector<Type> types;
  for (auto values :
       {ValueRange(op.getIns()), ValueRange(op.getWrites()), ValueRange(op.getOuts())})
    for (Value value : values)
      if (!llvm::is_contained(types, comm::elementOf(value)))
        types.push_back(comm::elementOf(value));
  llvm::raw_string_ostream os(name);
  for (Type type : types)
    os << '_' << type;
  return name;
}

/// Names what a stage walks over, and for each operand whether it is shards, a line or another value in the
/// workspace. A target finds each of these in its own way. So stages share a kernel only if they agree.
std::string kindsOf(comm::StageOp op, ValueRange operands) {
  std::string kinds = std::string(plan::name(op.getIteration())) + ' ';
  if (op.getReduction()) // where the results stand decides which tables are walked
    kinds += std::string(plan::name(*op.getReduction())) + ' ' + std::to_string(sumsPerValue(op)) +
             ' ' + plan::name(comm::placeOf(op.getOuts().front()).getFrom()) + ' ';
  for (Value operand : operands)
    kinds += isa<comm::ShardsType>(operand.getType()) ? 's' : op.isLine(operand) ? 'l' : 'w';
  return kinds;
}

/// Begins a private function at the module's end, without its return. The builder then stands in it.
func::FuncOp begin(ModuleOp module, OpBuilder &b, Location loc, FunctionType type) {
  b.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(b, loc, "kernel", type);
  function.setPrivate();
  b.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

/// A region as text without locations and SSA names, so that it is equal for equal computations.
std::string fingerprint(Region &region) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::DenseMap<Value, unsigned> numbers;
  region.walk<WalkOrder::PreOrder>([&](Block *block) {
    for (BlockArgument argument : block->getArguments()) {
      os << argument.getType() << ' ';
      numbers.try_emplace(argument, numbers.size());
    }
    for (Operation &op : *block)
      for (Value result : op.getResults())
        numbers.try_emplace(result, numbers.size());
    for (Operation &op : *block) {
      os << '\n' << op.getName() << op.getAttrDictionary();
      for (Value operand : op.getOperands())
        os << ' ' << numbers.lookup(operand);
      for (Type type : op.getResultTypes())
        os << " : " << type;
    }
    os << '}';
  });
  return text;
}

} // namespace

func::FuncOp KernelCache::share(func::FuncOp made, const std::string &name,
                                const std::string &kinds) {
  func::FuncOp &known = kernels[name + kinds + fingerprint(made.getBody())];
  if (known) {
    made.erase();
    return known;
  }
  std::string unique;
  // The search begins where the last one ended, because names that were taken stay taken.
  for (int64_t &copy = copies[name];; ++copy) {
    unique = copy == 0 ? name : name + "_" + std::to_string(copy);
    if (!table.lookup(unique))
      break;
  }
  made.setSymName(unique);
  table.insert(made);
  return known = made;
}

FailureOr<StageKernel> KernelCache::stage(comm::StageOp op) {
  auto segment = SymbolTable::lookupNearestSymbolFrom<comm::SegmentOp>(op, op.getSegmentAttr());
  auto group = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(op, segment.getGroupAttr());
  Block &body = op.getBody().front();
  if (Operation *illegal = findNotElementwise(body)) {
    auto error = op.emitOpError("expected elementwise operations only, found ")
                 << illegal->getName();
    error.attachNote(illegal->getLoc()) << "this operation";
    return error;
  }
  if (op.getIteration() == plan::Distribution::Blocks && failed(checkExtents(op, group)))
    return failure();

  OpBuilder b(op.getContext());
  StageKernel result;
  SmallVector<Type> types;
  SmallVector<AffineMap> maps;
  SmallVector<unsigned> reads, writes; // arguments
  int64_t columns = 0;
  if (op.getScalars()) {
    columns = cast<ShapedType>(op.getScalars().getType()).getDimSize(1);
    result.operands.push_back(op.getScalars());
    types.push_back(MemRefType::get({columns}, b.getF32Type()));
  }
  auto add = [&](ValueRange values, SmallVector<unsigned> &list) -> LogicalResult {
    for (Value value : values) {
      FailureOr<View> view = viewOf(op, value);
      if (failed(view))
        return failure();
      // A value that is both read and written gets one view.
      size_t number = llvm::find(result.operands, value) - result.operands.begin();
      if (number == result.operands.size()) {
        result.operands.push_back(value);
        types.push_back(view->type);
      }
      list.push_back(number);
      maps.push_back(view->map);
    }
    return success();
  };
  if (failed(add(op.getIns(), reads)))
    return failure();
  maps.append(columns, AffineMap::get(2, 0, op.getContext()));
  if (failed(add(op.getWrites(), writes)) || failed(add(op.getOuts(), writes)))
    return failure();
  for (AffineMap map : ArrayRef(maps).take_back(writes.size()))
    if (!map.isIdentity() && !op.getReduction())
      return op.emitOpError("expected outs of one shape");

  Location loc = op.getLoc();
  func::FuncOp kernel = begin(module, b, loc, b.getFunctionType(types, {}));
  auto argument = [&](unsigned number) -> Value { return kernel.getArgument(number); };
  SmallVector<Value> ins = llvm::map_to_vector(reads, argument);
  SmallVector<Value> outs = llvm::map_to_vector(writes, argument);
  for (int64_t column = 0; column < columns; ++column) {
    Value index = arith::ConstantIndexOp::create(b, loc, column);
    ins.push_back(memref::LoadOp::create(b, loc, argument(0), index));
  }
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  if (op.getReduction()) { // its region yields terms: the attribute says what becomes of them
    plan::ValueKind lines = comm::placeOf(op.getOuts().front()).getValue();
    if (lines.rows == 1)
      loops[0] = utils::IteratorType::reduction;
    if (lines.cols == 1)
      loops[1] = utils::IteratorType::reduction;
    kernel->setAttr(exec::kReductionAttr, comm::ReductionAttr(op.getReductionAttr()));
    if (int64_t sums = sumsPerValue(op))
      kernel->setAttr(exec::kSumsAttr, b.getI64IntegerAttr(sums));
  }
  linalg::GenericOp::create(b, loc, ins, outs, maps, loops,
                            [&](OpBuilder &inner, Location, ValueRange values) {
                              IRMapping mapping;
                              mapping.map(body.getArguments(), values.take_front(ins.size()));
                              for (Operation &operation : body.without_terminator())
                                inner.clone(operation, mapping);
                              SmallVector<Value> yielded;
                              for (Value value : body.getTerminator()->getOperands())
                                yielded.push_back(mapping.lookup(value));
                              linalg::YieldOp::create(inner, loc, yielded);
                            });
  func::ReturnOp::create(b, loc);
  result.kernel = share(kernel, nameOf(op, group), kindsOf(op, result.operands));
  return result;
}

FailureOr<func::FuncOp> KernelCache::scalars(comm::ScalarsOp op) {
  auto group = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(op, op.getGroupAttr());
  Block &body = op.getBody().front();
  if (Operation *illegal = findNotElementwise(body, /*ofScalars=*/true))
    return illegal->emitOpError(
        "expected an operation on scalars without effects in a scalar stage");
  OpBuilder b(op.getContext());
  Operation *yield = body.getTerminator();
  SmallVector<Type> results(yield->getNumOperands(), b.getF32Type());
  func::FuncOp kernel =
      begin(module, b, op.getLoc(), b.getFunctionType(body.getArgumentTypes(), results));
  IRMapping mapping;
  mapping.map(body.getArguments(), kernel.getArguments());
  for (Operation &operation : body.without_terminator())
    b.clone(operation, mapping);
  // Scalars are rounded to f32 only here.
  SmallVector<Value> rounded;
  for (Value value : yield->getOperands())
    rounded.push_back(
        arith::TruncFOp::create(b, op.getLoc(), b.getF32Type(), mapping.lookup(value)));
  func::ReturnOp::create(b, op.getLoc(), rounded);
  return share(kernel, (writtenName(group) + "_scalars").str(), "");
}

} // namespace stepc::kernels
