//===- CpuChunkKernel.cpp - Loops over the chunks of a kernel --------------===//
//
// The loops walk the rows of the chunks. Along a row they take 16 elements at a time and
// the rest one by one, through clones of one region. Every operand is a base
// pointer, a stride between rows, and either one element per column or one value for the row.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/CpuKernels.h"
#include "passes/kernels/StageKernel.h"
#include "stepc/kernel_abi.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cstddef>

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Elements per vector: one AVX-512 register of f32, two of AVX2, four of SSE and Neon. Wider ones
/// gain nothing, as stages wait for memory.
constexpr int64_t kWidth = 16;

/// Where an operand's element (r, c) of a chunk stands.
enum class Place {
  Shards, ///< local + r · localStride + c in the shard of the parameter
  Staged, ///< staged + r · stagedStride + c
  Slot,   ///< one value per block: [slot]
  Row,    ///< one value per row: [slot, row + r]
  Column, ///< one value per column: [slot, c]
};

struct Operand {
  Place place;
  Type element;
  size_t slot;       // the argument of the kernel
  Value base = {};   // of the chunk
  Value stride = {}; // between rows; null: all rows are the same
  Value single = {}; // what is the same along a row
  bool alongColumns() const { return place != Place::Slot && place != Place::Row; }
};

/// 16-bit floats travel as integers: a chip's own conversions may flush denormals.
Type storageOf(Type element) {
  return element.isF32() ? element
                         : IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
}

Type widen(Type type, int64_t width) { return width ? VectorType::get(width, type) : type; }

Value loadElements(KernelBuilder &b, Type element, Value from, int64_t width) {
  // Pointers are aligned to their element only: a shard may begin anywhere.
  Value value = b.load(widen(storageOf(element), width), from, element.getIntOrFloatBitWidth() / 8);
  if (storageOf(element) != element)
    value = arith::BitcastOp::create(b, b.loc, widen(element, width), value);
  return value;
}

void storeElements(KernelBuilder &b, Type element, Value value, Value to, int64_t width) {
  if (storageOf(element) != element)
    value = arith::BitcastOp::create(b, b.loc, widen(storageOf(element), width), value);
  b.store(value, to, element.getIntOrFloatBitWidth() / 8);
}

/// What a kernel computes of a chunk, as its function says.
class ChunkKernel {
public:
  ChunkKernel(func::FuncOp kernel, exec::DispatchChunksOp dispatch)
      : kernel(kernel), dispatch(dispatch),
        each(dispatch.getArgs().size() / dispatch.getTables().size()),
        overShards(cast<exec::TableAttr>(dispatch.getTables()[0]).getKind() ==
                   exec::TableKind::ShardChunks) {}

  LogicalResult read();

  Attribute operand(size_t index) { return dispatch.getArgs()[index]; }
  bool needsBlockRows() const {
    return llvm::any_of(reads, [](const Operand &o) { return o.place == Place::Row; });
  }
  /// What is staged for matrix space: a replica that does not send has no place for it.
  bool mayBeAbsent(const Operand &write) const {
    return overShards && write.place == Place::Staged;
  }

  func::FuncOp kernel;
  exec::DispatchChunksOp dispatch;
  size_t each;
  bool overShards;
  SmallVector<Operand> reads, writes;
  SmallVector<int64_t> columns; // of the row of scalars, per uniform argument of the body
  Block *body = nullptr;
  bool flat = false; // a block's chunk is one run of elements

private:
  static InFlightDiagnostic refuse(Operation *op, const Twine &expected) {
    return op->emitOpError("expected in a kernel over chunks ") << expected;
  }
  LogicalResult readOperand(OpOperand &operand, AffineMap map, SmallVector<Operand> &list);
};

LogicalResult ChunkKernel::readOperand(OpOperand &operand, AffineMap map,
                                       SmallVector<Operand> &list) {
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
  } else if (isa<exec::WorkspaceAttr>(given) && !overShards) {
    if (map.getNumResults() == 0)
      place = Place::Slot;
    else if (map.getResults() == ArrayRef(dim(0)))
      place = Place::Row;
    else if (map.getResults() == ArrayRef(dim(1)))
      place = Place::Column;
  }
  if (!place)
    return refuse(op, "views that its dispatch has, found ")
           << AffineMapAttr::get(map) << " of " << given;
  list.push_back({*place, type.getElementType(), argument.getArgNumber()});
  return success();
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
  if (!generic || generic.getNumLoops() != 2 || generic.getNumParallelLoops() != 2)
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
    if (writes.back().place != Place::Shards && writes.back().place != Place::Staged)
      return refuse(generic, "outs that have every element of a chunk");
  }
  // Chunks of blocks hold whole rows, so they are one run where nothing depends on the row or
  // column.
  flat = !overShards && llvm::all_of(reads, [](const Operand &o) {
    return o.place == Place::Staged || o.place == Place::Slot;
  });
  return success();
}

