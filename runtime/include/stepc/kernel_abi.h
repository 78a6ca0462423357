/*===- kernel_abi.h - Between generated code and the runtime -------*- C -*-===*
 *
 * A library has a program per target. A program is data (the plan with its commands,
 * runtime/plan/Plan.h) and kernels. The runtime walks the commands and calls the kernels through a
 * device (runtime/devices/Device.h); kernels call nothing of the runtime, but for those of the target
 * emulated. Both sides check STEPC_KERNEL_ABI_VERSION: the compiler against this header when it is
 * built, the runtime against the program's when it is opened.
 *
 * Hashes are FNV-1a of 64 bits (runtime/plan/Fnv1a.h), of a number's eight bytes from the lowest up. A
 * damaged library is refused by them when it is opened.
 *
 * A kernel is void kernel(void *const *arguments, int64_t first, int64_t last). Its items are
 *  - chunks: arguments[0] = rows, each a stepc_chunk and a word per operand that is no shards;
 *    arguments[1] = the workspace; arguments[2] = the stepc_parameter_records; then, of each
 *    operand that is shards, a list of pointers, one per parameter of the plan. A word is where the
 *    operand stands for this row, in bytes from the workspace's begin; of scalars, where the row of
 *    the chunk's parameter does; or the number of rows of a block. So one launch serves all groups.
 *    Chunks of parameters that the step skips (missing_grad = skip) are left out, by the device or
 *    by the kernel itself, which finds the flag in the record;
 *  - parameters: arguments[0] = rows, each the index of a record and a word per operand as above;
 *    arguments[1] = the workspace; arguments[2] = the stepc_parameter_records. Those that the step
 *    skips are left out likewise;
 *  - parameters whose steps are counted, on a device whose counts may stand in its own memory:
 *    arguments[0] = the records of parameters, not of further parts;
 *  - rows of a copy, of a device that does not copy by itself: arguments[0] = rows, each a
 *    plan::CopyRow (runtime/plan/Tables.h); arguments[1], [2] = what their offsets count from, in the
 *    workspace; arguments[3], [4] = the lists of shards that stand there instead, if any;
 *    arguments[5] = the records;
 *  - rows of a sum of contributions: arguments[0] = rows, each a plan::SumRow whose `list` is a word of
 *    these: from there on stand the bytes at which each contribution's elements begin; arguments[1],
 *    [2] = what these and targets count from, in the workspace; arguments[3] = the records;
 *  - items of computed blocks, of a product or reduction: item = slot · items + i; arguments are
 *    the address of the scratch, then those of its batches in the workspace; of a product behind them
 *    stepc_factors, so that products that differ in these alone share a kernel;
 *  - seals that messages get (of a start), or one item for all messages that came (of its await), on a
 *    device whose messages the host may not touch. arguments[0] = rows, each a stepc_seal_row: one of an
 *    await. [1] = the stepc_seal_terms. [2] = the weights of each column, a stepc_seal. [3] = the
 *    stepc_sealed_messages. [4] = the records. [5] = the seals of this step. An await also has [6] = a
 *    stepc_seal_report in the host's memory.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_KERNEL_ABI_H
#define STEPC_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEPC_KERNEL_ABI_VERSION 11

/* Same layout as plan::Chunk: 12 × int64. */
typedef struct stepc_chunk {
  int64_t parameter, block, slot, row, col, rows, cols, local, local_stride, staged, staged_stride,
      reserved;
} stepc_chunk;

/* Per parameter of the plan, what scalar stages read: 8 × 8 bytes. For divided matrices these are
 * the records of the first part; those of the other parts follow. rows and cols are the matrix
 * block's (as float64). So is numel if batch axes are declared or matrices divided; otherwise it is
 * the whole parameter's. */
typedef struct stepc_parameter_record {
  double rows, cols, numel;
  int64_t *steps_taken; /* before this one; all parts of a parameter have the same */
  const double *hyperparameters;
  int64_t active; /* 0: skipped in this step */
  int64_t reserved[2];
} stepc_parameter_record;

