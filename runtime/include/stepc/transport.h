/*===- transport.h - How bytes travel between ranks ----------------*- C -*-===*
 *
 * A transport is a table of functions that carries out groups of operations between the ranks of
 * one library's world. World ranks are 0 … size-1, in increasing order of the job's global ranks.
 *
 * Every wait in the library is a loop over `test` with a deadline, so no function of a transport
 * may wait for a peer: what needs the peers begins, and gives a handle.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_TRANSPORT_H
#define STEPC_TRANSPORT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEPC_TRANSPORT_VERSION 2

/* What an operation does. "Ranks" are those of its communicator, n of them. A library asks for the
 * last two in fast numerics only: all others move bytes and never change them. */
typedef enum stepc_operation_kind {
  STEPC_SEND = 0,       /* `bytes` from `send` to `peer` */
  STEPC_RECEIVE = 1,    /* `bytes` from `peer` to `receive`; unequal to what it sends: an error */
  STEPC_ALL_GATHER = 2, /* `bytes` from every rank's `send` to every rank's `receive`, which holds
                         * n × bytes, in the order of ranks. `send` may be its own part of that. */
  /* The elements of `send`, which holds n × bytes, are added over the ranks, in an order that is
   * the transport's; rank r receives part r, of `bytes`. */
  STEPC_REDUCE_SCATTER = 3,
  STEPC_ALL_REDUCE = 4 /* the same, where every rank receives all: send and receive hold `bytes` */
} stepc_operation_kind;

/* What reductions add. */
typedef enum stepc_element {
  STEPC_ELEMENT_NONE = 0, /* bytes: of the kinds that move */
  STEPC_ELEMENT_F32 = 1,
  STEPC_ELEMENT_BF16 = 2,
  STEPC_ELEMENT_F16 = 3,
  STEPC_ELEMENT_F64 = 4
} stepc_element;

typedef struct stepc_operation {
  int32_t kind;       /* stepc_operation_kind */
  int32_t peer;       /* send and receive: a rank of the communicator, never the caller itself */
  void *communicator; /* from open_communicator; null: the world */
  const void *send;   /* null where nothing is read */
  void *receive;      /* null where nothing is written */
  int64_t bytes;      /* > 0 */
  /* 0 … 2^31-1, equal on all ranks that take part, and of one communicator only. Messages of one
   * tag from one rank to another arrive in the order in which they were started: a rank may run a
   * step ahead. */
  int64_t tag;
  int32_t element; /* stepc_element */
  int32_t reserved;
} stepc_operation;

/* Operations that begin together: no rank's order among them matters. */
typedef struct stepc_operations {
  int32_t struct_size;    /* sizeof(stepc_operations) */
  int32_t operation_size; /* sizeof(stepc_operation): from one to the next */
  const stepc_operation *operations;
  int64_t count;
  /* The device's stream that the operations, of its memory, are enqueued on, behind the work that is
   * there. Null: they are of the host's memory and begin at once. */
  void *stream;
} stepc_operations;

/* Messages between two ranks that were carried out, and their bytes: a send whose buffer is free again,
 * a receive that has all its bytes; on a stream, what was enqueued. An all-gather of n ranks is n - 1
 * messages each way. */
typedef struct stepc_traffic {
  int64_t messages_sent, messages_received, bytes_sent, bytes_received;
} stepc_traffic;

/* What a transport promises. */
enum {
  /* After `abort` no buffer is touched any more. Without it the library keeps the memory of what
   * was in flight for good. */
  STEPC_TRANSPORT_TAKES_BACK = 1,
  /* It moves a device's memory on the device's streams, and the host's where a group names none: what
   * libraries for GPUs need, and others refuse. */
  STEPC_TRANSPORT_ON_DEVICE = 2,
  /* open_communicator wants all ranks of the world: those in no communicator pass no members. */
  STEPC_TRANSPORT_OPENS_TOGETHER = 4
};

typedef struct stepc_transport {
  int32_t version;     /* STEPC_TRANSPORT_VERSION */
  int32_t struct_size; /* sizeof(stepc_transport) */
  int32_t rank;        /* world rank of the caller */
  int32_t size;        /* world size */
  /* The kinds of operations that it has, equal on all ranks: 1 << stepc_operation_kind, added up. A
   * library of several ranks needs send and receive. Without all-gather it sends the messages. */
  int64_t kinds;
  int64_t traits; /* STEPC_TRANSPORT_TAKES_BACK … */
  void *context;  /* passed to every function */

  /* Begins all operations of a group and writes a handle. The group is valid during the call; the
   * library leaves buffers alone until the handle is done. On a stream there is no handle: the
   * operations are enqueued when this returns, and what follows on the stream waits for them. 0, or an
   * error code of stepc.h with a message for `error`: the library then calls `abort`, and keeps the
   * buffers as that says, for operations that were begun all the same. No function may throw. */
  int32_t (*start)(void *context, const stepc_operations *group, void **handle, char *error,
                   int64_t error_size);
  /* 1: done, the handle is gone; 0: not yet, and `error` may name the peers that it waits for
   * ("rank 3"), for the message of a timeout; < 0: an error code, negated, the handle is gone.
   * Without a handle, of a transport on a device: < 0 where operations on a stream have failed, or will
   * not end. The library asks this, and calls `abort`, also from another thread, at any time. */
  int32_t (*test)(void *context, void *handle, char *error, int64_t error_size);
  /* Gives up everything in flight, here and as far as possible on the peers, whose `test` then
   * returns an error that names this rank and `reason`. Later starts fail. Handles are gone. */
  void (*abort)(void *context, const char *reason);
  /* Called once, when the library instance is destroyed. May be null. */
  void (*destroy)(void *context);

  /* Makes a communicator of `count` world ranks, whose ranks in it are their places in `members`.
   * `create` of the library calls it on the members alone (but see STEPC_TRANSPORT_OPENS_TOGETHER), for
   * all communicators of the plan in one order, and each set of members once; then all operations of
   * these ranks' exchanges name it. Where
   * members have to meet, it writes a handle for `test`, and else null. An error as in `start`. Both
   * functions may be null where `kinds` has sends and receives alone: these then name ranks of the
   * world. */
  int32_t (*open_communicator)(void *context, const int32_t *members, int32_t count,
                               void **communicator, void **handle, char *error, int64_t error_size);
  /* Before `destroy`, on all members, in the order in which they were opened. */
  void (*close_communicator)(void *context, void *communicator);
  /* What it carried out since it was made, counted where that is done: the library compares what a step
   * adds to it with the plan, and refuses a step that differs. May be null: then what `test` said to be
   * done counts as carried out. */
  void (*traffic)(void *context, stepc_traffic *traffic);
} stepc_transport;

#ifdef __cplusplus
}
#endif
#endif
