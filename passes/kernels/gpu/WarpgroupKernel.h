//===- WarpgroupKernel.h - The code of products of warpgroups ---*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_GPU_WARPGROUPKERNEL_H
#define STEPC_PASSES_KERNELS_GPU_WARPGROUPKERNEL_H

#include "passes/kernels/gpu/HopperBuilder.h"
#include "passes/kernels/gpu/WarpgroupProduct.h"

namespace stepc::kernels {

/// Emits a kernel of a form.
class WarpgroupProduct {
public:
  using Value = mlir::Value;
  using Values = HopperBuilder::Values;

  static constexpr int64_t kWarpgroup = 128;
  static constexpr int64_t kHalf = plan::kTileColumns / 2;
  static constexpr int64_t kPartBytes = plan::kTilePart * plan::kTilePart * 2;
  static constexpr int64_t kStages = plan::kTileStages;
  static constexpr int64_t kLeftBytes = plan::kTileRows * plan::kTileSteps * 2,
                           kRightBytes = plan::kTileColumns * plan::kTileSteps * 2;
  static constexpr int64_t kStageBytes = kLeftBytes + kRightBytes;
  /// Registers of a thread that loads, and of one that multiplies. With 168 for each thread at first, a block
  /// has all that a multiprocessor has.
  static constexpr int64_t kFewRegisters = 24, kManyRegisters = 240;
  /// Words in which a thread keeps its results of a tile.
  static constexpr int64_t kResultWords = plan::kTileColumns / 4;
  /// Rows and columns of a box of f32, and its bytes. A chunk of results has two boxes.
  static constexpr int64_t kWideEdge = plan::boxColumns(plan::DType::F32),
                           kWideBytes = kPartBytes / 2;
  /// The swizzle of 128 bytes repeats after this many bytes, of which stages and staging are multiples.
  static constexpr int64_t kSwizzleBytes = 1024;

  /// Bytes of shared memory in which a consumer stages results: a part as it is and, if there is one, its
  /// mirror.
  static int64_t stagingBytesOf(const WarpgroupForm &form) {
    return form.product.symmetric ? 2 * kPartBytes : kPartBytes;
  }
  /// Where the barriers begin, behind the stages and the staging of both consumers.
  static int64_t barriersAt(const WarpgroupForm &form) {
    return kStages * kStageBytes + 2 * stagingBytesOf(form);
  }

  WarpgroupProduct(HopperBuilder &b, const WarpgroupForm &form)
      : b(b), form(form), type(b.typeOf(form.product.lhs)), left{type, !form.product.transposeLhs},
        right{type, form.product.transposeRhs}, stagingBytes(stagingBytesOf(form)),
        barriers(barriersAt(form)) {}

  void emit(mlir::gpu::GPUFuncOp function, mlir::LLVM::GlobalOp memory);

private:
  /// A stage of the ring, and the parity of its barriers.
  struct Stage {
    Value number, parity;
  };
  /// An entry of a list of tiles, for this GPU block.
  struct Tile {
    Value problem, matrix, row, column, steps, stores, columns, options;
  };
  /// Results of a tile that a warpgroup still has to store.
  struct Results {
    Value stores, row, column, matrix, problem;
    Values words;

    Values flat() const {
      Values all = {stores, row, column, matrix, problem};
      all.append(words);
      return all;
    }
    static Results of(llvm::ArrayRef<Value> all) {
      return {all[0], all[1], all[2], all[3], all[4], Values(all.drop_front(5))};
    }
  };

  Value full(Value stage) { return b.at(base, b.add(b.left(stage, 3), barriers)); }
  Value empty(Value stage) { return b.at(base, b.add(b.left(stage, 3), barriers + 8 * kStages)); }
  // Barriers are numbered for messages: first those of stages that have landed, then those of free ones.
  void waitFull(Stage stage) { b.wait(full(stage.number), stage.parity, 0, stage.number); }
  void waitEmpty(Stage stage) {
    b.wait(empty(stage.number), b.bitXor(stage.parity, 1), kStages, stage.number);
  }
  Value stageAt(Value stage) { return b.at(base, b.mul(stage, kStageBytes)); }
  Stage next(Stage stage);
  Tile tileAt(Value number);
  Value mapOf(Value problem, int64_t which);
  void acquireMaps();
  void setUp(mlir::LLVM::GlobalOp memory);

  // The thread that loads.
  void produce();
  Stage load(const Tile &tile, Stage stage);
  void loadRight(Value to, Value map, Value barrier, const Tile &tile, Value step, int64_t columns);
  Stage loadAddend(const Tile &tile, Stage stage);

  // The threads that multiply.
  void consume();
  void setUpConsumer();
  Value multiplyStage(Value sums, Stage stage, bool isFirst, int64_t columns);
  /// A tile of `columns` columns. Stores `old`, and returns the stage, its parity, and the tile's results.
  Values multiply(const Tile &tile, Stage stage, const Results &old, int64_t columns);
  /// alpha · sum + beta · addend, and the shift.
  Values finish(const Tile &tile, Value sums, Stage stage, int64_t columns, bool hasAddend);
  std::array<Value, 3> factorsOf(const Tile &tile);
  void shiftDiagonal(const Tile &tile, int64_t first, llvm::MutableArrayRef<Value> numbers,
                     Value shift);
  void store(const Results &results, int64_t chunk);
  void mirrorDiagonal(int64_t box);
  void setUpWide();
  void finishWide(const Tile &tile, Value sums, int64_t columns);
  void storeWide(const Tile &tile, int64_t chunk, llvm::ArrayRef<Value> numbers);
  void release(Value stage) {
    // With a cluster lane 0 releases the stage of block 0, and lane 1 that of block 1.
    if (form.cluster > 1)
      b.arriveAt(empty(stage), b.bitAnd(lane, 1), releases);
    else
      b.arrive(empty(stage), releases);
  }

  HopperBuilder &b;
  WarpgroupForm form;
  const mlir::Type type; // of operands
  HopperBuilder::Operand left, right;
  const int64_t stagingBytes, barriers;
  Value problems, tiles, lists;    // the arguments
  Value base;                      // of shared memory
  Value thread, warpgroup, rank;   // rank: the block's number in its cluster; null without
  Value first, last, problemCount; // the cluster's list
  // A consumer's number, the lane, the warp in the warpgroup, the staging and the barrier of the
  // warpgroup, whether the thread stores boxes, and whether it releases stages.
  Value consumer, lane, warp, staging, barrier, leads, releases;
  Value rowOffset, mirrorOffset, laneRow, laneHalf, addendOffset, addendTurn;
  Value wideOffset, wideTurn, wideMirrorOffset, wideMirrorTurn; // of results of f32
};

} // namespace stepc::kernels

#endif
