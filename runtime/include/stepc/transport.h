/*===- transport.h - How bytes travel between ranks ----------------*- C -*-===*
 *
 * A transport is a table of functions that moves bytes between the ranks of one
 * library's world. It never reduces, converts or pads. Ranks are world ranks:
 * 0 … size-1, in increasing order of the job's global ranks.
 *
 * Every wait in the library is a loop over `test` with a deadline, so a transport
 * must not block for long in any function but `create`-like ones of its own.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_TRANSPORT_H
#define STEPC_TRANSPORT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEPC_TRANSPORT_VERSION 1

/* One message of an exchange, to or from `peer` (never the caller itself). */
typedef struct stepc_message {
  int32_t peer;    /* world rank */
  int32_t is_send; /* 1: buffer is read; 0: buffer is written */
  void *buffer;
  int64_t bytes; /* > 0 */
  int64_t tag;   /* 0 … 2^31-1, equal on both sides. Messages of one tag from one rank to another
                  * arrive in the order in which they were started: a rank may run a step ahead. */
} stepc_message;

typedef struct stepc_transport {
  int32_t version; /* STEPC_TRANSPORT_VERSION */
  int32_t rank;    /* world rank of the caller */
  int32_t size;    /* world size */
  void *context;   /* passed to every function */

  /* Begins all messages as one group and writes a handle. Buffers stay untouched by the
   * library until the handle is done. 0, or an error code of stepc.h with a message for `error`:
   * the library then calls `abort`, and keeps the buffers as that says, for messages that were
   * begun all the same. No function may throw. */
  int32_t (*start)(void *context, const stepc_message *messages, int64_t count, void **handle,
                   char *error, int64_t error_size);
  /* 1: done, the handle is gone; 0: not yet, and `error` may name the peers that it waits for
   * ("rank 3"), for the message of a timeout; < 0: an error code, negated, the handle is gone. */
  int32_t (*test)(void *context, void *handle, char *error, int64_t error_size);
  /* Gives up everything in flight, here and as far as possible on the peers, whose `test` then
   * returns an error that names this rank and `reason`. Later starts fail. Handles are gone. A
   * buffer may still be touched by a transport that cannot take a message back: until `destroy`,
   * and for good when that had to leave it, the library keeps the memory. */
  void (*abort)(void *context, const char *reason);
  /* Called once, when the library instance is destroyed. May be null. */
  void (*destroy)(void *context);
} stepc_transport;

#ifdef __cplusplus
}
#endif
#endif
