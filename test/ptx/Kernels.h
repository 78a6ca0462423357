//===- Kernels.h - Kernels of products to run --------------------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_KERNELS_H
#define STEPC_TEST_PTX_KERNELS_H

#include "runtime/plan/ProductForm.h"
#include "test/ptx/Program.h"

#include <memory>

namespace stepc::ptx {

using Type = plan::DType; // bf16, f16 or f32

inline uint32_t bytesOf(Type type) { return type == Type::F32 ? 4 : 2; }

/// A kernel of passes/kernels/gpu/WarpgroupProduct.h, and what it computes.
struct ProductKernel {
  std::string name, text; ///< its PTX
  Program program;
  uint32_t sharedBytes = 0; ///< dynamic memory of a block
  plan::ProductForm form;   ///< results of f32 have no addend

  uint32_t cluster() const { return program.kernel.clusterBlocks; }
};

Kernel kernelCalled(const std::vector<Kernel> &parsed, const std::string &name);

/// The kernel of a file's text. `description` is a line of kernels.txt:
///   file=FILE entry=NAME shared=BYTES transpose_lhs=0|1 transpose_rhs=0|1 symmetric=0|1 type=bf16|f16
///   result=bf16|f16|f32
ProductKernel readKernel(const std::string &description, const std::string &text);

/// The kernels of the folder that STEPC_PTX_KERNELS names (a variable of the environment, or of the build), as its
/// kernels.txt lists them.
const std::vector<ProductKernel> &kernels();

} // namespace stepc::ptx

#endif
