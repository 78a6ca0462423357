//===- DeviceSeals.cpp - Seals of messages that a device sends --------------===//
#include "runtime/core/DeviceSeals.h"
#include "runtime/core/Instance.h"

#include <atomic>
#include <cstring>

namespace stepc::runtime {
namespace {

/// Lists the rows and messages of all launches.
class Lister {
public:
  explicit Lister(stepc_instance &instance)
      : instance(instance), seals(instance.running.deviceSeals),
        zero(int64_t(instance.running.sealedMeshes.size())) {}

  void run() {
    instance.running.agreement.listTerms(instance.running.sealedMeshes, ofSeal, seals.terms,
                                         seals.columns);
    seals.seals.resize(size_t(zero) + 1);
    for (const plan::Command &command : instance.library.plan.commands)
      if (const auto *start = std::get_if<plan::Start>(&command))
        list(instance.prepared.exchanges[size_t(started++)], start->kernel);
      else if (const auto *await = std::get_if<plan::Await>(&command))
        listCheck(instance.prepared.exchanges[size_t(await->start.value)], await->kernel);
  }

private:
  void begin(SealLaunch &made, int64_t kernel) {
    made.firstRow = seals.rows.size();
    made.launch = instance.library.launch(kernel);
  }

  /// Lists the seals that a start's kernel puts on its messages. The first start with messages adds up all
  /// seals.
  void list(PreparedExchange &exchange, int64_t kernel) {
    if (exchange.operations.empty() || kernel < 0)
      return;
    begin(exchange.seal, kernel);
    for (int64_t number = 0; number < zero; ++number) {
      stepc_seal_row row = ofSeal[size_t(number)];
      row.is_new = !areAddedUp;
      row.first_message = int64_t(seals.messages.size());
      for (const PreparedExchange::MessageSeal &seal : exchange.sealsSent)
        if (int64_t(seal.number) == number)
          add(seal, const_cast<void *>(seal.sent(exchange)), number, exchange);
      row.last_message = int64_t(seals.messages.size());
      if (row.is_new || row.first_message < row.last_message)
        seals.rows.push_back(row);
    }
    areAddedUp = true;
    // Clears the received seals, so that a message that does not come leaves no seal of an earlier step.
    stepc_seal_row cleared{zero, 0, 0, 0, int64_t(seals.messages.size()), 0, {}};
    for (const PreparedExchange::MessageSeal &seal : exchange.sealsReceived)
      add(seal, seal.received(exchange), zero, exchange);
    cleared.last_message = int64_t(seals.messages.size());
    if (cleared.first_message < cleared.last_message)
      seals.rows.push_back(cleared);
    exchange.seal.launch.items = int64_t(seals.rows.size() - exchange.seal.firstRow);
  }

  void listCheck(PreparedExchange &exchange, int64_t kernel) {
    if (exchange.sealsReceived.empty() || kernel < 0)
      return;
    begin(exchange.check, kernel);
    stepc_seal_row row{};
    row.last_term = int64_t(seals.terms.size());
    row.first_message = int64_t(seals.messages.size());
    for (const PreparedExchange::MessageSeal &seal : exchange.sealsReceived)
      add(seal, seal.received(exchange), int64_t(seal.number), exchange);
    row.last_message = int64_t(seals.messages.size());
    seals.rows.push_back(row);
    exchange.check.launch.items = 1;
  }

  void add(const PreparedExchange::MessageSeal &seal, void *address, int64_t number,
           const PreparedExchange &exchange) {
    seals.messages.push_back({address, number, seal.peer, exchange.order});
  }

  stepc_instance &instance;
  DeviceSeals &seals;
  const int64_t zero; // the number of the seal that stays zero
  std::vector<stepc_seal_row> ofSeal;
  int64_t started = 0;
  bool areAddedUp = false;
};

} // namespace

void prepareDeviceSeals(stepc_instance &instance) {
  if (instance.isOnDevice())
    Lister(instance).run();
}

std::string placeDeviceSeals(stepc_instance &instance, const AddressOf &addressOf) {
  DeviceSeals &seals = instance.running.deviceSeals;
  const stepc_device_table &device = instance.device();
  if (seals.rows.empty())
    return {};
  auto parameters = int64_t(instance.library.plan.parameters.size());
  int64_t columns = instance.running.agreement.longestRow();
  auto bytes =
      int64_t(sizeof(stepc_seal_report)) + parameters * (1 + columns) * int64_t(sizeof(int64_t));
  seals.report = static_cast<stepc_seal_report *>(device.report(instance.deviceContext, bytes));
  if (!seals.report)
    return "expected memory for what kernels report, found none: " + instance.deviceContext.failure;
  seals.report->parameters = parameters;
  seals.report->columns = columns;
  std::string wrong;
  auto place = [&](SealLaunch &one, bool reports) {
    if (one.launch.items == 0)
      return;
    const auto *rows = static_cast<const stepc_seal_row *>(addressOf(seals.rows.data()));
    for (const void *argument :
         {static_cast<const void *>(rows + one.firstRow), addressOf(seals.terms.data()),
          addressOf(seals.columns.data()), addressOf(seals.messages.data()),
          addressOf(instance.running.records.data()), addressOf(seals.seals.data())})
      one.arguments.push_back(const_cast<void *>(argument));
    if (reports)
      one.arguments.push_back(seals.report);
    one.launch.arguments = one.arguments.data();
    one.launch.argumentCount = int64_t(one.arguments.size());
    one.launch.grain = 1;
    if (wrong.empty() && device.checkLaunch)
      wrong = device.checkLaunch(instance.deviceContext, one.launch);
  };
  for (PreparedExchange &exchange : instance.prepared.exchanges) {
    place(exchange.seal, /*reports=*/false);
    place(exchange.check, /*reports=*/true);
  }
  return wrong;
}

int32_t findDisagreement(const stepc_instance &instance, std::string &message) {
  stepc_seal_report *report = instance.running.deviceSeals.report;
  if (!report || !std::atomic_ref(report->is_there).load(std::memory_order_acquire))
    return STEPC_OK;
  const auto *steps = reinterpret_cast<const int64_t *>(report + 1);
  SealedNumbers numbers{steps, reinterpret_cast<const double *>(steps + report->parameters),
                        nullptr, report->columns};
  Seal own, theirs;
  std::memcpy(&own, &report->own, sizeof(own));
  std::memcpy(&theirs, &report->theirs, sizeof(theirs));
  const stepc_sealed_message &found = report->message;
  message = exchangeName(instance.library, found.exchange) + ": " +
            disagreement(instance, instance.running.sealedMeshes[size_t(found.seal)], numbers, own,
                         theirs, int32_t(found.peer), instance.rank);
  return STEPC_ERROR_AGREEMENT;
}

} // namespace stepc::runtime