/* The factors of out = alpha * (lhs * rhs) + beta * addend; without an addend beta means nothing. They
 * stand in the place of an address among a kernel's arguments. */
typedef struct stepc_factors {
  float alpha, beta;
} stepc_factors;

/* A seal is four sums, modulo STEPC_SEAL_PRIME, of the step counts and hyperparameters of some
 * parameters, each times a weight (runtime/core/Agreement.h). A seal of zeros says that a rank knows
 * none. The last of the list stays so: it clears the places of messages that are about to come. */
#define STEPC_SEAL_PRIME 0xffffffffffffffc5u /* 2^64 - 59 */
typedef struct stepc_seal {
  uint64_t words[4];
} stepc_seal;
/* What a parameter adds: its weights times the sum, over column 0, which is its step count, and its `columns`
 * hyperparameters behind it, of the column's weights times the number's bits. */
typedef struct stepc_seal_term {
  int64_t parameter, columns;
  stepc_seal weights;
} stepc_seal_term;
/* Lists are [first, last). A seal that is not new was added up earlier in this step. The row of an await
 * has the terms of all seals, and uses neither `seal` nor `is_new` nor `start`. */
typedef struct stepc_seal_row {
  int64_t seal, is_new, first_term, last_term, first_message, last_message;
  stepc_seal start; /* of its sums */
} stepc_seal_row;
/* Where a message has its seal, and which of this rank's that is. */
typedef struct stepc_sealed_message {
  void *address;
  int64_t seal, peer, exchange;
} stepc_sealed_message;
/* The first message that came with another seal than this rank's. Behind the report stand the numbers
 * that this rank added up: the step count of each parameter of the plan, then `columns` hyperparameters
 * of each. */
typedef struct stepc_seal_report {
  int64_t is_there;            /* 1, written last */
  int64_t parameters, columns; /* written by the host */
  stepc_sealed_message message;
  stepc_seal own, theirs;
} stepc_seal_report;

typedef void (*stepc_kernel)(void *const *arguments, int64_t first, int64_t last);
typedef struct stepc_device_table stepc_device_table;

/* --- provided by the runtime --- */

/* The devices, in runtime/devices: a library is linked with those of its programs alone. */
extern const stepc_device_table stepc_device_cpu;
extern const stepc_device_table stepc_device_emulated;       /* a GPU's kernels, on this machine */
extern const stepc_device_table stepc_device_emulated_races; /* the same, which looks for races */
extern const stepc_device_table stepc_device_cuda;           /* NVIDIA's GPUs */
extern const stepc_device_table stepc_device_interpret; /* kernels as records, on this machine */
/* The `const stepc_library *` that <name>_library() returns, of the first program. Hidden, so that two
 * libraries in one process never answer for each other. */
const void *stepc_rt_library(void);

/* --- provided for kernels of the target emulated, where threads of a block wait (runtime/emulated) --- */

typedef struct stepc_emulated_block stepc_emulated_block;
/* What one thread of a block does; memory is the block's. */
typedef void (*stepc_emulated_thread)(stepc_emulated_block *, void *const *arguments, int64_t block,
                                      int64_t thread, void *memory);
/* Runs blocks [first, last), each of `threads` threads and `memory_bytes` of memory. The name is for
 * messages. */
void stepc_rt_emulate(stepc_emulated_thread thread, void *const *arguments, int64_t first,
                      int64_t last, int64_t threads, int64_t memory_bytes, const char *name);
/* Returns when all threads of the block are at the same place of the kernel's text. */
void stepc_rt_emulated_barrier(stepc_emulated_block *, int32_t place);
/* Returns the value of the lane whose number differs by these bits, when all 32 of the warp are there. */
int32_t stepc_rt_emulated_shuffle(stepc_emulated_block *, int32_t place, int32_t value,
                                  int32_t lanes);
