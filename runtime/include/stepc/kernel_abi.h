/*===- kernel_abi.h - Between generated code and the runtime -------*- C -*-===*
 *
 * A library has a program per target. A program is data (the plan with its commands,
 * runtime/plan/Plan.h) and kernels. The runtime walks the commands and calls the kernels through a
 * device (runtime/devices/Device.h). Kernels call nothing of the runtime, except for reductions, and
 * except those of the target emulated. Both sides check STEPC_KERNEL_ABI_VERSION: the compiler checks
 * this header when it is built, the runtime checks the program when it is opened.
 *
 * Hashes are FNV-1a of 64 bits (runtime/plan/Fnv1a.h). A number is hashed as eight bytes, the lowest
 * first. By the hashes, a damaged library is refused when it is opened.
 *
 * A kernel is void kernel(void *const *arguments, int64_t first, int64_t last). Its items are
 *  - chunks: arguments[0] = rows, each a stepc_chunk and a word per operand that is not shards;
 *    arguments[1] = the workspace; arguments[2] = the stepc_parameter_records; then, for each operand
 *    that is shards, a list of pointers, one per parameter of the plan. A word is the byte of the
 *    workspace at which the operand begins for this row. For scalars it is the byte at which the
 *    scalars of the chunk's parameter begin. So one launch serves all groups. A kernel that adds up
 *    parts of lines does so for a row and the `more` rows behind it, in which `part` is -1 and which
 *    are no items of their own (plan::Chunk). The device leaves out
 *    chunks of parameters that the step skips (missing_grad = skip), or the kernel does, which finds
 *    the flag in the record;
 *  - parameters: arguments[0] = rows, each the index of a record and a word per operand as above: the
 *    scalars that are written, then numbers of the model that are read; arguments[1] = the workspace;
 *    arguments[2] = the stepc_parameter_records. Parameters that the step skips are left out as above;
 *  - records, on a device that may have step counts in its own memory. The kernel that counts a step has
 *    arguments[0] = the stepc_parameter_records. It counts for parameters that the step did not skip, and
 *    sets `active` of all records to 1, for the next replay of a graph. The kernel that skips a step has
 *    arguments[1] = the address of an f32. If this is not 0, it sets `active` of all records to 0;
 *  - rows of a copy, on a device that does not copy by itself: arguments[0] = rows, each a
 *    plan::CopyRow (runtime/plan/Tables.h), in words of 8 bytes if elements are wider; arguments[1],
 *    [2] = the addresses in the workspace from which source and target offsets count; arguments[3],
 *    [4] = the lists of shards to use instead, if any; arguments[5] = the records;
 *  - rows of a sum of contributions: arguments[0] = rows, each a plan::SumRow. Its `list` is the index
 *    of a word, counted from arguments[0]: from that word on stand the bytes at which the elements of
 *    each contribution begin. arguments[1], [2] = the addresses in the workspace from which these
 *    bytes and the targets count; arguments[3] = the records;
 *  - parts of a number of the model, as one item: arguments[0] = words: how many parts there are,
 *    then for each the index of a record, and the byte of the workspace at which the part begins;
 *    arguments[1] = the workspace; arguments[2] = where the sum goes; arguments[3] = the records. The
 *    kernel leaves out parts of parameters that the step skips;
 *  - items of computed blocks, of a product or a function of blocks: item = slot · items + i.
 *    arguments are the address of the scratch, then the addresses of the command's batches in the
 *    workspace. A product then has stepc_factors, so that products that differ only in these share a
 *    kernel. A product that adds a shift has stepc_shift behind them;
 *  - lists of tiles (runtime/plan/TileLists.h): an item is a list, which a cluster of a GPU's blocks
 *    works off. arguments[0] = stepc_product_problems; [1] = stepc_product_tiles, list by list; [2] = a
 *    stepc_tile_list for each list. One launch serves products of all shapes. On NVIDIA's
 *    GPUs, its threads wait for the kernels before it (griddepcontrol.wait) before they touch the GPU's
 *    memory. So a device may begin it while these kernels end;
 *  - seals: the kernel of a start puts seals on the messages that it sends, an item per seal. The
 *    kernel of an await compares the seals of all messages that came, as one item. Only devices whose
 *    messages the host may not touch have these kernels. arguments[0] = rows, each a stepc_seal_row;
 *    an await has one row. [1] = the stepc_seal_terms. [2] = the weights of each column, a
 *    stepc_seal. [3] = the stepc_sealed_messages. [4] = the records. [5] = the seals of this step. An
 *    await also has [6] = a stepc_seal_report in the host's memory.
 *===----------------------------------------------------------------------===*/
