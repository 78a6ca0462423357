//===- Instance.h - One rank's optimizer -------------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_CORE_INSTANCE_H
#define STEPC_RUNTIME_CORE_INSTANCE_H

#include "runtime/core/Bindings.h"
#include "runtime/core/Failures.h"
#include "runtime/core/Library.h"
#include "runtime/core/RankProgram.h"
#include "runtime/core/RunningStep.h"
#include "runtime/core/Watchdog.h"
#include "runtime/devices/Device.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace stepc::runtime {

using Clock = std::chrono::steady_clock;

/// Waits a little longer each time. A peer on another core answers in microseconds, and one that shares this
/// core needs it. A late peer should not cost a core.
void backOff(Clock::duration waited);
/// The status that a transport's code stands for.
int32_t statusOf(int32_t code);

/// Tags of messages: those outside the exchanges of a step, then one per exchange.
inline constexpr int64_t kHelloTag = 0, kAgreementTag = 1, kFirstExchangeTag = 2;

/// Operations between two ranks of the world.
inline stepc_operation sendTo(int32_t peer, const void *buffer, int64_t bytes, int64_t tag) {
  return {STEPC_SEND, peer, nullptr, buffer, nullptr, bytes, tag, STEPC_ELEMENT_NONE, 0};
}
inline stepc_operation receiveFrom(int32_t peer, void *buffer, int64_t bytes, int64_t tag) {
  return {STEPC_RECEIVE, peer, nullptr, nullptr, buffer, bytes, tag, STEPC_ELEMENT_NONE, 0};
}

} // namespace stepc::runtime

struct stepc_instance {
  using Status = int32_t;

  explicit stepc_instance(const stepc::runtime::Library &library) : library(library) {}
  ~stepc_instance();

  const stepc::runtime::Library &library;
  const stepc_device_table &device() const { return library.device(); }
  stepc_transport transport{};
  bool hasTransport = false;
  int32_t rank = 0, size = 1;
  double timeout = 120;
  stepc::runtime::Parallel parallel;

  // Stands before the memory that it allocates. The members that it refers to are made before it is used.
  stepc::runtime::DeviceContext deviceContext{parallel,        running.executed,
                                              library.plan,    library.program,
                                              running.records, running.someInactive};

  stepc::runtime::RankProgram prepared;
  stepc::runtime::Bindings bound;
  stepc::runtime::RunningStep running;

  // Watches exchanges on a device. It uses the transport, so it must be destroyed first.
  std::unique_ptr<stepc::runtime::Watchdog> watchdog;
  stepc::runtime::Failures failures;

  /// Sets the message, prefixed with this rank, and returns the status.
  Status refuse(Status status, const std::string &message) const;
  /// Refuses the running step. Only the first failure counts.
  void fail(Status status, const std::string &message);
  /// Fails the running step because of an exception: no memory, or one from a function that the trainer gave.
  void failWithoutText() noexcept;
  const char *lastError() const {
    return failures.textLost ? failures.memoryText.c_str() : failures.error.c_str();
  }
  /// Waits until the device has done all; false if it does not come to an end.
  bool drainOrGiveUp() noexcept;
  /// Gives up the transport. Peers that wait learn the reason.
  void abortTransport(const char *reason) noexcept;
  /// Waits for a handle of the transport until the timeout, measured from here. `what` names
  /// the wait in the failure that `message` receives.
  Status wait(void *handle, const std::string &what, std::string &message);
  /// Starts operations. The handle is null if there are none, and if they are on a stream.
  Status start(const std::vector<stepc_operation> &operations, void *stream, void **handle,
               const std::string &what, std::string &message);
  /// A problem that the watchdog found, or that the transport reports for operations on streams.
  Status findTransportProblem(std::string &message);
  /// Waits until the device has done all that was enqueued, or a problem is found, but at most `seconds`.
  Status waitForDevice(double seconds, const std::string &what, std::string &message);
  /// Whether exchanges are on a stream of the device; otherwise the host carries them out. `exchangeStream`
  /// is that stream.
  bool isOnDevice() const { return size > 1 && device().stream; }
  void *exchangeStream() {
    return isOnDevice() ? device().stream(deviceContext, stepc::runtime::Stream::Communication)
                        : nullptr;
  }
  /// Whether no buffer is touched any more once the transport is aborted.
  bool takesBack() const { return transport.traits & STEPC_TRANSPORT_TAKES_BACK; }

