/*===- stepc.h - The C interface of a compiled optimizer step ------*- C -*-===*
 *
 * Every generated library exports one function, <name>_library() (declared in its
 * generated header; also under the fixed name stepc_library_table() for dlsym), that
 * returns this table, of the first target that the library was compiled for; those of
 * its other targets follow by `next`. Nothing else is visible, so many libraries live in
 * one process. There is no global mutable state: any number of instances, and of ranks, per process.
 *
 * Life of an instance: create → bind_* → step … → destroy. The trainer owns the memory
 * that it binds. Functions return 0 or a stepc_status; last_error(instance) then gives a
 * message that names parameter, rank and cause. An instance is used by one thread at a time.
 *
 * Structs grow at their end. Whoever hands one over sets its struct_size to sizeof; a
 * library reads no more of it, and writes no more into it, and one that writes leaves in
 * struct_size how much of it it filled. Less than this header's: STEPC_ERROR_ABI.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_H
#define STEPC_H

#include "stepc/transport.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEPC_ABI_VERSION 3

typedef enum stepc_status {
  STEPC_OK = 0,
  STEPC_ERROR_ARGUMENT = 1,  /* a null or ill-formed argument, an index out of range */
  STEPC_ERROR_ABI = 2,       /* another ABI or transport version, or too small a struct_size */
  STEPC_ERROR_CHIP = 3,      /* this CPU lacks what the library was compiled for */
  STEPC_ERROR_WORLD = 4,     /* rank or size does not fit the plan */
  STEPC_ERROR_PLAN = 5,      /* ranks hold different libraries, or this one is damaged */
  STEPC_ERROR_UNBOUND = 6,   /* a pointer is missing; null is legal for empty shards only */
  STEPC_ERROR_GRADIENT = 7,  /* a gradient is absent and the route says error */
  STEPC_ERROR_TIMEOUT = 8,   /* a peer did not answer in time */
  STEPC_ERROR_TRANSPORT = 9, /* the transport failed, or a peer aborted */
  STEPC_ERROR_MEMORY = 10,   /* memory ran out: the workspace, or a message */
  STEPC_ERROR_COUNTS = 11,   /* what was executed differs from what was planned */
  STEPC_ERROR_POISONED = 12, /* an earlier step failed half way; see stepc_half_stepped */
  STEPC_ERROR_HYPERPARAMETER = 13, /* a hyperparameter without default was never set */
  STEPC_ERROR_DEVICE = 14,         /* the device is not there, not the library's, or failed */
  STEPC_ERROR_GRAPH = 15,          /* what a graph of the device cannot hold, or still holds */
  STEPC_ERROR_AGREEMENT = 16       /* ranks step with other hyperparameters or step counts */
} stepc_status;

typedef struct stepc_instance stepc_instance;

/* Runs task(arguments, first, last) over [0, count) in pieces, in any order and on any threads, and
 * returns when all are done. Pieces are counted: a step fails with STEPC_ERROR_COUNTS where some item
 * of a loop ran other than once by then. */
typedef void (*stepc_task)(void *arguments, int64_t first, int64_t last);
typedef void (*stepc_parallel_for)(void *context, stepc_task task, void *arguments, int64_t count,
                                   int64_t grain);

/* Memory that a device can use, for the workspace. `alignment` is a power of two. Null where there
 * is none left: STEPC_ERROR_MEMORY. Called in create and in destroy, from the thread that calls
 * these. */
typedef void *(*stepc_allocate)(void *context, int64_t bytes, int64_t alignment);
typedef void (*stepc_deallocate)(void *context, void *memory, int64_t bytes);

typedef enum stepc_device {
  STEPC_DEVICE_CPU = 0,
  STEPC_DEVICE_CUDA = 1 /* a GPU of NVIDIA's: docs/gpu-results.md says what ran there */
} stepc_device;

/* Where what is bound stands. A library for a CPU takes host memory alone. */
typedef enum stepc_memory { STEPC_MEMORY_HOST = 0, STEPC_MEMORY_DEVICE = 1 } stepc_memory;

/* What of a parameter is asked about; a state is named by its number, from 0. */
enum { STEPC_PARAMETER = -1, STEPC_GRADIENT = -2 };

