//===- Program.cpp - The plan's commands, made ready ------------------------===//
//
// All that a command needs is looked up when the instance is made: a step (Walk.cpp) decides nothing.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

#include <cstring>
#include <map>

namespace stepc::runtime {
namespace {

/// What is done per parameter is a few operations.
constexpr int64_t kParameterGrain = 256;

class Preparer {
public:
  explicit Preparer(stepc_instance &instance)
      : instance(instance), plan(instance.library.plan), tables(instance.tables.tables),
        starts(plan.starts()) {}

  PreparedCommand prepare(const plan::Command &command) {
    PreparedCommand made;
    made.kind = command.kind;
    made.instance = &instance;
    made.planned = &command;
    switch (command.kind) {
    case plan::CommandKind::Chunks:
      prepareChunks(command, made);
      break;
    case plan::CommandKind::Parameters:
      prepareParameters(command, made);
      break;
    case plan::CommandKind::Product:
    case plan::CommandKind::Reduce:
      prepareBatch(command, made);
      return made;
    case plan::CommandKind::Copy:
      prepareCopy(command, made);
      return made;
    case plan::CommandKind::Sum:
      prepareSum(command, made);
      break;
    case plan::CommandKind::Start:
      made.exchange = started++;
      return made;
    case plan::CommandKind::Await:
      made.exchange = command.index;
      return made;
    case plan::CommandKind::AdvanceSteps:
      if (command.kernel < 0)
        return made;
      made.arguments = {instance.records.data()};
      made.launch.items = int64_t(plan.parameters.size());
      made.launch.grain = kParameterGrain;
      made.launch.isPerThread = true;
      break;
    }
    made.launch.number = command.kernel;
    made.launch.kernel = instance.library.kernel(command.kernel);
    return made;
  }

private:
  int64_t recordOf(int64_t group, int64_t parameter) const {
    int64_t first = instance.firstRecord[group];
    return first < 0 ? parameter : first + plan.parameters[parameter].indexInGroup;
  }

  int64_t groupOf(int64_t table) const {
    return plan.segments[plan.tables[table].from.segment].group;
  }

  char *arena() { return static_cast<char *>(instance.arena.data()); }

  void *shardsOf(const plan::Operand &operand) {
    std::vector<void *> *shards = runtime::shardsOf(instance, operand);
    return shards ? shards->data() : nullptr;
  }

  int64_t beginOf(const plan::Operand &operand) const {
    return runtime::beginOf(instance, operand);
  }

  /// How far from its number an element of what is packed stands in its start's buffer, in bytes.
  int64_t shiftOf(const plan::Operand &operand, const plan::Place &place, int64_t element) const {
    if (!place.isMoving() || operand.kind != plan::OperandKind::Workspace || element < 0)
      return 0;
    const plan::RankStart &start = instance.tables.starts[operand.start];
    const plan::Part *part = (place.end == plan::End::Received ? start.received : start.sent)
                                 .find(operand.traveller, element);
    int64_t table = starts[operand.start]->tables[operand.traveller];
    return part ? part->byte - part->first * plan.tables[table].elementBytes : 0;
  }

  /// What a row says of an operand, for an element of `parameter` of `group`.
  int64_t wordOf(const plan::Operand &operand, int64_t group, int64_t parameter) const {
    switch (operand.kind) {
    case plan::OperandKind::Scalars:
      return operand.value + plan.parameters[parameter].indexInGroup * operand.bytes;
    case plan::OperandKind::BlockRows:
      return plan.groups[group].rows();
    default:
      return beginOf(operand);
    }
  }

  void prepareChunks(const plan::Command &command, PreparedCommand &made) {
    constexpr int64_t kWords = sizeof(plan::Chunk) / sizeof(int64_t);
    size_t each = command.operands.size() / command.tables.size();
    // The rows, when they stand where they stay.
    made.arguments = {nullptr, arena(), instance.records.data()};
    made.launch.stride = kWords;
    for (size_t k = 0; k < each; ++k) {
      if (void *shards = shardsOf(command.operands[k]))
        made.arguments.push_back(shards);
      else
        ++made.launch.stride;
    }
    for (size_t i = 0; i < command.tables.size(); ++i) {
      const plan::Place &staged = plan.tables[command.tables[i]].to;
      int64_t group = groupOf(command.tables[i]);
      for (const plan::Chunk &chunk : tables[command.tables[i]].chunks) {
        const auto *words = reinterpret_cast<const int64_t *>(&chunk);
        made.rows.insert(made.rows.end(), words, words + kWords);
        for (size_t k = i * each; k < (i + 1) * each; ++k)
          if (!shardsOf(command.operands[k]))
            made.rows.push_back(wordOf(command.operands[k], group, chunk.parameter) +
                                shiftOf(command.operands[k], staged, chunk.staged));
        made.launch.elements += chunk.rows * chunk.cols;
        ++made.launch.items;
      }
    }
  }

