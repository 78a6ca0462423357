// A library as a compiler could have made it, written by hand: it tests what loads libraries
// without needing a compiler. The parameters come from a generated header (see fake_stepc.py).
//
//   m     = momentum * m + grad        (route Momentum; master : f32 where the dtype is bf16)
//   param = param - lr * m
//   param = param - lr * grad          (route Plain)
//
// With several ranks a step first sends one word to every peer and expects one from each, so that
// transports, deadlines and aborts are exercised too.
#include "fake_plan.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct stepc_instance {
  stepc_transport transport;
  int has_transport, rank, poisoned;
  double timeout;
  void *param[COUNT], *state[COUNT][2];
  const void *grad[COUNT];
  int bound[COUNT];
  int64_t *steps;
  const double *values;
  int64_t stride;
  int32_t groups[COUNT];
  stepc_counters counters;
  uint8_t half[COUNT];
  char error[1024];
  // A failed exchange may leave messages under way, so their words outlive the step.
  int64_t words_out[WORLD], words_in[WORLD];
  // As on a GPU: the workspace, and whether a step was enqueued since the last poll.
  void *workspace, *allocator;
  stepc_deallocate deallocate;
  int under_way;
};

static int32_t fail(stepc_instance *in, int32_t status, const char *text) {
  snprintf(in->error, sizeof in->error, "rank %d: %s", in->rank, text);
  return status;
}

static int32_t world_size(void) { return WORLD; }
static const int64_t *world_ranks(void) { return fake_ranks; }

