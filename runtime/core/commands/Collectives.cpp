//===- Collectives.cpp - What travels between ranks ----------------------------===//
#include "runtime/core/Instance.h"

namespace stepc::runtime {
namespace {

class PreparedCollective : public PreparedCommand {
public:
  PreparedCollective(stepc_instance &instance, int64_t number, int64_t order)
      : PreparedCommand(instance, number), order(order) {}
  int64_t exchange() const override { return order; }

protected:
  PreparedExchange &prepared() { return instance.prepared.exchanges[size_t(order)]; }
  const int64_t order;
};

class PreparedStart : public PreparedCollective {
public:
  using PreparedCollective::PreparedCollective;
  void enqueue() override {
    const stepc_device_table &device = instance.device();
    DeviceContext &context = instance.deviceContext;
    for (const PreparedExchange::LocalCopy &copy : prepared().repeated)
      device.move(context, Stream::Compute, copy.from, copy.to, copy.bytes);
    device.record(context, Stream::Compute, 2 * order);
    device.wait(context, Stream::Communication, 2 * order);
    device.call(context, Stream::Communication, startExchange, &prepared());
    // The rank's copies to itself come last, so that they run while the messages travel.
    for (const PreparedExchange::LocalCopy &own : prepared().own)
      device.move(context, Stream::Compute, own.from, own.to, own.bytes);
  }
};

class PreparedAwait : public PreparedCollective {
public:
  using PreparedCollective::PreparedCollective;
  void enqueue() override {
    const stepc_device_table &device = instance.device();
    DeviceContext &context = instance.deviceContext;
    device.call(context, Stream::Communication, awaitExchange, &prepared());
    device.record(context, Stream::Communication, 2 * order + 1);
    device.wait(context, Stream::Compute, 2 * order + 1);
  }
};

} // namespace

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::Start &) {
  ++underWay;
  return std::make_unique<PreparedStart>(instance, number, started++);
}

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::Await &command) {
  --underWay;
  return std::make_unique<PreparedAwait>(instance, number, command.start);
}

} // namespace stepc::runtime
