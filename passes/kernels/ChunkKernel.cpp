//===- ChunkKernel.cpp - What a kernel reads and writes of a chunk ---------===//

#include "passes/kernels/ChunkKernel.h"

#include "passes/kernels/ParameterKernel.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/ADT/SetVector.h"

#include <cstddef>

using namespace mlir;

namespace stepc::kernels {

using Place = ChunkOperand::Place;

static InFlightDiagnostic refuse(Operation *op, const Twine &expected) {
  return op->emitOpError("expected in a kernel over chunks ") << expected;
}

Type storageOf(Type element) {
  return element.isF32() ? element
                         : IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
}

static Type widen(Type type, int64_t width) { return width ? VectorType::get(width, type) : type; }

Value loadElements(KernelBuilder &b, Type element, Value from, int64_t width, unsigned alignment) {
  Value value = b.load(widen(storageOf(element), width), from,
                       alignment ? alignment : element.getIntOrFloatBitWidth() / 8);
  if (storageOf(element) != element)
    value = arith::BitcastOp::create(b, b.loc, widen(element, width), value);
  return value;
}

Value loadStored(KernelBuilder &b, Type element, Value from) {
  return b.load(storageOf(element), from, element.getIntOrFloatBitWidth() / 8);
}

static Value splat(KernelBuilder &b, Type type, TypedAttr attribute) {
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, attribute);
  return arith::ConstantOp::create(b, b.loc, attribute);
}

/// Whether the rounding of this value survives folding. truncf(extf(x)) folds to x, which may be any NaN.
static bool staysRounded(Value value) {
  auto isConstant = [](Value operand) {
    while (auto broadcast = operand.getDefiningOp<vector::BroadcastOp>())
      operand = broadcast.getSource();
    return matchPattern(operand, m_Constant());
  };
  Operation *op = value.getDefiningOp();
  if (!op || isa<LLVM::LoadOp>(op))
    return op;
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(op) &&
         llvm::none_of(op->getOperands(), isConstant);
}

Value withOneNaN(KernelBuilder &b, Type element, Value value) {
  auto number = cast<FloatType>(element);
  llvm::APFloat nan = llvm::APFloat::getQNaN(number.getFloatSemantics());
  Type word = b.getIntegerType(number.getWidth());
  Type words =
      isa<VectorType>(value.getType()) ? Type(cast<VectorType>(value.getType()).clone(word)) : word;
  auto constant = [&](const llvm::APInt &bits) {
    return splat(b, words, b.getIntegerAttr(word, bits));
  };
  auto bitsOf = [&]() -> Value { return arith::BitcastOp::create(b, b.loc, words, value); };
  if (number.getWidth() >= 32) {
    Value isNaN = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::UNO, value, value);
    // Chooses between integers, not floats. LLVM drops a choice between a NaN and the result of a square
    // root, because it assumes that the root's NaN is this one.
    return arith::SelectOp::create(b, b.loc, isNaN, constant(nan.bitcastToAPInt()), bitsOf());
  }
  // A rounding to bf16 gives no other NaN (ExpandNumerics), unless folding makes it a copy of what was
  // loaded.
  if (auto rounding = value.getDefiningOp<arith::TruncFOp>();
      rounding && number.isBF16() && staysRounded(rounding.getIn()))
    return value;
  Value bits = bitsOf();
  Value magnitude = arith::AndIOp::create(
      b, b.loc, bits, constant(llvm::APInt::getSignedMaxValue(number.getWidth())));
  llvm::APFloat infinity = llvm::APFloat::getInf(number.getFloatSemantics());
  Value isNaN = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::sgt, magnitude,
                                      constant(infinity.bitcastToAPInt()));
  return arith::SelectOp::create(b, b.loc, isNaN, constant(nan.bitcastToAPInt()), bits);
}

