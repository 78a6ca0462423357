/*===- nccl.h - A transport over NCCL -------------------------------*- C -*-===*
 *
 * These functions are in libstepc_nccl.so, beside the generated libraries that are for GPUs. It is
 * linked with neither CUDA nor NCCL: a transport loads libcuda.so.1. It uses the NCCL that the
 * process has (a trainer's own, PyTorch's), or else libnccl.so.2. NCCL must be 2.27.3 or later.
 *
 *   stepc_nccl_id id;                    // rank 0 makes it, all others get it by any means
 *   if (rank == 0)
 *     stepc_nccl_unique_id(&id, error, sizeof error);
 *   MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
 *   stepc_transport transport = {.struct_size = sizeof transport};
 *   stepc_nccl_transport(&id, rank, size, gpu, 120, &transport, error, sizeof error);
 *   options.transport = &transport;      // library->create copies it
 *
 * Threads: the library calls the transport from the thread that calls the library. A thread of the
 * library, which watches the deadlines, also calls `abort`, and `test` without a handle.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_NCCL_H
#define STEPC_NCCL_H

#include "stepc/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NCCL's ncclUniqueId, by which the ranks of one world find each other, once. */
typedef struct stepc_nccl_id {
  char bytes[128];
} stepc_nccl_id;

/* Makes an id for a world. Returns 0, or an error code of stepc.h with a message in `error` (may be null). */
int32_t stepc_nccl_unique_id(stepc_nccl_id *out, char *error, int64_t error_size);

/* Fills in the transport of rank `rank` of `size`, on GPU number `device_ordinal`. The caller sets its
 * struct_size. This is collective over the world's ranks, which pass the same id. It returns when all ranks
 * are there, or with an error after `timeout_seconds` (0: 120). The same time bounds how long NCCL may take
 * to begin an operation. Returns 0, or an error code of stepc.h with a message in `error` (may be null).
 *
 * If a peer fails, the other ranks notice by their own deadlines, or by NCCL if it reports the failure. */
int32_t stepc_nccl_transport(const stepc_nccl_id *id, int32_t rank, int32_t size,
                             int32_t device_ordinal, double timeout_seconds, stepc_transport *out,
                             char *error, int64_t error_size);

#ifdef __cplusplus
}
#endif
#endif
