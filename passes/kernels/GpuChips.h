//===- GpuChips.h - NVIDIA's chips, by name ----------------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_GPUCHIPS_H
#define STEPC_PASSES_KERNELS_GPUCHIPS_H

#include "runtime/plan/Kernel.h"

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

/// The limits of a chip for the blocks of a kernel. Source: CUDA C++ Programming Guide, table of technical
/// specifications per compute capability. Every GPU of the capability takes clusters of this size.
plan::BlockLimits limitsOf(const GpuChip &chip);

/// The chip of a name; an error that lists the known ones.
llvm::Expected<GpuChip> gpuChip(llvm::StringRef name);

/// What a target for GPUs says behind its colon: "sm_80,sm_90a,chain,ptx".
struct GpuTarget {
  std::vector<std::string> chips;
  /// Whether products of 16-bit operands run on tensor cores ("tensorcore"), or in fused multiply-adds as all
  /// others do ("chain").
  bool tensorCores;
  /// Whether the library also has PTX, from which a driver makes code for other chips ("ptx").
  bool ptx = false;
  /// Whether kernels announce what they touch ("races"); only for code that runs on this machine.
  bool races = false;

  /// The chips as numbers, each once: 90 for sm_90 and sm_90a.
  std::vector<int64_t> numbers() const;
  /// The text of the target in one spelling. It names the kind of products if that differs from
  /// `tensorCoresUnlessSaid`.
  std::string text(bool tensorCoresUnlessSaid) const;
};
/// Parses the text of a target; a chip that is named twice counts once. `tensorCores` holds if the text does
/// not name the kind of products.
llvm::Expected<GpuTarget> parseGpuTarget(llvm::StringRef text, bool tensorCores);

/// Whether a chip of the plan (TargetShape.h) stands for GPUs: "cuda:sm_80,sm_90a".
bool isCuda(llvm::StringRef chip);
/// The target of such a chip; an error if it was written by hand and does not fit.
llvm::Expected<GpuTarget> cudaTarget(llvm::StringRef chip);
/// The chip for a plan from the text behind "cuda".
llvm::Expected<std::string> cudaChip(llvm::StringRef names);

} // namespace stepc

#endif