/// The loops of one kernel.
class ChunkEmitter {
public:
  ChunkEmitter(ChunkKernel &kernel, KernelBuilder &b)
      : kernel(kernel), b(b), body(*kernel.body, kernel.reads.size()), sources(kernel.each) {}

  void emit(LLVM::LLVMFuncOp function);

private:
  Value field(Value chunk, size_t offset) {
    return b.load(b.getI64Type(),
                  b.address(chunk, b.getI64Type(), int64_t(offset / sizeof(int64_t))));
  }
  void emitChunk(Value chunk);
  /// A word behind the chunk, and the address in the workspace that it is.
  Value word(Value chunk, int64_t index) { return field(chunk, index * sizeof(int64_t)); }
  Value place(Value chunk, int64_t index) {
    return b.address(workspace, b.getI8Type(), word(chunk, index));
  }
  void emitRows(Value rows, Value cols, bool storeStaged);
  void emitElements(Value row, Value column, int64_t width, bool storeStaged);
  Value at(const Operand &operand, Value row, Value column);

  ChunkKernel &kernel;
  KernelBuilder &b;
  ElementwiseBody body;
  /// Where an operand comes from: a list of pointers to shards, or a word behind the chunk.
  struct Source {
    Value table;
    int64_t word = -1;
  };
  static constexpr int64_t kChunkWords = sizeof(stepc_chunk) / sizeof(int64_t);
  SmallVector<Source> sources; // by argument of the kernel
  Value workspace;
  int64_t blockRows = -1; // word
};

void ChunkEmitter::emit(LLVM::LLVMFuncOp function) {
  Value list = function.getArgument(0), chunks = b.argument(list, 0);
  workspace = b.argument(list, 1);
  int64_t words = kChunkWords, tables = 2;
  for (auto [index, source] : llvm::enumerate(sources)) {
    if (isa<exec::ShardsAttr>(kernel.operand(index)))
      source.table = b.argument(list, tables++);
    else
      source.word = words++;
  }
  if (kernel.needsBlockRows())
    blockRows = words++;
  b.loop(function.getArgument(1), function.getArgument(2), 1, [&](Value item) {
    emitChunk(b.address(chunks, b.getI64Type(), b.mul(item, b.constant(words))));
  });
}

void ChunkEmitter::emitChunk(Value chunk) {
  Value parameter = field(chunk, offsetof(stepc_chunk, parameter));
  Value slot = field(chunk, offsetof(stepc_chunk, slot));
  Value firstRow = field(chunk, offsetof(stepc_chunk, row));
  Value rows = field(chunk, offsetof(stepc_chunk, rows));
  Value cols = field(chunk, offsetof(stepc_chunk, cols));
  Value local = field(chunk, offsetof(stepc_chunk, local));
  Value localStride = field(chunk, offsetof(stepc_chunk, local_stride));
  Value staged = field(chunk, offsetof(stepc_chunk, staged));
  Value stagedStride = field(chunk, offsetof(stepc_chunk, staged_stride));
  if (kernel.flat) {
    cols = b.mul(rows, cols);
    rows = b.constant(1);
  }
  SmallVector<const Operand *> placed(sources.size());
  for (auto *list : {&kernel.reads, &kernel.writes})
    for (Operand &operand : *list) {
      if (const Operand *same = placed[operand.slot]; same && same->place == operand.place) {
        operand = *same;
        continue;
      }
      placed[operand.slot] = &operand;
      const Source &source = sources[operand.slot];
      Value base = source.table ? source.table : place(chunk, source.word), offset;
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
      case Place::Slot:
        offset = slot;
        break;
      case Place::Row:
        offset = b.add(b.mul(slot, word(chunk, blockRows)), firstRow);
        operand.stride = b.constant(1);
        break;
      case Place::Column:
        offset = b.mul(slot, stagedStride);
        break;
      }
      operand.base = b.address(base, storageOf(operand.element), offset);
      if (operand.place == Place::Slot)
        operand.single = loadElements(b, operand.element, operand.base, 0);
    }

  SmallVector<Value> scalars;
  if (!kernel.columns.empty()) {
    Value row = place(chunk, sources[0].word);
    for (int64_t column : kernel.columns)
      scalars.push_back(b.load(b.getF32Type(), b.address(row, b.getF32Type(), column)));
  }
  body.emitUniform(b, scalars);

  if (llvm::none_of(kernel.writes, [&](const Operand &o) { return kernel.mayBeAbsent(o); }))
    return emitRows(rows, cols, true);
  // A replica that does not send updates its shards alike.
  Value absent = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::slt, staged, b.constant(0));
  auto choice = scf::IfOp::create(b, b.loc, absent, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  if (!llvm::all_of(kernel.writes, [&](const Operand &o) { return kernel.mayBeAbsent(o); }))
    emitRows(rows, cols, false);
  b.setInsertionPointToStart(choice.elseBlock());
  emitRows(rows, cols, true);
}