#ifndef STEPC_KERNEL_ABI_H
#define STEPC_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEPC_KERNEL_ABI_VERSION 22

/* The layout is that of plan::Chunk: 18 × int64. */
typedef struct stepc_chunk {
  int64_t parameter, block, row, col, rows, cols, local, local_stride, staged, staged_stride,
      per_row, per_row_stride, per_column, per_block, part, more, element, element_stride;
} stepc_chunk;

/* What kernels read of one parameter of the plan: 8 × 8 bytes. For divided matrices this is the record of
 * the first part, and the records of the other parts follow. rows and cols are those of the block (as
 * float64). numel is the number of the block's elements if batch axes are declared or matrices are divided,
 * otherwise of the whole parameter. key is a hash of the parameter's name, by which parameters
 * have different random numbers (runtime/random/Philox.h). */
typedef struct stepc_parameter_record {
  double rows, cols, numel;
  int64_t *steps_taken; /* before this step; one count for all parts of a parameter */
  const double *hyperparameters;
  int64_t active; /* 0: skipped in this step */
  int64_t counts; /* 1: the parameter's steps are counted through this record; 0: through another */
  int64_t key;
} stepc_parameter_record;

/* The factors of out = alpha * (lhs * rhs) + beta * addend. Without an addend beta is not used. Among a
 * kernel's arguments these 8 bytes stand in the place of an address. */
typedef struct stepc_factors {
  float alpha, beta;
} stepc_factors;

/* The number that a product adds to its diagonal. It also stands in the place of an address. */
typedef struct stepc_shift {
  float shift, reserved;
} stepc_shift;

/* How the matrices of an operand lie in memory, in the device's own form: on NVIDIA's GPUs a CUtensorMap. */
typedef struct stepc_tensor_map {
  uint64_t words[16];
} stepc_tensor_map;
/* A product over a stack of matrices, for launches that serve several: 5 x 128 bytes, at a multiple of 128.
 * Where a tile says so, out = alpha * (lhs * rhs) + beta * addend, then `shift` is added on the diagonal. */
typedef struct stepc_product_problem {
  stepc_tensor_map lhs, rhs, out, addend;
  float alpha, beta, shift;
  uint32_t reserved[29];
} stepc_product_problem;
#define STEPC_TILE_HAS_ADDEND 1
#define STEPC_TILE_HAS_SHIFT 2
/* A tile of a result. It has `columns` columns, 128 or 256, and 128 rows for each block of the cluster.
 * `stores` has 8 bits for each run of 64 rows: one per run of 64 columns that says whether to store this
 * part, and then one per run that says whether to store it transposed at the mirrored place. A product
 * takes `steps` times 64 steps of k, which are at least 5; operands are zero past their ends. */
typedef struct stepc_product_tile {
  int32_t problem, matrix, row, column, steps;
  uint32_t stores;
  int32_t columns, options;
} stepc_product_tile;

/* The tiles [first, last) of a launch's tiles, and how many problems the launch has: 16 bytes, which a GPU's
 * thread reads at once. */
typedef struct stepc_tile_list {
  int32_t first, last, problems, reserved;
} stepc_tile_list;

/* A seal is four sums, modulo STEPC_SEAL_PRIME, of the step counts and hyperparameters of some parameters,
 * each times a weight (runtime/core/Agreement.h). A seal of zeros says that a rank knows no numbers. The
 * last seal of the list stays zero: it clears the seals of messages that are about to arrive. */
#define STEPC_SEAL_PRIME 0xffffffffffffffc5u /* 2^64 - 59 */
typedef struct stepc_seal {
  uint64_t words[4];
} stepc_seal;
/* What a parameter adds to a seal: the parameter's weights, times a sum over columns of the column's
 * weights times the bits of the column's number. Column 0 is the step count, and the `columns`
 * hyperparameters follow. */
typedef struct stepc_seal_term {
  int64_t parameter, columns;
  stepc_seal weights;
} stepc_seal_term;
/* One seal and the messages that carry it. Lists are [first, last). A seal that is not new was added up
 * earlier in this step. The row of an await has the terms of all seals, and does not use `seal`, `is_new`
 * and `start`. */
typedef struct stepc_seal_row {
  int64_t seal, is_new, first_term, last_term, first_message, last_message;
  stepc_seal start; /* of the sums */
} stepc_seal_row;
/* Where the seal of a message lies, and the number of this rank's seal that belongs there. */
typedef struct stepc_sealed_message {
  void *address;
  int64_t seal, peer, exchange;
} stepc_sealed_message;
/* The first message that arrived with another seal than this rank's. After the report lie the numbers that
 * this rank added up: the step count of each parameter of the plan, then `columns` hyperparameters of each
 * parameter. */
