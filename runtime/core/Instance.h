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

/// Yields or sleeps, the longer the caller has `waited`. A peer on another core answers in microseconds, and
/// a peer on this core needs the core. A late peer should not keep a core busy.
void backOff(Clock::duration waited);
/// The status for a transport's error code. An unknown code becomes STEPC_ERROR_TRANSPORT.
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

  // Declared before the memory that it allocates, so it is destroyed later. Nothing uses it before all
  // members exist.
  stepc::runtime::DeviceContext deviceContext{parallel,        running.executed,
                                              library.plan,    library.program,
                                              running.records, running.someInactive};

  stepc::runtime::RankProgram prepared;
  stepc::runtime::Bindings bound;
  stepc::runtime::RunningStep running;

  // Watches exchanges on a device. Must be destroyed before the transport, which it uses.
  std::unique_ptr<stepc::runtime::Watchdog> watchdog;
  stepc::runtime::Failures failures;

  /// Sets the message, prefixed with this rank, and returns the status.
  Status refuse(Status status, const std::string &message) const;
  /// Fails the running step. Only the first failure is kept.
  void fail(Status status, const std::string &message);
  /// Fails the running step because of an exception: no memory, or one from a function that the trainer gave.
  void failWithoutText() noexcept;
  const char *lastError() const {
    return failures.textLost ? failures.memoryText.c_str() : failures.error.c_str();
  }
  /// Waits until the device has done all commands. Returns false if it has not finished in time.
  bool drainOrGiveUp() noexcept;
  /// Aborts the transport once. Peers that wait learn the reason.
  void abortTransport(const char *reason) noexcept;
  /// Waits for a handle of the transport, at most for the timeout. After a failure `message` gets the reason,
  /// which begins with `what`.
  Status wait(void *handle, const std::string &what, std::string &message);
  /// Starts operations. The handle is null if there are no operations, or if the operations are on a stream.
  Status start(const std::vector<stepc_operation> &operations, void *stream, void **handle,
               const std::string &what, std::string &message);
  /// The status and message of a problem: seals that differ, the watchdog's, or the transport's. STEPC_OK if
  /// none.
  Status findTransportProblem(std::string &message);
  /// Waits until the device has done all that was enqueued, a problem is found, or `seconds` have passed.
  Status waitForDevice(double seconds, const std::string &what, std::string &message);
  /// Whether a kernel counts the steps.
  bool countsSteps() const { return prepared.commands.back()->countsSteps(); }
  /// Whether exchanges are on a stream of the device; otherwise the host carries them out. `exchangeStream`
  /// is this stream, or null.
  bool isOnDevice() const { return size > 1 && device().stream; }
  void *exchangeStream() {
    return isOnDevice() ? device().stream(deviceContext, stepc::runtime::Stream::Communication)
                        : nullptr;
  }
  /// Whether the transport touches no buffer after its abort.
  bool takesBack() const { return transport.traits & STEPC_TRANSPORT_TAKES_BACK; }

  bool isMember(int64_t parameter) const {
    return prepared.groups[library.parameter(parameter).group].member;
  }
  std::string here() const { return stepc::runtime::rankName(library, rank); }
};

