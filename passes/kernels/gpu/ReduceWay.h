//===- ReduceWay.h - How a GPU's threads reduce numbers ---------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_GPU_REDUCEWAY_H
#define STEPC_PASSES_KERNELS_GPU_REDUCEWAY_H

#include "passes/kernels/gpu/SumBuilder.h"
#include "runtime/model/Model.h"

#include <memory>

namespace stepc::kernels {

inline constexpr int64_t kWarps = kThreads / kWarp;
/// The numbers of a line that a lane loads before it adds them up.
inline constexpr int64_t kAhead = 8;
inline constexpr int64_t kRun = kAhead * kWarp;
/// The numbers of a column that a thread adds up at once.
inline constexpr int64_t kDown = 64;

/// One of two ways to reduce numbers of f32: by an exact sum, or by the largest. What is found of some
/// numbers is a list of values that the lanes of a warp share, or that a thread has. The result is that of
/// `optim.reduce`.
class ReduceWay {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  /// Builds number i of some, as f32. Called several times.
  using NumberAt = SumBuilder::NumberAt;

  static std::unique_ptr<ReduceWay> make(SumBuilder &b, plan::Reduction kind, int64_t exponent);
  explicit ReduceWay(SumBuilder &b) : b(b), f32(b.getF32Type()) {}
  virtual ~ReduceWay() = default;

  /// What is found before any number is added: by a warp, and by a thread.
  virtual Values ofWarp() = 0;
  virtual Values ofThread() = 0;
  /// Adds kAhead numbers of each lane of a warp. All lanes must come here.
  virtual Values addOfWarp(mlir::ValueRange found, NumberAt number) = 0;
  /// Adds `count` numbers of a thread.
  virtual Values addOfThread(mlir::ValueRange found, mlir::Value count, NumberAt number) = 0;
  virtual Values combine(mlir::ValueRange found, mlir::ValueRange other) = 0;
  /// The result of what a warp, or a thread, found of `count` numbers. Of a warp the first lane has it.
  virtual mlir::Value resultOfWarp(mlir::ValueRange found, mlir::Value count) = 0;
  virtual mlir::Value resultOfThread(mlir::ValueRange found, mlir::Value count) = 0;
  /// Stores what a warp, or a thread, found of a part, and adds a part that was stored.
  virtual void storePart(mlir::ValueRange found, mlir::Value part) = 0;
  virtual void storePartOfThread(mlir::ValueRange found, mlir::Value part) = 0;
  virtual Values addPart(mlir::ValueRange found, mlir::Value part) = 0;

  /// Adds numbers [first, last) of a line, of which a warp takes every `stride`-th run of kRun. `first` is
  /// the warp's first number.
  Values addLine(mlir::ValueRange found, mlir::Value first, mlir::Value last, int64_t stride,
                 NumberAt number);
  /// Adds `rows` numbers of a column for each lane. The warps share the rows.
  Values addColumns(mlir::ValueRange found, mlir::Value rows, NumberAt number);
  /// Combines what the warps of a GPU block found. The first warp gets it. All threads of the block must come
  /// here.
  Values overWarps(mlir::ValueRange found);

protected:
  /// Stands for a number past the end of a line.
  virtual float padding() const = 0;
  mlir::Value lane() { return b.remainder(b.thread, kWarp); }
  mlir::Value isFirstLane() { return b.below(lane(), 1); }

  SumBuilder &b;
  const mlir::Type f32;
};

} // namespace stepc::kernels

#endif