typedef struct stepc_options {
  int32_t abi_version;              /* STEPC_ABI_VERSION */
  int32_t struct_size;              /* sizeof(stepc_options) */
  const stepc_transport *transport; /* null: a world of one rank. Copied. */
  int32_t device;                   /* stepc_device: the library's, or an error */
  int32_t device_ordinal;           /* which of several; 0 on a CPU */
  /* The device's stream that steps are enqueued on, the trainer's, from create to destroy. Null on
   * a CPU, or an error. */
  void *stream;
  int32_t threads; /* workers of the built-in pool, the caller included; 0: all cores */
  /* 1: create records the step as a graph of the device's (a CUDA graph), and each step replays it
   * with what is bound by then; STEPC_ERROR_GRAPH on a CPU. 0: a step enqueues each command. */
  int32_t graph;
  stepc_parallel_for parallel_for; /* null: the built-in pool of std::threads */
  void *parallel_context;
  /* Allocate and free the workspace, both or neither; null: the library's own. Memory to which a peer may
   * still write after an abort is never given back (see STEPC_TRANSPORT_TAKES_BACK). */
  stepc_allocate allocate;
  stepc_deallocate deallocate;
  void *allocator_context;
  double timeout_seconds; /* of every wait; 0: 120 */
} stepc_options;

/* One parameter as this rank sees it. Strings and global shapes live as long as the library, local
 * shapes as long as the instance (null for a null instance, and outside the parameter's mesh). Of a
 * flat range, and where another rank owns a tensor, the local shape is the number of elements, and
 * then ones; a scalar has that first number, too. */
typedef struct stepc_parameter_info {
  int32_t struct_size;
  int32_t axes; /* of the global and local shapes */
  const char *name;
  const char *route; /* "Muon", or "Muon.1" …, or as named */
  const char *dtype, *gradient_dtype;
  const char *placements, *gradient_placements; /* "[S(0), R]"; those of states: state_info */
  const char *mesh;
  const int64_t *global_shape, *local_shape, *gradient_local_shape;
  int32_t states; /* those that exist here (no master of an f32 parameter) */
  int32_t member; /* 0: this rank is outside the parameter's mesh */
} stepc_parameter_info;

typedef struct stepc_state_info {
  int32_t struct_size;
  int32_t axes;
  const char *name, *dtype; /* "m", "f32" */
  const char *kind;         /* "full", "rows", "cols", "one" */
  const char *placements;
  const int64_t *global_shape, *local_shape;
  double init;
  int32_t master; /* 1: the full-precision copy of the parameter */
  int32_t reserved;
} stepc_state_info;

/* `length` elements, from number `global` of the whole tensor on (row-major), stand at number
 * `local` of the shard and after. */
typedef struct stepc_run {
  int64_t global, local, length;
} stepc_run;

/* Where a parameter lies, and how it counts matrices. All of it lives as long as the library. */
typedef struct stepc_mesh_info {
  int32_t struct_size;
  int32_t axes;
  const char *name;
  const char *const *axis_names; /* [axes], outermost first */
  const int64_t *axis_sizes;     /* [axes] */
  const int64_t *ranks;          /* the job's global ranks, row-major over the axes */
  int64_t rank_count;
  int32_t batch_axes; /* the parameter's: leading axes that count matrices */
  int32_t
      flatten; /* the axis from which on all are the columns of its matrices; 0: nothing is flattened */
  /* How its matrices are divided, in the words of a manifest: {"axis": "rows", "runs": [[[0, 4096]], …]};
   * empty if they are not. With "specified": true they are the specification's, whatever a manifest
   * says. */
  const char *blocks;
  int32_t flatten_specified; /* 1: `flatten` is the specification's, whatever a manifest says */
  int32_t reserved;
} stepc_mesh_info;

/* What this rank did in the last step, and what the plan says it does in every step. Sizes in
 * bytes. */
typedef struct stepc_counters {
  int32_t struct_size;
  int32_t reserved;
  int64_t launches, chunks, exchanges, messages_sent, messages_received, bytes_sent, bytes_received;
} stepc_counters;

