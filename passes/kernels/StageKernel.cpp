//===- StageKernel.cpp - Kernels of stages ---------------------------------===//
//
// A stage's kernel walks the rows of its chunks. Along a row it takes 16
// elements at a time and the rest one by one, through clones of one region.
// Every operand is a base pointer, a stride between rows, and either one element
// per column or one value for the row.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/StageKernel.h"
#include "stepc/kernel_abi.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

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
  size_t slot;       // among the distinct operands
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

/// The loops of one stage.
class StageEmitter {
public:
  StageEmitter(comm::StageOp op, KernelBuilder &b)
      : op(op), b(b), body(op.getBody().front(), op.getIns().size()) {}

  LogicalResult classify();
  void emit(LLVM::LLVMFuncOp kernel, ArrayRef<KernelArgument> arguments);
  bool needsBlockRows() const {
    return llvm::any_of(reads, [](const Operand &o) { return o.place == Place::Row; });
  }

  ArrayRef<Value> distinctOperands() const { return distinct; }

  /// What besides the region makes two kernels differ.
  std::string signature();

private:
  FailureOr<Place> placeOf(Value value);
  LogicalResult checkExtents();
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
  void emitRows(Value rows, Value cols, bool storeOuts);
  void emitElements(Value row, Value column, int64_t width, bool storeOuts);
  Value at(const Operand &operand, Value row, Value column);

  comm::StageOp op;
  KernelBuilder &b;
  ElementwiseBody body;
  SmallVector<Operand> reads, writes; // writes: shards, then outs
  SmallVector<Value> distinct;
  bool flat = false; // a block's chunk is one run of elements
  /// Where an operand comes from: a list of pointers to shards, or a word behind the chunk.
  struct Source {
    Value table;
    int64_t word;
  };
  static constexpr int64_t kChunkWords = sizeof(stepc_chunk) / sizeof(int64_t);
  SmallVector<Source> sources; // by slot
  Value workspace;
  int64_t scalars = -1, blockRows = -1; // words
};

FailureOr<Place> StageEmitter::placeOf(Value value) {
  if (isa<comm::ShardsType>(value.getType()))
    return Place::Shards;
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type)
    return op.emitOpError("expected memrefs at this level, found ") << value.getType();
  if (op.getIteration() == comm::Iteration::Shards)
    return Place::Staged;
  auto shape = cast<MemRefType>(op.getOuts().front().getType()).getShape().drop_front();
  auto own = type.getShape().drop_front();
  if (own == shape)
    return Place::Staged;
  if (own[0] == 1 && own[1] == 1)
    return Place::Slot;
  if (own[0] == shape[0] && own[1] == 1)
    return Place::Row;
  if (own[1] == shape[1] && own[0] == 1)
    return Place::Column;
  return op.emitOpError("expected operands that broadcast to the out's shape, found ") << type;
}

/// Chunks of blocks walk a block's rows and columns: an out of other extents would be overrun.
LogicalResult StageEmitter::checkExtents() {
  if (op.getOuts().empty())
    return op.emitOpError("expected an out over blocks");
  auto segment = SymbolTable::lookupNearestSymbolFrom<comm::SegmentOp>(op, op.getSegmentAttr());
  auto group = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(op, segment.getGroupAttr());
  for (Value out : op.getOuts())
    if (auto type = dyn_cast<MemRefType>(out.getType());
        type && ((type.getDimSize(1) != 1 && type.getDimSize(1) != group.getRows()) ||
                 (type.getDimSize(2) != 1 && type.getDimSize(2) != group.getCols())))
      return op.emitOpError("expected outs of ")
             << group.getRows() << " x " << group.getCols() << " (or 1) over the blocks of group "
             << group.getSymName() << ", found " << type;
  return success();
}

LogicalResult StageEmitter::classify() {
  if (Operation *illegal = body.illegal()) {
    auto error = op.emitOpError("expected elementwise operations only, found ")
                 << illegal->getName();
    error.attachNote(illegal->getLoc()) << "this operation";
    return error;
  }
  if (op.getIteration() == comm::Iteration::Blocks && failed(checkExtents()))
    return failure();
  auto add = [&](ValueRange values, SmallVector<Operand> &list) -> LogicalResult {
    for (Value value : values) {
      FailureOr<Place> place = placeOf(value);
      if (failed(place))
        return failure();
      // What is read and written has one pointer.
      size_t slot = llvm::find(distinct, value) - distinct.begin();
      if (slot == distinct.size())
        distinct.push_back(value);
      list.push_back({*place, elementOf(value), slot});
    }
    return success();
  };
  if (failed(add(op.getIns(), reads)) || failed(add(op.getWrites(), writes)) ||
      failed(add(op.getOuts(), writes)))
    return failure();
  for (const Operand &out : writes)
    if (out.place != Place::Shards && out.place != Place::Staged)
      return op.emitOpError("expected outs of one shape");
  // Chunks of blocks hold whole rows, so they are one run where nothing depends on the row or
  // column.
  flat = op.getIteration() == comm::Iteration::Blocks && llvm::all_of(reads, [](const Operand &o) {
           return o.place == Place::Staged || o.place == Place::Slot;
         });
  return success();
}

std::string StageEmitter::signature() {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto *list : {&reads, &writes}) {
    for (const Operand &operand : *list)
      os << int(operand.place) << operand.element << operand.slot << ' ';
    os << '|';
  }
  os << op.getWrites().size() << (flat ? " flat" : "")
     << (op.getIteration() == comm::Iteration::Blocks ? " blocks" : " shards");
  if (op.getScalars())
    os << " scalars " << cast<ShapedType>(op.getScalars().getType()).getDimSize(1);
  return text;
}

