/* c_trainer.c - Trains a small network from plain C and MPI.
 *
 * A language model of bytes: the embeddings of the last eight bytes, two hidden layers, a
 * softmax over the next byte. Forward and backward pass are written out below; the optimizer
 * step is compiled by stepc and called through its generated header. Every rank holds a
 * piece of the rows of each parameter and of its states (ZeRO):
 *
 *   gradients of the rank's examples -> each rank adds its rows' -> step -> rows to all
 *
 * Gradients are added in the order of the examples, and a compiled step gives the same bits
 * on any number of ranks; so does this program. Build and run:
 *
 *   build/bin/stepc compile examples/c_trainer.optim \
 *     --manifest examples/c_trainer_manifest.json -o out
 *   mpicc -std=c11 -O3 -Iout -Iruntime/include examples/c_trainer.c -Lout -lc_trainer \
 *     -Lbuild/lib -lstepc_mpi -lm -Wl,-rpath,$PWD/out -Wl,-rpath,$PWD/build/lib -o out/c_trainer
 *   mpirun -np 4 --oversubscribe out/c_trainer [--steps N] TEXT...
 */
#include "c_trainer.h"
#include "stepc/mpi.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  VOCABULARY = 128, /* ASCII */
  CONTEXT = 8,
  EMBEDDING = 16,
  INPUT = CONTEXT * EMBEDDING,
  WIDE = 130, /* not a multiple of four: uneven shards */
  NARROW = 96,
  PARTS = 4,   /* of a step's examples: a rank takes one or more of them */
  TOKENS = 64, /* examples in a part */
  TEXT = 1 << 20,
  REPORT = 25
};

/* Matrices are [inputs, outputs]; a vector has one column. */
typedef struct {
  int64_t index, rows, cols;
  double scale; /* of the first values; a constant where `constant` says so */
  int constant;
  float *weight;          /* whole; this rank's rows are bound to the library in place */
  float *gradient[PARTS]; /* whole, of each part that this rank computes */
  float *sum, *received;  /* this rank's rows */
  int *counts, *offsets;  /* elements of each rank's rows */
} Parameter;

enum { EMBED, HIDDEN0, BIAS0, HIDDEN1, BIAS1, HEAD, SCALE, PARAMETERS };

static Parameter parameters[PARAMETERS] = {
    [EMBED] = {.index = c_trainer_parameter_embed,
               .rows = VOCABULARY,
               .cols = EMBEDDING,
               .scale = 1},
    [HIDDEN0] = {.index = c_trainer_parameter_hidden_0, .rows = INPUT, .cols = WIDE, .scale = 0.15},
    [BIAS0] = {.index = c_trainer_parameter_hidden_0_bias, .rows = WIDE, .cols = 1},
    [HIDDEN1] = {.index = c_trainer_parameter_hidden_1,
                 .rows = WIDE,
                 .cols = NARROW,
                 .scale = 0.15},
    [BIAS1] = {.index = c_trainer_parameter_hidden_1_bias, .rows = NARROW, .cols = 1},
    [HEAD] = {.index = c_trainer_parameter_head, .rows = NARROW, .cols = VOCABULARY, .scale = 0.05},
    /* One element: all ranks but one have an empty shard of it. */
    [SCALE] =
        {.index = c_trainer_parameter_head_scale, .rows = 1, .cols = 1, .scale = 1, .constant = 1},
};

static int rank, ranks;
static unsigned char text[TEXT];
static int64_t length;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "c_trainer: rank %d: %s: %s\n", rank, what, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static void *allocate(int64_t count, size_t size) {
  void *memory = calloc(count > 0 ? (size_t)count : 1, size);
  if (!memory)
    fail("memory", "none left");
  return memory;
}

/* SplitMix64. Every rank draws the same numbers, so that nothing need be sent. */
static uint64_t draw(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static void read_text(int count, char **files) {
  for (int f = 0; f < count && length < TEXT; ++f) {
    FILE *file = fopen(files[f], "rb");
    if (!file)
      fail(files[f], "cannot be opened");
    length += (int64_t)fread(text + length, 1, (size_t)(TEXT - length), file);
    fclose(file);
  }
  if (length <= CONTEXT)
    fail("text", "expected more than a context of it");
  for (int64_t i = 0; i < length; ++i)
    if (text[i] >= VOCABULARY)
      text[i] = '?';
}

/* ------------------------------------------------------------------ the network */

/* y[t] += x[t] * w */
static void multiply(const float *x, const float *w, float *y, int rows, int cols) {
  for (int t = 0; t < TOKENS; ++t)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j)
        y[t * cols + j] += x[t * rows + i] * w[i * cols + j];
}