/// Whether a NaN among the operands makes each result a NaN.
static bool passesNaNs(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
             arith::MaximumFOp, arith::MinimumFOp, arith::ExtFOp, arith::TruncFOp, math::SqrtOp,
             math::AbsFOp, math::FloorOp, math::FmaOp>(op);
}

/// Drops values whose NaNs make another of these values a NaN.
static void dropImplied(SmallVectorImpl<Value> &values) {
  llvm::SmallSetVector<Value, 8> kept(values.begin(), values.end());
  llvm::SmallPtrSet<Value, 32> passed;
  SmallVector<Value> next(kept.begin(), kept.end());
  while (!next.empty()) {
    Operation *op = next.pop_back_val().getDefiningOp();
    if (op && passesNaNs(op))
      for (Value operand : op->getOperands())
        if (passed.insert(operand).second)
          next.push_back(operand);
  }
  values.assign(kept.begin(), kept.end());
  llvm::erase_if(values, [&](Value value) { return passed.contains(value); });
}

void storeElements(KernelBuilder &b, Type element, Value value, Value to, int64_t width,
                   unsigned alignment) {
  if (storageOf(element) != element && isa<FloatType>(getElementTypeOrSelf(value)))
    value = arith::BitcastOp::create(b, b.loc, widen(storageOf(element), width), value);
  b.store(value, to, alignment ? alignment : element.getIntOrFloatBitWidth() / 8);
}

LogicalResult ChunkKernel::readOperand(OpOperand &operand, AffineMap map,
                                       SmallVector<ChunkOperand> &list) {
  Operation *op = operand.getOwner();
  auto argument = dyn_cast<BlockArgument>(operand.get());
  auto type = argument ? dyn_cast<MemRefType>(argument.getType()) : MemRefType();
  if (!type)
    return refuse(op, "views of a chunk, which are arguments, and behind them scalars");
  Attribute given = this->operand(argument.getArgNumber());
  auto dim = [&](unsigned axis) { return getAffineDimExpr(axis, op->getContext()); };
  std::optional<Place> place;
  if (map.isIdentity()) {
    if (isa<exec::ShardsAttr>(given) && overShards)
      place = Place::Shards;
    else if (isa<exec::WorkspaceAttr>(given))
      place = Place::Staged;
  } else if (overShards ? isa<exec::LineAttr>(given) : isa<exec::WorkspaceAttr>(given)) {
    if (map.getNumResults() == 0)
      place = Place::Block;
    else if (map.getResults() == ArrayRef(dim(0)))
      place = Place::Row;
    else if (map.getResults() == ArrayRef(dim(1)))
      place = Place::Column;
  }
  if (!place)
    return refuse(op, "views that its dispatch has, found ")
           << AffineMapAttr::get(map) << " of " << given;
  Type element = type.getElementType();
  list.push_back({*place, element, argument.getArgNumber(), storageOf(element)});
  return success();
}

ChunkKernel::ChunkKernel(func::FuncOp kernel, exec::DispatchChunksOp dispatch)
    : kernel(kernel), each(dispatch.getArgs().size() / dispatch.getTables().size()),
      overShards(cast<exec::TableAttr>(dispatch.getTables()[0]).getKind() !=
                 exec::TableKind::BlockChunks),
      dispatch(dispatch) {}

FailureOr<ChunkKernel> ChunkKernel::read(func::FuncOp function,
                                         ArrayRef<exec::DispatchChunksOp> dispatches) {
  ChunkKernel kernel(function, dispatches.front());
  if (failed(kernel.read()))
    return failure();
  for (exec::DispatchChunksOp dispatch : dispatches) {
    // The loops are made for one kind of table, and one kind of each operand (shards or workspace). Arguments
    // say which shards, and where in the workspace.
    auto kindOf = [](exec::DispatchChunksOp op) {
      return cast<exec::TableAttr>(op.getTables()[0]).getKind();
    };
    ArrayAttr args = dispatch.getArgs();
    if (kindOf(dispatch) != kindOf(kernel.dispatch) ||
        args.size() != kernel.each * dispatch.getTables().size() ||
        !llvm::all_of(llvm::seq(kernel.each), [&](size_t i) {
          return args[i].getTypeID() == kernel.operand(i).getTypeID();
        })) {
      auto diag = dispatch.emitOpError("expected operands like those of another dispatch of ")
                  << dispatch.getKernelAttr();
      diag.attachNote(kernel.dispatch.getLoc()) << "the other dispatch is here";
      return diag;
    }
  }
  return kernel;
}