void StageEmitter::emit(LLVM::LLVMFuncOp kernel, ArrayRef<KernelArgument> arguments) {
  Value list = kernel.getArgument(0), chunks = b.argument(list, 0);
  workspace = b.argument(list, 1);
  int64_t words = kChunkWords, tables = 2;
  for (const KernelArgument &argument : arguments) {
    if (argument.kind == KernelArgument::Scalars)
      scalars = words++;
    else if (argument.kind == KernelArgument::BlockRows)
      blockRows = words++;
    else if (isa<comm::ShardsType>(argument.value.getType()))
      sources.push_back({b.argument(list, tables++), 0});
    else
      sources.push_back({Value(), words++});
  }
  b.loop(kernel.getArgument(1), kernel.getArgument(2), 1, [&](Value item) {
    emitChunk(b.address(chunks, b.getI64Type(), b.mul(item, b.constant(words))));
  });
}

void StageEmitter::emitChunk(Value chunk) {
  Value parameter = field(chunk, offsetof(stepc_chunk, parameter));
  Value slot = field(chunk, offsetof(stepc_chunk, slot));
  Value firstRow = field(chunk, offsetof(stepc_chunk, row));
  Value rows = field(chunk, offsetof(stepc_chunk, rows));
  Value cols = field(chunk, offsetof(stepc_chunk, cols));
  Value local = field(chunk, offsetof(stepc_chunk, local));
  Value localStride = field(chunk, offsetof(stepc_chunk, local_stride));
  Value staged = field(chunk, offsetof(stepc_chunk, staged));
  Value stagedStride = field(chunk, offsetof(stepc_chunk, staged_stride));
  if (flat) {
    cols = b.mul(rows, cols);
    rows = b.constant(1);
  }
  SmallVector<const Operand *> placed(sources.size());
  for (auto *list : {&reads, &writes})
    for (Operand &operand : *list) {
      if (const Operand *same = placed[operand.slot]) {
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

  SmallVector<Value> columns;
  if (op.getScalars()) {
    int64_t count = cast<ShapedType>(op.getScalars().getType()).getDimSize(1);
    Value row = place(chunk, scalars);
    for (int64_t k = 0; k < count; ++k)
      columns.push_back(b.load(b.getF32Type(), b.address(row, b.getF32Type(), k)));
  }
  body.emitUniform(b, columns);

  if (op.getIteration() == comm::Iteration::Blocks || op.getOuts().empty())
    return emitRows(rows, cols, true);
  // A replica that does not send has no place for what is staged, but updates its shards alike.
  Value absent = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::slt, staged, b.constant(0));
  auto choice = scf::IfOp::create(b, b.loc, absent, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  if (!op.getWrites().empty())
    emitRows(rows, cols, false);
  b.setInsertionPointToStart(choice.elseBlock());
  emitRows(rows, cols, true);
}

void StageEmitter::emitRows(Value rows, Value cols, bool storeOuts) {
  Value zero = b.constant(0);
  Value whole = arith::AndIOp::create(b, b.loc, cols, b.constant(-kWidth));
  b.loop(zero, rows, 1, [&](Value row) {
    for (Operand &operand : reads)
      if (operand.place == Place::Row)
        operand.single = loadElements(b, operand.element, at(operand, row, {}), 0);
    b.loop(zero, whole, kWidth,
           [&](Value column) { emitElements(row, column, kWidth, storeOuts); });
    b.loop(whole, cols, 1, [&](Value column) { emitElements(row, column, 0, storeOuts); });
  });
}

Value StageEmitter::at(const Operand &operand, Value row, Value column) {
  Value offset = column;
  if (operand.stride) {
    Value rowOffset = b.mul(row, operand.stride);
    offset = column ? b.add(rowOffset, column) : rowOffset;
  }
  return b.address(operand.base, storageOf(operand.element), offset);
}

void StageEmitter::emitElements(Value row, Value column, int64_t width, bool storeOuts) {
  // All loads come before the first store: an input may be written.
  SmallVector<Value> values;
  for (const Operand &operand : reads) {
    if (operand.alongColumns())
      values.push_back(loadElements(b, operand.element, at(operand, row, column), width));
    else if (width)
      values.push_back(
          vector::BroadcastOp::create(b, b.loc, widen(operand.element, width), operand.single));
    else
      values.push_back(operand.single);
  }
  SmallVector<Value> results = body.emit(b, values, width);
  for (auto [index, operand] : llvm::enumerate(writes))
    if (storeOuts || index < op.getWrites().size())
      storeElements(b, operand.element, results[index], at(operand, row, column), width);
}

} // namespace

FailureOr<StageKernel> KernelCache::stage(comm::StageOp op) {
  KernelBuilder unused(op.getContext(), op.getLoc());
  StageEmitter probe(op, unused);
  if (failed(probe.classify()))
    return failure();
  StageKernel result;
  if (op.getScalars())
    result.arguments.push_back({KernelArgument::Scalars, op.getScalars()});
  if (probe.needsBlockRows())
    result.arguments.push_back({KernelArgument::BlockRows, {}});
  for (Value value : probe.distinctOperands())
    result.arguments.push_back({KernelArgument::Operand, value});

  std::string name = kernelName(op), key = name + probe.signature() + fingerprint(op.getBody());
  auto kernel = get(key, name, op.getLoc(), [&](KernelBuilder &b, LLVM::LLVMFuncOp function) {
    StageEmitter emitter(op, b);
    if (failed(emitter.classify()))
      return failure();
    emitter.emit(function, result.arguments);
    return success();
  });
  if (failed(kernel))
    return failure();
  result.kernel = *kernel;
  return result;
}

} // namespace stepc::kernels
