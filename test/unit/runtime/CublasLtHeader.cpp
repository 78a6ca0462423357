//===- CublasLtHeader.cpp - What is declared of cuBLASLt, beside its header ===//
//
// Compiled where cublasLt.h and cuda_runtime.h are installed (CMakeLists.txt): there is nothing to run.
//
//===----------------------------------------------------------------------===//
#include "runtime/devices/gpu/CublasLt.h"
#include "test/unit/runtime/Alike.h"

#include <cublasLt.h>

using namespace stepc::runtime;

namespace {

#define STEPC_FUNCTION(name)                                                                       \
  static_assert(IsAlike<decltype(cublaslt::CublasLt::name), decltype(&::name)>::find(), #name)
STEPC_FUNCTION(cublasLtGetVersion);
STEPC_FUNCTION(cublasLtGetStatusName);
STEPC_FUNCTION(cublasLtCreate);
STEPC_FUNCTION(cublasLtDestroy);
STEPC_FUNCTION(cublasLtMatrixLayoutCreate);
STEPC_FUNCTION(cublasLtMatrixLayoutDestroy);
STEPC_FUNCTION(cublasLtMatrixLayoutSetAttribute);
STEPC_FUNCTION(cublasLtMatmulDescCreate);
STEPC_FUNCTION(cublasLtMatmulDescDestroy);
STEPC_FUNCTION(cublasLtMatmulDescSetAttribute);
STEPC_FUNCTION(cublasLtMatmulAlgoInit);
STEPC_FUNCTION(cublasLtMatmulAlgoConfigSetAttribute);
STEPC_FUNCTION(cublasLtMatmulAlgoCheck);
STEPC_FUNCTION(cublasLtMatmul);

static_assert(cublaslt::kFloat32 == CUDA_R_32F && cublaslt::kFloat16 == CUDA_R_16F &&
              cublaslt::kBfloat16 == CUDA_R_16BF && cublaslt::kCompute32 == CUBLAS_COMPUTE_32F &&
              cublaslt::kTransposed == CUBLAS_OP_T);
static_assert(cublaslt::kTransposeA == CUBLASLT_MATMUL_DESC_TRANSA &&
              cublaslt::kTransposeB == CUBLASLT_MATMUL_DESC_TRANSB &&
              cublaslt::kBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              cublaslt::kBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(cublaslt::kTile == CUBLASLT_ALGO_CONFIG_TILE_ID &&
              cublaslt::kSplitK == CUBLASLT_ALGO_CONFIG_SPLITK_NUM &&
              cublaslt::kReductionScheme == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME &&
              cublaslt::kSwizzling == CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING &&
              cublaslt::kCustomOption == CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION &&
              cublaslt::kStages == CUBLASLT_ALGO_CONFIG_STAGES_ID &&
              cublaslt::kInnerShape == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID &&
              cublaslt::kClusterShape == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
static_assert(CUBLASLT_REDUCTION_SCHEME_NONE == 0);
static_assert(sizeof(cublaslt::Algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(cublaslt::Checked) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cublaslt::Checked, workspaceSize) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(cublaslt::Checked, state) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, state));

} // namespace
