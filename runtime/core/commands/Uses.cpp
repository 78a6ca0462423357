//===- Uses.cpp - What a command may touch ----------------------------------===//
//
// For devices that look for races. Lists the memory that a command's effects name, and the lists that its
// kernels read. On such a device, a kernel that touches other memory fails the step.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/emulated/Races.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <set>

namespace stepc::runtime {
namespace {

class Lister {
public:
  Lister(const PreparedCommand &command, MemoryUses &uses)
      : command(command), instance(command.instance), plan(instance.library.plan), uses(uses) {}

  void run() {
    std::string_view kind = plan::name(command.planned());
    uses.command =
        format("command %lld (%.*s", (long long)command.number, int(kind.size()), kind.data());
    command.declare([&](const void *data, int64_t bytes, const char *what, bool writes) {
      add({data, bytes, true, writes, what});
    });
    for (const plan::Effect &effect : plan::effects(plan, command.planned()))
      follow(effect);
    // Kernels over parameters read these numbers by way of the records. A kernel that counts steps writes the
    // counts.
    if (std::holds_alternative<plan::DispatchParameters>(command.planned()))
      numbers(/*counts=*/false);
    if (command.countsSteps())
      numbers(/*counts=*/true);
    if (command.exchange() >= 0)
      exchange(instance.prepared.exchanges[size_t(command.exchange())]);
    uses.command += ")";
  }

private:
  void add(MemoryUse use) {
    if (use.data && use.bytes > 0)
      uses.declared.push_back(use);
  }

  void follow(const plan::Effect &effect) {
    if (!effect.operand)
      add({static_cast<const char *>(instance.prepared.arena.data()) + plan.scratchOffset(),
           plan.scratchBytes, true, true, "the scratch"});
    else if (effect.operand->isShards())
      shards(effect);
    else
      workspace(effect);
  }

  /// Adds the part of the workspace that an operand names, as much of it as this rank has.
  void workspace(const plan::Effect &effect) {
    const plan::Operand &operand = *effect.operand;
    int64_t bytes = operand.bytes;
    if (effect.extent == plan::Effect::Row)
      bytes *= int64_t(plan.groups[groupOf(effect)].parameters.size());
    if (effect.extent == plan::Effect::Blocks && effect.blockBytes > 0)
      bytes = instance.prepared.tables.tables[effect.table].blocks * effect.blockBytes;
    if (!operand.pool.isNone())
      bytes = std::min(bytes, instance.prepared.tables.pools[operand.pool].room(
                                  plan.pools[operand.pool], operand.member));
    add({static_cast<const char *>(instance.prepared.arena.data()) + beginOf(instance, operand),
         bytes, effect.reads(), effect.writes(), "a part of the workspace", effect.number});
  }

  int64_t groupOf(const plan::Effect &effect) const {
    return effect.table.isNone() ? effect.group.value
                                 : plan.segments[plan.tables[effect.table].from.segment].group;
  }

  /// Adds the shards of the parameters that the table's rows name, and the list of pointers that leads to
  /// them.
  void shards(const plan::Effect &effect) {
    using enum plan::OperandKind;
    const plan::Operand &operand = *effect.operand;
    const std::vector<void *> &pointers = *shardsOf(instance, operand);
    add({command.shardList(effect.number), int64_t(pointers.size() * sizeof(void *)), true, false,
         "the list of shards", effect.number});
    std::set<int64_t> of;
    for (const plan::Chunk &chunk : instance.prepared.tables.tables[effect.table].chunks)
      of.insert(chunk.parameter);
    for (const plan::CopyRow &row : instance.prepared.tables.tables[effect.table].copies)
      of.insert(row.parameter);
    for (int64_t p : of) {
      const LocalGroup::LocalShard &shard = shardOf(operand, p);
      const char *what = operand.kind == Parameters  ? "the shard of parameter"
                         : operand.kind == Gradients ? "the gradient of parameter"
                                                     : "a state of parameter";
      add({pointers[p], shard.bytes, effect.reads(), effect.writes(), what, effect.number,
           &instance.library.parameter(p).name});
    }
  }

  const LocalGroup::LocalShard &shardOf(const plan::Operand &operand, int64_t parameter) const {
    const plan::Parameter &named = instance.library.parameter(parameter);
    const LocalGroup &group = instance.prepared.groups[named.group];
    if (operand.kind != plan::OperandKind::State)
      return operand.kind == plan::OperandKind::Parameters ? group.parameter : group.gradient;
    const GroupText &text = instance.library.groups[named.group];
    auto find = [&](const std::vector<StateText> &states) {
      auto found = std::find_if(states.begin(), states.end(), [&](const StateText &each) {
        return int64_t(each.index) == operand.value;
      });
      return size_t(found - states.begin());
    };
    if (size_t metric = find(text.metrics); metric < text.metrics.size())
      return group.metrics[metric];
    if (size_t input = find(text.inputs); input < text.inputs.size())
      return group.inputs[input];
    return group.state(find(text.states), named.indexInGroup);
  }

  /// Adds the step counts, as written if `counts`; otherwise as read, with the hyperparameters.
  void numbers(bool counts) {
    std::set<const void *> known;
    for (size_t p = 0; p < plan.parameters.size(); ++p) {
      const stepc_parameter_record &record = instance.running.records[p];
      const std::string *name = &instance.library.parameter(int64_t(p)).name;
      const plan::Rule &rule = plan.rules[instance.library.group(int64_t(p)).rule];
      if (!counts && known.insert(record.hyperparameters).second)
        add({record.hyperparameters, int64_t(rule.hyperparameters.size() * sizeof(double)), true,
             false, "the hyperparameters of", -1, name});
      if (known.insert(record.steps_taken).second)
        add({record.steps_taken, sizeof(int64_t), true, counts, "the count of steps of", -1, name});
    }
  }

  /// Adds the buffers of an exchange. Sent bytes are read, and received bytes written, from its start to its
  /// await.
  void exchange(const PreparedExchange &exchange) {
    uses.command += " of " + exchangeName(instance.library, exchange.order);
    for (const stepc_operation &operation : exchange.operations) {
      int64_t parts = operation.kind == STEPC_ALL_GATHER
                          ? int64_t(instance.prepared.meetings[exchange.meeting].members.size())
                          : 1;
      if (operation.send)
        uses.carriedOut.push_back({operation.send, operation.bytes, true, false, "", -1, nullptr});
      if (operation.receive)
        uses.carriedOut.push_back(
            {operation.receive, parts * operation.bytes, false, true, "", -1, nullptr});
    }
  }

  const PreparedCommand &command;
  stepc_instance &instance;
  const plan::Plan &plan;
  MemoryUses &uses;
};

} // namespace

void declareUses(void *command, MemoryUses &uses) {
  Lister(*static_cast<PreparedCommand *>(command), uses).run();
}

} // namespace stepc::runtime
