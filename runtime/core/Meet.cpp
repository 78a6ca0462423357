//===- Meet.cpp - What ranks do together before the first step ---------------===//
#include "runtime/core/Chip.h"
#include "runtime/core/Instance.h"
#include "runtime/plan/Pinned.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace stepc::runtime {
namespace {

constexpr uint64_t kMagic = 0x36304350455453; // "STEPC06"

/// Opens a communicator for the ranks of a meeting. If `meeting` is null, this rank only takes part, so that
/// other ranks can open theirs.
int32_t openCommunicator(stepc_instance &instance, Meeting *meeting, std::string &error) {
  const stepc_transport &transport = instance.transport;
  auto count = meeting ? int32_t(meeting->members.size()) : 0;
  std::string what = count > 0 ? format("opening a communicator of %d ranks", count)
                               : "helping other ranks to open a communicator";
  char text[512] = "";
  void *handle = nullptr, *none = nullptr;
  int32_t code = transport.open_communicator(
      transport.context, meeting ? meeting->members.data() : nullptr, count,
      meeting ? &meeting->communicator : &none, &handle, text, sizeof(text));
  if (code) {
    error = what + ": " + (*text ? text : format("the transport failed with code %d", code));
    return statusOf(code);
  }
  return handle ? instance.wait(handle, what, error) : STEPC_OK;
}

/// Opens communicators in one order on all ranks of the world. The sets of ranks of one start have no rank in
/// common, so one call opens all of them.
int32_t openTogether(stepc_instance &instance, std::string &error) {
  std::set<std::vector<int32_t>> opened; // sets, also those without this rank
  for (const plan::Start *start : instance.library.plan.starts()) {
    if (!opensFor(instance, *start))
      continue;
    std::map<int64_t, std::vector<int32_t>> sets;
    std::vector<int64_t> places = plan::meetings(instance.library.plan, start->communicator);
    for (int32_t rank = 0; rank < instance.size; ++rank)
      if (places[size_t(rank)] >= 0)
        sets[places[size_t(rank)]].push_back(rank);
    bool someNew = false;
    Meeting *own = nullptr;
    for (auto &[place, members] : sets) {
      if (members.size() < 2 || int32_t(members.size()) == instance.size ||
          !opened.insert(members).second)
        continue;
      someNew = true;
      if (place == places[size_t(instance.rank)])
        own = &*std::find_if(instance.prepared.meetings.begin(), instance.prepared.meetings.end(),
                             [&](const Meeting &one) { return one.members == members; });
    }
    if (int32_t status = someNew ? openCommunicator(instance, own, error) : STEPC_OK)
      return status;
  }
  return STEPC_OK;
}

std::string chipOf(const Hello &hello) {
  return std::string(hello.chip, strnlen(hello.chip, sizeof(hello.chip)));
}

/// "cuBLASLt 13.0.2 on sm_90 of 132 multiprocessors".
std::string describe(const ProductLibrary &library) {
  std::string name =
      library.version ? "cuBLASLt " + plan::cublasLtVersion(library.version) : "no cuBLASLt";
  return format("%s on sm_%lld of %lld multiprocessors%s", name.c_str(), (long long)library.chip,
                (long long)library.multiprocessors,
                library.choices ? "" : ", for which nothing is pinned,");
}

} // namespace

std::vector<stepc_operation> tellAll(const stepc_instance &instance, void *all, int64_t bytes,
                                     int64_t tag, bool gathers) {
  auto *at = static_cast<char *>(all);
  char *own = at + instance.rank * bytes;
  if (gathers && instance.size > 1)
    return {{STEPC_ALL_GATHER, -1, nullptr, own, all, bytes, tag, STEPC_ELEMENT_NONE, 0}};
  std::vector<stepc_operation> messages;
  for (int32_t peer = 0; peer < instance.size; ++peer) {
    if (peer == instance.rank)
      continue;
    messages.push_back(receiveFrom(peer, at + peer * bytes, bytes, tag));
    messages.push_back(sendTo(peer, own, bytes, tag));
  }
  return messages;
}

