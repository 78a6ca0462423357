//===- Matrix.cpp - Products and functions of computed blocks ----------------===//
#include "runtime/core/Instance.h"

#include <cstring>

namespace stepc::runtime {
namespace {

class PreparedMatrix : public PreparedCommand {
public:
  using PreparedCommand::PreparedCommand;

  void enqueue() override {
    instance.device().compute(instance.deviceContext, Stream::Compute, batch);
  }
  void count(stepc_counters &counters) const override {
    ++counters.launches;
    counters.chunks += batch.blocks;
  }
  std::string place(const AddressOf &addressOf) override {
    for (void *&argument : arguments)
      argument = const_cast<void *>(addressOf(argument));
    batch.arguments = arguments.data();
    for (Launch &kernel : batch.kernels)
      if (std::string wrong = checkLaunch(instance, kernel, arguments); !wrong.empty())
        return wrong;
    return instance.device().prepare ? instance.device().prepare(instance.deviceContext, batch)
                                     : std::string();
  }

  std::vector<void *> arguments;
  BatchWork batch;
};

} // namespace

std::unique_ptr<PreparedCommand>
Preparer::prepareMatrix(const plan::MatrixCommand &command,
                        const std::vector<const plan::Operand *> &operands,
                        const plan::Product *product) {
  auto made = std::make_unique<PreparedMatrix>(instance, number);
  made->arguments = {arena() + plan.scratchOffset()};
  for (const plan::Operand *operand : operands)
    made->arguments.push_back(arena() + beginOf(instance, *operand));
  if (product) {
    stepc_factors factors = {float(product->alpha), float(product->beta)};
    std::memcpy(&made->arguments.emplace_back(), &factors, sizeof(factors));
    if (product->shift != 0) {
      stepc_shift shift = {float(product->shift), 0};
      std::memcpy(&made->arguments.emplace_back(), &shift, sizeof(shift));
    }
  }
  made->batch.planned = product;
  made->batch.blocks = tables[command.table].blocks;
  for (const plan::BlockKernel &kernel : command.kernels) {
    Launch &launch = made->batch.kernels.emplace_back(instance.library.launch(kernel.kernel));
    launch.items = made->batch.blocks * kernel.items;
    launch.grain = 1;
  }
  return made;
}

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::Product &command) {
  return prepareMatrix(command, command.operands(), &command);
}

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::Apply &command) {
  return prepareMatrix(command, command.operands(), nullptr);
}

} // namespace stepc::runtime
