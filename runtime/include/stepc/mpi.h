/*===- mpi.h - A transport over MPI ---------------------------------*- C -*-===*
 *
 * These functions are in libstepc_mpi.so, beside the generated libraries, which need no MPI.
 *
 *   MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
 *   stepc_transport transport = {.struct_size = sizeof transport};
 *   stepc_mpi_transport(MPI_COMM_WORLD, &transport, error, sizeof error);
 *   options.transport = &transport;      // library->create copies it
 *   ...
 *   library->destroy(instance);          // before MPI_Finalize
 *
 * Threads: the library calls the transport only from the thread that calls the library.
 * MPI_THREAD_FUNNELED is enough if that is the main thread, and if the trainer's other threads make
 * no MPI calls meanwhile. Otherwise MPI_THREAD_SERIALIZED (calls never overlap) or
 * MPI_THREAD_MULTIPLE is needed.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_MPI_H
#define STEPC_MPI_H

#include "stepc/transport.h"
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the transport of the calling rank. The caller sets its struct_size. This is collective over
 * `comm`, which must hold the library's world in the order of its ranks. `comm` is duplicated, so that the
 * trainer's own messages never mix with the library's. Returns 0, or an error code of stepc.h with a
 * message in `error` (may be null).
 *
 * After an abort the duplicates are never freed, and peers that wait learn of the abort by a small message.
 * MPI_Abort is never called. */
int32_t stepc_mpi_transport(MPI_Comm comm, stepc_transport *out, char *error, int64_t error_size);

/* Fills in a transport over all processes of the job, for programs that are compiled without MPI. If MPI is
 * not started yet, this starts it, and ends it with the transport. */
int32_t stepc_mpi_world(stepc_transport *out, char *error, int64_t error_size);

#ifdef __cplusplus
}
#endif
#endif