typedef struct stepc_library {
  int32_t
      abi_version; /* STEPC_ABI_VERSION of the library; another one has other fields behind it */
  int32_t struct_size;
  const char *name;
  const char *chip; /* "znver5;+avx,…": the cpu, and its features; or "cuda:sm_90a" */
  uint64_t plan_hash;
  const void *plan; /* the serialized plan */
  int64_t plan_bytes;
  int32_t device; /* stepc_device */
  /* STEPC_OK, or why this library cannot be used (STEPC_ERROR_PLAN: it is damaged). It then has a `problem`
   * and no plan, no ranks and no parameters, and `create` refuses with both. */
  int32_t status;

  /* World. `ranks` lists the job's global ranks that take part, increasing. */
  int32_t (*world_size)(void);
  const int64_t *(*world_ranks)(void);
  /* Makes rank transport->rank's instance, of the step that its GPU runs best where the library has
   * several (`table_of`); allocates the workspace; compares plan hashes with
   * the other ranks (STEPC_ERROR_PLAN); opens the plan's communicators. `error` (may be null)
   * receives the message on failure; the transport then still belongs to the caller, else the
   * instance destroys it. */
  int32_t (*create)(const stepc_options *options, stepc_instance **instance, char *error,
                    int64_t error_size);
  /* STEPC_ERROR_GRAPH, and nothing is destroyed, as long as a graph that the trainer captured holds
   * steps of the instance. */
  int32_t (*destroy)(stepc_instance *instance);
  const char *(*last_error)(const stepc_instance *instance); /* until the next call */
  int64_t (*workspace_bytes)(void);                          /* of every rank; before create, too */

  /* Parameters, in the plan's order. A null instance leaves out what only a rank knows. */
  int64_t (*parameter_count)(void);
  int32_t (*parameter_info)(const stepc_instance *, int64_t parameter, stepc_parameter_info *);
  int32_t (*state_info)(const stepc_instance *, int64_t parameter, int32_t state,
                        stepc_state_info *);
  /* The mesh that the plan expects a parameter on: equal sizes and equal ranks, in this order, are
   * what placements mean something by. */
  int32_t (*mesh_info)(int64_t parameter, stepc_mesh_info *info);
  /* Which elements this rank's shard holds: of the parameter (STEPC_PARAMETER), its gradient
   * (STEPC_GRADIENT) or a state (its number). Writes the first `capacity` runs, in the shard's
   * order and each as long as it can be, and in `count` how many there are; 0 for an empty shard,
   * and outside the parameter's mesh. */
  int32_t (*shard_runs)(stepc_instance *, int64_t parameter, int32_t of, stepc_run *runs,
                        int64_t capacity, int64_t *count);
  /* Routes, the rule that each applies, and its hyperparameters. A default is NaN when the trainer
   * must give the value. Null, 0 or NaN for what does not exist. */
  int64_t (*route_count)(void);
  const char *(*route_name)(int64_t route);
  const char *(*route_rule)(int64_t route);
  int32_t (*hyperparameter_count)(int64_t route);
  const char *(*hyperparameter_name)(int64_t route, int32_t index);
  double (*hyperparameter_default)(int64_t route, int32_t index);

  /* Binds local shards (contiguous, row-major, naturally aligned), in the device's memory. Bytes
   * are checked against the shard's; of pointers to shards, step counts and hyperparameters NVIDIA's
   * driver is asked whether they are the GPU's (or managed memory), and of gradients when they differ
   * from those that are bound. Null is legal where the local shard is empty. What is refused changes
   * nothing. A step refuses (STEPC_ERROR_ARGUMENT) parameters, states and step counts that share
   * memory, and a gradient that shares some with one of them. */
  int32_t (*bind_parameter)(stepc_instance *, int64_t parameter, void *data, int64_t bytes);
  int32_t (*bind_state)(stepc_instance *, int64_t parameter, int32_t state, void *data,
                        int64_t bytes);
  /* Gradients may change every step. Null with bytes 0: absent (or an empty shard). A gradient
   * bound once stays bound until it is bound anew. */
  int32_t (*bind_gradient)(stepc_instance *, int64_t parameter, const void *data, int64_t bytes);
  /* `count` pointers in the plan's order in one call, copied; null: absent or empty. */
  int32_t (*bind_gradients)(stepc_instance *, const void *const *data, int64_t count);
  /* The number of steps each parameter took; int64 [parameter_count], aligned to 8 bytes, read and
   * incremented by step, in `memory` (stepc_memory). A step refuses counts below 0 and INT64_MAX.
   * Numbers in a device's memory are its kernels' alone: the host reads and checks none, here and of
   * hyperparameters. Of a library for a CPU they are the host's. */
  int32_t (*bind_steps)(stepc_instance *, int64_t *steps, int32_t memory);
  /* Parameter groups: parameter p takes its hyperparameters from row groups[p] of `values`
   * (float64 [group_count][stride], aligned to 8 bytes, in the order of the route's rule), read in every
   * step from `memory` (stepc_memory); `groups` is the host's, and copied. Without this call (or after one
   * with null values) every parameter uses its route's defaults, which set_hyperparameter changes.
   */
  int32_t (*bind_hyperparameters)(stepc_instance *, const double *values, int64_t group_count,
                                  int64_t stride, const int32_t *groups, int32_t memory);
  int32_t (*set_hyperparameter)(stepc_instance *, int64_t route, const char *name, double value);

  /* One optimizer step: enqueue, and poll until it is done. What is missing on this rank is found
   * before anything is sent or written: repair it and call again, or tell the peers with `abort`.
   * On any later failure the transport is aborted and the instance poisoned: half_stepped tells
   * which parameters or states may be changed (1 each, [parameter_count]); `recover` accepts that
   * the trainer has restored them, and is refused where the aborted transport has peers (make a new
   * instance). */
  int32_t (*step)(stepc_instance *);
  /* Enqueues a step on the options' stream, behind the work that is there, and returns; what is
   * bound belongs to the step until it is done. One step is under way at a time. On a CPU it is
   * done when this returns, with what `step` would return.
   *
   * Where the trainer captures the stream as a CUDA graph the step becomes part of it and is not
   * carried out; each replay is a step, with the step counts and hyperparameters of its time, which
   * then stand in the device's memory (else STEPC_ERROR_GRAPH, as for missing_grad = skip). It
   * reads the pointers of the last step, capture or refresh before it; the steps of one graph
   * have the same. While the stream is captured no replay may be under way. What goes wrong in
   * one `poll` finds. */
  int32_t (*enqueue)(stepc_instance *);
  /* Whether the step that was enqueued last is done (1, into `done`) or under way (0). Never waits,
   * but lets the step go on and looks at its deadlines: call it until it says done, or fails with
   * what `step` would return. */
  int32_t (*poll)(stepc_instance *, int32_t *done);
  int32_t (*half_stepped)(const stepc_instance *, uint8_t *flags, int64_t count);
  int32_t (*recover)(stepc_instance *);
  /* Aborts the transport, so that peers that wait for this rank fail at once with `reason`, and
   * poisons the instance. */
  int32_t (*abort)(stepc_instance *, const char *reason);
  /* Either may be null. */
  int32_t (*counters)(const stepc_instance *, stepc_counters *executed, stepc_counters *planned);

  /* A world of `size` ranks in this process: threads that exchange by copying. Fills `size`
   * transports, with the struct_size of the first, which the caller sets, from one to the next. For
   * tests and single-process runs. */
  int32_t (*in_process_world)(int32_t size, stepc_transport *transports);

  /* Checks what is bound as a step does, and brings it to the device, behind the work on the options'
   * stream: replays of the trainer's graphs that come later read it. Where there are no such graphs
   * nothing changes. */
  int32_t (*refresh)(stepc_instance *);

  const char *
      target; /* the kind of target that this step is for: "cpu", "cuda", "emulated" or "interpret" */
  /* This step for another target of this library, or null. Each GPU that was named is a target. Steps of
   * one library have the same parameters, routes and states in the same order, but plans of their own:
   * all ranks of a world take the same one, else `create` refuses (STEPC_ERROR_PLAN). Libraries compiled
   * before this field have a smaller struct_size. */
  const struct stepc_library *next;
  const char *problem; /* what `status` says, as text; null where the library can be used */
  /* The table of the step that an instance takes, with its chip, plan and workspace: `create` of a step for
   * GPUs takes, of all steps of the library for GPUs, the one that was compiled for the instance's. Null for
   * a null instance. */
  const struct stepc_library *(*table_of)(const stepc_instance *);
} stepc_library;

/* The first of a library's tables whose shards stand in that kind of memory (stepc_device); null if
 * there is none. Steps for the targets emulated and interpret are a CPU's. */
static inline const stepc_library *stepc_library_for(const stepc_library *library, int32_t device) {
  enum { bytes_before_next = offsetof(stepc_library, next) };
  while (library && library->device != device)
    library = library->struct_size > bytes_before_next ? library->next : NULL;
  return library;
}

const stepc_library *stepc_library_table(void);

#ifdef __cplusplus
}
#endif
#endif