void ChunkEmitter::emitRows(Value rows, Value cols, bool storeStaged) {
  Value zero = b.constant(0);
  Value whole = arith::AndIOp::create(b, b.loc, cols, b.constant(-kWidth));
  b.loop(zero, rows, 1, [&](Value row) {
    for (Operand &operand : kernel.reads)
      if (operand.place == Place::Row)
        operand.single = loadElements(b, operand.element, at(operand, row, {}), 0);
    b.loop(zero, whole, kWidth,
           [&](Value column) { emitElements(row, column, kWidth, storeStaged); });
    b.loop(whole, cols, 1, [&](Value column) { emitElements(row, column, 0, storeStaged); });
  });
}

Value ChunkEmitter::at(const Operand &operand, Value row, Value column) {
  Value offset = column;
  if (operand.stride) {
    Value rowOffset = b.mul(row, operand.stride);
    offset = column ? b.add(rowOffset, column) : rowOffset;
  }
  return b.address(operand.base, storageOf(operand.element), offset);
}

void ChunkEmitter::emitElements(Value row, Value column, int64_t width, bool storeStaged) {
  // All loads come before the first store: an input may be written.
  SmallVector<Value> values;
  for (const Operand &operand : kernel.reads) {
    if (operand.alongColumns())
      values.push_back(loadElements(b, operand.element, at(operand, row, column), width));
    else if (width)
      values.push_back(
          vector::BroadcastOp::create(b, b.loc, widen(operand.element, width), operand.single));
    else
      values.push_back(operand.single);
  }
  SmallVector<Value> results = body.emit(b, values, width);
  for (auto [operand, result] : llvm::zip_equal(kernel.writes, results))
    if (storeStaged || !kernel.mayBeAbsent(operand))
      storeElements(b, operand.element, result, at(operand, row, column), width);
}

} // namespace

FailureOr<LLVM::LLVMFuncOp> lowerChunkKernel(func::FuncOp function,
                                             ArrayRef<exec::DispatchChunksOp> dispatches) {
  ChunkKernel kernel(function, dispatches.front());
  if (failed(kernel.read()))
    return failure();
  for (exec::DispatchChunksOp dispatch : dispatches) {
    // The loops are made for operands of these kinds; which shards it are, arguments say.
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
  KernelBuilder b(function.getContext(), function.getLoc());
  LLVM::LLVMFuncOp made =
      beginKernel(function->getParentOfType<ModuleOp>(), function.getSymName(), b);
  ChunkEmitter(kernel, b).emit(made);
  // Where a row's value stands follows from R, which comes behind the other words.
  if (!kernel.needsBlockRows())
    return made;
  for (exec::DispatchChunksOp dispatch : dispatches) {
    SmallVector<Attribute> args;
    for (auto [index, operand] : llvm::enumerate(dispatch.getArgs())) {
      args.push_back(operand);
      if ((index + 1) % kernel.each == 0)
        args.push_back(exec::BlockRowsAttr::get(function.getContext()));
    }
    dispatch.setArgsAttr(b.getArrayAttr(args));
  }
  return made;
}

} // namespace stepc::kernels
