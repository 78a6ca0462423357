//===- ProductRates.cpp - What products cost -------------------------------===//

#include "passes/cost/ProductRates.h"

#include "dialects/optim/Saturate.h"
#include "runtime/plan/TileLists.h"

#include <algorithm>

namespace stepc::cost {
namespace {

/// Operations per second: `most` · k / (k + `half`). A kernel spends as long on the ends of a tile as on
/// `half` steps of k.
struct Curve {
  double most; // 10¹² executed operations per second, for an endless k
  double half; // steps of k
};

/// The device's figure of the GPU that the curves are measured on: the profile h200, whose library multiplied
/// at 789 · 10¹² operations per second in the same run.
constexpr double kMeasuredOn = 780;

// Measured on an H200 (docs/gpu-results.md), and fitted together with the wait at the end of a launch. The
// figures there are counted as full products; the curves are of executed operations. Other GPUs get the same
// part of their device's figure: that is modelled.

/// mma.sync: three products of a Newton–Schulz step, mean of four runs (2026-11-26 and 2026-11-27). The model
/// is within 4 % of 16 × 1024², 4 × 2048², 4096² and 4096 × 14336. Symmetry and addends make no difference.
constexpr Curve kTensorCore = {330, 700};
/// wgmma: the prototypes' better column of `kernel` and `half` (2026-11-27). With the wait for the longest
/// list (ProductLaunches.h) the model is within 13 % of all nine shapes. stepc's own kernels have not run on
/// a GPU.
constexpr Curve kWarpgroupSymmetric = {800, 580}, kWarpgroupSymmetricAddend = {800, 700},
                kWarpgroupWhole = {790, 300};
/// Chains of fused multiply-adds: modelled, half of the 67 · 10¹² operations per second in the data sheet.
constexpr Curve kChain = {33, 100};

const Curve &curveOf(ProductKernel kernel, const BlockProduct &shape) {
  switch (kernel) {
  case ProductKernel::Warpgroup:
    return !shape.isSymmetric ? kWarpgroupWhole
           : shape.hasAddend  ? kWarpgroupSymmetricAddend
                              : kWarpgroupSymmetric;
  case ProductKernel::TensorCore:
    return kTensorCore;
  default:
    return kChain;
  }
}

} // namespace

int64_t executedFlops(const BlockProduct &shape) {
  if (!shape.isSymmetric)
    return fullFlops(shape);
  int64_t whole = shape.m / kSymmetricEdge, rest = shape.m % kSymmetricEdge;
  // Rows of whole blocks, then the last rows, which end at the diagonal.
  int64_t elements = saturatingAdd(
      saturatingMul(kSymmetricEdge * kSymmetricEdge, saturatingMul(whole, whole + 1)) / 2,
      saturatingMul(rest, shape.m));
  return saturatingMul(saturatingMul(2, elements), shape.k);
}

int64_t fullFlops(const BlockProduct &shape) {
  return saturatingMul(saturatingMul(saturatingMul(2, shape.m), shape.n), shape.k);
}

std::string checkExtents(const BlockProduct &shape) {
  constexpr int64_t kSmall = 64;
  if (std::min(shape.m, shape.n) <= kSmall)
    return "expected a result of more than " + std::to_string(kSmall) +
           " rows and columns for a kernel on warpgroups, found " + std::to_string(shape.m) +
           " x " + std::to_string(shape.n);
  if (shape.k == 0)
    return "expected sums of at least one term for a kernel on warpgroups, found none";
  return {};
}

bool isForWarpgroups(const BlockProduct &shape) {
  return shape.isNarrow && shape.isTiled && checkExtents(shape).empty();
}

ProductKernel kernelOf(ProductKernel fastest, const BlockProduct &shape) {
  if (fastest == ProductKernel::Stated)
    return fastest;
  if (!shape.isNarrow)
    return ProductKernel::Chain;
  return fastest == ProductKernel::Warpgroup && !isForWarpgroups(shape) ? ProductKernel::TensorCore
                                                                        : fastest;
}

ProductPart partOf(ProductKernel kernel, const BlockProduct &shape) {
  if (kernel == ProductKernel::Warpgroup)
    return {plan::kTileBlocks * plan::kTileRows, plan::kTileColumns, plan::kTileBlocks};
  int64_t least = std::min(shape.m, shape.n), edge = least >= 512 ? 128 : least >= 64 ? 64 : 32;
  return {edge, edge, 1};
}

double rateOf(ProductKernel kernel, double stated, const BlockProduct &shape) {
  if (kernel == ProductKernel::Stated)
    return stated;
  const Curve &curve = curveOf(kernel, shape);
  double k = static_cast<double>(std::max<int64_t>(shape.k, 1));
  return stated / kMeasuredOn * curve.most * k / (k + curve.half);
}

} // namespace stepc::cost