LogicalResult ChunkKernel::read() {
  if (kernel.getNumArguments() != each)
    return dispatch.emitOpError("expected as many operands per table as the kernel has arguments, ")
           << kernel.getNumArguments() << ", found " << each;
  linalg::GenericOp generic;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isa<arith::ConstantOp, memref::LoadOp>(op))
      continue;
    if (generic || !isa<linalg::GenericOp>(op))
      return refuse(&op, "one linalg.generic, and loads of scalars before it");
    generic = cast<linalg::GenericOp>(op);
  }
  auto attribute = kernel->getAttrOfType<comm::ReductionAttr>(exec::kReductionAttr);
  if (attribute)
    reduction = attribute.getValue();
  if (auto count = kernel->getAttrOfType<IntegerAttr>(exec::kSumsAttr); count && reduction)
    sums = count.getInt();
  unsigned parallel = generic ? generic.getNumParallelLoops() : 0;
  if (!generic || generic.getNumLoops() != 2 ||
      (reduction ? parallel > 1 || (parallel == 0 && !sums) : parallel != 2))
    return refuse(kernel, "one linalg.generic over the rows and columns of a chunk");
  body = generic.getBody();
  if (Operation *illegal = findNotElementwise(*body))
    return refuse(illegal, "elementwise operations only");
  for (OpOperand *in : generic.getDpsInputOperands()) {
    if (isa<MemRefType>(in->get().getType()) && columns.empty()) {
      if (failed(readOperand(*in, generic.getMatchingIndexingMap(in), reads)))
        return failure();
      continue;
    }
    auto load = in->get().getDefiningOp<memref::LoadOp>();
    auto row = load ? dyn_cast<BlockArgument>(load.getMemRef()) : BlockArgument();
    std::optional<int64_t> column = row && load.getIndices().size() == 1
                                        ? getConstantIntValue(load.getIndices()[0])
                                        : std::nullopt;
    auto scalars =
        row ? dyn_cast<exec::ScalarsAttr>(operand(row.getArgNumber())) : exec::ScalarsAttr();
    if (!scalars || row.getArgNumber() != 0 || !column || *column < 0 ||
        *column >= scalars.getColumns() || !load.getType().isF32())
      return refuse(generic, "scalars from columns of the first operand of its dispatch");
    columns.push_back(*column);
  }
  for (OpOperand &out : generic.getDpsInitsMutable()) {
    if (!generic.getMatchingBlockArgument(&out).use_empty())
      return refuse(generic, "a region that reads inputs alone");
    if (failed(readOperand(out, generic.getMatchingIndexingMap(&out), writes)))
      return failure();
    bool isLine = writes.back().place == Place::Row || writes.back().place == Place::Column ||
                  (sums && writes.back().place == Place::Block);
    bool hasAll = writes.back().place == Place::Shards || writes.back().place == Place::Staged;
    if (!reduction && !hasAll)
      return refuse(generic, "outs that have every element of a chunk");
    if (reduction &&
        (!overShards || !isLine || !writes.back().element.isF32() || generic.getNumDpsInits() != 1))
      return refuse(generic, "one line of f32 to which it reduces the terms of shards");
  }
  if (failed(readNumbers()))
    return failure();
  if (sums) {
    if (sums < 0)
      return refuse(kernel, "a number of exact sums above 0");
    writes[0].storage = LLVM::LLVMArrayType::get(IntegerType::get(kernel.getContext(), 8),
                                                 unsigned(sums * bytesOfSum()));
  }
  // Chunks of blocks hold whole rows. So a chunk is walked as one row if no value depends on the row or
  // column.
  flat = !overShards && llvm::all_of(reads, [](const ChunkOperand &o) {
    return o.place == Place::Staged || o.place == Place::Block;
  });
  return success();
}

