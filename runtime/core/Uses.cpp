//===- Uses.cpp - What a command may touch ----------------------------------===//
//
// For devices that look for races: the memory that the plan gives a command, and the lists that its
// kernels are given. What a kernel touches beyond is the step's error there.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/emulated/Races.h"
#include "runtime/text/Text.h"

#include <set>

namespace stepc::runtime {
namespace {

class Lister {
public:
  Lister(const PreparedCommand &command, MemoryUses &uses)
      : command(command), planned(*command.planned), instance(*command.instance),
        plan(instance.library.plan), uses(uses) {}

  void run() {
    std::string_view kind = plan::name(planned.kind);
    uses.command = format("command %lld (%.*s", (long long)(&planned - plan.commands.data()),
                          int(kind.size()), kind.data());
    switch (planned.kind) {
    case plan::CommandKind::Chunks:
      chunks();
      break;
    case plan::CommandKind::Parameters:
      parameters();
      break;
    case plan::CommandKind::Product:
    case plan::CommandKind::Reduce:
      batch();
      break;
    case plan::CommandKind::Copy:
      copy();
      break;
    case plan::CommandKind::Sum:
      rows();
      records(3);
      for (int64_t k : {0, 1})
        workspace(planned.operands[k], k, planned.operands[k].bytes, /*writes=*/k == 1,
                  /*reads=*/k == 0);
      break;
    case plan::CommandKind::Start:
    case plan::CommandKind::Await:
      exchange();
      break;
    case plan::CommandKind::AdvanceSteps:
      records(0);
      scalars(/*counts=*/true);
      break;
    }
    uses.command += ")";
  }

private:
  void add(const void *data, int64_t bytes, bool writes, const char *what, int64_t operand = -1,
           const std::string *name = nullptr, bool reads = true) {
    if (data && bytes > 0)
      uses.declared.push_back({data, bytes, reads, writes, what, operand, name});
  }
  void rows() {
    add(command.arguments[0], int64_t(command.rows.size() * sizeof(int64_t)), false,
        "the command's rows");
  }
  void records(size_t argument) {
    add(command.arguments[argument],
        int64_t(instance.records.size() * sizeof(stepc_parameter_record)), false,
        "the parameters' records");
  }
  /// What scalar stages read beyond their records.
  void scalars(bool counts) {
    std::set<const void *> known;
    for (size_t p = 0; p < plan.parameters.size(); ++p) {
      const stepc_parameter_record &record = instance.records[p];
      const std::string *name = &instance.library.parameter(int64_t(p)).name;
      const plan::Rule &rule = plan.rules[instance.library.group(int64_t(p)).rule];
      if (!counts && known.insert(record.hyperparameters).second)
        add(record.hyperparameters, int64_t(rule.hyperparameters.size() * sizeof(double)), false,
            "the hyperparameters of", -1, name);
      if (known.insert(record.steps_taken).second)
        add(record.steps_taken, sizeof(int64_t), counts, "the count of steps of", -1, name);
    }
  }

  /// Shards of some parameters, which kernels find by a list in `argument`; what is no shards: false.
  bool shards(const plan::Operand &operand, int64_t number, const std::set<int64_t> &of,
              const void *list, bool writes = true) {
    using enum plan::OperandKind;
    const std::vector<void *> *pointers = shardsOf(instance, operand);
    if (!pointers)
      return false;
    add(list, int64_t(pointers->size() * sizeof(void *)), false, "the list of shards", number);
    for (int64_t p : of) {
      const LocalGroup &group = instance.groups[plan.parameters[p].group];
      const LocalGroup::LocalShard &shard = operand.kind == Parameters ? group.parameter
                                            : operand.kind == Gradients
                                                ? group.gradient
                                                : group.states[operand.value];
      const char *what = operand.kind == Parameters  ? "the shard of parameter"
                         : operand.kind == Gradients ? "the gradient of parameter"
                                                     : "a state of parameter";
      add((*pointers)[p], shard.bytes, writes && operand.kind != Gradients, what, number,
          &instance.library.parameter(p).name);
    }
    return true;
  }