int32_t tellRanks(stepc_instance &instance, void *all, int64_t bytes, const std::string &what,
                  std::string &error) {
  // When ranks meet they do not know yet whether all transports have an all-gather. On the host they use
  // messages, which every transport has. On devices they use an all-gather, because messages would open a
  // connection to every rank.
  bool gathers = instance.isOnDevice() && (instance.transport.kinds >> STEPC_ALL_GATHER & 1);
  void *handle = nullptr;
  int32_t status = instance.start(tellAll(instance, all, bytes, kHelloTag, gathers), nullptr,
                                  &handle, what, error);
  return status ? status : instance.wait(handle, what, error);
}

int32_t meet(stepc_instance &instance, std::vector<Hello> &hellos, std::string &error) try {
  int32_t size = instance.size;
  hellos.assign(size, Hello{});
  Hello &own = hellos[instance.rank];
  own = {kMagic, instance.library.hash, instance.transport.kinds, instance.deviceContext.library,
         ""};
  std::string chip = shortChip(instance.library.plan.chip);
  chip.copy(own.chip, sizeof(own.chip) - 1);
  return tellRanks(instance, hellos.data(), sizeof(Hello), "comparing libraries when the ranks met",
                   error);
} catch (...) {
  error.assign("out of memory"); // short: does not allocate
  return STEPC_ERROR_MEMORY;
}

int32_t compare(const Library &lib, const std::vector<Hello> &hellos, std::string &error) try {
  auto size = int32_t(hellos.size());
  // Every rank sees all hashes, so all name the same rank: one that differs from the most.
  uint64_t common = hellos[0].hash;
  int64_t best = 0;
  for (const Hello &hello : hellos) {
    int64_t votes = std::count_if(hellos.begin(), hellos.end(),
                                  [&](const Hello &other) { return other.hash == hello.hash; });
    if (votes > best) {
      best = votes;
      common = hello.hash;
    }
  }
  auto usual = std::find_if(hellos.begin(), hellos.end(),
                            [&](const Hello &hello) { return hello.hash == common; });
  for (int32_t r = 0; r < size; ++r) {
    const Hello &hello = hellos[r];
    if (hello.magic == kMagic && hello.hash == common)
      continue;
    std::string what = "holds another library";
    if (hello.magic == kMagic && chipOf(hello) != chipOf(*usual))
      what = format("takes the step for %s, and not that for %s", chipOf(hello).c_str(),
                    chipOf(*usual).c_str());
    return fault(error, STEPC_ERROR_PLAN,
                 format("%s %s: its plan has hash %016llx, %lld of %d ranks have %016llx",
                        rankName(lib, r).c_str(), what.c_str(), (unsigned long long)hello.hash,
                        (long long)best, size, (unsigned long long)common));
  }
  // Compare with rank 0: no choice of algorithms is the right one.
  for (int32_t r = 1; r < size; ++r)
    if (hellos[r].library.choices != hellos[0].library.choices)
      return fault(
          error, STEPC_ERROR_PLAN,
          format("expected the same algorithms of products on all ranks, found %s has %s, and %s "
                 "has %s: results would depend on the rank",
                 rankName(lib, 0).c_str(), describe(hellos[0].library).c_str(),
                 rankName(lib, r).c_str(), describe(hellos[r].library).c_str()));
  // A rank that gathers and a rank that sends messages would wait for each other for ever.
  for (int32_t r = 1; r < size; ++r)
    if (hellos[r].kinds != hellos[0].kinds)
      return fault(error, STEPC_ERROR_TRANSPORT,
                   format("expected transports of equal kinds on all ranks, found 0x%llx on %s and "
                          "0x%llx on %s",
                          (unsigned long long)hellos[0].kinds, rankName(lib, 0).c_str(),
                          (unsigned long long)hellos[r].kinds, rankName(lib, r).c_str()));
  return STEPC_OK;
} catch (...) {
  error.assign("out of memory"); // short: does not allocate
  return STEPC_ERROR_MEMORY;
}