static int64_t elements(const int64_t *shape, int axes) {
  int64_t n = 1;
  for (int i = 0; i < axes; ++i)
    n *= shape[i];
  return n;
}
static int64_t local_count(const stepc_instance *in, int64_t p) {
  return elements(fake[p].local[in->rank], fake[p].axes);
}
static int64_t size_of(const char *dtype) { return strcmp(dtype, "f32") ? 2 : 4; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int32_t exchange(stepc_instance *in) {
  stepc_operation operations[2 * WORLD];
  int64_t *out = in->words_out, *in_words = in->words_in, count = 0;
  for (int peer = 0; peer < WORLD; ++peer) {
    if (peer == in->rank)
      continue;
    out[peer] = 1000 * in->rank + peer;
    operations[count++] = (stepc_operation){
        .kind = STEPC_RECEIVE, .peer = peer, .receive = &in_words[peer], .bytes = 8, .tag = 7};
    operations[count++] = (stepc_operation){
        .kind = STEPC_SEND, .peer = peer, .send = &out[peer], .bytes = 8, .tag = 7};
  }
  void *handle = NULL;
  char text[512] = "";
  stepc_operations group = {sizeof group, sizeof *operations, operations, count, NULL};
  int32_t status = in->transport.start(in->transport.context, &group, &handle, text, sizeof text);
  if (status)
    return fail(in, status, text);
  double deadline = now() + in->timeout;
  for (;;) {
    int32_t got = in->transport.test(in->transport.context, handle, text, sizeof text);
    if (got == 1)
      break;
    if (got < 0 || now() > deadline) {
      char message[700];
      snprintf(message, sizeof message,
               got < 0 ? "the exchange failed: %s" : "no answer in time from %s", text);
      in->transport.abort(in->transport.context, message);
      in->poisoned = 1;
      memset(in->half, 1, sizeof in->half);
      return fail(in, got < 0 ? -got : STEPC_ERROR_TIMEOUT, message);
    }
  }
  for (int peer = 0; peer < WORLD; ++peer)
    if (peer != in->rank && in_words[peer] != 1000 * peer + in->rank)
      return fail(in, STEPC_ERROR_COUNTS, "a wrong word arrived");
  in->counters = (stepc_counters){.struct_size = sizeof(stepc_counters),
                                  .exchanges = 1,
                                  .messages_sent = count / 2,
                                  .messages_received = count / 2,
                                  .bytes_sent = 4 * count,
                                  .bytes_received = 4 * count};
  return STEPC_OK;
}

static int32_t create(const stepc_options *options, stepc_instance **out, char *error,
                      int64_t error_size) {
  if (options->abi_version != STEPC_ABI_VERSION)
    return STEPC_ERROR_ABI;
  int size = options->transport ? options->transport->size : 1;
  if (size != WORLD) {
    snprintf(error, (size_t)error_size, "expected a world of %d ranks, found %d", WORLD, size);
    return STEPC_ERROR_WORLD;
  }
  if (options->device != FAKE_DEVICE || (FAKE_DEVICE && (!options->stream || !options->allocate))) {
    snprintf(error, (size_t)error_size,
             "expected device %d with a stream and an allocator, found %d", FAKE_DEVICE,
             options->device);
    return STEPC_ERROR_ARGUMENT;
  }
  stepc_instance *in = calloc(1, sizeof *in);
  if (options->allocate) {
    in->deallocate = options->deallocate;
    in->allocator = options->allocator_context;
    in->workspace = options->allocate(in->allocator, 4096, 64);
    if (!in->workspace) {
      free(in);
      snprintf(error, (size_t)error_size, "a workspace of 4096 bytes could not be allocated");
      return STEPC_ERROR_MEMORY;
    }
  }
  if (options->transport) {
    in->transport = *options->transport;
    in->has_transport = 1;
    in->rank = in->transport.rank;
  }
  in->timeout = options->timeout_seconds > 0 ? options->timeout_seconds : 120;
  *out = in;
  return STEPC_OK;
}
static int32_t destroy(stepc_instance *in) {
  if (in->has_transport && in->transport.destroy)
    in->transport.destroy(in->transport.context);
  if (in->deallocate)
    in->deallocate(in->allocator, in->workspace, 4096);
  free(in);
  return STEPC_OK;
}
static const char *last_error(const stepc_instance *in) { return in->error; }
static int64_t workspace_bytes(void) { return 4096; }
static int64_t parameter_count(void) { return COUNT; }

static int32_t parameter_info(const stepc_instance *in, int64_t p, stepc_parameter_info *info) {
  if (p < 0 || p >= COUNT || info->struct_size != sizeof *info)
    return STEPC_ERROR_ARGUMENT;
  const struct fake_parameter *f = &fake[p];
  const int64_t *local = in ? f->local[in->rank] : NULL;
  *info = (stepc_parameter_info){.struct_size = sizeof *info,
                                 .axes = f->axes,
                                 .name = f->name,
                                 .route = fake_routes[f->route],
                                 .dtype = f->dtype,
                                 .gradient_dtype = f->grad_dtype,
                                 .placements = f->placements,
                                 .gradient_placements = f->placements,
                                 .mesh = f->mesh,
                                 .global_shape = f->shape,
                                 .local_shape = local,
                                 .gradient_local_shape = local,
                                 .states = f->states,
                                 .member = in ? 1 : 0};
  return STEPC_OK;
}
static int32_t state_info(const stepc_instance *in, int64_t p, int32_t s, stepc_state_info *info) {
  if (p < 0 || p >= COUNT || s < 0 || s >= fake[p].states)
    return STEPC_ERROR_ARGUMENT;
  int master = fake[p].route == 1 || s == 1;
  *info = (stepc_state_info){.struct_size = sizeof *info,
                             .axes = fake[p].axes,
                             .name = master ? "master" : "m",
                             .dtype = "f32",
                             .kind = "full",
                             .placements = fake[p].placements,
                             .global_shape = fake[p].shape,
                             .local_shape = in ? fake[p].local[in->rank] : NULL,
                             .master = master};
  return STEPC_OK;
}

static int32_t mesh_info(int64_t p, stepc_mesh_info *info) {
  if (p < 0 || p >= COUNT)
    return STEPC_ERROR_ARGUMENT;
  const struct fake_parameter *f = &fake[p];
  *info = (stepc_mesh_info){.struct_size = sizeof *info,
                            .axes = f->mesh_axes,
                            .name = f->mesh,
                            .axis_names = f->axis_names,
                            .axis_sizes = f->axis_sizes,
                            .ranks = f->ranks,
                            .rank_count = f->rank_count,
                            .batch_axes = f->batch_axes};
  return STEPC_OK;
}

static int64_t route_count(void) { return 2; }
static const char *route_name(int64_t route) { return fake_routes[route]; }
static const char *route_rule(int64_t route) { return fake_routes[route]; }
static int32_t hyperparameter_count(int64_t route) { return route == 0 ? 2 : 1; }
static const char *hyperparameter_name(int64_t route, int32_t i) {
  (void)route;
  return i == 0 ? "lr" : "momentum";
}
static double hyperparameter_default(int64_t route, int32_t i) {
  return route == 1 ? NAN : i == 0 ? 0.1 : 0.9;
}

static int32_t check_bytes(stepc_instance *in, int64_t p, int64_t bytes, int64_t width) {
  if (p < 0 || p >= COUNT)
    return fail(in, STEPC_ERROR_ARGUMENT, "no such parameter");
  if (bytes != local_count(in, p) * width)
    return fail(in, STEPC_ERROR_ARGUMENT, "a shard of another size");
  return STEPC_OK;
}
static int32_t bind_parameter(stepc_instance *in, int64_t p, void *data, int64_t bytes) {
  int32_t status = check_bytes(in, p, bytes, size_of(fake[p].dtype));
  in->param[p] = data;
  in->bound[p] = 1;
  return status;
}
static int32_t bind_state(stepc_instance *in, int64_t p, int32_t s, void *data, int64_t bytes) {
  int32_t status = check_bytes(in, p, bytes, 4);
  in->state[p][s] = data;
  return status;
}
static int32_t bind_gradient(stepc_instance *in, int64_t p, const void *data, int64_t bytes) {
  (void)bytes;
  in->grad[p] = data;
  return STEPC_OK;
}
static int32_t bind_gradients(stepc_instance *in, const void *const *data, int64_t count) {
  for (int64_t p = 0; p < count; ++p)
    in->grad[p] = data[p];
  return STEPC_OK;
}
static int32_t bind_steps(stepc_instance *in, int64_t *steps, int32_t memory) {
  (void)memory;
  in->steps = steps;
  return STEPC_OK;
}
static int32_t bind_hyperparameters(stepc_instance *in, const double *values, int64_t group_count,
                                    int64_t stride, const int32_t *groups, int32_t memory) {
  (void)group_count, (void)memory;
  in->values = values;
  in->stride = stride;
  memcpy(in->groups, groups, sizeof in->groups);
  return STEPC_OK;
}
static int32_t set_hyperparameter(stepc_instance *in, int64_t route, const char *name,
                                  double value) {
  (void)route, (void)name, (void)value;
  return fail(in, STEPC_ERROR_ARGUMENT, "not in this fake");
}

static float load(const void *data, const char *dtype, int64_t i) {
  if (!strcmp(dtype, "f32"))
    return ((const float *)data)[i];
  uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
static void store(void *data, const char *dtype, int64_t i, float value) {
  if (!strcmp(dtype, "f32")) {
    ((float *)data)[i] = value;
    return;
  }
  uint32_t bits;
  memcpy(&bits, &value, 4);
  ((uint16_t *)data)[i] = (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static int32_t step(stepc_instance *in) {
  if (in->poisoned)
    return fail(in, STEPC_ERROR_POISONED, "an earlier step failed");
  for (int64_t p = 0; p < COUNT; ++p) {
    char text[600];
    snprintf(text, sizeof text, "parameter '%s': %s", fake[p].name,
             in->bound[p] ? "its gradient is absent" : "it was never bound");
    if (local_count(in, p) && (!in->bound[p] || !in->grad[p]))
      return fail(in, in->bound[p] ? STEPC_ERROR_GRADIENT : STEPC_ERROR_UNBOUND, text);
  }
  if (WORLD > 1) {
    int32_t status = exchange(in);
    if (status)
      return status;
  }
  for (int64_t p = 0; p < COUNT; ++p) {
    const struct fake_parameter *f = &fake[p];
    const double *h = in->values + in->stride * in->groups[p];
    float *m = f->route == 0 ? in->state[p][0] : NULL;
    float *master = f->states > (f->route == 0) ? in->state[p][f->states - 1] : NULL;
    for (int64_t i = 0, n = local_count(in, p); i < n; ++i) {
      float g = load(in->grad[p], f->grad_dtype, i);
      if (m)
        g = m[i] = (float)h[1] * m[i] + g;
      float value = (master ? master[i] : load(in->param[p], f->dtype, i)) - (float)h[0] * g;
      if (master)
        master[i] = value;
      store(in->param[p], f->dtype, i, value);
    }
    ++in->steps[p];
  }
  return STEPC_OK;
}
static int32_t enqueue(stepc_instance *in) {
  int32_t status = step(in);
  in->under_way = !status;
  return status;
}
/* Done when it is asked for the second time, or found to have failed. */
static int32_t poll(stepc_instance *in, int32_t *done) {
  *done = !in->under_way;
  if (in->under_way && FAKE_FAILS) {
    in->poisoned = 1;
    memset(in->half, 1, sizeof in->half);
    return fail(in, STEPC_ERROR_DEVICE, "carrying out a step failed: no reason");
  }
  in->under_way = 0;
  return STEPC_OK;
}
static int32_t half_stepped(const stepc_instance *in, uint8_t *flags, int64_t count) {
  memcpy(flags, in->half, (size_t)count);
  return STEPC_OK;
}
static int32_t recover(stepc_instance *in) {
  in->poisoned = 0;
  return STEPC_OK;
}
static int32_t counters(const stepc_instance *in, stepc_counters *a, stepc_counters *b) {
  *a = *b = in->counters;
  return STEPC_OK;
}
static int32_t in_process_world(int32_t size, stepc_transport *transports) {
  (void)size, (void)transports;
  return STEPC_ERROR_ARGUMENT;
}
static int32_t refresh(stepc_instance *in) { return in ? STEPC_OK : STEPC_ERROR_ARGUMENT; }
static int32_t abort_instance(stepc_instance *in, const char *reason) {
  if (in->has_transport)
    in->transport.abort(in->transport.context, reason);
  in->poisoned = 1;
  return STEPC_OK;
}

static int64_t metric_count(int64_t parameter) {
  (void)parameter;
  return 0;
}

const stepc_library *stepc_library_table(void);
static const stepc_library *table_of(const stepc_instance *in) {
  return in ? stepc_library_table() : NULL;
}

const stepc_library *stepc_library_table(void) {
  /* No shard_runs: the package asks DTensor. */
  static const stepc_library table = {.abi_version = FAKE_ABI,
                                      .struct_size = sizeof(stepc_library),
                                      .name = "fake",
                                      .chip = "generic",
                                      .plan_hash = FAKE_HASH,
                                      .device = FAKE_DEVICE,
                                      .world_size = world_size,
                                      .world_ranks = world_ranks,
                                      .create = create,
                                      .destroy = destroy,
                                      .last_error = last_error,
                                      .workspace_bytes = workspace_bytes,
                                      .parameter_count = parameter_count,
                                      .parameter_info = parameter_info,
                                      .state_info = state_info,
                                      .mesh_info = mesh_info,
                                      .route_count = route_count,
                                      .route_name = route_name,
                                      .route_rule = route_rule,
                                      .hyperparameter_count = hyperparameter_count,
                                      .hyperparameter_name = hyperparameter_name,
                                      .hyperparameter_default = hyperparameter_default,
                                      .bind_parameter = bind_parameter,
                                      .bind_state = bind_state,
                                      .bind_gradient = bind_gradient,
                                      .bind_gradients = bind_gradients,
                                      .bind_steps = bind_steps,
                                      .bind_hyperparameters = bind_hyperparameters,
                                      .set_hyperparameter = set_hyperparameter,
                                      .step = step,
                                      .enqueue = enqueue,
                                      .poll = poll,
                                      .half_stepped = half_stepped,
                                      .recover = recover,
                                      .abort = abort_instance,
                                      .counters = counters,
                                      .in_process_world = in_process_world,
                                      .refresh = refresh,
                                      .target = FAKE_DEVICE ? "cuda" : "cpu",
                                      .table_of = table_of,
                                      .metric_count = metric_count,
                                      .input_count = metric_count};
  return &table;
}