  /// A part of the workspace, as far as it is this rank's.
  void workspace(const plan::Operand &operand, int64_t number, int64_t bytes, bool writes = true,
                 bool reads = true) {
    const char *arena = static_cast<const char *>(instance.arena.data());
    if (operand.pool >= 0)
      bytes = std::min(bytes, instance.tables.pools[operand.pool].room(plan.pools[operand.pool],
                                                                       operand.member));
    add(arena + beginOf(instance, operand), bytes, writes, "a part of the workspace", number,
        nullptr, reads);
  }
  void workspaceOf(const plan::Operand &operand, int64_t number, int64_t group) {
    if (operand.kind == plan::OperandKind::BlockRows)
      return;
    int64_t bytes = operand.bytes;
    if (operand.kind == plan::OperandKind::Scalars)
      bytes *= int64_t(plan.groups[group].parameters.size());
    workspace(operand, number, bytes);
  }

  void chunks() {
    rows();
    records(2);
    size_t each = planned.operands.size() / planned.tables.size();
    for (size_t i = 0; i < planned.tables.size(); ++i) {
      std::set<int64_t> of;
      for (const plan::Chunk &chunk : instance.tables.tables[planned.tables[i]].chunks)
        of.insert(chunk.parameter);
      int64_t group = plan.segments[plan.tables[planned.tables[i]].from.segment].group;
      size_t list = 3;
      for (size_t k = i * each; k < (i + 1) * each; ++k) {
        const plan::Operand &operand = planned.operands[k];
        const void *argument = list < command.arguments.size() ? command.arguments[list] : nullptr;
        if (shards(operand, int64_t(k), of, argument))
          ++list;
        else
          workspaceOf(operand, int64_t(k), group);
      }
    }
  }

  void parameters() {
    rows();
    records(2);
    scalars(/*counts=*/false);
    size_t each = planned.operands.size() / planned.groups.size();
    for (size_t k = 0; k < planned.operands.size(); ++k)
      workspaceOf(planned.operands[k], int64_t(k), planned.groups[k / each]);
  }

  void batch() {
    add(static_cast<const char *>(instance.arena.data()) + plan.scratchOffset(), plan.scratchBytes,
        true, "the scratch");
    for (size_t k = 0; k < planned.operands.size(); ++k) {
      const plan::Operand &operand = planned.operands[k];
      bool isOut = k + 1 == planned.operands.size();
      int64_t bytes =
          command.batch.blocks * operand.rows * operand.cols * plan::byteSize(operand.type);
      workspace(operand, int64_t(k), bytes, /*writes=*/isOut, /*reads=*/!isOut);
    }
  }

  void copy() {
    add(command.arguments[0], int64_t(command.copies.size() * sizeof(plan::CopyRow)), false,
        "the command's rows");
    records(5);
    std::set<int64_t> of;
    for (const plan::CopyRow &row : command.copies)
      of.insert(row.parameter);
    for (int64_t k : {0, 1}) {
      const plan::Operand &operand = planned.operands[k];
      if (!shards(operand, k, of, command.arguments[3 + k], /*writes=*/k == 1))
        workspace(operand, k, operand.bytes, /*writes=*/k == 1, /*reads=*/k == 0);
    }
  }

  /// From its start to its await what is sent is read, and what is received written: both do so.
  void exchange() {
    const PreparedExchange &exchange = instance.exchanges[command.exchange];
    uses.command += " of " + exchangeName(instance.library, exchange.order);
    if (planned.kind == plan::CommandKind::Start)
      for (int64_t k : {0, 1})
        workspace(planned.operands[k], k, planned.operands[k].bytes);
    for (const stepc_operation &operation : exchange.operations) {
      int64_t parts = operation.kind == STEPC_ALL_GATHER
                          ? int64_t(instance.meetings[exchange.meeting].members.size())
                          : 1;
      if (operation.send)
        uses.carriedOut.push_back({operation.send, operation.bytes, true, false, "", -1, nullptr});
      if (operation.receive)
        uses.carriedOut.push_back(
            {operation.receive, parts * operation.bytes, false, true, "", -1, nullptr});
    }
  }

  const PreparedCommand &command;
  const plan::Command &planned;
  stepc_instance &instance;
  const plan::Plan &plan;
  MemoryUses &uses;
};

} // namespace

void declareUses(void *command, MemoryUses &uses) {
  Lister(*static_cast<PreparedCommand *>(command), uses).run();
}

} // namespace stepc::runtime