int32_t openCommunicators(stepc_instance &instance, std::string &error) try {
  if (instance.transport.traits & STEPC_TRANSPORT_OPENS_TOGETHER) {
    if (int32_t status = openTogether(instance, error))
      return status;
  } else {
    for (Meeting &meeting : instance.prepared.meetings)
      if (int32_t status =
              meeting.isOpened ? openCommunicator(instance, &meeting, error) : STEPC_OK)
        return status;
  }
  for (PreparedExchange &exchange : instance.prepared.exchanges)
    for (stepc_operation &operation : exchange.operations)
      operation.communicator = instance.prepared.meetings[exchange.meeting].communicator;
  return STEPC_OK;
} catch (...) {
  error.assign("out of memory"); // short: does not allocate
  return STEPC_ERROR_MEMORY;
}

void closeCommunicators(stepc_instance &instance) noexcept {
  for (Meeting &meeting : instance.prepared.meetings)
    if (meeting.communicator)
      instance.transport.close_communicator(instance.transport.context, meeting.communicator);
  instance.prepared.meetings.clear();
}

int32_t openConnections(stepc_instance &instance, std::string &error) try {
  DeviceContext &context = instance.deviceContext;
  std::string what = "reaching the peers of steps";
  instance.device().begin(context);
  int32_t status = STEPC_OK;
  for (PreparedExchange &exchange : instance.prepared.exchanges) {
    instance.failures.leftInFlight |= !exchange.operations.empty();
    if (!status)
      status = instance.start(exchange.operations, instance.exchangeStream(), &exchange.handle,
                              exchangeName(instance.library, exchange.order), error);
  }
  instance.device().finish(context);
  if (!status)
    status = instance.waitForDevice(instance.timeout, what, error);
  // Also reach the peers of `agree`, whose messages the host sends before the first exchange of a step.
  if (void *handle = nullptr; !status && !instance.running.tellMessages.empty()) {
    status = instance.start(instance.running.tellMessages, nullptr, &handle, what, error);
    status = status ? status : instance.wait(handle, what, error);
  }
  if (status)
    return status;
  instance.failures.leftInFlight = false;
  int32_t *words = instance.device().marks(
      context, Watchdog::kFirstExchange + int64_t(instance.prepared.exchanges.size()));
  if (!words)
    return fault(error, STEPC_ERROR_MEMORY,
                 "expected memory to watch exchanges by: " + context.failure);
  instance.watchdog = std::make_unique<Watchdog>(
      instance.transport, words, instance.timeout,
      [&library = instance.library](int64_t order) { return exchangeName(library, order); });
  return STEPC_OK;
} catch (...) {
  error.assign("out of memory"); // short: does not allocate
  return STEPC_ERROR_MEMORY;
}

} // namespace stepc::runtime

using namespace stepc::runtime;

int32_t stepc_instance::findTransportProblem(std::string &message) {
  // Look for seals that differ first: the rank that finds them aborts the transport, which hides the cause.
  if (int32_t status = findDisagreement(*this, message))
    return status;
  if (int32_t status = watchdog ? watchdog->found(message) : STEPC_OK)
    return status;
  char text[512] = "";
  int32_t code = transport.test(transport.context, nullptr, text, sizeof(text));
  if (code >= 0)
    return STEPC_OK;
  message = *text ? text : format("the transport failed with code %d", -code);
  return statusOf(-code);
}

int32_t stepc_instance::waitForDevice(double seconds, const std::string &what,
                                      std::string &message) {
  auto begin = Clock::now();
  while (!device().poll(deviceContext)) {
    if (int32_t status = findTransportProblem(message))
      return status;
    auto waited = Clock::now() - begin;
    if (std::chrono::duration<double>(waited).count() >= seconds) {
      message = what + format(": no answer within %g seconds", seconds);
      return STEPC_ERROR_TIMEOUT;
    }
    backOff(waited);
  }
  // An abort also lets the device finish, so look for its cause.
  if (int32_t status = findTransportProblem(message))
    return status;
  message = deviceContext.failure;
  return message.empty() ? STEPC_OK : STEPC_ERROR_DEVICE;
}
