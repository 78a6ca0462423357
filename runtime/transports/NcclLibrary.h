//===- NcclLibrary.h - What is used of NCCL ----------------------*- C++ -*-===//
//
// Types and functions of NVIDIA's NCCL (docs.nvidia.com/deeplearning/nccl). They are declared here, so that
// builds need no headers. The library is loaded when a transport is made.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_TRANSPORTS_NCCLLIBRARY_H
#define STEPC_RUNTIME_TRANSPORTS_NCCLLIBRARY_H

#include "runtime/devices/gpu/CudaDriver.h"

#include <climits>
#include <string>

namespace stepc::runtime::nccl {

using Result = int; // ncclResult_t; 0: success
using DataType = int;
using ReductionKind = int;
using CommunicatorHandle = struct CommunicatorOpaque *; // ncclComm_t
using cuda::StreamHandle;

inline constexpr Result kInProgress = 7;
inline constexpr DataType kBytes = 0, kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9;
inline constexpr ReductionKind kSum = 0;
inline constexpr int kNoColor = -1;

struct UniqueId {
  char internal[128];
};

/// ncclConfig_t as of NCCL 2.18, with that version in it. Later versions treat what they added as not given.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 21803;
  int blocking = INT_MIN; // INT_MIN or null: not given
  int cgaClusterSize = INT_MIN, minCTAs = INT_MIN, maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN;
};

/// The functions, by their names in nccl.h.
struct Nccl {
  Result (*ncclGetVersion)(int *version);
  Result (*ncclGetUniqueId)(UniqueId *);
  const char *(*ncclGetErrorString)(Result);
  const char *(*ncclGetLastError)(CommunicatorHandle);
  Result (*ncclCommInitRankConfig)(CommunicatorHandle *, int size, UniqueId, int rank, Config *);
  Result (*ncclCommSplit)(CommunicatorHandle, int color, int key, CommunicatorHandle *, Config *);
  Result (*ncclCommFinalize)(CommunicatorHandle);
  Result (*ncclCommDestroy)(CommunicatorHandle);
  Result (*ncclCommAbort)(CommunicatorHandle);
  Result (*ncclCommGetAsyncError)(CommunicatorHandle, Result *state);
  Result (*ncclGroupStart)();
  Result (*ncclGroupEnd)();
  Result (*ncclSend)(const void *, size_t count, DataType, int peer, CommunicatorHandle,
                     StreamHandle);
  Result (*ncclRecv)(void *, size_t count, DataType, int peer, CommunicatorHandle, StreamHandle);
  Result (*ncclAllGather)(const void *, void *, size_t sent, DataType, CommunicatorHandle,
                          StreamHandle);
  Result (*ncclReduceScatter)(const void *, void *, size_t received, DataType, ReductionKind,
                              CommunicatorHandle, StreamHandle);
  Result (*ncclAllReduce)(const void *, void *, size_t count, DataType, ReductionKind,
                          CommunicatorHandle, StreamHandle);
};

/// NCCL, loaded once per process. Null if it cannot be used; `problem` then says why.
const Nccl *nccl(std::string &problem);

/// "unhandled system error: socket …".
std::string describe(const Nccl &, Result);

} // namespace stepc::runtime::nccl

#endif
