//===- Step.cpp - One optimizer step, and what follows a failure ------------===//
#include "runtime/core/Instance.h"
#include "runtime/host/FloatModes.h"
#include "runtime/text/Plural.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <limits>

using namespace stepc::runtime;

int32_t stepc_instance::refuse(Status status, const std::string &message) const {
  failures.cause = message;
  failures.error = here() + ": " + message;
  failures.textLost = false;
  return status;
}

void stepc_instance::fail(Status status, const std::string &message) {
  if (running.failure)
    return;
  running.failure = status;
  refuse(status, message);
}

void stepc_instance::failWithoutText() noexcept {
  running.failure = STEPC_ERROR_MEMORY;
  failures.textLost = true;
}

void stepc_instance::abortTransport(const char *reason) noexcept {
  for (PreparedExchange &exchange : prepared.exchanges)
    failures.leftInFlight |= exchange.inFlight;
  if (!hasTransport || size == 1 || failures.aborted)
    return;
  failures.aborted = true;
  try {
    transport.abort(transport.context, reason);
  } catch (...) {
    // A trainer's transport that throws: nothing more can be done for the peers.
    failures.leftInFlight = true;
  }
}

namespace stepc::runtime {
namespace {

/// Marks the parameters whose shards a command of the failed step may have written.
void markHalfStepped(stepc_instance &instance) {
  const plan::Plan &plan = instance.library.plan;
  // A step that the model skips has written the model's states.
  auto mark = [&](int64_t p) {
    bool isWritten = instance.running.records[p].active || p == plan.model;
    instance.failures.halfStepped[p] |= uint8_t(isWritten);
  };
  for (const auto &command : instance.prepared.commands) {
    if (!command->begun)
      continue;
    for (const plan::Effect &effect : plan::effects(plan, command->planned())) {
      if (!effect.writes() || !effect.operand || !effect.operand->isShards())
        continue;
      const plan::RankTable &rows = instance.prepared.tables.tables[effect.table];
      for (const plan::Chunk &chunk : rows.chunks)
        mark(chunk.parameter);
      for (const plan::CopyRow &row : rows.copies)
        mark(row.parameter);
    }
  }
}

/// "no parameter or state was changed", or the names of parameters that may be half stepped.
std::string halfSteppedText(const stepc_instance &instance) {
  constexpr int64_t kNamed = 3;
  int64_t count = 0;
  std::string names;
  for (size_t p = 0; p < instance.failures.halfStepped.size(); ++p) {
    if (!instance.failures.halfStepped[p])
      continue;
    if (count++ < kNamed)
      names += (names.empty() ? "'" : ", '") + instance.library.parameter(p).name + "'";
  }
  if (!count)
    return "no parameter or state was changed";
  if (count > kNamed)
    names += format(" and %lld more", (long long)(count - kNamed));
  return plural(count, "parameter") + " or " + (count == 1 ? "its" : "their") +
         " states may be half stepped (" + names + ")";
}

constexpr const char *kMemoryCause = "memory ran out, or a function of the trainer threw";

int32_t poison(stepc_instance &instance) noexcept {
  instance.failures.poisoned = true;
  instance.failures.poisonedText.clear();
  markHalfStepped(instance);
  // A device may fail after step counts have advanced: take them back.
  if (instance.running.stepsAdvanced)
    countSteps(instance, -1);
  instance.running.stepsAdvanced = false;
  try {
    if (!instance.failures.textLost) {
      instance.failures.error += "; " + halfSteppedText(instance);
      instance.failures.poisonedText = instance.failures.error;
    }
  } catch (...) {
    instance.failWithoutText();
  }
  instance.abortTransport(instance.failures.textLost ? kMemoryCause
                                                     : instance.failures.cause.c_str());
  return instance.running.failure;
}

void beginStep(stepc_instance &instance) noexcept {
  instance.running.failure = STEPC_OK;
  instance.failures.textLost = false;
  instance.running.executed = stepc_counters{};
  instance.running.stepsAdvanced = false;
  for (const auto &command : instance.prepared.commands)
    command->begun = false;
  for (PreparedExchange &exchange : instance.prepared.exchanges) {
    exchange.started = exchange.finished = false;
    // On a device the exchange of an earlier step may still be in flight.
    exchange.inFlight &= instance.isOnDevice();
  }
}

/// From here on messages travel and kernels write, so each failure poisons the instance.
void runStep(stepc_instance &instance) noexcept {
  try {
    if (agree(instance))
      return;
    walkProgram(instance);
  } catch (...) {
    instance.failWithoutText();
  }
}

} // namespace

void checkLoops(stepc_instance &instance) {
  if (instance.parallel.hasProblem())
    instance.fail(STEPC_ERROR_COUNTS, instance.parallel.takeProblem());
}

void checkCounts(stepc_instance &instance) {
  checkLoops(instance);
  for (size_t order = 0; order < instance.prepared.exchanges.size(); ++order) {
    const PreparedExchange &exchange = instance.prepared.exchanges[order];
    if (!exchange.started || !exchange.finished)
      return instance.fail(STEPC_ERROR_COUNTS,
                           exchangeName(instance.library, order) +
                               (exchange.started ? " was never waited for" : " was never started"));
  }
  const stepc_counters &done = instance.running.executed, &planned = instance.prepared.planned;
  auto compare = [&](const char *what, int64_t executed, int64_t expected) {
    if (executed != expected)
      instance.fail(STEPC_ERROR_COUNTS, format("the step made %lld %s, planned are %lld",
                                               (long long)executed, what, (long long)expected));
  };
  compare("launches", done.launches, planned.launches);
  compare("chunks", done.chunks, planned.chunks);
  compare("exchanges", done.exchanges, planned.exchanges);
  compare("sends", done.messages_sent, planned.messages_sent);
  compare("receives", done.messages_received, planned.messages_received);
  compare("bytes sent", done.bytes_sent, planned.bytes_sent);
  compare("bytes received", done.bytes_received, planned.bytes_received);
}

int32_t checkReady(stepc_instance &instance) {
  if (instance.failures.poisoned) {
    // The first cause stays readable, whatever was tried since.
    instance.failures.textLost = instance.failures.poisonedText.empty();
    try {
      instance.failures.error =
          instance.failures.poisonedText + "; the instance is poisoned until recover()";
    } catch (...) {
      instance.failures.textLost = true;
    }
    return STEPC_ERROR_POISONED;
  }
  DeviceContext &context = instance.deviceContext;
  context.failure.clear();
  const stepc_graph_table *graphs = instance.device().graphs;
  context.isCaptured = graphs && graphs->isCaptured(context);
  return context.failure.empty() ? STEPC_OK : instance.refuse(STEPC_ERROR_DEVICE, context.failure);
}

/// Fails if an earlier step went wrong on the device and nobody has asked about it yet. Must run before the
/// next step changes anything: commands still say which parameters may be written, and records which were
/// skipped.
static int32_t failOfEarlier(stepc_instance &instance) {
  std::string problem;
  int32_t status = instance.isOnDevice() ? instance.findTransportProblem(problem) : STEPC_OK;
  if (!status)
    return STEPC_OK;
  instance.fail(status, problem);
  return poison(instance);
}

/// Enqueues a step that was found ready.
static int32_t enqueueReady(stepc_instance &instance) {
  if (int32_t status = failOfEarlier(instance))
    return status;
  if (int32_t status = checkStep(instance))
    return status;
  if (int32_t status = instance.deviceContext.isCaptured ? checkCapture(instance) : STEPC_OK)
    return status;
  beginStep(instance);
  runStep(instance);
  if (instance.running.failure)
    return poison(instance);
  instance.failures.error.clear();
  return STEPC_OK;
}

int32_t enqueue(stepc_instance *self) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  FloatModes modes;
  int32_t status = checkReady(*self);
  return status ? status : enqueueReady(*self);
}

