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

/// Whether a chip of the plan (TargetShape.h) is GPUs: "cuda:sm_80,sm_90a".
bool isCuda(llvm::StringRef chip);
/// The names in it.
std::vector<std::string> gpuChips(llvm::StringRef chip);
/// Such a chip from what stands behind "cuda", each name once.
llvm::Expected<std::string> cudaChip(llvm::StringRef names);

} // namespace stepc

#endif
