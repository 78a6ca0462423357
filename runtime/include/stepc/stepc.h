/*===- stepc.h - The C interface of a compiled optimizer step ------*- C -*-===*
 *
 * Every generated library exports one function, <name>_library(), which its generated header
 * declares. dlsym finds it under the fixed name stepc_library_table(), too. It returns this table
 * for the first target that the library was compiled for. `next` leads to the tables of its other
 * targets. Nothing else is visible, so many libraries live in one process. There is no global
 * mutable state: a process may have any number of instances, and of ranks.
 *
 * Life of an instance: create → bind_* → step … → destroy. The trainer owns the memory that it
 * binds. Functions return 0 or a stepc_status. After an error, last_error(instance) gives a message
 * that names parameter, rank and cause. Only one thread at a time may use an instance.
 *
 * Structs grow at their end. The caller sets a struct's struct_size to sizeof. A library reads and
 * writes no more of the struct than it knows. If it fills the struct, it sets struct_size to the
 * bytes that it filled. A struct_size below the size that the library knows is STEPC_ERROR_ABI.
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
  STEPC_ERROR_POISONED = 12, /* an earlier step failed half way; see half_stepped */
  STEPC_ERROR_HYPERPARAMETER = 13, /* a hyperparameter without default was never set */
  STEPC_ERROR_DEVICE = 14,         /* the device is missing, not the library's, or failed */
  STEPC_ERROR_GRAPH = 15,          /* a graph of the device cannot hold this, or still holds it */
  STEPC_ERROR_AGREEMENT = 16       /* ranks step with unequal hyperparameters or step counts */
} stepc_status;

typedef struct stepc_instance stepc_instance;

/* Runs task(arguments, first, last) over [0, count) in pieces, in any order and on any threads, and returns
 * when all pieces are done. Pieces are counted: a step fails with STEPC_ERROR_COUNTS if some item of a loop
 * has not run exactly once when the loop returns. */
typedef void (*stepc_task)(void *arguments, int64_t first, int64_t last);
typedef void (*stepc_parallel_for)(void *context, stepc_task task, void *arguments, int64_t count,
                                   int64_t grain);

/* Allocates memory that the device can use, for the workspace. `alignment` is a power of two. Returns null
 * if none is left, and `create` then fails with STEPC_ERROR_MEMORY. `create` and `destroy` call these two
 * functions, from the thread that calls them. */
typedef void *(*stepc_allocate)(void *context, int64_t bytes, int64_t alignment);
typedef void (*stepc_deallocate)(void *context, void *memory, int64_t bytes);

typedef enum stepc_device {
  STEPC_DEVICE_CPU = 0,
  STEPC_DEVICE_CUDA = 1 /* a GPU of NVIDIA's: docs/gpu-results.md says what ran there */
} stepc_device;

/* The memory in which bound data lies. A library for a CPU accepts host memory only. */
typedef enum stepc_memory { STEPC_MEMORY_HOST = 0, STEPC_MEMORY_DEVICE = 1 } stepc_memory;

/* Which tensor of a parameter a call means. A state is given by its number, from 0. Metric number i, from 0,
 * is given by STEPC_METRIC - i, and input number i by STEPC_INPUT + i. */
enum { STEPC_PARAMETER = -1, STEPC_GRADIENT = -2, STEPC_METRIC = -3, STEPC_INPUT = 1 << 20 };

typedef struct stepc_options {
  int32_t abi_version;              /* STEPC_ABI_VERSION */
  int32_t struct_size;              /* sizeof(stepc_options) */
  const stepc_transport *transport; /* null: a world of one rank. Copied. */
  int32_t device;                   /* stepc_device: must be the library's */
  int32_t device_ordinal;           /* which device of several; 0 on a CPU */
  /* The trainer's stream on the device, on which steps are enqueued. It must live from create to destroy.
   * It must be null on a CPU. */
  void *stream;
  int32_t threads; /* workers of the built-in pool, the caller included; 0: all cores */
  /* 1: create records the step as a graph of the device (a CUDA graph), and each step replays it with the
   * pointers that are bound by then. On a CPU this is STEPC_ERROR_GRAPH. 0: a step enqueues each command. */
  int32_t graph;
  stepc_parallel_for parallel_for; /* null: the built-in pool of std::threads */
  void *parallel_context;
  /* Allocate and free the workspace. Give both, or neither to use the library's own. Memory to which a peer
   * may still write after an abort is never given back (see STEPC_TRANSPORT_TAKES_BACK). */
  stepc_allocate allocate;
  stepc_deallocate deallocate;
  void *allocator_context;
  double timeout_seconds; /* of every wait; 0: 120 */
} stepc_options;

