//===- Step.cpp - One optimizer step, and what follows a failure ------------===//
#include "runtime/core/FloatModes.h"
#include "runtime/core/Instance.h"
#include "runtime/core/Text.h"

#include <algorithm>

using namespace stepc::runtime;

int32_t stepc_instance::refuse(Status status, const std::string &message) {
  cause = message;
  error = here() + ": " + message;
  return status;
}

void stepc_instance::fail(Status status, const std::string &message) {
  if (failure)
    return;
  failure = status;
  refuse(status, message);
}

void stepc_instance::abortTransport(const std::string &reason) {
  for (PreparedExchange &exchange : exchanges)
    leftInFlight |= exchange.inFlight;
  if (!hasTransport || size == 1 || aborted)
    return;
  aborted = true;
  transport.abort(transport.context, reason.c_str());
}

namespace stepc::runtime {
namespace {

/// Marks the parameters whose shards a launch of the failed step may have written.
void markHalfStepped(stepc_instance &instance) {
  const plan::Plan &plan = instance.library.plan;
  for (size_t at = 0; at < plan.launches.size(); ++at) {
    if (!instance.launched[at])
      continue;
    const plan::Launch &launch = plan.launches[at];
    if (launch.kind == plan::LaunchKind::Group) {
      // A scalar stage may write one-element states.
      const plan::Group &group = plan.groups[launch.index];
      const auto &states = instance.library.groups[launch.index].states;
      if (std::any_of(states.begin(), states.end(),
                      [](const StateText &s) { return s.value == plan::ValueKind::One; }))
        for (int64_t p : group.parameters)
          instance.halfStepped[p] |= uint8_t(instance.isMember(p));
      continue;
    }
    const plan::Table &table = plan.tables[launch.index];
    const plan::RankTable &rows = instance.tables.tables[launch.index];
    if (launch.kind == plan::LaunchKind::Chunks && table.kind == plan::TableKind::ShardChunks)
      for (const plan::Chunk &chunk : rows.chunks)
        instance.halfStepped[chunk.parameter] |= uint8_t(instance.records[chunk.parameter].active);
    if (launch.kind == plan::LaunchKind::Copy && table.to == plan::Layout::Shard)
      for (const plan::CopyRow &row : rows.copies)
        instance.halfStepped[row.parameter] |= uint8_t(instance.records[row.parameter].active);
  }
}

/// "no parameter was changed", or which ones may be.
std::string halfSteppedText(const stepc_instance &instance) {
  constexpr int64_t kNamed = 3;
  int64_t count = 0;
  std::string names;
  for (size_t p = 0; p < instance.halfStepped.size(); ++p) {
    if (!instance.halfStepped[p])
      continue;
    if (count++ < kNamed)
      names += (names.empty() ? "'" : ", '") + instance.library.parameter(p).name + "'";
  }
  if (!count)
    return "no parameter or state was changed";
  if (count > kNamed)
    names += format(" and %lld more", (long long)(count - kNamed));
  return format("%lld parameters or their states may be half stepped (%s)", (long long)count,
                names.c_str());
}

int32_t poison(stepc_instance &instance) {
  instance.poisoned = true;
  markHalfStepped(instance);
  instance.error += "; " + halfSteppedText(instance);
  instance.poisonedText = instance.error;
  instance.abortTransport(instance.cause);
  return instance.failure;
}

void checkCounts(stepc_instance &instance) {
  const plan::Plan &plan = instance.library.plan;
  for (size_t order = 0; order < instance.exchanges.size(); ++order) {
    const PreparedExchange &exchange = instance.exchanges[order];
    if (!exchange.started || !exchange.finished)
      return instance.fail(STEPC_ERROR_COUNTS, exchangeName(instance.library, order) +
                                                   (exchange.started ? " was never waited for"
                                                                     : " was never started"));
  }
  const stepc_counters &done = instance.executed, &planned = instance.planned;
  auto compare = [&](const char *what, int64_t executed, int64_t expected) {
    if (executed != expected)
      instance.fail(STEPC_ERROR_COUNTS, format("the step made %lld %s, planned are %lld",
                                               (long long)executed, what, (long long)expected));
  };
  compare("launches", instance.launchIndex, int64_t(plan.launches.size()));
  compare("chunks", done.chunks, planned.chunks);
  compare("exchanges", done.exchanges, planned.exchanges);
  compare("sends", done.messages_sent, planned.messages_sent);
  compare("receives", done.messages_received, planned.messages_received);
  compare("bytes sent", done.bytes_sent, planned.bytes_sent);
  compare("bytes received", done.bytes_received, planned.bytes_received);
}

void beginStep(stepc_instance &instance) {
  instance.failure = STEPC_OK;
  instance.executed = stepc_counters{};
  instance.launchIndex = 0;
  std::fill(instance.launched.begin(), instance.launched.end(), uint8_t(0));
  for (PreparedExchange &exchange : instance.exchanges)
    exchange.started = exchange.inFlight = exchange.finished = false;
}

} // namespace

int32_t step(stepc_instance *self) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  FloatModes modes;
  stepc_instance &instance = *self;
  if (instance.poisoned) {
    // The first cause stays readable, whatever was tried since.
    instance.error = instance.poisonedText + "; the instance is poisoned until recover()";
    return STEPC_ERROR_POISONED;
  }
  if (int32_t status = checkStep(instance))
    return status;
  beginStep(instance);
  if (agreeOnPresence(instance))
    return poison(instance);
  stepc_program_step(self);
  if (!instance.failure)
    checkCounts(instance);
  if (instance.failure)
    return poison(instance);
  int64_t count = int64_t(instance.records.size());
  for (int64_t p = 0; p < count; ++p)
    instance.steps[p] += instance.records[p].active;
  instance.error.clear();
  return STEPC_OK;
}

int32_t halfStepped(const stepc_instance *self, uint8_t *flags, int64_t count) {
  if (!self || !flags || count != int64_t(self->halfStepped.size()))
    return STEPC_ERROR_ARGUMENT;
  std::copy(self->halfStepped.begin(), self->halfStepped.end(), flags);
  return STEPC_OK;
}

int32_t recover(stepc_instance *self) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  if (self->aborted)
    return self->refuse(STEPC_ERROR_TRANSPORT,
                        "the transport was aborted and cannot be used again: make a new instance");
  self->poisoned = false;
  self->failure = STEPC_OK;
  std::fill(self->halfStepped.begin(), self->halfStepped.end(), uint8_t(0));
  self->error.clear();
  return STEPC_OK;
}

int32_t counters(const stepc_instance *self, stepc_counters *executed, stepc_counters *planned) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  if (executed)
    *executed = self->executed;
  if (planned)
    *planned = self->planned;
  return STEPC_OK;
}

int32_t abortInstance(stepc_instance *self, const char *reason) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  self->refuse(STEPC_OK, reason && *reason ? reason : "given up by the trainer");
  if (!self->poisoned) {
    self->poisoned = true;
    self->poisonedText = self->error;
  }
  self->abortTransport(self->cause);
  return STEPC_OK;
}

} // namespace stepc::runtime
