/* What the trainer and the transport of docs/runtime.md have beside what the page shows. */
#include "muon.h"
#include "stepc/nccl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const stepc_library *lib;
extern const stepc_library *next;
extern stepc_instance *opt;
extern stepc_options options;
extern stepc_transport transport;
extern float *shard, *whole;
extern int64_t bytes, p, *steps, *my_ranks;
extern const void *gradients[];
extern void *state, *weights(const char *name);
extern int training, rank, size, gpu, on_gpu;
extern char error[512];
#define MPI_BYTE 0
#define MPI_COMM_WORLD 0
int MPI_Bcast(void *, int, int, int, int);
void die(const char *why);
void bind_all(const stepc_library *, stepc_instance *);

struct work;
extern struct world { int sockets; } mine;
struct work *begin_work(void *context);
void end_work(void *context, struct work *work);
int begin_send(struct work *, int peer, const void *memory, int64_t bytes, int64_t tag);
int begin_receive(struct work *, int peer, void *memory, int64_t bytes, int64_t tag);
int missing_peer(struct work *);
int given_up(void *context);
const char *reason(void *context);
void give_up(void *context, const char *reason);
void end(void *context);
