/*===- kernel_abi.h - Between generated code and the runtime -------*- C -*-===*
 *
 * The compiler emits calls to the functions below and the definitions that the runtime
 * expects of a program. Both sides check STEPC_KERNEL_ABI_VERSION: the compiler against
 * this header when it is built, the runtime against the program's when it is opened.
 *
 * A kernel is void kernel(void *const *arguments, int64_t first, int64_t last). Its items are
 *  - chunks of a table (ShardChunks, BlockChunks): arguments[0] = stepc_chunk rows; the runtime
 *    leaves out those of parameters that the step skips (missing_grad = skip);
 *  - parameters of a group (scalar stages);
 *  - tiles of computed blocks: item = slot · tiles_per_block + tile.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_KERNEL_ABI_H
#define STEPC_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEPC_KERNEL_ABI_VERSION 2

/* Same layout as plan::Chunk: 12 × int64. */
typedef struct stepc_chunk {
  int64_t parameter, block, slot, row, col, rows, cols, local, local_stride, staged, staged_stride,
      reserved;
} stepc_chunk;

/* Per parameter of the plan, what scalar stages read: 8 × 8 bytes. rows and cols are the matrix
 * block's (as float64), numel too where batch axes are declared and else the whole parameter's;
 * step is the number of this step, from 1. */
typedef struct stepc_parameter_record {
  double rows, cols, numel, step;
  const double *hyperparameters;
  int64_t active; /* 0: skipped in this step */
  int64_t reserved[2];
} stepc_parameter_record;

typedef struct stepc_context stepc_context;
typedef void (*stepc_kernel)(void *const *arguments, int64_t first, int64_t last);

/* --- provided by the runtime; called by the program's step function, in program order --- */

/* Base of the workspace (64-byte aligned). */
void *stepc_rt_arena(stepc_context *);
/* stepc_chunk rows of a table on this rank. */
const void *stepc_rt_chunks(stepc_context *, int64_t table);
/* Pointer tables indexed by the plan's parameter: void*[parameters]. */
const void *stepc_rt_parameters(stepc_context *);
const void *stepc_rt_gradients(stepc_context *);
const void *stepc_rt_states(stepc_context *, int64_t state); /* of the rule's states, by index */
/* stepc_parameter_record[parameters]. */
const void *stepc_rt_records(stepc_context *);
/* int64[count]: the plan's indices of a group's parameters. */
const void *stepc_rt_group_parameters(stepc_context *, int64_t group);

/* Runs a kernel over all rows of a chunk table. */
void stepc_rt_launch_chunks(stepc_context *, stepc_kernel, void *const *arguments, int64_t table);
/* Runs a kernel over the parameters of a group (items 0 … count-1). */
void stepc_rt_launch_group(stepc_context *, stepc_kernel, void *const *arguments, int64_t group);
/* Runs a kernel over computed blocks × items of a BlockChunks table. */
void stepc_rt_launch_blocks(stepc_context *, stepc_kernel, void *const *arguments, int64_t table,
                            int64_t items_per_block);
/* Moves a Copy table's rows between a buffer and a buffer (offset into the arena); for
 * shards at rest on one side that side is the bound shards of `state`. */
void stepc_rt_copy(stepc_context *, int64_t table, void *from, void *to, int64_t state);

/* Begins exchange `order` with `count` Message tables; sends[i], receives[i] are the offsets of
 * their buffers in the workspace, in bytes. Own parts are copied. A second start with the same
 * order in one step is an error. */
void stepc_rt_exchange_start(stepc_context *, int64_t order, int64_t count, const int64_t *tables,
                             const int64_t *sends, const int64_t *receives);
void stepc_rt_exchange_wait(stepc_context *, int64_t order);
/* 1 when an earlier call of this step failed (the program then returns at once; the calls
 * above do nothing from then on). */
int32_t stepc_rt_failed(stepc_context *);
/* The `const stepc_library *` that <name>_library() returns. Hidden, so that two libraries in one
 * process never answer for each other. */
const void *stepc_rt_library(void);

/* --- defined by the program --- */

extern const int64_t stepc_program_abi_version;
extern const uint8_t stepc_program_plan[];
extern const int64_t stepc_program_plan_bytes;
void stepc_program_step(stepc_context *);

#ifdef __cplusplus
}
#endif
#endif