bool ChunkKernel::sharesCounters() {
  return llvm::any_of(body->getOps<optim::RandomOp>(),
                      [](optim::RandomOp op) { return op.getDraw() != plan::Draw::Normal; });
}

Value ChunkKernel::argumentOf(Place place, Type type, Location loc) {
  auto known = llvm::find_if(reads, [&](const ChunkOperand &o) { return o.place == place; });
  auto index = unsigned(known - reads.begin());
  if (known == reads.end()) {
    reads.push_back({place, type, /*slot=*/each});
    body->insertArgument(index, type, loc);
  }
  return body->getArgument(index);
}

LogicalResult ChunkKernel::readNumbers() {
  if (llvm::none_of(*body, [](Operation &op) { return optim::dependsOnPlace(&op); }))
    return success();
  counted = body->getParentOp()->clone();
  body = &counted->getRegion(0).front();
  for (auto op : llvm::make_early_inc_range(body->getOps<optim::PositionOp>())) {
    auto place = op.getAxis() == plan::Division::Rows ? Place::RowNumber : Place::ColumnNumber;
    op.replaceAllUsesWith(argumentOf(place, op.getType(), op.getLoc()));
    op.erase();
  }
  // The values that depend on scalars and literals alone. The seed of a draw has to be one of them.
  llvm::DenseSet<Value> uniform(body->args_begin() + reads.size(),
                                body->args_begin() + reads.size() + columns.size());
  for (Operation &op : body->without_terminator()) {
    if (llvm::all_of(op.getOperands(), [&](Value value) { return uniform.contains(value); }))
      uniform.insert(op.result_begin(), op.result_end());
    if (isa<optim::RandomOp>(op) &&
        llvm::any_of(op.getOperands(), [&](Value value) { return !uniform.contains(value); }))
      return refuse(&op, "a seed, a step and a condition that follow from scalars alone");
  }
  for (auto op : body->getOps<optim::RandomOp>()) {
    Builder b(op.getContext());
    op.getElementMutable().assign(argumentOf(Place::ElementNumber, b.getI64Type(), op.getLoc()));
    auto behind = [&] { return unsigned(reads.size() + columns.size()); };
    if (!readsKey)
      body->insertArgument(behind(), b.getI64Type(), op.getLoc());
    readsKey = true;
    op.getKeyMutable().assign(body->getArgument(behind()));
  }
  return success();
}

void ChunkEmitter::bind(Value chunkRows, Value memory, Value ofParameters,
                        function_ref<Value()> shards) {
  chunks = chunkRows;
  workspace = memory;
  records = ofParameters;
  for (auto [index, source] : llvm::enumerate(sources)) {
    if (isa<exec::ShardsAttr>(kernel.operand(index)))
      source.table = shards();
    else
      source.word = words++;
  }
}

