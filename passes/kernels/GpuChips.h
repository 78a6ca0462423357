//===- GpuChips.h - NVIDIA's chips, by name ----------------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_GPUCHIPS_H
#define STEPC_PASSES_KERNELS_GPUCHIPS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace stepc {

/// A chip that machine code is made for.
struct GpuChip {
  std::string name; ///< "sm_90a"
  int64_t major = 0, minor = 0;
  bool isExact = false; ///< no later chip of its generation runs its code
};

/// The chip of a name; an error that lists the known ones.
llvm::Expected<GpuChip> gpuChip(llvm::StringRef name);

/// What a target of GPUs says behind its colon: "sm_80,sm_90a,chain,ptx".
struct GpuTarget {
  std::vector<std::string> chips;
  /// Whether products of 16-bit operands are tensor cores' ("tensorcore") or fused multiply-adds, as all
  /// others are ("chain").
  bool tensorCores;
  /// Whether PTX is there, too, from which a driver makes code for chips that have none ("ptx").
  bool ptx = false;
  /// Whether kernels say what they touch ("races"), of those that this machine runs.
  bool races = false;

  /// The chips as numbers, 90 of sm_90 and sm_90a; each once.
  std::vector<int64_t> numbers() const;
  /// Such a text, in one spelling: products are named where they are not what they are unless said.
  std::string text(bool tensorCoresUnlessSaid) const;
};
/// Of such a text, where products are tensor cores' or not unless it says so; each name once.
llvm::Expected<GpuTarget> parseGpuTarget(llvm::StringRef text, bool tensorCores);

/// Whether a chip of the plan (TargetShape.h) is GPUs: "cuda:sm_80,sm_90a".
bool isCuda(llvm::StringRef chip);
/// What such a chip says; an error where it was written by hand and does not fit.
llvm::Expected<GpuTarget> cudaTarget(llvm::StringRef chip);
/// Such a chip from what stands behind "cuda".
llvm::Expected<std::string> cudaChip(llvm::StringRef names);

} // namespace stepc

#endif