/* dw += x[t]^T * dy[t] and dx[t] = dy[t] * w^T */
static void multiply_backward(const float *x, const float *w, const float *dy, float *dw, float *dx,
                              int rows, int cols) {
  for (int t = 0; t < TOKENS; ++t)
    for (int i = 0; i < rows; ++i) {
      /* Eight sums that a compiler may keep in one vector. */
      float sums[8] = {0};
      int whole = cols - cols % 8;
      for (int j = 0; j < whole; j += 8)
        for (int lane = 0; lane < 8; ++lane)
          sums[lane] += dy[t * cols + j + lane] * w[i * cols + j + lane];
      for (int j = whole; j < cols; ++j)
        sums[0] += dy[t * cols + j] * w[i * cols + j];
      dx[t * rows + i] =
          ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
      for (int j = 0; j < cols; ++j)
        dw[i * cols + j] += x[t * rows + i] * dy[t * cols + j];
    }
}

static void layer(const float *x, Parameter *w, Parameter *bias, float *y) {
  int cols = (int)w->cols;
  for (int i = 0; i < TOKENS * cols; ++i)
    y[i] = bias->weight[i % cols];
  multiply(x, w->weight, y, (int)w->rows, cols);
  for (int i = 0; i < TOKENS * cols; ++i)
    y[i] = y[i] > 0 ? y[i] : 0;
}

/* `dy` loses what the rectifier let not pass. */
static void layer_backward(const float *x, const float *y, float *dy, Parameter *w, Parameter *bias,
                           float *dx, int part) {
  int cols = (int)w->cols;
  for (int i = 0; i < TOKENS * cols; ++i) {
    dy[i] = y[i] > 0 ? dy[i] : 0;
    bias->gradient[part][i % cols] += dy[i];
  }
  multiply_backward(x, w->weight, dy, w->gradient[part], dx, (int)w->rows, cols);
}

/* The mean loss of one part of a step's examples, and its gradients in `part`. */
static double forward_backward(int step, int example_part, int part) {
  static float x[TOKENS * INPUT], h0[TOKENS * WIDE], h1[TOKENS * NARROW], z[TOKENS * VOCABULARY];
  static float dx[TOKENS * INPUT], dh0[TOKENS * WIDE], dh1[TOKENS * NARROW],
      dz[TOKENS * VOCABULARY];
  int64_t at[TOKENS];
  uint64_t random = (uint64_t)step * PARTS + (uint64_t)example_part;
  const Parameter *embed = &parameters[EMBED];
  float scale = parameters[SCALE].weight[0];

  for (int t = 0; t < TOKENS; ++t) {
    at[t] = CONTEXT + (int64_t)(draw(&random) % (uint64_t)(length - CONTEXT));
    for (int c = 0; c < CONTEXT; ++c)
      memcpy(x + t * INPUT + c * EMBEDDING, embed->weight + text[at[t] - CONTEXT + c] * EMBEDDING,
             EMBEDDING * sizeof(float));
  }
  layer(x, &parameters[HIDDEN0], &parameters[BIAS0], h0);
  layer(h0, &parameters[HIDDEN1], &parameters[BIAS1], h1);
  memset(z, 0, sizeof z);
  multiply(h1, parameters[HEAD].weight, z, NARROW, VOCABULARY);

  double loss = 0;
  for (int t = 0; t < TOKENS; ++t) {
    float *row = z + t * VOCABULARY, *drow = dz + t * VOCABULARY, greatest = -INFINITY, sum = 0;
    for (int v = 0; v < VOCABULARY; ++v)
      greatest = fmaxf(greatest, scale * row[v]);
    for (int v = 0; v < VOCABULARY; ++v)
      sum += drow[v] = expf(scale * row[v] - greatest);
    loss += logf(sum) + greatest - scale * row[text[at[t]]];
    for (int v = 0; v < VOCABULARY; ++v) {
      float d = (drow[v] / sum - (v == text[at[t]])) / (TOKENS * PARTS);
      parameters[SCALE].gradient[part][0] += d * row[v];
      drow[v] = d * scale;
    }
  }

  multiply_backward(h1, parameters[HEAD].weight, dz, parameters[HEAD].gradient[part], dh1, NARROW,
                    VOCABULARY);
  layer_backward(h0, h1, dh1, &parameters[HIDDEN1], &parameters[BIAS1], dh0, part);
  layer_backward(x, h0, dh0, &parameters[HIDDEN0], &parameters[BIAS0], dx, part);
  for (int t = 0; t < TOKENS; ++t)
    for (int i = 0; i < INPUT; ++i)
      embed->gradient[part][text[at[t] - CONTEXT + i / EMBEDDING] * EMBEDDING + i % EMBEDDING] +=
          dx[t * INPUT + i];
  return loss / TOKENS;
}

