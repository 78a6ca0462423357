//===- Dispatch.cpp - Kernels over chunks, parameters and sums --------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <cstring>

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
    add(arguments[0], int64_t(rows.size() * sizeof(int64_t)), "the command's rows", false);
  add(arguments[recordsArgument],
      int64_t(instance.running.records.size() * sizeof(stepc_parameter_record)),
      "the parameters' records", writesRecords);
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

/// A command whose kernel, if it has one, visits the records. Otherwise the host does.
class PreparedRecords : public PreparedKernel {
public:
  using PreparedKernel::PreparedKernel;
  void prepare(plan::KernelNumber kernel) {
    if (kernel.isNone())
      return;
    launch = instance.library.launch(kernel);
    arguments.insert(arguments.begin(), instance.running.records.data());
    launch.items = int64_t(instance.running.records.size());
    launch.grain = kParameterGrain;
    writesRecords = true;
    findRecords();
  }
  void enqueue() override {
    if (hasKernel())
      PreparedKernel::enqueue();
  }
  void count(stepc_counters &counters) const override {
    if (hasKernel())
      PreparedKernel::count(counters);
  }
  void declare(const AddUse &add) const override {
    if (hasKernel())
      PreparedKernel::declare(add);
  }

protected:
  bool hasKernel() const { return launch.items > 0; }
};

class PreparedSkip : public PreparedRecords {
public:
  using PreparedRecords::PreparedRecords;
  void enqueue() override {
    PreparedRecords::enqueue();
    if (!hasKernel())
      instance.device().call(instance.deviceContext, Stream::Compute, skip, this);
  }
  const char *value = nullptr; ///< an f32 of the workspace

private:
  static void skip(void *argument) {
    const auto &self = *static_cast<PreparedSkip *>(argument);
    float number;
    std::memcpy(&number, self.value, sizeof(number));
    if (number == 0)
      return;
    for (stepc_parameter_record &record : self.instance.running.records)
      record.active = 0;
    self.instance.running.someInactive = true;
  }
};

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

class PreparedAdvance : public PreparedRecords {
public:
  using PreparedRecords::PreparedRecords;
  bool countsSteps() const override { return hasKernel(); }
  void enqueue() override {
    PreparedRecords::enqueue();
    instance.device().call(instance.deviceContext, Stream::Compute, advanceSteps, &instance);
  }
};

} // namespace

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::AdvanceSteps &command) {
  auto made = std::make_unique<PreparedAdvance>(instance, number);
  made->prepare(command.kernel);
  return made;
}

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::Skip &command) {
  auto made = std::make_unique<PreparedSkip>(instance, number);
  made->value = arena() + beginOf(instance, command.value);
  made->arguments = {const_cast<char *>(made->value)};
  made->prepare(command.kernel);
  return made;
}

} // namespace stepc::runtime