  void prepareBatch(const plan::Command &command, PreparedCommand &made) {
    made.arguments = {arena() + plan.scratchOffset()};
    for (const plan::Operand &operand : command.operands)
      made.arguments.push_back(arena() + beginOf(operand));
    if (command.kind == plan::CommandKind::Product) {
      stepc_factors factors = {float(command.batch.alpha), float(command.batch.beta)};
      std::memcpy(&made.arguments.emplace_back(), &factors, sizeof(factors));
    }
    made.batch.command = &command;
    made.batch.blocks = tables[command.tables[0]].blocks;
    for (const plan::Batch::Kernel &kernel : command.batch.kernels) {
      Launch &launch = made.batch.kernels.emplace_back();
      launch.number = kernel.kernel;
      launch.kernel = instance.library.kernel(kernel.kernel);
      launch.items = made.batch.blocks * kernel.items;
      launch.grain = 1;
    }
  }

  void prepareParameters(const plan::Command &command, PreparedCommand &made) {
    size_t each = command.operands.size() / command.groups.size();
    made.arguments = {nullptr, arena(), instance.records.data()};
    made.launch.grain = kParameterGrain;
    made.launch.isPerThread = true;
    made.launch.stride = 1 + int64_t(each);
    for (size_t i = 0; i < command.groups.size(); ++i)
      for (int64_t parameter : plan.groups[command.groups[i]].parameters) {
        made.rows.push_back(recordOf(command.groups[i], parameter));
        for (size_t k = i * each; k < (i + 1) * each; ++k)
          made.rows.push_back(wordOf(command.operands[k], command.groups[i], parameter));
        ++made.launch.items;
      }
  }

  void prepareCopy(const plan::Command &command, PreparedCommand &made) {
    const plan::Table &table = plan.tables[command.tables[0]];
    const plan::Operand &from = command.operands[0], &to = command.operands[1];
    RowCopy &copy = made.copy;
    copy.elementBytes = table.elementBytes;
    made.copies = tables[command.tables[0]].copies;
    for (plan::CopyRow &row : made.copies) {
      copy.elements += row.rows * row.cols;
      row.source += shiftOf(from, table.from, row.source) / copy.elementBytes;
      row.target += shiftOf(to, table.to, row.target) / copy.elementBytes;
    }
    copy.fromShards = static_cast<void *const *>(shardsOf(from));
    copy.toShards = static_cast<void *const *>(shardsOf(to));
    copy.from = arena() + (copy.fromShards ? 0 : beginOf(from));
    copy.to = arena() + (copy.toShards ? 0 : beginOf(to));
    // Arguments of a kernel that copies: the rows (set once they have their final address), both sides, the
    // records.
    made.arguments = {nullptr,
                      const_cast<char *>(copy.from),
                      copy.to,
                      const_cast<void **>(copy.fromShards),
                      const_cast<void **>(copy.toShards),
                      instance.records.data()};
    copy.launch.number = command.kernel;
    copy.launch.kernel = instance.library.kernel(command.kernel);
    copy.launch.items = int64_t(made.copies.size());
  }

  /// The rows, each of which leads to a list behind them, by its word.
  void prepareSum(const plan::Command &command, PreparedCommand &made) {
    constexpr int64_t kWords = sizeof(plan::SumRow) / sizeof(int64_t);
    const plan::Table &table = plan.tables[command.tables[0]];
    const plan::RankTable &rows = tables[command.tables[0]];
    auto behind = int64_t(rows.sums.size()) * kWords;
    for (plan::SumRow row : rows.sums) {
      made.launch.elements += row.rows * row.cols * row.count;
      row.list += behind;
      const auto *words = reinterpret_cast<const int64_t *>(&row);
      made.rows.insert(made.rows.end(), words, words + kWords);
    }
    for (int64_t first : rows.lists)
      made.rows.push_back(first * table.elementBytes +
                          shiftOf(command.operands[0], table.from, first));
    made.arguments = {nullptr, arena() + beginOf(command.operands[0]),
                      arena() + beginOf(command.operands[1]), instance.records.data()};
    made.launch.stride = kWords;
    made.launch.items = int64_t(rows.sums.size());
  }