int32_t refresh(stepc_instance *self) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  FloatModes modes;
  if (int32_t status = checkReady(*self))
    return status;
  DeviceContext &context = self->deviceContext;
  if (context.isCaptured)
    return self->refuse(STEPC_ERROR_GRAPH, "refresh: expected a stream that no graph captures");
  if (int32_t status = failOfEarlier(*self))
    return status;
  if (int32_t status = checkStep(*self))
    return status;
  completeRecords(*self);
  if (self->device().graphs)
    self->device().graphs->refresh(context);
  return context.failure.empty() ? STEPC_OK : self->refuse(STEPC_ERROR_DEVICE, context.failure);
}

/// Poisons the instance if the device failed, or if the step has failed already. Otherwise returns STEPC_OK.
static int32_t conclude(stepc_instance &instance, bool isDone) {
  if (!instance.deviceContext.failure.empty())
    instance.fail(STEPC_ERROR_DEVICE, instance.deviceContext.failure);
  if (instance.running.failure)
    return instance.failures.poisoned ? instance.running.failure : poison(instance);
  for (PreparedExchange &exchange : instance.prepared.exchanges)
    exchange.inFlight &= !isDone;
  return STEPC_OK;
}

int32_t step(stepc_instance *self) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  FloatModes modes;
  if (int32_t status = checkReady(*self))
    return status;
  if (self->deviceContext.isCaptured)
    return self->refuse(STEPC_ERROR_GRAPH, "step: expected enqueue where a graph captures the "
                                           "stream: nothing is there to wait for");
  if (int32_t status = enqueueReady(*self))
    return status;
  if (self->isOnDevice()) {
    std::string error;
    // No limit, because a step may compute for long. The watchdog limits each exchange.
    double limit = std::numeric_limits<double>::infinity();
    if (int32_t status = self->waitForDevice(limit, "waiting for the GPU", error))
      self->fail(status, error);
  } else {
    self->device().drain(self->deviceContext);
  }
  return conclude(*self, true);
}

