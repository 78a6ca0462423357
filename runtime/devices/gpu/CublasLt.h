//===- CublasLt.h - What is used of NVIDIA's cuBLASLt ------------*- C++ -*-===//
//
// Types and functions of cuBLASLt (docs.nvidia.com/cuda/cublas). They are declared here, so that builds need
// no headers. The library is loaded only when an instance has products that it may compute.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_CUBLASLT_H
#define STEPC_RUNTIME_DEVICES_GPU_CUBLASLT_H

#include "runtime/devices/gpu/CudaDriver.h"

namespace stepc::runtime::cublaslt {

using Status = int; // cublasStatus_t; 0: success
using cuda::StreamHandle;
using Handle = struct HandleOpaque *;
using Operation = struct OperationOpaque *; // cublasLtMatmulDesc_t
using Layout = struct LayoutOpaque *;

inline constexpr int kFloat32 = 0, kFloat16 = 2, kBfloat16 = 14; // cudaDataType
inline constexpr int kCompute32 = 68;                            // CUBLAS_COMPUTE_32F
inline constexpr int kTransposed = 1;                            // CUBLAS_OP_T
inline constexpr int kTransposeA = 3, kTransposeB = 4;           // CUBLASLT_MATMUL_DESC_…
inline constexpr int kBatchCount = 5, kBatchStride = 6;          // CUBLASLT_MATRIX_LAYOUT_…
// CUBLASLT_ALGO_CONFIG_…: all are uint32_t, except the last two, which are uint16_t.
inline constexpr int kTile = 1, kSplitK = 2, kReductionScheme = 3, kSwizzling = 4,
                     kCustomOption = 5, kStages = 6, kInnerShape = 7, kClusterShape = 8;

struct Algorithm { // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct Checked { // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspaceSize;
  Status state;
  float wavesCount;
  int reserved[4];
};

/// The functions, by their names in cublasLt.h.
struct CublasLt {
  size_t (*cublasLtGetVersion)();
  const char *(*cublasLtGetStatusName)(Status);
  Status (*cublasLtCreate)(Handle *);
  Status (*cublasLtDestroy)(Handle);
  Status (*cublasLtMatrixLayoutCreate)(Layout *, int type, uint64_t rows, uint64_t cols,
                                       int64_t leading);
  Status (*cublasLtMatrixLayoutDestroy)(Layout);
  Status (*cublasLtMatrixLayoutSetAttribute)(Layout, int attribute, const void *, size_t bytes);
  Status (*cublasLtMatmulDescCreate)(Operation *, int compute, int scale);
  Status (*cublasLtMatmulDescDestroy)(Operation);
  Status (*cublasLtMatmulDescSetAttribute)(Operation, int attribute, const void *, size_t bytes);
  Status (*cublasLtMatmulAlgoInit)(Handle, int compute, int scale, int a, int b, int c, int d,
                                   int number, Algorithm *);
  Status (*cublasLtMatmulAlgoConfigSetAttribute)(Algorithm *, int attribute, const void *,
                                                 size_t bytes);
  Status (*cublasLtMatmulAlgoCheck)(Handle, Operation, Layout a, Layout b, Layout c, Layout d,
                                    const Algorithm *, Checked *);
  Status (*cublasLtMatmul)(Handle, Operation, const void *alpha, const void *a, Layout,
                           const void *b, Layout, const void *beta, const void *c, Layout, void *d,
                           Layout, const Algorithm *, void *workspace, size_t workspaceBytes,
                           StreamHandle);
};

/// cuBLASLt, found once per library: the one that the process has loaded, otherwise that of CUDA 13 or 12.
/// Null if there is none.
const CublasLt *cublasLt();

} // namespace stepc::runtime::cublaslt

#endif