/* ------------------------------------------------------------------ the shards */

/* Which part of the whole is whose: the library knows, and all ranks tell each other. */
static void make_parameter(const stepc_library *library, stepc_instance *optimizer, Parameter *p) {
  int64_t elements = p->rows * p->cols, runs = 0;
  stepc_run mine = {0};
  if (library->shard_runs(optimizer, p->index, STEPC_PARAMETER, &mine, 1, &runs) || runs > 1)
    fail("shard_runs", runs > 1 ? "expected rows in one piece" : library->last_error(optimizer));
  p->counts = allocate(ranks, sizeof *p->counts);
  p->offsets = allocate(ranks, sizeof *p->offsets);
  int count = runs ? (int)mine.length : 0, offset = runs ? (int)mine.global : 0;
  MPI_Allgather(&count, 1, MPI_INT, p->counts, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Allgather(&offset, 1, MPI_INT, p->offsets, 1, MPI_INT, MPI_COMM_WORLD);
  p->weight = allocate(elements, sizeof *p->weight);
  for (int k = 0; k < PARTS / ranks; ++k)
    p->gradient[k] = allocate(elements, sizeof *p->gradient[k]);
  p->sum = allocate(p->counts[rank], sizeof *p->sum);
  p->received = allocate((int64_t)PARTS * p->counts[rank], sizeof *p->received);

  uint64_t random = (uint64_t)p->index + 12345;
  for (int64_t i = 0; i < elements; ++i)
    p->weight[i] =
        (float)(p->constant ? p->scale : p->scale * ((double)(draw(&random) >> 11) * 0x1p-52 - 1));
}

/* Sends every rank its rows of this rank's gradients, and adds those received in the order of the
 * parts, whatever rank computed them. */
static void reduce_gradients(Parameter *p) {
  int per_rank = PARTS / ranks, mine = p->counts[rank];
  int *counts = allocate(ranks, sizeof *counts), *offsets = allocate(ranks, sizeof *offsets);
  for (int k = 0; k < per_rank; ++k) {
    for (int r = 0; r < ranks; ++r) {
      counts[r] = mine;
      offsets[r] = (r * per_rank + k) * mine;
    }
    MPI_Alltoallv(p->gradient[k], p->counts, p->offsets, MPI_FLOAT, p->received, counts, offsets,
                  MPI_FLOAT, MPI_COMM_WORLD);
    memset(p->gradient[k], 0, (size_t)(p->rows * p->cols) * sizeof(float));
  }
  memset(p->sum, 0, (size_t)mine * sizeof(float));
  for (int part = 0; part < PARTS; ++part)
    for (int i = 0; i < mine; ++i)
      p->sum[i] += p->received[part * mine + i];
  free(counts);
  free(offsets);
}

static void gather_weights(Parameter *p) {
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, p->weight, p->counts, p->offsets, MPI_FLOAT,
                 MPI_COMM_WORLD);
}

/* ------------------------------------------------------------------ the optimizer */

static void bind_shards(const stepc_library *library, stepc_instance *optimizer, Parameter *p) {
  stepc_parameter_info info = {.struct_size = sizeof info};
  if (library->parameter_info(optimizer, p->index, &info))
    fail("parameter_info", library->last_error(optimizer));
  int64_t bytes = (int64_t)p->counts[rank] * (int64_t)sizeof(float);
  if (info.global_shape[0] != p->rows || (info.axes > 1 && info.global_shape[1] != p->cols))
    fail(info.name, "expected the shape that the library was compiled for");
  if (library->bind_parameter(optimizer, p->index, bytes ? p->weight + p->offsets[rank] : NULL,
                              bytes) ||
      library->bind_gradient(optimizer, p->index, bytes ? p->sum : NULL, bytes))
    fail("bind", library->last_error(optimizer));
  for (int32_t s = 0; s < info.states; ++s) {
    stepc_state_info state = {.struct_size = sizeof state};
    if (library->state_info(optimizer, p->index, s, &state))
      fail("state_info", library->last_error(optimizer));
    /* All states of c_trainer.optim are f32 and shaped like their parameter. */
    float *values = allocate(p->counts[rank], sizeof *values);
    for (int i = 0; i < p->counts[rank]; ++i)
      values[i] = (float)state.init;
    if (library->bind_state(optimizer, p->index, s, values, bytes))
      fail("bind_state", library->last_error(optimizer));
  }
}