typedef struct stepc_seal_report {
  int64_t is_there;            /* 1, written last */
  int64_t parameters, columns; /* written by the host */
  stepc_sealed_message message;
  stepc_seal own, theirs;
} stepc_seal_report;

typedef void (*stepc_kernel)(void *const *arguments, int64_t first, int64_t last);
typedef struct stepc_device_table stepc_device_table;

/* --- provided by the runtime --- */

/* The devices, in runtime/devices. A library is linked only with the devices of its programs. */
extern const stepc_device_table stepc_device_cpu;
extern const stepc_device_table stepc_device_emulated;       /* a GPU's kernels, on this machine */
extern const stepc_device_table stepc_device_emulated_races; /* also looks for races */
extern const stepc_device_table stepc_device_cuda;           /* NVIDIA's GPUs */
extern const stepc_device_table stepc_device_interpret; /* kernels as records, on this machine */
/* Returns the `const stepc_library *` of the first program, as <name>_library() does. The function is
 * hidden, so that two libraries in one process never answer for each other. */
const void *stepc_rt_library(void);

/* Runs items [first, last) of a loop of a reduction of blocks of rows x cols (runtime/sums/Reduce.h).
 * `arguments` are the scratch, the source and the out. `kind` is a plan::Reduction, `type` a plan::DType,
 * `remains` a sums::Remains and `phase` a sums::Phase. */
void stepc_rt_reduce(int64_t kind, int64_t exponent, int64_t remains, int64_t type, int64_t rows,
                     int64_t cols, int64_t phase, void *const *arguments, int64_t first,
                     int64_t last);

/* Reduces terms that a kernel over whole lines makes piece by piece (runtime/sums/Pieces.h). `columns` is 0
 * for a row, and 1 for at most 64 columns side by side. `terms` has `rows` × `cols` of f32, for columns with
 * rows 64 apart. `done` of the `count` terms of each row or column came before; with the last, `out` is
 * written. `state` has STEPC_PIECES_BYTES that the calls of a row, or of columns, share. `ahead` is memory
 * that the kernel probably reads next, `ahead_bytes` of it for each term (0: unknown). It is prefetched
 * meanwhile, which does nothing if it cannot be read. */
#define STEPC_PIECES_BYTES 5120
void stepc_rt_reduce_pieces(int64_t kind, int64_t columns, int64_t count, int64_t done,
                            int64_t rows, int64_t cols, const float *terms, void *state, float *out,
                            const void *ahead, int64_t ahead_bytes);

/* Sums of lines that are cut between ranks (runtime/sums/Parts.h). The first sets `count` accumulators to 0.
 * The second adds rows x cols terms to accumulators: of one block, of each row, or of each column, as
 * `remains` says. The third adds up the parts of a number of the model that `rows` lists, as its kernel's
 * arguments[0]. The last adds up `parts` parts of each of `values` values and writes the results of the
 * reduction, of `terms` terms each. Part i of the first value begins `places[i]` bytes behind `from`. A part
 * has `count` accumulators. */
void stepc_rt_begin_sums(int64_t kind, int64_t count, void *sums);
void stepc_rt_add_terms(int64_t kind, int64_t remains, int64_t rows, int64_t cols,
                        const float *terms, int64_t stride, void *sums);
void stepc_rt_collect_sums(int64_t kind, const int64_t *rows, const void *from,
                           const stepc_parameter_record *records, void *to);
void stepc_rt_finish_sums(int64_t kind, int64_t terms, int64_t count, const int64_t *places,
                          int64_t parts, const void *from, int64_t values, float *out);

/* --- provided for kernels of the target emulated, where threads of a block wait (runtime/emulated) --- */

typedef struct stepc_emulated_block stepc_emulated_block;
/* What one thread of a block of threads does. `memory` is the block's shared memory. */
typedef void (*stepc_emulated_thread)(stepc_emulated_block *, void *const *arguments, int64_t block,
                                      int64_t thread, void *memory);
/* Runs blocks [first, last), each of `threads` threads with `memory_bytes` of shared memory. `name` is for
 * messages. */
void stepc_rt_emulate(stepc_emulated_thread thread, void *const *arguments, int64_t first,
                      int64_t last, int64_t threads, int64_t memory_bytes, const char *name);
/* Returns when all threads of the block are at the same place of the kernel's text. */
void stepc_rt_emulated_barrier(stepc_emulated_block *, int32_t place);
/* Waits for all 32 lanes of the warp. Returns the value of the lane whose number differs from this lane's
 * by the bits `lanes`. */