/* One parameter as this rank sees it. If the specification has a model block, the last parameter stands for
 * the model (`is_model`): it has the model's hyperparameters, step count and states, its local shapes are
 * [0]. A state of the model is one number, which must be equal on all ranks; they do not compare it. Strings
 * and global shapes live as long as the library, local shapes as long as the instance.
 * Local shapes are null for a null instance, and on ranks outside the parameter's mesh. For a flat range, if
 * another rank owns the tensor, and if a state stays with some blocks of a parameter, the local shape is the
 * number of elements, followed by ones. A scalar then has this number, too, although it has 0 axes. */
typedef struct stepc_parameter_info {
  int32_t struct_size;
  int32_t axes; /* of the global and local shapes */
  const char *name;
  const char *route; /* "Muon", or "Muon.1" …, or as named */
  const char *dtype, *gradient_dtype;
  const char *placements, *gradient_placements; /* "[S(0), R]"; those of states: state_info */
  const char *mesh;
  const int64_t *global_shape, *local_shape, *gradient_local_shape;
  int32_t states;   /* that exist: an f32 parameter has no master */
  int32_t member;   /* 0: this rank is outside the parameter's mesh */
  int32_t is_model; /* 1: the parameter stands for the specification's model */
  /* 1: the parameter stands for a model that may skip steps, and kernels of a GPU decide that: bind_steps
   * takes the device's memory alone */
  int32_t steps_on_device;
} stepc_parameter_info;

typedef struct stepc_state_info {
  int32_t struct_size;
  int32_t axes;
  const char *name, *dtype; /* "m", "f32" */
  const char *kind;         /* "full", "rows", "cols", "one" */
  /* "[S(0), R]". "[blocks, blocks]", with this word for each axis of the mesh, if the state stays with
   * blocks: it lies, whole, on the ranks that compute the parameter's blocks. Ranks that compute none have
   * none of it. shard_runs says which blocks are on this rank. */
  const char *placements;
  const int64_t *global_shape, *local_shape;
  double
      init; /* what its memory must have before the first step; any numbers if that step makes its value */
  int32_t master; /* 1: the full-precision copy of the parameter */
  int32_t reserved;
} stepc_state_info;

/* A metric of a parameter, or of the model: an f32 for each block. The shapes are those of a state of kind
 * "one": without axes for a single matrix, [layers] for a stack. */
typedef struct stepc_metric_info {
  int32_t struct_size;
  int32_t axes;
  const char *name;
  const int64_t *global_shape, *local_shape; /* as those of stepc_state_info */
  int64_t count; /* of the numbers that this rank has; 0 for a null instance */
} stepc_metric_info;

/* A run of elements. Elements [global, global + length) of the whole tensor, counted row-major, are
 * elements [local, local + length) of the shard. */
typedef struct stepc_run {
  int64_t global, local, length;
} stepc_run;

/* The mesh of a parameter, and how its matrices are counted. All pointers live as long as the library. */
typedef struct stepc_mesh_info {
  int32_t struct_size;
  int32_t axes;
  const char *name;
  const char *const *axis_names; /* [axes], outermost first */
  const int64_t *axis_sizes;     /* [axes] */
  const int64_t *ranks;          /* the job's global ranks, row-major over the axes */
  int64_t rank_count;
  int32_t batch_axes; /* the parameter's: leading axes that count matrices */
  int32_t flatten;    /* the first axis of its matrices' columns; 0: nothing is flattened */
  /* How the parameter's matrices are divided, as a manifest writes it. Empty if they are not divided.
   * Example: {"axis": "rows", "runs": [[[0, 4096]], …]}. With "specified": true the specification
   * divides them, whatever a manifest says. */
  const char *blocks;
  int32_t flatten_specified; /* 1: `flatten` is the specification's, whatever a manifest says */
  int32_t reserved;
} stepc_mesh_info;

