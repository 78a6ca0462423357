//===- GpuChips.h - NVIDIA's chips, by name ----------------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_GPUCHIPS_H
#define STEPC_PASSES_KERNELS_GPUCHIPS_H

#include "runtime/plan/Kernel.h"
#include "runtime/plan/ProductKernel.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace stepc {

/// A chip for which machine code is made.
struct GpuChip {
  std::string name; ///< "sm_90a"
  int64_t major = 0, minor = 0;
  bool isExact = false; ///< no later chip of its generation runs its code
};

/// The limits of a chip for the GPU blocks of a kernel. Source: CUDA C++ Programming Guide, table of
/// technical specifications per compute capability. Every GPU of the capability takes clusters of this size.
plan::BlockLimits limitsOf(const GpuChip &chip);

/// Returns the chip of a name, or an error that lists the known chips.
llvm::Expected<GpuChip> gpuChip(llvm::StringRef name);

/// The chip for whose PTX the kernels of `chip` are written. It is the first of its generation, without
/// features that only one chip has, and no newer than sm_90. A driver for CUDA 12.0, the oldest that is
/// supported, knows it.
llvm::StringRef ptxChipOf(const GpuChip &chip);

/// The text of a target for a GPU after its colon, parsed: "sm_90a,chain,ptx".
struct GpuTarget {
  GpuChip chip;
  /// Whether products of 16-bit operands run on tensor cores ("tensorcore"), or in fused multiply-adds as all
  /// others do ("chain").
  bool tensorCores;
  /// Whether the program also has PTX, from which a driver makes code for later chips ("ptx").
  bool ptx = false;
  /// Whether kernels announce what they touch ("races"); only for code that runs on this machine.
  bool races = false;
  /// Whether waits for barriers in shared memory end with a trap after 2 seconds ("bounded"); for tests.
  bool bounded = false;

  /// The chip as a number: 90 for sm_90 and sm_90a.
  int64_t number() const { return 10 * chip.major + chip.minor; }
  /// Whether products may run on warpgroups (gpu/WarpgroupProduct.h), which sm_90a alone has. Later chips
  /// could not run such PTX, and races are not looked for in such kernels.
  bool hasWarpgroups() const { return tensorCores && chip.name == "sm_90a" && !ptx && !races; }
  /// The fastest kernels for products of 16-bit operands that libraries for this target have.
  plan::ProductKernel products() const {
    return hasWarpgroups() ? plan::ProductKernel::Warpgroup
           : tensorCores   ? plan::ProductKernel::TensorCore
                           : plan::ProductKernel::Chain;
  }
  /// The text of the target in its one normal spelling. It names the kind of products only if that differs
  /// from `tensorCoresUnlessSaid`.
  std::string text(bool tensorCoresUnlessSaid) const;
};
/// Parses the text of a target for one GPU. `tensorCores` is the default if the text does not name the kind
/// of products.
llvm::Expected<GpuTarget> parseGpuTarget(llvm::StringRef text, bool tensorCores);

/// Splits a target as users write it into targets of one chip each: "cuda:sm_80,sm_90a,chain" gives
/// "cuda:sm_80,chain" and "cuda:sm_90a,chain". A chip that is named twice counts once. If several chips have
/// the same PTX, only the first target says "ptx". The code for sm_90a is for this chip alone, so with "ptx"
/// there is also a target for sm_90, which has the PTX. Any other text is returned as it is, unchecked.
std::vector<std::string> targetsByChip(llvm::StringRef target);

/// Whether a chip of the plan (TargetShape.h) is a GPU: "cuda:sm_90a".
bool isCuda(llvm::StringRef chip);
/// Parses such a chip. Returns an error if the text, which may have been edited by hand, is not valid.
llvm::Expected<GpuTarget> cudaTarget(llvm::StringRef chip);
/// The error of a target that looks for races elsewhere than on the device `emulated`.
llvm::Error refuseRaces(llvm::StringRef target);
/// Returns the chip for a plan, from the text of a target after "cuda".
llvm::Expected<std::string> cudaChip(llvm::StringRef names);

} // namespace stepc

#endif
