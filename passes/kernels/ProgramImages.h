//===- ProgramImages.h - A program's images as constants --------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_PROGRAMIMAGES_H
#define STEPC_PASSES_KERNELS_PROGRAMIMAGES_H

#include "passes/kernels/KernelBuilder.h"
#include "stepc/kernel_abi.h"

#include <string>

namespace stepc::kernels {

/// Kernels for one chip, as a device loads them.
struct ProgramImage {
  std::string codeSymbol, chipSymbol; ///< of the constants that hold the code and the chip's name
  std::string chip;                   ///< "sm_90a"
  int64_t major = 0, minor = 0;
  stepc_image_kind kind = STEPC_IMAGE_OF_GENERATION;
  std::string code;
};

/// Adds the images at the insertion point of `b`, and the list of them, which ends with an image of zeros
/// (kernel_abi.h).
void embedImages(KernelBuilder &b, llvm::ArrayRef<ProgramImage> images);

} // namespace stepc::kernels

#endif