/* What this rank did in the last step, or what the plan says that it does in every step. Sizes are in
 * bytes. */
typedef struct stepc_counters {
  int32_t struct_size;
  int32_t reserved;
  int64_t launches, chunks, exchanges, messages_sent, messages_received, bytes_sent, bytes_received;
} stepc_counters;

typedef struct stepc_library {
  int32_t abi_version; /* the library's; other versions have other fields after this one */
  int32_t struct_size;
  const char *name;
  const char *chip; /* "znver5;+avx,…": the cpu, and its features; or "cuda:sm_90a" */
  uint64_t plan_hash;
  const void *plan; /* the serialized plan */
  int64_t plan_bytes;
  int32_t device; /* stepc_device */
  /* STEPC_OK, or why this library cannot be used (STEPC_ERROR_PLAN: it is damaged). If it cannot be used,
   * `problem` is the message, the table has no plan, no ranks and no parameters, and `create` fails with
   * this status and message. */
  int32_t status;

  /* World. `ranks` lists the job's global ranks that take part, increasing. */
  int32_t (*world_size)(void);
  const int64_t *(*world_ranks)(void);
  /* Makes the instance of rank transport->rank. If the library has several steps for GPUs, takes the step
   * that this GPU runs best (`table_of`). Allocates the workspace, compares plan hashes with the other
   * ranks (STEPC_ERROR_PLAN if they differ), and opens the plan's communicators. On failure `error` (may be
   * null) receives the message, and the transport still belongs to the caller. On success the instance
   * destroys the transport. */
  int32_t (*create)(const stepc_options *options, stepc_instance **instance, char *error,
                    int64_t error_size);
  /* Returns STEPC_ERROR_GRAPH and destroys nothing as long as a graph that the trainer captured holds steps
   * of the instance. */
  int32_t (*destroy)(stepc_instance *instance);
  const char *(*last_error)(const stepc_instance *instance); /* valid until the next call */
  int64_t (*workspace_bytes)(void); /* of every rank; valid before create */

  /* Parameters, in the plan's order. For a null instance, what only a rank knows is left out. */
  int64_t (*parameter_count)(void);
  int32_t (*parameter_info)(const stepc_instance *, int64_t parameter, stepc_parameter_info *);
  int32_t (*state_info)(const stepc_instance *, int64_t parameter, int32_t state,
                        stepc_state_info *);
  /* The mesh on which the plan expects a parameter. Placements refer to it: the trainer's mesh must have
   * equal sizes, and equal ranks in this order. */
  int32_t (*mesh_info)(int64_t parameter, stepc_mesh_info *info);
  /* Which elements this rank's shard holds. `of` is STEPC_PARAMETER, STEPC_GRADIENT or the number of a
   * state. Writes the first `capacity` runs to `runs`, in the shard's order and each as long as possible.
   * Writes the number of all runs to `count`, which may be larger. It is 0 for an empty shard, and outside
   * the parameter's mesh. */
  int32_t (*shard_runs)(stepc_instance *, int64_t parameter, int32_t of, stepc_run *runs,
                        int64_t capacity, int64_t *count);
  /* Routes, the rule that each applies, and its hyperparameters. A default is NaN when the trainer must
   * give the value. If the route or the index does not exist, these functions return null, 0 or NaN. */
  int64_t (*route_count)(void);
  const char *(*route_name)(int64_t route);
  const char *(*route_rule)(int64_t route);
  int32_t (*hyperparameter_count)(int64_t route);
  const char *(*hyperparameter_name)(int64_t route, int32_t index);
  double (*hyperparameter_default)(int64_t route, int32_t index);

  /* Binds local shards (contiguous, row-major, naturally aligned), in the device's memory. `bytes` must be
   * the size of the shard. On a GPU, NVIDIA's driver is asked whether pointers to shards, step counts and
   * hyperparameters are the GPU's (or managed memory); a gradient is asked about only if it differs from
   * the one that is bound. Null is legal if the local shard is empty. A call that fails changes nothing. A
   * step fails with STEPC_ERROR_ARGUMENT if parameters, states or step counts share memory, or if a
   * gradient shares memory with one of them. */
  int32_t (*bind_parameter)(stepc_instance *, int64_t parameter, void *data, int64_t bytes);
  int32_t (*bind_state)(stepc_instance *, int64_t parameter, int32_t state, void *data,
                        int64_t bytes);
  /* Gradients may change every step. Null with bytes 0 means that the gradient is absent, or its shard
   * empty. A gradient stays bound until it is bound anew. */
  int32_t (*bind_gradient)(stepc_instance *, int64_t parameter, const void *data, int64_t bytes);
  /* Binds `count` gradients in one call, in the plan's order. The pointers are copied. Null means absent or
   * empty. */
  int32_t (*bind_gradients)(stepc_instance *, const void *const *data, int64_t count);
  /* Binds the number of steps that each parameter took: int64 [parameter_count], aligned to 8 bytes, in
   * `memory` (stepc_memory). A step reads and increments these counts, and refuses counts below 0 and
   * INT64_MAX. If step counts or hyperparameters lie in a device's memory, only kernels use them: the host
   * neither reads nor checks them. A library for a CPU accepts host memory only. A library whose model
   * skips steps on a GPU (steps_on_device) accepts the device's only. */
  int32_t (*bind_steps)(stepc_instance *, int64_t *steps, int32_t memory);
  /* Parameter groups: parameter p takes its hyperparameters from row groups[p] of `values` (float64
   * [group_count][stride], aligned to 8 bytes, in the order of the route's rule). Every step reads them
   * from `memory` (stepc_memory). `groups` is in host memory, and is copied. Without this call, or after a
   * call with null values, every parameter uses its route's defaults, which set_hyperparameter changes. */
  int32_t (*bind_hyperparameters)(stepc_instance *, const double *values, int64_t group_count,
                                  int64_t stride, const int32_t *groups, int32_t memory);
  int32_t (*set_hyperparameter)(stepc_instance *, int64_t route, const char *name, double value);

  /* One optimizer step: enqueue, and poll until it is done. If something is missing on this rank, the step
   * fails before anything is sent or written: repair it and call again, or tell the peers with `abort`. On
   * any later failure the transport is aborted and the instance is poisoned. half_stepped then says which
   * parameters or states may be changed (1 each, [parameter_count]). `recover` accepts that the trainer has
   * restored them. It fails if the aborted transport has peers: make a new instance. */
  int32_t (*step)(stepc_instance *);
  /* Enqueues a step on the options' stream, behind the work that is already there, and returns. What is
   * bound belongs to the step until the step is done. Only one step may be under way at a time. On a CPU
   * the step is done when this returns, with what `step` would return.
   *
   * If the trainer captures the stream as a CUDA graph, the step becomes part of the graph and is not
   * carried out. Each replay is a step. It uses the step counts and hyperparameters at the time of the
   * replay, which must lie in the device's memory. Otherwise, and with missing_grad = skip, this fails with
   * STEPC_ERROR_GRAPH. A replay uses the pointers of the last step, capture or refresh before it. All steps
   * of one graph have the same pointers. While the stream is captured no replay may be under way. If a
   * replay fails, `poll` says so. */
  int32_t (*enqueue)(stepc_instance *);
  /* Writes to `done` whether the step that was enqueued last is done (1) or under way (0). Never waits, but
   * lets the step go on and looks at its deadlines. Call it until it writes 1, or fails with what `step`
   * would return. */
  int32_t (*poll)(stepc_instance *, int32_t *done);
  int32_t (*half_stepped)(const stepc_instance *, uint8_t *flags, int64_t count);
  int32_t (*recover)(stepc_instance *);
  /* Aborts the transport and poisons the instance. Peers that wait for this rank then fail at once with
   * `reason`. */
  int32_t (*abort)(stepc_instance *, const char *reason);
  /* `executed` and `planned` may be null. */
  int32_t (*counters)(const stepc_instance *, stepc_counters *executed, stepc_counters *planned);

  /* Makes a world of `size` ranks in this process, whose ranks are threads that exchange by copying. Fills
   * `size` transports. The caller sets struct_size of the first one, which is also the distance in bytes
   * from one to the next. For tests and single-process runs. */
  int32_t (*in_process_world)(int32_t size, stepc_transport *transports);

  /* Checks what is bound as a step does, and brings it to the device, behind the work on the options'
   * stream. Later replays of the trainer's graphs use it. Without such graphs nothing changes. */
  int32_t (*refresh)(stepc_instance *);

  const char *
      target; /* the kind of target that this step is for: "cpu", "cuda", "emulated" or "interpret" */
  /* The table of this step for another target of the library, or null. Each GPU that was named is a target.
   * Steps of one library have the same parameters, routes and states in the same order, but plans of their
   * own. All ranks of a world must take the same step, or `create` fails with STEPC_ERROR_PLAN. Libraries
   * compiled before this field have a smaller struct_size. */
  const struct stepc_library *next;
  const char *problem; /* why the library cannot be used, as text; null if it can */
  /* The table of the step that an instance takes, with the step's chip, plan and workspace. `create` of a
   * step for GPUs takes the step for GPUs that was compiled for the instance's GPU. Returns null for a null
   * instance. */
  const struct stepc_library *(*table_of)(const stepc_instance *);

  /* Metrics: numbers that steps write for the trainer, in memory of the library. A parameter that does not
   * exist has none. */
  int64_t (*metric_count)(int64_t parameter);
  int32_t (*metric_info)(const stepc_instance *, int64_t parameter, int32_t metric,
                         stepc_metric_info *);
  /* Copies the numbers of a metric that this rank has, in the order of shard_runs, to `values`. `count` must
   * be that of metric_info. Each is what the last step that computed it has written: NaN before the first
   * one, and an old number if the parameter did not take part since. Never waits. On a GPU a step that is
   * under way may have written some of its numbers already; after `poll` has said that the step is done, all
   * are of that step. */
  int32_t (*metrics)(const stepc_instance *, int64_t parameter, int32_t metric, float *values,
                     int64_t count);

  /* Writes where a state is bound, and its bytes. Null and 0 if nothing is bound, or if this rank has none of
   * the state. */
  int32_t (*bound_state)(const stepc_instance *, int64_t parameter, int32_t state, void **data,
                         int64_t *bytes);
  /* Copies the states of another library's instance, `from` with the table `library`, to the memory that is
   * bound as the states of this instance. All ranks of this instance's world must call it, and bind their
   * states before. Parameters and states are found by their names. They may lie differently in the two
   * libraries, which may be of different worlds; a rank that had no part in the world before passes null for
   * both. A state that no rank has is left as it is bound: it begins anew. Step counts are the trainer's.
   *
   * Ranks tell each other what they have and need. If one has a problem, or if elements are missing, all
   * return its error, and nothing has changed. If the move itself fails, all ranks fail, their instances are
   * poisoned, and memory that is bound in them may be written until they are destroyed; `from` still has its
   * states. Bind other memory than the states of `from` have. Only a state of which this rank needs what it
   * has may keep its memory. On a GPU both instances are for GPUs, and the copies are behind the work on the
   * stream of this instance: other work that writes the states of `from` must be done. Returns when the
   * states have arrived. While they move a rank needs memory for what it sends and receives of one state, and
   * for a table of the runs of all ranks. */
  int32_t (*move_states)(stepc_instance *, const struct stepc_library *library,
                         stepc_instance *from);

  /* Inputs: tensors that the trainer gives for each step, and that steps only read. They lie as states of
   * their kind do. A parameter that does not exist has none. `init` of the info is what an input has that is
   * not given; NaN if it must be given. */
  int64_t (*input_count)(int64_t parameter);
  int32_t (*input_info)(const stepc_instance *, int64_t parameter, int32_t input,
                        stepc_state_info *);
  /* Binds the local shard of an input, as bind_gradient binds that of a gradient: it may change every step,
   * and stays bound until it is bound anew. Null with bytes 0 means that it is not given, or that its shard
   * is empty. A step fails with STEPC_ERROR_UNBOUND if an input that must be given is not. */
  int32_t (*bind_input)(stepc_instance *, int64_t parameter, int32_t input, const void *data,
                        int64_t bytes);
} stepc_library;

/* Returns the first of a library's tables whose shards lie in the memory of `device` (stepc_device), or
 * null if there is none. Steps for the targets emulated and interpret have their shards in a CPU's memory. */
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
