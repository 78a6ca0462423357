//===- ChunkKernel.h - What a kernel reads and writes of a chunk -*- C++ -*-===//
//
// What all targets share of kernels over chunks: reading the function of level 5, and finding where the
// operands of a chunk stand. Each target has its own loops over the elements, and their width.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_CHUNKKERNEL_H
#define STEPC_PASSES_KERNELS_CHUNKKERNEL_H

#include "dialects/exec/Exec.h"
#include "passes/kernels/ElementwiseBody.h"
#include "passes/kernels/StageKernel.h"
#include "runtime/sums/Parts.h"
#include "stepc/kernel_abi.h"

namespace stepc::kernels {

/// An operand of a chunk: a base, a stride between rows, and either one element per column or one
/// value for the row.
struct ChunkOperand {
  /// Where element (r, c) of a chunk stands.
  enum class Place {
    Shards,        ///< local + r · localStride + c in the shard of the parameter
    Staged,        ///< staged + r · stagedStride + c
    Block,         ///< one value per block: [perBlock]
    Row,           ///< one value per row: [perRow + r · perRowStride]
    Column,        ///< one value per column: [perColumn + c]
    RowNumber,     ///< no memory: the row r of the chunk in its block, as f32
    ColumnNumber,  ///< no memory: the column c in its block, as f32
    ElementNumber, ///< no memory: the number among the elements of the parameter, as i64
  };
  Place place;
  mlir::Type element;
  size_t slot;             ///< the argument of the kernel; a number has none
  mlir::Type storage = {}; ///< of the element in memory
  mlir::Value base = {}; ///< the address of the chunk's first element; of a number its value there
  mlir::Value stride = {}; ///< between rows; null: all rows are the same
  mlir::Value single = {}; ///< the value as it is stored, if it is the same along a row
  bool isNumber() const {
    return place == Place::RowNumber || place == Place::ColumnNumber ||
           place == Place::ElementNumber;
  }
  /// Whether memory has an element for each column.
  bool alongColumns() const { return place != Place::Block && place != Place::Row && !isNumber(); }
};

/// A kernel over chunks, as read from its function: the operands that it reads and writes, and its scalar
/// region.
class ChunkKernel {
public:
  /// Reads a kernel and all dispatches that run it (at least one). Fails with an error if a dispatch does not
  /// fit the kernel.
  static mlir::FailureOr<ChunkKernel> read(mlir::func::FuncOp kernel,
                                           llvm::ArrayRef<exec::DispatchChunksOp> dispatches);

  mlir::Attribute operand(size_t index) { return dispatch.getArgs()[index]; }
  /// Whether a written value may have no place. It is staged for a move, and a replica that does not send has
  /// no place for it.
  bool mayBeAbsent(const ChunkOperand &write) const {
    return overShards && write.place == ChunkOperand::Place::Staged;
  }

  mlir::func::FuncOp kernel;
  size_t each; // operands per table
  bool overShards;
  /// Ends with the numbers of rows, columns and elements that the body asks for.
  llvm::SmallVector<ChunkOperand> reads;
  llvm::SmallVector<ChunkOperand> writes;
  /// Whether the body has an argument behind the scalars: the key of the parameter, an i64.
  bool readsKey = false;
  llvm::SmallVector<int64_t> columns; // per uniform argument of the body: its column of the scalars
  mlir::Block *body = nullptr;
  /// Set if the body yields terms: how the kernel reduces those of each row or column of a chunk.
  std::optional<plan::Reduction> reduction;
  /// How many exact sums of what a rank has of a line the kernel writes for each value. 0: it writes results.
  int64_t sums = 0;
  int64_t bytesOfSum() const { return sums::bytesOf(*reduction); }
  bool flat = false; // a chunk of a block is walked as one row
  /// Whether the body draws numbers of which neighbouring elements share counters.
  bool sharesCounters();

private:
  ChunkKernel(mlir::func::FuncOp kernel, exec::DispatchChunksOp dispatch);
  mlir::LogicalResult read();
  mlir::LogicalResult readOperand(mlir::OpOperand &operand, mlir::AffineMap map,
                                  llvm::SmallVector<ChunkOperand> &list);
  /// Makes the numbers of rows, columns and elements that the body asks for arguments behind those of the
  /// reads, and the parameter's key the one behind the scalars. The body is then a copy.
  mlir::LogicalResult readNumbers();
  /// The argument of the body for a number, which is made if there is none.
  mlir::Value argumentOf(ChunkOperand::Place place, mlir::Type type, mlir::Location loc);