int32_t stepc_rt_emulated_shuffle(stepc_emulated_block *, int32_t place, int32_t value,
                                  int32_t lanes);
/* Loads `count` matrices of 8 x 8 16-bit elements, and writes the words that PTX's ldmatrix gives the lane.
 * Lane i brings the address of row i, of 16 bytes. All 32 lanes must call it. */
void stepc_rt_emulated_load_matrices(stepc_emulated_block *, int32_t place, const void *row,
                                     int32_t count, int32_t transposed, int32_t *words);
/* PTX's mma.sync.m16n8k16 of f16 (half) or bf16 into f32. `words` are 4 words of the left operand, 2 of the
 * right one, and 4 numbers, which become the results. All 32 lanes must call it. */
void stepc_rt_emulated_multiply_matrices(stepc_emulated_block *, int32_t place, int32_t half,
                                         int32_t *words);
/* Copies 16 bytes or, if `bytes` is 0, writes 16 zeros. The copy is done at the latest when the thread has
 * waited for the copy's group. A thread's commit ends its group. A wait returns when at most the last
 * `groups` groups are under way. */
void stepc_rt_emulated_copy_async(stepc_emulated_block *, void *to, const void *from,
                                  int32_t bytes);
void stepc_rt_emulated_commit_group(stepc_emulated_block *);
void stepc_rt_emulated_wait_group(stepc_emulated_block *, int32_t groups);
/* Works off lists [first, last) of tiles with the tensor cores' arithmetic, in place of a kernel of
 * warpgroups. `form` is a sum of STEPC_TILES_*. */
#define STEPC_TILES_OF_F16 1 /* otherwise bf16 */
#define STEPC_TILES_TRANSPOSE_LHS 2
#define STEPC_TILES_TRANSPOSE_RHS 4
#define STEPC_TILES_SYMMETRIC 8
#define STEPC_TILES_TO_F32 16 /* results; otherwise they have the operands' type */
void stepc_rt_emulated_tiles(void *const *arguments, int64_t first, int64_t last, int32_t form);
/* Called before each load and store if the target asks for races. Returns where to load or store: the
 * address or, if the command does not declare the access, other memory. */
void *stepc_rt_emulated_access(void *address, int64_t bytes, int32_t writes, int64_t block,
                               int64_t thread);

/* --- defined by generated code --- */

typedef enum stepc_image_kind {
  STEPC_IMAGE_OF_GENERATION = 0, /* a cubin, which later minor versions also run */
  STEPC_IMAGE_OF_ONE = 1,        /* a cubin that no other minor version runs */
  STEPC_IMAGE_PTX = 2,           /* text that a driver compiles for this chip or a later one */
  STEPC_IMAGE_RECORDS = 3 /* kernels as records (runtime/interpret), for the target interpret */
} stepc_image_kind;
/* All kernels of the plan for one chip of a GPU, or for the interpreter. */
typedef struct stepc_image {
  const char *chip;     /* "sm_90a" or "interpret"; null behind the last image */
  int64_t major, minor; /* 9, 0; zeros for the interpreter */
  int64_t kind;         /* a stepc_image_kind */
  const void *code;     /* a cubin, PTX with a zero at its end, or records */
  int64_t bytes;
  uint64_t code_hash;    /* FNV-1a of the code: compared before a driver gets it */
  uint64_t numbers_hash; /* FNV-1a of major, minor, kind, bytes and code_hash */
} stepc_image;

/* What a library has for one target. All other symbols of the target's code are local to its object. */
typedef struct stepc_program {
  int64_t abi_version; /* STEPC_KERNEL_ABI_VERSION; other versions may have other fields */
  const char *target;  /* the kind of its target: "cpu", "cuda", "emulated" or "interpret" */
  const uint8_t *plan;
  int64_t plan_bytes;
  uint64_t plan_hash;          /* FNV-1a of the plan's bytes: compared before the plan is used */
  uint64_t numbers_hash;       /* FNV-1a of plan_bytes and plan_hash: compared first */
  const stepc_kernel *kernels; /* in the plan's order; null in a program with images */
  const stepc_image *images;   /* for GPUs and the interpreter, else null */
  const stepc_device_table *device; /* what its kernels run on */
} stepc_program;

/* The programs are named stepc_program_cpu, stepc_program_emulated, stepc_program_interpret, and one per
 * GPU's chip, as stepc_program_cuda_sm_90a. */
#define STEPC_MOST_PROGRAMS 8
/* In the order in which the targets were named. Null after the last program. The first is never null. */
extern const stepc_program *const stepc_programs[STEPC_MOST_PROGRAMS];

#ifdef __cplusplus
}
#endif
#endif
