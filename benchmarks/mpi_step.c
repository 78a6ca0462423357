/* mpi_step.c - Steps any compiled library on MPI ranks and prints how long that takes.
 *
 *   mpirun -np N mpi_step LIB.so STEPS    "step_us launches": of the slowest rank, in the fastest of the steps
 *   mpirun -np 2 mpi_step                 "bytes us" lines: one way of a message between two ranks
 *
 * What is bound is made up: bytes that are small numbers in every type. One thread per rank. */
#include "stepc/mpi.h"
#include "stepc/stepc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECONDS = 1 }; /* no further steps after so many */
static int rank, ranks;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "mpi_step: rank %d: %s: %s\n", rank, what, why ? why : "");
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static int64_t bytes_of(const char *dtype) { return !strcmp(dtype, "f32") ? 4 : !strcmp(dtype, "f64") ? 8 : 2; }

static void *make(int64_t bytes) {
  if (bytes == 0)
    return NULL;
  char *memory = malloc((size_t)bytes);
  if (!memory)
    fail("memory", "none left");
  /* As f32 1.7e-2 or so, as bf16 and f16 a few hundredths: nothing that is slow to compute with. */
  for (int64_t i = 0; i < bytes; ++i)
    memory[i] = i % 2 ? 0x3c : (char)(0x40 + rank + i / 64 % 32);
  return memory;
}

static int64_t product(const int64_t *shape, int32_t axes) {
  int64_t elements = 1;
  for (int32_t i = 0; i < axes; ++i)
    elements *= shape[i];
  return elements;
}

static void bind(const stepc_library *library, stepc_instance *instance, int64_t index) {
  stepc_parameter_info info = {.struct_size = sizeof info};
  if (library->parameter_info(instance, index, &info))
    fail("parameter_info", library->last_error(instance));
  if (!info.member)
    return;
  int64_t bytes = product(info.local_shape, info.axes) * bytes_of(info.dtype);
  if (library->bind_parameter(instance, index, make(bytes), bytes))
    fail(info.name, library->last_error(instance));
  bytes = product(info.gradient_local_shape, info.axes) * bytes_of(info.gradient_dtype);
  if (library->bind_gradient(instance, index, make(bytes), bytes))
    fail(info.name, library->last_error(instance));
  for (int32_t state = 0; state < info.states; ++state) {
    stepc_state_info of = {.struct_size = sizeof of};
    if (library->state_info(instance, index, state, &of))
      fail("state_info", library->last_error(instance));
    bytes = product(of.local_shape, of.axes) * bytes_of(of.dtype);
    if (library->bind_state(instance, index, state, make(bytes), bytes))
      fail(of.name, library->last_error(instance));
  }
}

static void step(const char *path, int steps) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    fail("dlopen", dlerror());
  const stepc_library *(*table)(void) = (const stepc_library *(*)(void))dlsym(handle, "stepc_library_table");
  if (!table)
    fail("dlsym", dlerror());
  const stepc_library *library = table();
  stepc_transport transport = {.struct_size = sizeof transport};
  char error[1024] = "";
  if (stepc_mpi_transport(MPI_COMM_WORLD, &transport, error, sizeof error))
    fail("stepc_mpi_transport", error);
  stepc_options options = {
      .abi_version = STEPC_ABI_VERSION, .struct_size = sizeof options, .transport = &transport, .threads = 1};
  stepc_instance *instance = NULL;
  if (library->create(&options, &instance, error, sizeof error))
    fail("create", error);
  int64_t count = library->parameter_count();
  for (int64_t index = 0; index < count; ++index)
    bind(library, instance, index);
  int64_t *taken = calloc((size_t)count, sizeof *taken);
  if (library->bind_steps(instance, taken, STEPC_MEMORY_HOST))
    fail("bind_steps", library->last_error(instance));
  double least = 1e9; /* what other work on the machine adds is not the step's */
  double all = 0; /* equal on all ranks, so that all stop together */
  for (int i = -1; i < steps && (i < 2 || all < SECONDS); ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    if (library->step(instance))
      fail("step", library->last_error(instance));
    double mine = MPI_Wtime() - begin, most = 0;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    all += most;
    if (i >= 0 && most < least)
      least = most;
  }
  stepc_counters planned = {.struct_size = sizeof planned};
  library->counters(instance, NULL, &planned);
  if (rank == 0)
    printf("%.3f %lld\n", least * 1e6, (long long)planned.launches);
  library->destroy(instance);
}

static void probe(void) {
  for (int bytes = 4096; bytes <= 4 << 20; bytes *= 4) {
    char *buffer = make(bytes);
    double least = 1e9;
    for (int round = 0; round < 200; ++round) {
      MPI_Barrier(MPI_COMM_WORLD);
      double begin = MPI_Wtime();
      for (int way = 0; way < 2; ++way)
        if (rank == way)
          MPI_Send(buffer, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
        else if (rank == 1 - way)
          MPI_Recv(buffer, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      double taken = (MPI_Wtime() - begin) / 2;
      least = taken < least ? taken : least;
    }
    if (rank == 0)
      printf("%d %.3f\n", bytes, least * 1e6);
    free(buffer);
  }
}

int main(int count, char **words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (count == 3)
    step(words[1], atoi(words[2]));
  else
    probe();
  MPI_Finalize();
}
