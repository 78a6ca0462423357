/*===- nccl.h - A transport over NCCL -------------------------------*- C -*-===*
 *
 * In libstepc_nccl.so, beside the generated libraries, for those that are for GPUs. It is linked
 * with neither CUDA nor NCCL: a transport looks for libcuda.so.1, and for NCCL where the process has
 * it (a trainer's own, PyTorch's), and else for libnccl.so.2, 2.27.3 or later.
 *
 *   stepc_nccl_id id;                    // rank 0 makes it, all others get it by any means
 *   if (rank == 0)
 *     stepc_nccl_unique_id(&id, error, sizeof error);
 *   MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
 *   stepc_transport transport = {.struct_size = sizeof transport};
 *   stepc_nccl_transport(&id, rank, size, gpu, 120, &transport, error, sizeof error);
 *   options.transport = &transport;      // library->create copies it
 *
 * Threads: the library calls the transport from the thread that calls the library, and `abort` and
 * `test` without a handle also from its own, which watches the deadlines.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_NCCL_H
#define STEPC_NCCL_H

#include "stepc/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NCCL's ncclUniqueId: where the ranks of one world meet, once. */
typedef struct stepc_nccl_id {
  char bytes[128];
} stepc_nccl_id;

/* Makes an id for a world. 0, or an error code of stepc.h with a message in `error` (may be null). */
int32_t stepc_nccl_unique_id(stepc_nccl_id *out, char *error, int64_t error_size);

/* Fills in the transport of rank `rank` of `size`, whose struct_size is set, on the GPU of that
 * number. Collective over the world's ranks, which pass the same id; returns when all are there, or
 * after `timeout_seconds` (0: 120) with an error. The same time bounds what NCCL takes to begin an
 * operation. 0, or an error code of stepc.h with a message in `error` (may be null).
 *
 * Errors of a peer reach the others by their own deadlines, or by NCCL where it notices them. */
int32_t stepc_nccl_transport(const stepc_nccl_id *id, int32_t rank, int32_t size,
                             int32_t device_ordinal, double timeout_seconds, stepc_transport *out,
                             char *error, int64_t error_size);

#ifdef __cplusplus
}
#endif
#endif
