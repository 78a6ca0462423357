//===- Kernels.h - Kernels of products to run --------------------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_KERNELS_H
#define STEPC_TEST_PTX_KERNELS_H

#include "test/ptx/Program.h"

#include <memory>

namespace stepc::ptx {

enum class Type { Bf16, F16, F32 };
inline uint32_t bytesOf(Type type) { return type == Type::F32 ? 4 : 2; }

/// A kernel of passes/kernels/gpu/WarpgroupProduct.h, and what it computes.
struct ProductKernel {
  std::string name, text; ///< its PTX
  Program program;
  uint32_t sharedBytes = 0;     ///< dynamic memory of a block
  bool isLhsTransposed = false; ///< its rows lie along m, not along k
  bool isRhsTransposed = false; ///< its rows lie along k, not along n
  bool isSymmetric = false;     ///< it computes half of the result and stores mirrored copies
  bool hasAddend = false, hasShift = false;
  bool hasHalfTiles = false; ///< of 128 columns
  Type in = Type::Bf16, out = Type::Bf16, addend = Type::Bf16;

  uint32_t cluster() const { return program.kernel.clusterBlocks; }
};

Kernel kernelCalled(const std::vector<Kernel> &parsed, const std::string &name);

/// The kernel of a file's text. `description` is a line of kernels.txt:
///   name=NAME file=FILE entry=NAME shared=BYTES lhs=k|m rhs=k|n symmetric=0|1 addend=0|1 shift=0|1 half=0|1 in=TYPE out=TYPE
ProductKernel readKernel(const std::string &description, const std::string &text);

/// The kernels of the folder that STEPC_PTX_KERNELS names (a variable of the environment, or of the build), as its
/// kernels.txt lists them. Empty without a folder.
const std::vector<ProductKernel> &kernels();

} // namespace stepc::ptx

#endif