/* FNV-1a of all weights. */
static uint64_t checksum(void) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int p = 0; p < PARAMETERS; ++p) {
    const unsigned char *bytes = (const unsigned char *)parameters[p].weight;
    for (int64_t i = 0; i < parameters[p].rows * parameters[p].cols * (int64_t)sizeof(float); ++i)
      hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  return hash;
}

int main(int argc, char **argv) {
  int provided, first_file = 1, steps = 300;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 2 && !strcmp(argv[1], "--steps")) {
    steps = atoi(argv[2]);
    first_file = 3;
  }
  if (PARTS % ranks || steps < 2 * REPORT)
    fail("usage", "expected 1, 2 or 4 ranks and c_trainer [--steps N, at least 50] TEXT...");
  read_text(argc - first_file, argv + first_file);

  const stepc_library *library = c_trainer_library();
  stepc_transport transport = {.struct_size = sizeof transport};
  char error[1024] = "";
  if (stepc_mpi_transport(MPI_COMM_WORLD, &transport, error, sizeof error))
    fail("stepc_mpi_transport", error);
  stepc_options options = {.abi_version = STEPC_ABI_VERSION,
                           .struct_size = sizeof options,
                           .transport = &transport,
                           .threads = 1,
                           .timeout_seconds = 60};
  stepc_instance *optimizer;
  if (library->create(&options, &optimizer, error, sizeof error))
    fail("create", error);

  int64_t taken[c_trainer_parameters] = {0};
  for (int p = 0; p < PARAMETERS; ++p) {
    make_parameter(library, optimizer, &parameters[p]);
    bind_shards(library, optimizer, &parameters[p]);
  }
  if (library->bind_steps(optimizer, taken, STEPC_MEMORY_HOST))
    fail("bind_steps", library->last_error(optimizer));
  if (!rank)
    printf("%" PRId64 " bytes of text, %d ranks, %" PRId64 " bytes of workspace per rank\n", length,
           ranks, library->workspace_bytes());

  double interval = 0, first = 0, last = 0;
  for (int step = 0; step < steps; ++step) {
    double mine[PARTS], losses[PARTS], loss = 0;
    int per_rank = PARTS / ranks;
    for (int k = 0; k < per_rank; ++k)
      mine[k] = forward_backward(step, rank * per_rank + k, k);
    MPI_Allgather(mine, per_rank, MPI_DOUBLE, losses, per_rank, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int part = 0; part < PARTS; ++part)
      loss += losses[part] / PARTS;
    for (int p = 0; p < PARAMETERS; ++p)
      reduce_gradients(&parameters[p]);

    /* The schedule: down to a tenth, linearly. */
    double rate = 1 - 0.9 * step / steps;
    for (int64_t route = 0; route < c_trainer_routes; ++route)
      if (library->set_hyperparameter(optimizer, route, "lr",
                                      rate * library->hyperparameter_default(route, 0)))
        fail("set_hyperparameter", library->last_error(optimizer));
    if (library->step(optimizer))
      fail("step", library->last_error(optimizer));
    for (int p = 0; p < PARAMETERS; ++p)
      gather_weights(&parameters[p]);

    interval += loss / REPORT;
    if ((step + 1) % REPORT)
      continue;
    if (step + 1 == REPORT)
      first = interval;
    last = interval;
    interval = 0;
    if (!rank)
      printf("step %4d  loss %.4f\n", step + 1, last);
  }
  if (!rank)
    printf("weights %016" PRIx64 "\n", checksum());
  library->destroy(optimizer);
  /* The first mean has the steep part in it already; a NaN fails, too. */
  if (!(last < 0.8 * first))
    fail("loss", "expected it to fall by a fifth");
  MPI_Finalize();
  return 0;
}
