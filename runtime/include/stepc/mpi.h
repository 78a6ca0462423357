/*===- mpi.h - A transport over MPI ---------------------------------*- C -*-===*
 *
 * In libstepc_mpi.so, beside the generated libraries, which need no MPI themselves.
 *
 *   MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
 *   stepc_transport transport = {.struct_size = sizeof transport};
 *   stepc_mpi_transport(MPI_COMM_WORLD, &transport, error, sizeof error);
 *   options.transport = &transport;      // library->create copies it
 *   ...
 *   library->destroy(instance);          // before MPI_Finalize
 *
 * Threads: the library calls the transport from the thread that calls the library and
 * from no other. MPI_THREAD_FUNNELED does where that is the main thread and the trainer's
 * other threads make no MPI calls meanwhile; otherwise MPI_THREAD_SERIALIZED (calls
 * never overlap) or MPI_THREAD_MULTIPLE.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_MPI_H
#define STEPC_MPI_H

#include "stepc/transport.h"
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the transport of the calling rank, whose struct_size is set. Collective over `comm`,
 * which must hold the library's world in the order of its ranks, and which is duplicated: the
 * trainer's own messages never mix with the library's. 0, or an error code of stepc.h with a
 * message in `error` (may be null).
 *
 * After an abort the duplicates are never freed, and peers that wait learn of it by a small
 * message; MPI_Abort is never called. */
int32_t stepc_mpi_transport(MPI_Comm comm, stepc_transport *out, char *error, int64_t error_size);

/* A transport over all processes of the job, for programs that are compiled without MPI. It starts MPI
 * if nobody has, and then ends it with the transport. */
int32_t stepc_mpi_world(stepc_transport *out, char *error, int64_t error_size);

#ifdef __cplusplus
}
#endif
#endif
