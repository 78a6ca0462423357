//===- NcclHeader.cpp - What is declared of NCCL, beside its own header ===//
//
// Compiled where nccl.h and cuda_runtime.h are installed (CMakeLists.txt): there is nothing to run.
//
//===----------------------------------------------------------------------===//
#include "runtime/transports/NcclLibrary.h"
#include "test/unit/runtime/Alike.h"

#include <nccl.h>

using namespace stepc::runtime;

namespace {

#define STEPC_FUNCTION(name)                                                                       \
  static_assert(IsAlike<decltype(nccl::Nccl::name), decltype(&::name)>::find(), #name)
STEPC_FUNCTION(ncclGetVersion);
STEPC_FUNCTION(ncclGetUniqueId);
STEPC_FUNCTION(ncclGetErrorString);
STEPC_FUNCTION(ncclGetLastError);
STEPC_FUNCTION(ncclCommInitRankConfig);
STEPC_FUNCTION(ncclCommSplit);
STEPC_FUNCTION(ncclCommFinalize);
STEPC_FUNCTION(ncclCommDestroy);
STEPC_FUNCTION(ncclCommAbort);
STEPC_FUNCTION(ncclCommGetAsyncError);
STEPC_FUNCTION(ncclGroupStart);
STEPC_FUNCTION(ncclGroupEnd);
STEPC_FUNCTION(ncclSend);
STEPC_FUNCTION(ncclRecv);
STEPC_FUNCTION(ncclAllGather);
STEPC_FUNCTION(ncclReduceScatter);
STEPC_FUNCTION(ncclAllReduce);

static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
static_assert(nccl::kInProgress == ncclInProgress && nccl::kSum == ncclSum &&
              nccl::kNoColor == NCCL_SPLIT_NOCOLOR);
static_assert(nccl::kBytes == ncclInt8 && nccl::kFloat16 == ncclFloat16 &&
              nccl::kBfloat16 == ncclBfloat16 && nccl::kFloat32 == ncclFloat32 &&
              nccl::kFloat64 == ncclFloat64);

#define STEPC_FIELD(name)                                                                          \
  static_assert(offsetof(nccl::Config, name) == offsetof(ncclConfig_t, name), #name)
STEPC_FIELD(size);
STEPC_FIELD(magic);
STEPC_FIELD(version);
STEPC_FIELD(blocking);
STEPC_FIELD(cgaClusterSize);
STEPC_FIELD(minCTAs);
STEPC_FIELD(maxCTAs);
STEPC_FIELD(netName);
STEPC_FIELD(splitShare);
static_assert(NCCL_CONFIG_UNDEF_INT == INT_MIN);

} // namespace