  stepc_instance &instance;
  const plan::Plan &plan;
  const std::vector<plan::RankTable> &tables;
  std::vector<const plan::Command *> starts;
  int64_t started = 0;
};

void countPlanned(stepc_instance &instance) {
  stepc_counters &planned = instance.planned;
  for (const PreparedCommand &command : instance.program) {
    planned.launches += command.kind <= plan::CommandKind::Copy ||
                        command.kind == plan::CommandKind::Sum || command.countsOnDevice();
    planned.chunks += command.launch.items + command.batch.blocks;
    if (command.kind == plan::CommandKind::Copy)
      planned.chunks += int64_t(command.copies.size());
  }
  planned.exchanges = int64_t(instance.exchanges.size());
  for (const PreparedExchange &exchange : instance.exchanges) {
    countMessages(exchange, planned);
    for (const SealLaunch *one : {&exchange.seal, &exchange.check}) {
      planned.launches += one->launch.items > 0;
      planned.chunks += one->launch.items;
    }
  }
}

} // namespace

std::vector<void *> *shardsOf(stepc_instance &instance, const plan::Operand &operand) {
  switch (operand.kind) {
  case plan::OperandKind::Parameters:
    return &instance.parameters;
  case plan::OperandKind::Gradients:
    return &instance.gradients;
  case plan::OperandKind::State:
    return &instance.states[operand.value];
  default:
    return nullptr;
  }
}

int64_t beginOf(const stepc_instance &instance, const plan::Operand &operand) {
  return operand.value +
         (operand.pool < 0 ? 0 : instance.tables.pools[operand.pool].begins[operand.member]);
}

std::string prepareProgram(stepc_instance &instance) {
  const plan::Plan &plan = instance.library.plan;
  if (std::string wrong = plan::checkReach(plan, instance.tables); !wrong.empty())
    return wrong;
  if (std::string wrong = prepareExchanges(instance); !wrong.empty())
    return wrong;
  Preparer preparer(instance);
  for (const plan::Command &command : plan.commands)
    if (command.kind == plan::CommandKind::Sum && command.kernel < 0)
      return "the program has no kernel that adds up contributions";
  for (const plan::Command &command : plan.commands)
    instance.program.push_back(preparer.prepare(command));
  prepareDeviceSeals(instance);
  countPlanned(instance);
  return {};
}

/// Runs when the program is complete: only then do its lists keep their addresses.
std::string lendLists(stepc_instance &instance) {
  std::vector<HostList> lists;
  auto lend = [&](const auto &list, bool changes) {
    lists.push_back({list.data(), int64_t(list.size() * sizeof(list[0])), changes});
  };
  lend(instance.records, true);
  lend(instance.stepsTaken, true);
  lend(instance.hyperparameterValues, true);
  lend(instance.parameters, true);
  lend(instance.gradients, true);
  for (const std::vector<void *> &shards : instance.states)
    lend(shards, true);
  for (const PreparedCommand &command : instance.program) {
    lend(command.rows, false);
    lend(command.copies, false);
  }
  const DeviceSeals &seals = instance.deviceSeals;
  lend(seals.rows, false);
  lend(seals.terms, false);
  lend(seals.columns, false);
  lend(seals.messages, false);
  lend(seals.seals, false);
  std::string wrong = instance.device().lend(instance.deviceContext, lists);
  if (!wrong.empty())
    return wrong;
  std::map<const void *, const void *> addresses;
  for (const HostList &list : lists)
    if (list.bytes > 0)
      addresses[list.data] = list.address;
  auto addressOf = [&](auto *&list) {
    if (auto found = addresses.find(list); found != addresses.end())
      list =
          static_cast<std::remove_reference_t<decltype(list)>>(const_cast<void *>(found->second));
  };
  const double *values = instance.hyperparameterValues.data();
  addressOf(values);
  instance.hyperparameterAddress = values;
  instance.stepsAddress = instance.stepsTaken.data();
  addressOf(instance.stepsAddress);
  placeSteps(instance);
  for (PreparedCommand &command : instance.program) {
    if (command.launch.stride != 0) {
      command.launch.parameters = command.rows.data();
      command.arguments[0] = command.rows.data();
    }
    if (!command.copies.empty())
      command.arguments[0] = command.copies.data();
    for (void *&argument : command.arguments)
      addressOf(argument);
    auto prepare = [&](Launch &launch) {
      launch.arguments = command.arguments.data();
      launch.argumentCount = int64_t(command.arguments.size());
      if (wrong.empty() && launch.items > 0 && instance.device().checkLaunch)
        wrong = instance.device().checkLaunch(instance.deviceContext, launch);
    };
    prepare(command.launch);
    command.batch.arguments = command.arguments.data();
    for (Launch &kernel : command.batch.kernels)
      prepare(kernel);
    if (wrong.empty() && command.batch.command && instance.device().prepare)
      wrong = instance.device().prepare(instance.deviceContext, command.batch);
    RowCopy &copy = command.copy;
    copy.rows = command.copies.data();
    copy.count = int64_t(command.copies.size());
    addressOf(copy.rows);
    addressOf(copy.fromShards);
    addressOf(copy.toShards);
    prepare(copy.launch);
  }
  if (wrong.empty())
    wrong = placeDeviceSeals(instance, [&](const void *list) {
      addressOf(list);
      return list;
    });
  return wrong;
}

} // namespace stepc::runtime
