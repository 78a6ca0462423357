//===- Metrics.cpp - Numbers that steps give to the trainer -----------------===//
//
// Kernels write metrics as they write states, to memory of the host that belongs to the library. No kernel
// reads them. So the trainer may read them at any time, and a GPU never waits for the host.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Plural.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <atomic>
#include <limits>

namespace stepc::runtime {
namespace {

/// Calls `visit` with each parameter of this rank, each of its metrics, and the local shard of the metric.
template <typename Visit> void forEachMetric(const stepc_instance &instance, Visit visit) {
  const Library &lib = instance.library;
  for (size_t p = 0; p < lib.plan.parameters.size(); ++p) {
    int64_t group = lib.plan.parameters[p].group;
    for (size_t i = 0; i < lib.groups[group].metrics.size(); ++i)
      visit(p, lib.groups[group].metrics[i], instance.prepared.groups[group].metrics[i]);
  }
}

} // namespace

std::string placeMetrics(stepc_instance &instance) {
  int64_t bytes = 0;
  forEachMetric(instance, [&](size_t, const StateText &, const LocalGroup::LocalShard &shard) {
    bytes += shard.bytes;
  });
  if (!bytes)
    return {};
  int64_t count = bytes / int64_t(sizeof(float));
  float *next = nullptr;
  if (instance.device().report) {
    next = static_cast<float *>(instance.device().report(instance.deviceContext, bytes));
    if (!next)
      return format("expected memory for %s, found none: %s",
                    plural(count, "number of metrics", "numbers of metrics").c_str(),
                    instance.deviceContext.failure.c_str());
  } else {
    instance.prepared.metrics.resize(size_t(count));
    next = instance.prepared.metrics.data();
  }
  std::fill_n(next, count, std::numeric_limits<float>::quiet_NaN());
  forEachMetric(instance,
                [&](size_t p, const StateText &text, const LocalGroup::LocalShard &shard) {
                  instance.bound.states[text.index][p] = next;
                  next += shard.bytes / int64_t(sizeof(float));
                });
  return {};
}

int64_t countOfMetric(const stepc_instance &instance, int64_t parameter, int32_t metric) {
  int64_t group = instance.library.parameter(parameter).group;
  return instance.prepared.groups[group].metrics[size_t(metric)].bytes / int64_t(sizeof(float));
}

int32_t metrics(const stepc_instance *self, int64_t parameter, int32_t metric, float *values,
                int64_t count) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  const Library &lib = self->library;
  if (int32_t status = checkMetric(lib, self, "metrics", parameter, metric))
    return status;
  int64_t group = lib.parameter(parameter).group;
  const StateText &text = lib.groups[group].metrics[size_t(metric)];
  int64_t found = countOfMetric(*self, parameter, metric);
  if (count != found || (count && !values))
    return self->refuse(
        STEPC_ERROR_ARGUMENT,
        format(
            "metrics: expected a place for %s of metric '%s' of parameter '%s', found one for %lld",
            plural(found, "number").c_str(), text.name.c_str(),
            lib.parameter(parameter).name.c_str(), (long long)(values ? count : 0)));
  auto *numbers = static_cast<float *>(self->bound.states[text.index][parameter]);
  // A kernel of a GPU may write a number while it is read here.
  for (int64_t i = 0; i < count; ++i)
    values[i] = std::atomic_ref(numbers[i]).load(std::memory_order_relaxed);
  return STEPC_OK;
}

} // namespace stepc::runtime