std::pair<Value, Value> ChunkEmitter::bindOperands(bool withWrites) {
  Value parameter = field(offsetof(stepc_chunk, parameter));
  Value rows = field(offsetof(stepc_chunk, rows));
  Value cols = field(offsetof(stepc_chunk, cols));
  Value local = field(offsetof(stepc_chunk, local));
  Value localStride = field(offsetof(stepc_chunk, local_stride));
  staged = field(offsetof(stepc_chunk, staged));
  Value stagedStride = field(offsetof(stepc_chunk, staged_stride));
  if (kernel.flat) {
    cols = b.mul(rows, cols);
    rows = b.constant(1);
  }
  SmallVector<const ChunkOperand *> placed(sources.size());
  for (auto *list : {&kernel.reads, &kernel.writes})
    for (ChunkOperand &operand : *list) {
      if (list == &kernel.writes && !withWrites)
        continue;
      if (operand.isNumber()) {
        bool ofElements = operand.place == Place::ElementNumber;
        operand.base =
            field(operand.place == Place::RowNumber      ? offsetof(stepc_chunk, row)
                  : operand.place == Place::ColumnNumber ? offsetof(stepc_chunk, col)
                                                         : offsetof(stepc_chunk, element));
        operand.stride = ofElements ? field(offsetof(stepc_chunk, element_stride)) : Value();
        continue;
      }
      if (const ChunkOperand *same = placed[operand.slot]; same && same->place == operand.place) {
        operand = *same;
        continue;
      }
      placed[operand.slot] = &operand;
      const Source &source = sources[operand.slot];
      Value base = source.table ? source.table : place(source.word), offset;
      switch (operand.place) {
      case Place::Shards:
        base = b.load(b.pointer, b.address(base, b.pointer, parameter));
        offset = local;
        operand.stride = localStride;
        break;
      case Place::Staged:
        offset = staged;
        operand.stride = stagedStride;
        break;
      case Place::Block:
        offset = field(offsetof(stepc_chunk, per_block));
        break;
      case Place::Row:
        offset = field(offsetof(stepc_chunk, per_row));
        operand.stride = field(offsetof(stepc_chunk, per_row_stride));
        break;
      case Place::Column:
        offset = field(offsetof(stepc_chunk, per_column));
        break;
      case Place::RowNumber:
      case Place::ColumnNumber:
      case Place::ElementNumber:
        llvm_unreachable("numbers have no memory");
      }
      operand.base = b.address(base, operand.storage, offset);
      if (operand.place == Place::Block && list == &kernel.reads)
        operand.single = loadStored(b, operand.element, operand.base);
    }
  return {rows, cols};
}

void ChunkEmitter::emitUniform() {
  SmallVector<Value> scalars;
  if (!kernel.columns.empty()) {
    Value row = place(sources[0].word);
    for (int64_t column : kernel.columns)
      scalars.push_back(b.load(b.getF32Type(), b.address(row, b.getF32Type(), column)));
  }
  if (kernel.readsKey) {
    Value record = recordOf(b, records, field(offsetof(stepc_chunk, parameter)));
    Value key = fieldOf(b, record, offsetof(stepc_parameter_record, key));
    scalars.push_back(b.load(b.getI64Type(), key));
  }
  body.emitUniform(b, scalars);
}

std::pair<Value, Value> ChunkEmitter::goTo(Value further) {
  Value first = item;
  chunkAt(b.add(first, further));
  item = first;
  return bindOperands(/*withWrites=*/false);
}

void ChunkEmitter::emitItem() {
  if (kernel.sums) {
    // The rows behind the first row of some sums are no items of their own.
    Value part = field(offsetof(stepc_chunk, part));
    Value isFirst = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::sge, part, b.constant(0));
    return b.when(isFirst, [&] {
      auto [rows, cols] = bindOperands(/*withWrites=*/true);
      ChunkOperand &out = kernel.writes[0];
      out.base = b.address(out.base, b.getI8Type(), b.mul(part, b.constant(kernel.bytesOfSum())));
      emitUniform();
      emitSums(rows, cols, b.add(field(offsetof(stepc_chunk, more)), b.constant(1)));
    });
  }
  auto [rows, cols] = bindOperands(/*withWrites=*/true);
  emitUniform();
  if (kernel.reduction)
    return emitReduction(rows, cols);
  if (llvm::none_of(kernel.writes, [&](const ChunkOperand &o) { return kernel.mayBeAbsent(o); }))
    return emitRows(rows, cols, true);
  // A replica that does not send stages nothing, but updates its shards like the other replicas.
  Value absent = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::slt, staged, b.constant(0));
  auto choice = scf::IfOp::create(b, b.loc, absent, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  if (!llvm::all_of(kernel.writes, [&](const ChunkOperand &o) { return kernel.mayBeAbsent(o); }))
    emitRows(rows, cols, false);
  b.setInsertionPointToStart(choice.elseBlock());
  emitRows(rows, cols, true);
}