namespace stepc::runtime {

/// Keeps the message in the instance, if there is one, and returns the status.
int32_t refuse(const stepc_instance *instance, int32_t status, const std::string &message);

/// Refuses a parameter that does not exist, or a state that it does not have. `what` is the name of the
/// function.
int32_t checkState(const Library &lib, const stepc_instance *instance, const char *what,
                   int64_t parameter, int32_t state);

/// Refuses a parameter that does not exist, or a metric that it does not have. `what` is the name of the
/// function.
int32_t checkMetric(const Library &lib, const stepc_instance *instance, const char *what,
                    int64_t parameter, int32_t metric);

/// Checks that the trainer's struct is not null, and that it has the bytes that the function `what` fills.
int32_t checkRoom(const stepc_instance *instance, const char *what, const int32_t *structSize,
                  size_t needed);

/// Fills a struct of the trainer's, and sets its struct_size. Refuses a struct that is too small.
template <typename Struct>
int32_t fill(const stepc_instance *instance, const char *what, Struct *out, const Struct &found) {
  if (int32_t status = checkRoom(instance, what, out ? &out->struct_size : nullptr, sizeof(Struct)))
    return status;
  *out = found;
  out->struct_size = sizeof(Struct);
  return STEPC_OK;
}

/// Sets the message of `create`, and returns the status.
inline int32_t fault(std::string &error, int32_t status, std::string message) {
  error = std::move(message);
  return status;
}

// The functions of stepc_library.
/// Makes an instance of the program that the options' device runs, or of the first if that kind of device
/// does not choose. All `programs` must be for devices of one kind.
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
int32_t metrics(const stepc_instance *, int64_t parameter, int32_t metric, float *values,
                int64_t count);
int32_t boundState(const stepc_instance *, int64_t parameter, int32_t state, void **data,
                   int64_t *bytes);
int32_t moveStates(stepc_instance *, const stepc_library *library, stepc_instance *from);
int32_t counters(const stepc_instance *, stepc_counters *executed, stepc_counters *planned);
int32_t abortInstance(stepc_instance *, const char *reason);

/// Makes the plan's commands, exchanges and planned counters ready, in `create`. Returns what is wrong; empty
/// if nothing is. `status` says whether it is the plan or the device.
std::string prepareProgram(stepc_instance &, int32_t &status);
/// Makes what kernels read of inputs that are not given. Inputs of equal types and defaults share it.
void makeDefaults(stepc_instance &);
/// Lets kernels read the defaults of inputs that are not given, after the lists were lent.
void placeInputs(stepc_instance &, const AddressOf &addressOf);
int64_t inputCount(const Library &, int64_t parameter);
int32_t bindInput(stepc_instance *, int64_t parameter, int32_t input, const void *data,
                  int64_t bytes);
/// Refuses a parameter that does not exist, or an input that it does not have. `what` is the name of the
/// function.
int32_t checkInput(const Library &, const stepc_instance *, const char *what, int64_t parameter,
                   int32_t input);

/// Allocates the memory of metrics in `create`, and binds it. Returns what is wrong; empty if nothing is.
std::string placeMetrics(stepc_instance &);
/// How many numbers of a metric this rank has.
int64_t countOfMetric(const stepc_instance &, int64_t parameter, int32_t metric);
/// The list of bound pointers for an operand on shards, one per parameter of the plan. Null for other
/// operands.
std::vector<void *> *shardsOf(stepc_instance &, const plan::Operand &operand);
/// Where an operand begins in the workspace on this rank.
int64_t beginOf(const stepc_instance &, const plan::Operand &operand);
/// Work that is handed to the device between its `begin` and `finish`. The device abandons it if an exception
/// comes in between.
struct DeviceWork {
  const stepc_device_table &device;
  DeviceContext &context;
  bool hasEnded = false;
  ~DeviceWork() {
    if (!hasEnded)
      device.abandon(context);
  }
};
/// Lists the memory that a PreparedCommand may touch, and that its messages touch (Device.h's `declare`).
void declareUses(void *command, MemoryUses &uses);
std::string prepareExchanges(stepc_instance &);
/// Hands the device the host's lists that kernels read. Then gives commands the addresses that the device
/// chose.
std::string lendLists(stepc_instance &);
/// Computes the seals of this step's messages, if the host carries out exchanges.
void prepareSeals(stepc_instance &);
/// Hands all commands to the device, or replays the graph that was recorded of them.
void walkProgram(stepc_instance &);
/// Records all commands as a graph, in `create`.
int32_t recordGraph(stepc_instance &, std::string &error);
/// Fails the step if the trainer's parallel_for did not run each piece exactly once.
void checkLoops(stepc_instance &);
/// Fails the step if its counters differ from the planned counters.
void checkCounts(stepc_instance &);
/// Start and await a PreparedExchange. The device calls them (`call`) for the stream of messages.
void startExchange(void *exchange);
void awaitExchange(void *exchange);
void countMessages(const PreparedExchange &, stepc_counters &);
/// What the transport carries out between these two calls counts as executed.
void beginTraffic(stepc_instance &);
void countTraffic(stepc_instance &);
/// What a rank sends to all others when they meet. Each rank compares all hellos.
struct Hello {
  uint64_t magic, hash;
  int64_t kinds; // kinds of operations of its transport
  ProductLibrary library;
  char chip[64]; // of its program, without features; a zero ends it
};
/// `all` has `bytes` bytes for each rank, in the order of ranks. Sends this rank's to all others by messages
/// of the host, and receives theirs. `what` begins the text of an error.
int32_t tellRanks(stepc_instance &, void *all, int64_t bytes, const std::string &what,
                  std::string &error);
/// `meet` exchanges hellos with all ranks. `compare` finds where they differ, and all ranks find the same.
int32_t meet(stepc_instance &, std::vector<Hello> &hellos, std::string &error);
int32_t compare(const Library &, const std::vector<Hello> &hellos, std::string &error);
/// Whether the transport opens a communicator for a start. A transport that opens them on all ranks together
/// does so for all-gathers alone. The caller must check that the start has more than one rank, and fewer than
/// all.
bool opensFor(const stepc_instance &, const plan::Start &start);
/// Opens the communicators of all exchanges, once the ranks have met.
int32_t openCommunicators(stepc_instance &, std::string &error);
/// Carries out all exchanges once, on a workspace of zeros, so that connections are open before the first
/// step.
int32_t openConnections(stepc_instance &, std::string &error);
/// Operations that bring every rank's `bytes` to all ranks. In `all` each rank has a place, in the order of
/// ranks.
std::vector<stepc_operation> tellAll(const stepc_instance &, void *all, int64_t bytes, int64_t tag,
                                     bool gathers);
void closeCommunicators(stepc_instance &) noexcept;
void prepareAgreement(stepc_instance &);
/// Sets the records' pointers to hyperparameters, in `create` and after a bind. If `values` is null, a
/// parameter has the values of its route.
void placeHyperparameters(stepc_instance &, const double *values, int64_t stride,
                          std::vector<int32_t> groups, int32_t memory = STEPC_MEMORY_HOST);
/// Copies what changes with steps from the first record of each parameter to the records of its further
/// parts.
void completeRecords(stepc_instance &);
/// Adds `by` to the step counts that the host holds, but not of parameters that this step skips.
void countSteps(stepc_instance &, int64_t by) noexcept;
/// Sets the records' pointers to step counts.
void placeSteps(stepc_instance &);
/// Lists the memory that the trainer will lend, and checks that no two ranges overlap if a step writes one of
/// them.
void prepareOverlaps(stepc_instance &);
int32_t checkOverlaps(stepc_instance &);
/// Checks whether the instance may step, and finds whether a graph of the trainer's captures the stream.
int32_t checkReady(stepc_instance &);
/// Checks all that a step reads, and fills the records.
int32_t checkStep(stepc_instance &);
/// Checks what a step needs in addition if a graph of the trainer's captures it. Then uploads the lists that
/// the step reads.
int32_t checkCapture(stepc_instance &);
/// Agrees with all ranks on the parameters that this step skips, if a route may skip. Ranks compare
/// hyperparameters and step counts with the same messages, and in the first step in any case.
int32_t agree(stepc_instance &);
bool isPresent(const stepc_instance &, int64_t parameter);
/// The error text for another rank whose seal of these meshes is `other`, which differs from this rank's.
/// `ownRank` is the rank to name beside it, which has this rank's numbers.
std::string disagreement(const stepc_instance &, const std::vector<int64_t> &meshes,
                         const Seal &other, int32_t otherRank, int32_t ownRank);
/// The error text as above, if this rank's seal is `own`, added up from `SealedNumbers`.
std::string disagreement(const stepc_instance &, const std::vector<int64_t> &meshes,
                         const SealedNumbers &, const Seal &own, const Seal &other,
                         int32_t otherRank, int32_t ownRank);
/// Lists what kernels need to seal messages on a device's stream. Must be called when all exchanges are
/// ready.
void prepareDeviceSeals(stepc_instance &);
/// Gives these kernels the addresses of the lists on the device. Returns what is wrong; empty if nothing is.
std::string placeDeviceSeals(stepc_instance &, const AddressOf &addressOf);
/// Returns STEPC_ERROR_AGREEMENT, with a message, if such a kernel found a seal that differs; otherwise
/// STEPC_OK.
int32_t findDisagreement(const stepc_instance &, std::string &message);

/// "group 'g0' ('w0', 'w1' and 3 more)".
std::string groupName(const Library &, int64_t group);
std::string exchangeName(const Library &, int64_t order);

} // namespace stepc::runtime

#endif