/* Loads `count` matrices of 8 x 8 16-bit elements: the words that PTX's ldmatrix gives the lane. Lane i
 * brings the address of row i, of 16 bytes. All 32 lanes come. */
void stepc_rt_emulated_load_matrices(stepc_emulated_block *, int32_t place, const void *row,
                                     int32_t count, int32_t transposed, int32_t *words);
/* PTX's mma.sync.m16n8k16 of f16 (half) or bf16 into f32: 4 words of the left operand, 2 of the right,
 * and 4 numbers, which become the results. All 32 lanes come. */
void stepc_rt_emulated_multiply_matrices(stepc_emulated_block *, int32_t place, int32_t half,
                                         int32_t *words);
/* Copies 16 bytes or, if `bytes` is 0, writes 16 zeros. It is done at the latest when the thread has
 * waited for the copy's group. A thread's commit ends its group; a wait returns when at most the last
 * `groups` groups are under way. */
void stepc_rt_emulated_copy_async(stepc_emulated_block *, void *to, const void *from,
                                  int32_t bytes);
void stepc_rt_emulated_commit_group(stepc_emulated_block *);
void stepc_rt_emulated_wait_group(stepc_emulated_block *, int32_t groups);
/* Called before each load and store if the target asks for races. Returns where to load or store: the
 * address or, if the command does not declare the access, other memory. */
void *stepc_rt_emulated_access(void *address, int64_t bytes, int32_t writes, int64_t block,
                               int64_t thread);

/* --- defined by generated code --- */

typedef enum stepc_image_kind {
  STEPC_IMAGE_OF_GENERATION = 0, /* a cubin, which later minors of the major run, too */
  STEPC_IMAGE_OF_ONE = 1,        /* a cubin that no other minor runs */
  STEPC_IMAGE_PTX = 2,    /* text, of which a driver makes code for this chip and any later one */
  STEPC_IMAGE_RECORDS = 3 /* kernels as records (runtime/interpret), for the target interpret */
} stepc_image_kind;
/* All kernels of the plan for one chip of a GPU, or for the interpreter. */
typedef struct stepc_image {
  const char *chip;     /* "sm_90a" or "interpret"; null behind the last image */
  int64_t major, minor; /* 9, 0; zeros for the interpreter */
  int64_t kind;         /* a stepc_image_kind */
  const void *code;     /* a cubin, PTX that a zero ends, or records */
  int64_t bytes;
  uint64_t code_hash;    /* FNV-1a of the code: compared before a driver gets it */
  uint64_t numbers_hash; /* FNV-1a of major, minor, kind, bytes and code_hash */
} stepc_image;

/* What a library has for one target: all else that its code defines is local to its object. */
typedef struct stepc_program {
  int64_t abi_version; /* STEPC_KERNEL_ABI_VERSION; of another one nothing else is known */
  const char *target;  /* the kind of its target: "cpu", "cuda", "emulated" or "interpret" */
  const uint8_t *plan;
  int64_t plan_bytes;
  uint64_t plan_hash;    /* FNV-1a of the plan's bytes: compared before the plan is believed */
  uint64_t numbers_hash; /* FNV-1a of plan_bytes and plan_hash: compared before all others */
  const stepc_kernel *kernels;      /* in the order of the plan's; null in a program with images */
  const stepc_image *images;        /* for GPUs and the interpreter, else null */
  const stepc_device_table *device; /* what its kernels run on */
} stepc_program;

/* stepc_program_cpu, stepc_program_emulated, stepc_program_interpret, and of each GPU's chip one, as
 * stepc_program_cuda_sm_90a. */
#define STEPC_MOST_PROGRAMS 8
/* In the order that the targets were named in; null behind the last. The first is never null. */
extern const stepc_program *const stepc_programs[STEPC_MOST_PROGRAMS];

#ifdef __cplusplus
}
#endif
#endif