Value ChunkEmitter::at(const ChunkOperand &operand, Value row, Value column) {
  Value offset = column;
  if (operand.stride && row) {
    Value rowOffset = b.mul(row, operand.stride);
    offset = column ? b.add(rowOffset, column) : rowOffset;
  }
  return b.address(operand.base, operand.storage, offset);
}

/// `first`, first + 1, …: `width` of them, or `first` alone if `width` is 0.
static Value numbersFrom(KernelBuilder &b, Value first, int64_t width) {
  if (!width)
    return first;
  auto words = VectorType::get(width, b.getI64Type());
  SmallVector<int64_t> lanes = llvm::to_vector(llvm::seq<int64_t>(width));
  Value steps = arith::ConstantOp::create(b, b.loc, DenseIntElementsAttr::get(words, lanes));
  return arith::AddIOp::create(b, b.loc, broadcast(b, first, width), steps);
}

static Value asF32(KernelBuilder &b, Value number) {
  Type type = b.getF32Type();
  if (auto vector = dyn_cast<VectorType>(number.getType()))
    type = vector.clone(type);
  return arith::SIToFPOp::create(b, b.loc, type, number);
}

void ChunkEmitter::loadRow(Value row) {
  for (ChunkOperand &operand : kernel.reads)
    if (operand.place == Place::Row)
      operand.single = loadStored(b, operand.element, at(operand, row, {}));
    else if (operand.place == Place::RowNumber)
      operand.single = asF32(b, b.add(operand.base, row));
}

Value ChunkEmitter::valueOf(const ChunkOperand &operand, Value row, Value column, int64_t width,
                            unsigned alignment) {
  if (operand.place == Place::ColumnNumber)
    return asF32(b, numbersFrom(b, b.add(operand.base, column), width));
  if (operand.place == Place::ElementNumber) {
    Value before = b.add(operand.base, b.mul(row, operand.stride));
    return numbersFrom(b, b.add(before, column), width);
  }
  if (operand.alongColumns())
    return loadElements(b, operand.element, at(operand, row, column), width, alignment);
  Value value = operand.single;
  if (!operand.isNumber() && storageOf(operand.element) != operand.element)
    value = arith::BitcastOp::create(b, b.loc, operand.element, value);
  return width ? broadcast(b, value, width) : value;
}

SmallVector<Value> ChunkEmitter::emitBody(Value row, Value column, int64_t width,
                                          unsigned alignment) {
  SmallVector<Value> values;
  for (const ChunkOperand &operand : kernel.reads)
    values.push_back(valueOf(operand, row, column, width, alignment));
  return body.emit(b, values, width, /*isAligned=*/alignment != 0);
}

void ChunkEmitter::emitElements(Value row, Value column, int64_t width, bool storeStaged,
                                unsigned alignment, SmallVectorImpl<Value> *mayBeNaN) {
  // All loads come before the first store, because an input may also be an output.
  SmallVector<Value> results = emitBody(row, column, width, alignment);
  for (auto [operand, result] : llvm::zip_equal(kernel.writes, results)) {
    if (!storeStaged && kernel.mayBeAbsent(operand))
      continue;
    if (mayBeNaN && storesAnyNaN(operand, storeStaged))
      mayBeNaN->push_back(result);
    else
      result = withOneNaN(b, operand.element, result);
    storeElements(b, operand.element, result, at(operand, row, column), width,
                  operand.alongColumns() ? alignment : 0);
  }
  if (mayBeNaN)
    dropImplied(*mayBeNaN);
}

} // namespace stepc::kernels
