/*===- transport.h - How bytes travel between ranks ----------------*- C -*-===*
 *
 * A transport is a table of functions that carries out groups of operations between the ranks of
 * one library's world. World ranks are 0 … size-1, in increasing order of the job's global ranks.
 *
 * Every wait in the library is a loop over `test` with a deadline. So no function of a transport may
 * wait for a peer: a function that needs the peers begins its work and returns a handle.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_TRANSPORT_H
#define STEPC_TRANSPORT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEPC_TRANSPORT_VERSION 2

/* What an operation does. "Ranks" are the n ranks of its communicator. All operations move bytes and never
 * change them, except the last two, which a library uses in fast numerics only. */
typedef enum stepc_operation_kind {
  STEPC_SEND = 0,    /* `bytes` from `send` to `peer` */
  STEPC_RECEIVE = 1, /* `bytes` from `peer` to `receive`; an error if the peer sends another size */
  STEPC_ALL_GATHER = 2, /* `bytes` from every rank's `send` to every rank's `receive`, which holds
                         * n × bytes, in the order of ranks. `send` may be its own part of that. */
  /* The elements of `send`, which holds n × bytes, are added over the ranks, in an order that the
   * transport chooses. Rank r receives part r of the sums, of `bytes`. */
  STEPC_REDUCE_SCATTER = 3,
  STEPC_ALL_REDUCE = 4 /* sums, of which every rank receives all: send and receive hold `bytes` */
} stepc_operation_kind;

/* The type of the elements that a reduction adds. */
typedef enum stepc_element {
  STEPC_ELEMENT_NONE = 0, /* bytes, for operations that only move them */
  STEPC_ELEMENT_F32 = 1,
  STEPC_ELEMENT_BF16 = 2,
  STEPC_ELEMENT_F16 = 3,
  STEPC_ELEMENT_F64 = 4
} stepc_element;

typedef struct stepc_operation {
  int32_t kind;       /* stepc_operation_kind */
  int32_t peer;       /* send and receive: a rank of the communicator, never the caller itself */
  void *communicator; /* from open_communicator; null: the world */
  const void *send;   /* null if nothing is read */
  void *receive;      /* null if nothing is written */
  int64_t bytes;      /* > 0 */
  /* 0 … 2^31-1. It is equal on all ranks that take part, and belongs to one communicator only. Messages
   * of one tag from one rank to another arrive in the order in which they were started, because a rank may
   * run a step ahead. */
  int64_t tag;
  int32_t element; /* stepc_element */
  int32_t reserved;
} stepc_operation;

/* Operations that begin together. A rank may list them in any order. */
typedef struct stepc_operations {
  int32_t struct_size;    /* sizeof(stepc_operations) */
  int32_t operation_size; /* sizeof(stepc_operation): bytes from one to the next */
  const stepc_operation *operations;
  int64_t count;
  /* The device's stream on which the operations are enqueued, behind the work that is already there. They
   * work on the device's memory. Null: they work on host memory and begin at once. */
  void *stream;
} stepc_operations;

/* Messages between two ranks that were carried out, and their bytes. A send counts when its buffer is free
 * again, a receive when all its bytes have arrived, and on a stream both count when they are enqueued. An
 * all-gather of n ranks counts as n - 1 messages each way. */
typedef struct stepc_traffic {
  int64_t messages_sent, messages_received, bytes_sent, bytes_received;
} stepc_traffic;

/* What a transport promises. */
enum {
  /* After `abort` no buffer is touched any more. Without this trait the library never frees the memory of
   * operations that were in flight. */
  STEPC_TRANSPORT_TAKES_BACK = 1,
  /* The transport moves a device's memory on the device's streams, and host memory for groups without a
   * stream. Libraries for GPUs need this, and all others refuse it. */
  STEPC_TRANSPORT_ON_DEVICE = 2,
  /* All ranks of the world must call open_communicator together. Ranks that are in no communicator pass no
   * members. */
  STEPC_TRANSPORT_OPENS_TOGETHER = 4
};

typedef struct stepc_transport {
  int32_t version;     /* STEPC_TRANSPORT_VERSION */
  int32_t struct_size; /* sizeof(stepc_transport) */
  int32_t rank;        /* world rank of the caller */
  int32_t size;        /* world size */
  /* The kinds of operations that the transport has, equal on all ranks: 1 << stepc_operation_kind, added
   * up. A library of several ranks needs send and receive. If all-gather is missing, the library sends
   * messages instead. */
  int64_t kinds;
  int64_t traits; /* STEPC_TRANSPORT_TAKES_BACK … */
  void *context;  /* passed to every function */

  /* Begins all operations of a group and writes a handle. The group is valid during the call. The library
   * leaves buffers alone until the handle is done. On a stream there is no handle: the operations are
   * enqueued when this returns, and later work on the stream waits for them. Returns 0, or an error code of
   * stepc.h with a message in `error`. After an error the library calls `abort`, and keeps the buffers
   * unless STEPC_TRANSPORT_TAKES_BACK is set, because operations may have begun. No function may throw. */
  int32_t (*start)(void *context, const stepc_operations *group, void **handle, char *error,
                   int64_t error_size);
  /* Returns 1 if the operations are done; the handle is then gone. Returns 0 if they are not; `error` may
   * then name the peers that they wait for ("rank 3"), for the message of a timeout. Returns a negated
   * error code if they failed; the handle is then gone. Without a handle, for a transport on a device,
   * returns a negated error code if operations on a stream have failed or will not end. The library may
   * make this call without a handle, and call `abort`, from another thread at any time. */
  int32_t (*test)(void *context, void *handle, char *error, int64_t error_size);
  /* Gives up all operations in flight, here and as far as possible on the peers. `test` on a peer then
   * returns an error that names this rank and `reason`. Later starts fail. All handles are gone. */
  void (*abort)(void *context, const char *reason);
  /* Called once, when the library instance is destroyed. May be null. */
  void (*destroy)(void *context);

  /* Makes a communicator of `count` world ranks. A rank's number in the communicator is its place in
   * `members`. `create` of the library calls this on the members only (but see
   * STEPC_TRANSPORT_OPENS_TOGETHER), for all communicators of the plan in one order, and once for each set
   * of members. All operations of these ranks' exchanges then name the communicator. If members have to
   * meet, the function writes a handle for `test`, otherwise null. Errors are as in `start`. This function
   * and close_communicator may be null if `kinds` has only sends and receives, which then name ranks of the
   * world. */
  int32_t (*open_communicator)(void *context, const int32_t *members, int32_t count,
                               void **communicator, void **handle, char *error, int64_t error_size);
  /* Called before `destroy`, on all members, in the order in which communicators were opened. */
  void (*close_communicator)(void *context, void *communicator);
  /* What the transport has carried out since it was made, counted where it is carried out. The library
   * compares what a step adds with the plan, and refuses a step that differs. May be null: operations that
   * `test` says are done then count as carried out. */
  void (*traffic)(void *context, stepc_traffic *traffic);
} stepc_transport;

#ifdef __cplusplus
}
#endif
#endif