  bool isMember(int64_t parameter) const {
    return prepared.groups[library.parameter(parameter).group].member;
  }
  std::string here() const { return stepc::runtime::rankName(library, rank); }
};

namespace stepc::runtime {

/// Refuses for an instance, or without one, where no message can be kept.
int32_t refuse(const stepc_instance *instance, int32_t status, const std::string &message);

/// Whether a struct of the trainer's can be filled, as `what` fills it.
int32_t checkRoom(const stepc_instance *instance, const char *what, const int32_t *structSize,
                  size_t needed);

/// Fills a struct of the trainer's as far as it has room, and says how far.
template <typename Struct>
int32_t fill(const stepc_instance *instance, const char *what, Struct *out, const Struct &found) {
  if (int32_t status = checkRoom(instance, what, out ? &out->struct_size : nullptr, sizeof(Struct)))
    return status;
  *out = found;
  out->struct_size = sizeof(Struct);
  return STEPC_OK;
}

/// A status of `create`, with its message.
inline int32_t fault(std::string &error, int32_t status, std::string message) {
  error = std::move(message);
  return status;
}

// The functions of stepc_library.
/// Makes an instance of the first of `programs`, or of the one among them that the device runs. All are for
/// devices of one kind.
int32_t create(const std::vector<const Library *> &programs, const stepc_options *options,
               stepc_instance **instance, char *error, int64_t errorSize);
int32_t destroy(stepc_instance *instance);
int32_t bindParameter(stepc_instance *, int64_t parameter, void *data, int64_t bytes);
int32_t bindState(stepc_instance *, int64_t parameter, int32_t state, void *data, int64_t bytes);
int32_t bindGradient(stepc_instance *, int64_t parameter, const void *data, int64_t bytes);
int32_t bindGradients(stepc_instance *, const void *const *data, int64_t count);
int32_t bindSteps(stepc_instance *, int64_t *steps, int32_t memory);
int32_t bindHyperparameters(stepc_instance *, const double *values, int64_t groupCount,
                            int64_t stride, const int32_t *groups, int32_t memory);
int32_t setHyperparameter(stepc_instance *, int64_t route, const char *name, double value);
int32_t step(stepc_instance *);
int32_t enqueue(stepc_instance *);
int32_t poll(stepc_instance *, int32_t *done);
int32_t refresh(stepc_instance *);
int32_t halfStepped(const stepc_instance *, uint8_t *flags, int64_t count);
int32_t recover(stepc_instance *);
int32_t shardRuns(stepc_instance *, int64_t parameter, int32_t of, stepc_run *runs,
                  int64_t capacity, int64_t *count);
int32_t counters(const stepc_instance *, stepc_counters *executed, stepc_counters *planned);
int32_t abortInstance(stepc_instance *, const char *reason);

/// The commands, their lists of messages and planned counters, at create. The text says what the
/// plan gets wrong.
std::string prepareProgram(stepc_instance &);
/// The pointers of bound shards, one per parameter of the plan; null for other operands.
std::vector<void *> *shardsOf(stepc_instance &, const plan::Operand &operand);
/// Where an operand begins in the workspace on this rank.
int64_t beginOf(const stepc_instance &, const plan::Operand &operand);
/// What a PreparedCommand may touch, and what its messages do touch (Device.h's `declare`).
void declareUses(void *command, MemoryUses &uses);
std::string prepareExchanges(stepc_instance &);
/// Tells the device what kernels read of the host, and the commands where they find it.
std::string lendLists(stepc_instance &);
/// The seals that messages of this step have.
void prepareSeals(stepc_instance &);
/// Hands all commands to the device, or the graph of them.
void walkProgram(stepc_instance &);
/// Makes that graph, at create.
int32_t recordGraph(stepc_instance &, std::string &error);
/// Fails the step where the trainer's parallel_for ran pieces other than once each.
void checkLoops(stepc_instance &);
/// Fails the step where what was executed is not what was planned.
void checkCounts(stepc_instance &);
/// Start and await a PreparedExchange, when the stream of messages has come to it.
void startExchange(void *exchange);
void awaitExchange(void *exchange);
void countMessages(const PreparedExchange &, stepc_counters &);
/// What the transport carries out between these two calls counts as executed.
void beginTraffic(stepc_instance &);
void countTraffic(stepc_instance &);
/// What a rank says of itself; compared by each.
struct Hello {
  uint64_t magic, hash;
  int64_t kinds; // of its transport
  ProductLibrary library;
  char chip[64]; // of its program, without features; a zero ends it
};
/// Meets the other ranks, and finds where they differ: all find the same.
int32_t meet(stepc_instance &, std::vector<Hello> &hellos, std::string &error);
int32_t compare(const Library &, const std::vector<Hello> &hellos, std::string &error);
/// Whether the transport opens a communicator for the ranks of a start. The caller sees to it that these are
/// more than one and fewer than all.
bool opensFor(const stepc_instance &, const plan::Start &start);
/// Opens the communicators of all exchanges, once the ranks have met.
int32_t openCommunicators(stepc_instance &, std::string &error);
/// Sends once what steps will send, of a workspace of zeros: no step is the first to reach a peer.
int32_t openConnections(stepc_instance &, std::string &error);
/// Operations by which all ranks learn what each has at its place in `all`.
std::vector<stepc_operation> tellAll(const stepc_instance &, void *all, int64_t bytes, int64_t tag,
                                     bool gathers);
void closeCommunicators(stepc_instance &) noexcept;
void prepareAgreement(stepc_instance &);
/// Tells the records which hyperparameters are theirs: at create, and after a bind.
/// With null values they are their routes'.
void placeHyperparameters(stepc_instance &, const double *values, int64_t stride,
                          std::vector<int32_t> groups, int32_t memory = STEPC_MEMORY_HOST);
/// Tells the records of further parts what those of their parameters say.
void completeRecords(stepc_instance &);
/// Adds to the counts that the host holds, of what this step does not skip.
void countSteps(stepc_instance &, int64_t by) noexcept;
/// Tells the records where the counts of their steps stand.
void placeSteps(stepc_instance &);
/// Lists what the trainer will lend, and checks that no two of it overlap where one is written.
void prepareOverlaps(stepc_instance &);
int32_t checkOverlaps(stepc_instance &);
/// Checks all that a step reads, and fills the records.
int32_t checkStep(stepc_instance &);
/// Checks what else a step needs that becomes part of a graph of the trainer's, and brings the lists that it
/// reads to the device.
int32_t checkCapture(stepc_instance &);
/// Agrees with all ranks on the parameters that this step skips. Then, and in the first step, ranks also
/// compare their hyperparameters and step counts.
int32_t agree(stepc_instance &);
bool isPresent(const stepc_instance &, int64_t parameter);
/// How the numbers of another rank, whose seal of meshes this is, differ from those of this rank; `ownRank`
/// has the same as this one.
std::string disagreement(const stepc_instance &, const std::vector<int64_t> &meshes,
                         const Seal &other, int32_t otherRank, int32_t ownRank);
/// How they differ where this rank's seal is `own`, added up from these numbers.
std::string disagreement(const stepc_instance &, const std::vector<int64_t> &meshes,
                         const SealedNumbers &, const Seal &own, const Seal &other,
                         int32_t otherRank, int32_t ownRank);
/// Lists what kernels need to put seals on the messages of a stream, once all exchanges are ready.
void prepareDeviceSeals(stepc_instance &);
/// Tells these kernels where the device has the lists.
std::string placeDeviceSeals(stepc_instance &, const AddressOf &addressOf);
/// What such a kernel found in a message, as a status.
int32_t findDisagreement(const stepc_instance &, std::string &message);

/// "group 'g0' ('w0', 'w1' and 3 more)".
std::string groupName(const Library &, int64_t group);
std::string exchangeName(const Library &, int64_t order);

} // namespace stepc::runtime

#endif