int32_t poll(stepc_instance *self, int32_t *done) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  if (!done)
    return self->refuse(STEPC_ERROR_ARGUMENT, "poll: the place for the answer is null");
  *done = self->running.failure || self->device().poll(self->deviceContext);
  std::string error;
  if (int32_t status =
          self->isOnDevice() && !self->running.failure ? self->findTransportProblem(error) : 0)
    self->fail(status, error);
  int32_t status = conclude(*self, *done);
  *done |= status != STEPC_OK;
  return status;
}

int32_t halfStepped(const stepc_instance *self, uint8_t *flags, int64_t count) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  if (!flags)
    return self->refuse(STEPC_ERROR_ARGUMENT, "half_stepped: the array of flags is null");
  if (count != int64_t(self->failures.halfStepped.size()))
    return self->refuse(STEPC_ERROR_ARGUMENT,
                        format("half_stepped: expected %zu flags, one per parameter, found %lld",
                               self->failures.halfStepped.size(), (long long)count));
  std::copy(self->failures.halfStepped.begin(), self->failures.halfStepped.end(), flags);
  return STEPC_OK;
}

int32_t recover(stepc_instance *self) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  if (self->failures.aborted)
    return self->refuse(STEPC_ERROR_TRANSPORT,
                        "the transport was aborted and cannot be used again: make a new instance");
  self->failures.poisoned = false;
  self->running.failure = STEPC_OK;
  self->deviceContext.failure.clear();
  self->parallel.takeProblem();
  std::fill(self->failures.halfStepped.begin(), self->failures.halfStepped.end(), uint8_t(0));
  self->failures.error.clear();
  self->failures.textLost = false;
  return STEPC_OK;
}

int32_t counters(const stepc_instance *self, stepc_counters *executed, stepc_counters *planned) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  int32_t status = executed ? fill(self, "counters", executed, self->running.executed) : STEPC_OK;
  return !status && planned ? fill(self, "counters", planned, self->prepared.planned) : status;
}

int32_t abortInstance(stepc_instance *self, const char *reason) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  if (!reason || !*reason)
    reason = "given up by the trainer";
  bool first = !self->failures.poisoned;
  self->failures.poisoned = true;
  // Abort first: the peers must hear of it even if no memory is left for the message.
  self->abortTransport(reason);
  if (first)
    self->failures.poisonedText.clear();
  self->refuse(STEPC_OK, reason);
  if (first)
    self->failures.poisonedText = self->failures.error;
  return STEPC_OK;
}

} // namespace stepc::runtime
