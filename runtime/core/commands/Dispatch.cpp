//===- Dispatch.cpp - Kernels over chunks, parameters and sums --------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

#include <algorithm>

namespace stepc::runtime {

void PreparedKernel::findRecords() {
  recordsArgument =
      size_t(std::find(arguments.begin(), arguments.end(), instance.running.records.data()) -
             arguments.begin());
}

void PreparedKernel::enqueue() {
  instance.device().launch(instance.deviceContext, Stream::Compute, launch);
}

void PreparedKernel::count(stepc_counters &counters) const {
  ++counters.launches;
  counters.chunks += launch.items;
}

void PreparedKernel::lend(std::vector<HostList> &lists) const { lendList(lists, rows); }

std::string PreparedKernel::place(const AddressOf &addressOf) {
  if (launch.number < 0 && launch.items > 0)
    return format("expected a kernel for command %lld of the program, found none",
                  (long long)number);
  if (launch.stride != 0) {
    launch.parameters = rows.data();
    arguments[0] = rows.data();
  }
  for (void *&argument : arguments)
    argument = const_cast<void *>(addressOf(argument));
  return checkLaunch(instance, launch, arguments);
}

void PreparedKernel::declare(const AddUse &add) const {
  if (launch.stride != 0)
    add(arguments[0], int64_t(rows.size() * sizeof(int64_t)), "the command's rows");
  add(arguments[recordsArgument],
      int64_t(instance.running.records.size() * sizeof(stepc_parameter_record)),
      "the parameters' records");
}

const void *PreparedKernel::shardList(int64_t operand) const {
  int64_t argument = size_t(operand) < shardArguments.size() ? shardArguments[operand] : -1;
  return argument < 0 ? nullptr : arguments[argument];
}

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::DispatchChunks &command) {
  constexpr int64_t kWords = sizeof(plan::Chunk) / sizeof(int64_t);
  auto made = std::make_unique<PreparedKernel>(instance, number);
  made->launch = instance.library.launch(command.kernel);
  // `place` sets the first argument to the rows, once their address is final.
  made->arguments = {nullptr, arena(), instance.running.records.data()};
  made->launch.stride = kWords;
  for (const plan::Operand &operand : command.runs[0].operands) {
    void *shards = shardsOf(operand);
    made->shardArguments.push_back(shards ? int64_t(made->arguments.size()) : -1);
    if (shards)
      made->arguments.push_back(shards);
    else
      ++made->launch.stride;
  }
  for (const plan::DispatchChunks::Run &run : command.runs) {
    const plan::Table &table = plan.tables[run.table];
    for (const plan::Chunk &chunk : tables[run.table].chunks) {
      const auto *words = reinterpret_cast<const int64_t *>(&chunk);
      made->rows.insert(made->rows.end(), words, words + kWords);
      for (const plan::Operand &operand : run.operands)
        if (!operand.isShards())
          made->rows.push_back(wordOf(operand, chunk.parameter) +
                               shiftOf(operand, table.to, chunk.staged));
      made->launch.elements += chunk.rows * chunk.cols;
      ++made->launch.items;
    }
  }
  made->findRecords();
  return made;
}

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::DispatchParameters &command) {
  auto made = std::make_unique<PreparedKernel>(instance, number);
  made->launch = instance.library.launch(command.kernel);
  made->arguments = {nullptr, arena(), instance.running.records.data()};
  made->launch.grain = kParameterGrain;
  made->launch.stride = 1 + int64_t(command.runs[0].operands.size());
  for (const plan::DispatchParameters::Run &run : command.runs)
    for (int64_t parameter : plan.groups[run.group].parameters) {
      made->rows.push_back(recordOf(run.group, parameter));
      for (const plan::Operand &operand : run.operands)
        made->rows.push_back(&operand == run.operands.data() ? wordOf(operand, parameter)
                                                             : beginOf(instance, operand));
      ++made->launch.items;
    }
  made->findRecords();
  return made;
}

namespace {

/// Called when the device has done all commands before. The step's counters are complete then. If they agree
/// with the plan, the step counts of its parameters advance.
void advanceSteps(void *argument) {
  stepc_instance &instance = *static_cast<stepc_instance *>(argument);
  if (instance.running.failure)
    return;
  countTraffic(instance);
  checkCounts(instance);
  if (instance.running.failure)
    return;
  if (!instance.prepared.isRecording)
    countSteps(instance, 1);
  instance.running.stepsAdvanced = true;
}

class PreparedAdvance : public PreparedKernel {
public:
  using PreparedKernel::PreparedKernel;
  bool countsSteps() const override { return launch.items > 0; }
  void enqueue() override {
    if (countsSteps())
      PreparedKernel::enqueue();
    instance.device().call(instance.deviceContext, Stream::Compute, advanceSteps, &instance);
  }
  void count(stepc_counters &counters) const override {
    if (countsSteps())
      PreparedKernel::count(counters);
  }
  void declare(const AddUse &add) const override {
    if (countsSteps())
      PreparedKernel::declare(add);
  }
};

} // namespace

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::AdvanceSteps &command) {
  auto made = std::make_unique<PreparedAdvance>(instance, number);
  if (command.kernel.isNone())
    return made;
  made->launch = instance.library.launch(command.kernel);
  made->arguments = {instance.running.records.data()};
  made->launch.items = int64_t(plan.parameters.size());
  made->launch.grain = kParameterGrain;
  made->findRecords();
  return made;
}

} // namespace stepc::runtime
