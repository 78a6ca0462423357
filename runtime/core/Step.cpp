//===- Step.cpp - One optimizer step, and what follows a failure ------------===//
#include "runtime/core/Instance.h"
#include "runtime/host/FloatModes.h"
#include "runtime/text/Plural.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <limits>

using namespace stepc::runtime;

int32_t stepc_instance::refuse(Status status, const std::string &message) const {
  cause = message;
  error = here() + ": " + message;
  textLost = false;
  return status;
}

void stepc_instance::fail(Status status, const std::string &message) {
  if (failure)
    return;
  failure = status;
  refuse(status, message);
}

void stepc_instance::failWithoutText() noexcept {
  failure = STEPC_ERROR_MEMORY;
  textLost = true;
}

void stepc_instance::abortTransport(const char *reason) noexcept {
  for (PreparedExchange &exchange : exchanges)
    leftInFlight |= exchange.inFlight;
  if (!hasTransport || size == 1 || aborted)
    return;
  aborted = true;
  try {
    transport.abort(transport.context, reason);
  } catch (...) {
    // A trainer's transport that throws: nothing more can be done for the peers.
    leftInFlight = true;
  }
}

namespace stepc::runtime {
namespace {

/// Marks the parameters whose shards a command of the failed step may have written.
void markHalfStepped(stepc_instance &instance) {
  const plan::Plan &plan = instance.library.plan;
  auto mark = [&](int64_t p) { instance.halfStepped[p] |= uint8_t(instance.records[p].active); };
  for (const auto &command : instance.program) {
    if (!command->begun)
      continue;
    for (const plan::Effect &effect : plan::effects(plan, command->planned())) {
      if (!effect.writes() || !effect.operand || !effect.operand->isShards())
        continue;
      const plan::RankTable &rows = instance.tables.tables[effect.table];
      for (const plan::Chunk &chunk : rows.chunks)
        mark(chunk.parameter);
      for (const plan::CopyRow &row : rows.copies)
        mark(row.parameter);
    }
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
  return plural(count, "parameter") + " or " + (count == 1 ? "its" : "their") +
         " states may be half stepped (" + names + ")";
}

constexpr const char *kMemoryCause = "memory ran out, or a function of the trainer threw";

int32_t poison(stepc_instance &instance) noexcept {
  instance.poisoned = true;
  instance.poisonedText.clear();
  markHalfStepped(instance);
  // A device may fail after its last command was enqueued.
  if (instance.stepsAdvanced)
    countSteps(instance, -1);
  instance.stepsAdvanced = false;
  try {
    if (!instance.textLost) {
      instance.error += "; " + halfSteppedText(instance);
      instance.poisonedText = instance.error;
    }
  } catch (...) {
    instance.failWithoutText();
  }
  instance.abortTransport(instance.textLost ? kMemoryCause : instance.cause.c_str());
  return instance.failure;
}

void beginStep(stepc_instance &instance) noexcept {
  instance.failure = STEPC_OK;
  instance.textLost = false;
  instance.executed = stepc_counters{};
  instance.stepsAdvanced = false;
  for (const auto &command : instance.program)
    command->begun = false;
  for (PreparedExchange &exchange : instance.exchanges) {
    exchange.started = exchange.finished = false;
    // On a device that of an earlier step may be under way.
    exchange.inFlight &= instance.isOnDevice();
  }
}

/// From here on messages travel and kernels write: no failure is without consequence.
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
  for (size_t order = 0; order < instance.exchanges.size(); ++order) {
    const PreparedExchange &exchange = instance.exchanges[order];
    if (!exchange.started || !exchange.finished)
      return instance.fail(STEPC_ERROR_COUNTS,
                           exchangeName(instance.library, order) +
                               (exchange.started ? " was never waited for" : " was never started"));
  }
  const stepc_counters &done = instance.executed, &planned = instance.planned;
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

/// Whether the instance may step, and whether a graph captures what it enqueues.
static int32_t checkReady(stepc_instance &instance) {
  if (instance.poisoned) {
    // The first cause stays readable, whatever was tried since.
    instance.textLost = instance.poisonedText.empty();
    try {
      instance.error = instance.poisonedText + "; the instance is poisoned until recover()";
    } catch (...) {
      instance.textLost = true;
    }
    return STEPC_ERROR_POISONED;
  }
  DeviceContext &context = instance.deviceContext;
  context.failure.clear();
  const stepc_graph_table *graphs = instance.device().graphs;
  context.isCaptured = graphs && graphs->isCaptured(context);
  return context.failure.empty() ? STEPC_OK : instance.refuse(STEPC_ERROR_DEVICE, context.failure);
}

/// Fails where something is wrong with an earlier step that nobody asked about. Its commands are those
/// that may have written, and its records say which parameters it skipped, so nothing of the next step is
/// looked at before.
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
  if (instance.failure)
    return poison(instance);
  instance.error.clear();
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

/// What was found while the device carried out a step that was enqueued, by the device or already known.
static int32_t conclude(stepc_instance &instance, bool isDone) {
  if (!instance.deviceContext.failure.empty())
    instance.fail(STEPC_ERROR_DEVICE, instance.deviceContext.failure);
  if (instance.failure)
    return instance.poisoned ? instance.failure : poison(instance);
  for (PreparedExchange &exchange : instance.exchanges)
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
    // As long as it computes: the watchdog limits each exchange.
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
  *done = self->failure || self->device().poll(self->deviceContext);
  std::string error;
  if (int32_t status = self->isOnDevice() && !self->failure ? self->findTransportProblem(error) : 0)
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
  if (count != int64_t(self->halfStepped.size()))
    return self->refuse(STEPC_ERROR_ARGUMENT,
                        format("half_stepped: expected %zu flags, one per parameter, found %lld",
                               self->halfStepped.size(), (long long)count));
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
  self->deviceContext.failure.clear();
  self->parallel.takeProblem();
  std::fill(self->halfStepped.begin(), self->halfStepped.end(), uint8_t(0));
  self->error.clear();
  self->textLost = false;
  return STEPC_OK;
}

int32_t counters(const stepc_instance *self, stepc_counters *executed, stepc_counters *planned) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  int32_t status = executed ? fill(self, "counters", executed, self->executed) : STEPC_OK;
  return !status && planned ? fill(self, "counters", planned, self->planned) : status;
}

int32_t abortInstance(stepc_instance *self, const char *reason) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  if (!reason || !*reason)
    reason = "given up by the trainer";
  bool first = !self->poisoned;
  self->poisoned = true;
  // The peers hear of it, whether or not memory is left for the message.
  self->abortTransport(reason);
  if (first)
    self->poisonedText.clear();
  self->refuse(STEPC_OK, reason);
  if (first)
    self->poisonedText = self->error;
  return STEPC_OK;
}

} // namespace stepc::runtime
