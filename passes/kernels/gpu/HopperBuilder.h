//===- HopperBuilder.h - Instructions beside threads -------------*- C++ -*-===//
//
// The vocabulary of kernels whose loads, stores and products run beside the threads that begin them. Tensor
// loads and stores move boxes of matrices between global and shared memory, as tensor maps describe them.
// Barriers in shared memory count the threads that arrive and the bytes that land. A warpgroup of 128 threads
// multiplies matrices that are in shared memory.
//
// Numbers are words of 32 bits, because addresses in shared memory are, and registers are scarce.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_GPU_HOPPERBUILDER_H
#define STEPC_PASSES_KERNELS_GPU_HOPPERBUILDER_H

#include "passes/kernels/gpu/GpuKernels.h"

namespace stepc::kernels {

class HopperBuilder : public KernelBuilder {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  HopperBuilder(mlir::MLIRContext *context, mlir::Location loc)
      : KernelBuilder(context, loc, kGlobal),
        shared(mlir::LLVM::LLVMPointerType::get(context, /*addressSpace=*/3)) {}

  const mlir::LLVM::LLVMPointerType shared; ///< a pointer to shared memory
  /// An operand's type: bf16 or f16.
  mlir::Type typeOf(plan::DType type) {
    return type == plan::DType::F16 ? mlir::Type(getF16Type()) : getBF16Type();
  }

  //===--- words ---===//
  Value word(int64_t value) { return mlir::arith::ConstantIntOp::create(*this, loc, value, 32); }
  using KernelBuilder::add;
  using KernelBuilder::mul;
  Value add(Value a, int64_t b) { return b == 0 ? a : add(a, word(b)); }
  Value sub(Value a, Value b) { return mlir::arith::SubIOp::create(*this, loc, a, b); }
  Value sub(Value a, int64_t b) { return sub(a, word(b)); }
  Value mul(Value a, int64_t b) { return mul(a, word(b)); }
  Value bitAnd(Value a, Value b) { return mlir::arith::AndIOp::create(*this, loc, a, b); }
  Value bitAnd(Value a, int64_t b) { return bitAnd(a, word(b)); }
  Value bitXor(Value a, Value b) { return mlir::arith::XOrIOp::create(*this, loc, a, b); }
  Value bitXor(Value a, int64_t b) { return bitXor(a, word(b)); }
  Value left(Value a, int64_t bits) {
    return mlir::arith::ShLIOp::create(*this, loc, a, word(bits));
  }
  Value right(Value a, int64_t bits) { return right(a, word(bits)); }
  Value right(Value a, Value bits) { return mlir::arith::ShRUIOp::create(*this, loc, a, bits); }
  Value equal(Value a, Value b) { return compare(mlir::arith::CmpIPredicate::eq, a, b); }
  Value equal(Value a, int64_t b) { return equal(a, word(b)); }
  Value isSet(Value a, int64_t bits) {
    return compare(mlir::arith::CmpIPredicate::ne, bitAnd(a, bits), word(0));
  }
  Value below(Value a, int64_t b) { return compare(mlir::arith::CmpIPredicate::ult, a, word(b)); }
  Value above(Value a, Value b) { return compare(mlir::arith::CmpIPredicate::ugt, a, b); }
  Value isFalse() { return mlir::arith::ConstantIntOp::create(*this, loc, 0, 1); }
  Value select(Value condition, Value a, Value b) {
    return mlir::arith::SelectOp::create(*this, loc, condition, a, b);
  }

  //===--- control ---===//
  /// The values of the branch that is taken.
  Values choose(Value condition, llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);
  /// A loop over words that carries values. Returns them as they are after the last iteration.
  Values loop(Value first, Value last, llvm::ArrayRef<Value> values,
              llvm::function_ref<Values(Value, llvm::ArrayRef<Value>)> body);
  /// All lanes of the warp must come here.
  void syncWarp();
  /// Waits for the other threads of the warpgroup. `number`: one of the block's named barriers, not 0.
  void syncWarpgroup(Value number);
  /// Waits for all threads of the cluster.
  void syncCluster();
  /// True in one lane of the warp.
  Value elect();
  /// Waits until all kernels before this one have ended. A dependent launch may begin earlier. LLVM may move
  /// loads to places before the wait, so only what never changes may be loaded by plain loads behind it.
  void waitForKernels();
  /// Lets the next kernel begin, which then waits for the end of this one.
  void letKernelsBegin();
  void setRegisters(int64_t count, bool more);