  exec::DispatchChunksOp dispatch;
  mlir::OwningOpRef<mlir::Operation *> counted; ///< The operation of a body that is a copy.
};

/// Loads or stores one element (`width` 0) or a vector. 16-bit floats travel as integers: a chip's own
/// conversions may flush denormals. Without `alignment` (bytes) pointers are aligned to their
/// element only: a shard may begin anywhere.
mlir::Value loadElements(KernelBuilder &b, mlir::Type element, mlir::Value from, int64_t width,
                         unsigned alignment = 0);
/// Loads one element as it is stored: 16-bit floats as integers. LLVM has no instructions for one bf16 on
/// most CPUs, and would call functions that no library has.
mlir::Value loadStored(KernelBuilder &b, mlir::Type element, mlir::Value from);
void storeElements(KernelBuilder &b, mlir::Type element, mlir::Value value, mlir::Value to,
                   int64_t width, unsigned alignment = 0);

/// Returns what to store: numbers as they are, and one NaN for all NaNs. That NaN is positive, quiet and
/// without a payload. The result may be integers with the bits. The reason: which of two NaNs an addition, a
/// product or a maximum gives follows from the order of its operands. That order may differ between code for
/// vectors and code for single elements.
mlir::Value withOneNaN(KernelBuilder &b, mlir::Type element, mlir::Value value);

/// Emits what a kernel does with one chunk, without the loops over its elements.
class ChunkEmitter {
public:
  ChunkEmitter(ChunkKernel &kernel, KernelBuilder &b)
      : kernel(kernel), b(b), body(*kernel.body, kernel.reads.size()), sources(kernel.each) {}
  virtual ~ChunkEmitter() = default;

protected:
  /// Takes the kernel's arguments: rows of chunks, the workspace, the records, and a list of pointers for
  /// each operand that is shards. `shards` gives the next list.
  void bind(mlir::Value chunks, mlir::Value workspace, mlir::Value records,
            llvm::function_ref<mlir::Value()> shards);
  /// Sets the chunk for which the following calls emit code.
  void chunkAt(mlir::Value number) {
    item = number;
    chunk = b.address(chunks, b.getI64Type(), b.mul(item, b.constant(words)));
  }
  /// Emits all code for the chunk.
  void emitItem();
  virtual void emitRows(mlir::Value rows, mlir::Value cols, bool storeStaged) = 0;
  /// Emits the reduction of a kernel that reduces.
  virtual void emitReduction(mlir::Value rows, mlir::Value cols) = 0;
  /// Emits the sums of a kernel of sums, over `count` rows of its table from the item on (goTo). `rows` and
  /// `cols` are the item's: of so many rows (columns) it has sums.
  virtual void emitSums(mlir::Value rows, mlir::Value cols, mlir::Value count) = 0;
  /// Goes on to the row of the table that stands `further` behind the item. What the kernel reads is then
  /// that of this row. Returns its rows and columns.
  std::pair<mlir::Value, mlir::Value> goTo(mlir::Value further);
  /// The address of an element of a chunk or, without a column, of its row.
  mlir::Value at(const ChunkOperand &operand, mlir::Value row, mlir::Value column);
  /// Emits what the body yields for `width` elements of a row, or for one if `width` is 0. With an alignment,
  /// the number of the first element is a multiple of the width, too, if the body shares counters.
  llvm::SmallVector<mlir::Value> emitBody(mlir::Value row, mlir::Value column, int64_t width,
                                          unsigned alignment = 0);
  /// Loads the values that are the same along a row.
  void loadRow(mlir::Value row);
  /// Emits `width` elements of a row, or one if `width` is 0. Every NaN is stored as one NaN (withOneNaN).
  /// With `mayBeNaN`, values of f32 are stored as they are. `mayBeNaN` then gets values, and one of them is a
  /// NaN if any stored value is a NaN.
  void emitElements(mlir::Value row, mlir::Value column, int64_t width, bool storeStaged,
                    unsigned alignment = 0, llvm::SmallVectorImpl<mlir::Value> *mayBeNaN = nullptr);
  /// Whether emitElements may store a NaN of this operand as it is.
  bool storesAnyNaN(const ChunkOperand &write, bool storeStaged) const {
    return write.element.isF32() && (storeStaged || !kernel.mayBeAbsent(write));
  }
  /// Word number `index` of the chunk's row.
  mlir::Value word(int64_t index) {
    return b.load(b.getI64Type(), b.address(chunk, b.getI64Type(), index));
  }
  mlir::Value field(size_t offset) { return word(int64_t(offset / sizeof(int64_t))); }

  ChunkKernel &kernel;
  KernelBuilder &b;
  ElementwiseBody body;

private:
  /// The value of the body's argument for an operand that it reads: a load, a number or a splat.
  mlir::Value valueOf(const ChunkOperand &operand, mlir::Value row, mlir::Value column,
                      int64_t width, unsigned alignment);
  /// Finds where the operands of the chunk begin, or only those that the kernel reads. Returns the rows and
  /// columns of the chunk.
  std::pair<mlir::Value, mlir::Value> bindOperands(bool withWrites);
  /// Emits what is the same for all elements of the parameter.
  void emitUniform();
  /// The address in the workspace to which word number `index` of the chunk's row leads. Words that lead to
  /// operands follow the fields that all rows have.
  mlir::Value place(int64_t index) { return b.address(workspace, b.getI8Type(), word(index)); }

  /// Where an operand comes from: a list of pointers to shards, or the workspace, at the bytes that a word of
  /// the chunk's row says.
  struct Source {
    mlir::Value table;
    int64_t word = -1;
  };
  llvm::SmallVector<Source> sources; // by argument of the kernel
  mlir::Value chunks, workspace, records, item, chunk, staged;
  int64_t words = sizeof(stepc_chunk) / sizeof(int64_t); // in a row
};

} // namespace stepc::kernels

#endif