  //===--- memory ---===//
  /// An address some bytes further on.
  Value at(Value base, Value bytes);
  Value at(Value base, int64_t bytes);
  /// Loads what no thread writes while the kernel runs.
  Value loadInvariant(mlir::Type type, Value from, unsigned alignment);
  /// Makes what the thread has done with shared memory precede what tensor loads and stores then do.
  void fenceTensorAccess();
  /// Makes the tensor maps that a copy has written at `map` (a generic pointer) known to the thread.
  void acquireMap(Value map);
  Value generic(Value pointer);
  /// Loads a box at `coordinates` to shared memory. The bytes are counted by the barrier. With `blocks`, a
  /// mask of blocks of the cluster, they land at the same place in each of these blocks, at its own
  /// barrier.
  void loadBox(Value to, Value map, Value barrier, llvm::ArrayRef<Value> coordinates,
               Value blocks = {});
  /// Stores a box from shared memory as part of the thread's open group.
  void storeBox(Value map, Value from, llvm::ArrayRef<Value> coordinates);
  void commitStores();
  /// Waits until all groups of the thread's stores are done or, with `read`, have read shared memory.
  void waitStores(bool read);
  /// Stores four matrices of 8 × 8 16-bit elements to shared memory. Each lane has two neighbours of a row
  /// (or of a column, if `transposed`) of each, and brings the address of a row.
  void storeMatrices(Value row, llvm::ArrayRef<Value> words, bool transposed);

  //===--- barriers in shared memory ---===//
  void initBarrier(Value barrier, int64_t arrivals);
  /// Makes initialized barriers known to tensor loads and to the cluster.
  void fenceBarriers();
  /// Arrives, and adds bytes for which the barrier then waits.
  void arriveExpecting(Value barrier, Value bytes);
  /// Arrives at the barrier at the same place in a block of the cluster.
  void arriveAt(Value barrier, Value block, Value predicate);
  void arrive(Value barrier, Value predicate);
  /// Waits until the barrier has completed the phase of this parity. The barrier's number, for messages, is
  /// `first` + `number`.
  void wait(Value barrier, Value parity, int64_t first, Value number);
  /// The address of a pointer, if waits are bounded. After 2 seconds a thread writes one more than the
  /// barrier's number to where it points, unless it is null, and ends the kernel by a trap.
  Value stuck;

  //===--- products of a warpgroup ---===//
  /// How an operand lies in shared memory, in the swizzle of 128 bytes. `alongK`: neighbours are steps of k.
  struct Operand {
    mlir::Type type;
    bool alongK;
    /// Bytes >> 4 from one instruction's 16 steps of k to those of the next.
    int64_t step() const { return alongK ? 2 : 128; }
  };
  /// The descriptor of an operand that begins at an address.
  Value descriptor(Value address, const Operand &operand);
  Value step(Value descriptor, const Operand &operand, int64_t steps);
  /// The type of a thread's part of a result of 64 × `columns` f32.
  mlir::LLVM::LLVMStructType sumsType(int64_t columns);
  void fenceProducts();
  /// Begins sums + left · right over 16 steps of k or, with `isFirst`, left · right.
  Value multiply(Value sums, Value left, const Operand &leftForm, Value right,
                 const Operand &rightForm, int64_t columns, bool isFirst);
  void commitProducts();
  /// Waits until at most `groups` of the last groups of products are under way.
  void waitProducts(int64_t groups);

  //===--- f32 in registers, 16-bit elements in memory ---===//
  /// Two neighbours of `type` from a word, the lower first.
  std::pair<Value, Value> extendPair(mlir::Type type, Value word);
  /// A word of two elements, rounded to nearest, ties to even.
  Value narrowPair(mlir::Type type, Value low, Value high);

private:
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, Value b) {
    return mlir::arith::CmpIOp::create(*this, loc, predicate, a, b);
  }
};

} // namespace stepc::kernels

#endif
