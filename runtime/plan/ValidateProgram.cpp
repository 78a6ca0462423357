//===- ValidateProgram.cpp - What makes a program safe to walk -----------===//
//
// Whatever passes here names tables, groups, kernels and states that are there, stays
// in the workspace, and awaits each collective once, after its start. What kernels
// compute from their operands is not in a plan; the verifier proves it at level 4.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/Checks.h"
#include "runtime/plan/Tables.h"

#include <algorithm>

namespace stepc::plan {

namespace {

constexpr int64_t kMostItems = int64_t(1) << 42; // of a block: far above any matrix
constexpr int64_t kAlignment = 64;               // of what stands in the workspace

class ProgramValidator {
public:
  explicit ProgramValidator(const Plan &plan) : plan(plan) {}

  std::string run(int64_t *which) {
    awaited.assign(plan.starts().size(), false);
    for (size_t i = 0; i < plan.commands.size(); ++i) {
      if (which)
        *which = static_cast<int64_t>(i);
      if (Check message = command(plan.commands[i]); !message.empty())
        return "command " + std::to_string(i) + " (" + std::string(name(plan.commands[i].kind)) +
               "): " + message;
    }
    if (which)
      *which = static_cast<int64_t>(plan.commands.size()) - 1;
    for (size_t i = 0; i < awaited.size(); ++i)
      if (!awaited[i])
        return "collective " + std::to_string(i) + " is never awaited";
    for (size_t i = 0; i < plan.commands.size(); ++i)
      if ((plan.commands[i].kind == CommandKind::AdvanceSteps) != (i + 1 == plan.commands.size()))
        return "expected the last command, and no other, to advance the step counts";
    return plan.commands.empty() ? "expected commands, found none" : "";
  }

private:
  using Check = std::string;

  template <typename T> static const T &at(const std::vector<T> &list, int64_t index) {
    return list[static_cast<size_t>(index)];
  }
  const Group &groupOf(int64_t table) const {
    return at(plan.groups, at(plan.segments, at(plan.tables, table).from.segment).group);
  }

  Check command(const Command &command) {
    switch (command.kind) {
    case CommandKind::Chunks:
    case CommandKind::Blocks:
    case CommandKind::Parameters:
      return dispatch(command);
    case CommandKind::Copy:
      return copy(command);
    case CommandKind::Start:
      return start(command);
    case CommandKind::Await:
      if (command.index < 0 || command.index >= started)
        return "collective " + std::to_string(command.index) + " is not under way";
      if (awaited[static_cast<size_t>(command.index)])
        return "collective " + std::to_string(command.index) + " is awaited twice";
      awaited[static_cast<size_t>(command.index)] = true;
      return {};
    case CommandKind::AdvanceSteps:
      return {};
    }
    return "unknown kind";
  }

  Check oneTable(const Command &command, std::initializer_list<TableKind> kinds) {
    if (command.tables.size() != 1)
      return "expected one table, found " + std::to_string(command.tables.size());
    if (!inside(command.tables[0], plan.tables))
      return outside("table", command.tables[0]);
    for (TableKind kind : kinds)
      if (at(plan.tables, command.tables[0]).kind == kind)
        return {};
    return "table " + std::to_string(command.tables[0]) + " is of another kind";
  }

  Check dispatch(const Command &command) {
    if (!inside(command.kernel, plan.kernels))
      return outside("kernel", command.kernel);
    switch (command.kind) {
    case CommandKind::Chunks:
      return chunks(command);
    case CommandKind::Blocks:
      if (Check wrong = oneTable(command, {TableKind::BlockChunks}); !wrong.empty())
        return wrong;
      if (command.items < 1 || command.items > kMostItems)
        return "expected at least one item per block, found " + std::to_string(command.items);
      return operands(command, 0, command.operands.size(), groupOf(command.tables[0]), false);
    default:
      return parameters(command);
    }
  }

  Check chunks(const Command &command) {
    size_t count = command.tables.size();
    if (count == 0 || command.operands.size() % count)
      return "expected as many operands for each of its tables";
    size_t each = command.operands.size() / count;
    for (size_t i = 0; i < count; ++i) {
      int64_t index = command.tables[i];
      if (!inside(index, plan.tables))
        return outside("table", index);
      TableKind kind = at(plan.tables, index).kind;
      if ((kind != TableKind::ShardChunks && kind != TableKind::BlockChunks) ||
          kind != at(plan.tables, command.tables[0]).kind)
        return "table " + std::to_string(index) + " is of another kind";
      if (Check wrong =
              operands(command, i * each, each, groupOf(index), kind == TableKind::ShardChunks);
          !wrong.empty())
        return wrong;
      // A kernel has one list of pointers to shards for all tables.
      for (size_t k = 0; k < each; ++k) {
        const Operand &first = command.operands[k], &other = command.operands[i * each + k];
        if (first.kind != other.kind ||
            (first.kind == OperandKind::State && first.value != other.value))
          return "expected the same operands for each of its tables";
      }
    }
    return {};
  }

  Check parameters(const Command &command) {
    size_t count = command.groups.size();
    if (count == 0 || command.operands.size() % count)
      return "expected as many operands for each of its groups";
    size_t each = command.operands.size() / count;
    for (size_t i = 0; i < count; ++i) {
      if (!inside(command.groups[i], plan.groups))
        return outside("group", command.groups[i]);
      for (size_t k = i * each; k < (i + 1) * each; ++k)
        if (command.operands[k].kind != OperandKind::Scalars)
          return "expected to write scalars";
      if (Check wrong =
              operands(command, i * each, each, at(plan.groups, command.groups[i]), false);
          !wrong.empty())
        return wrong;
    }
    return {};
  }

  /// `shards`: whether the command visits elements of shards.
  Check operands(const Command &command, size_t first, size_t count, const Group &group,
                 bool shards) {
    for (size_t i = first; i < first + count; ++i)
      if (Check wrong = operand(command.operands[i], group, shards); !wrong.empty())
        return wrong;
    return {};
  }

  Check operand(const Operand &operand, const Group &group, bool shards) {
    switch (operand.kind) {
    case OperandKind::Workspace:
      return inWorkspace(operand.value, operand.bytes);
    case OperandKind::Scalars: {
      auto rows = static_cast<int64_t>(group.parameters.size());
      if (operand.bytes < 0 || (rows > 0 && operand.bytes > plan.workspaceBytes() / rows))
        return "its scalars do not fit in the workspace";
      return inWorkspace(operand.value, operand.bytes * rows);
    }
    case OperandKind::State: {
      const Rule &rule = at(plan.rules, group.rule);
      if (!inside(operand.value, rule.states))
        return outside("state", operand.value);
      if (!stateExists(group, at(rule.states, operand.value)))
        return "group " + group.name + " has no state " + at(rule.states, operand.value).name;
      [[fallthrough]];
    }
    case OperandKind::Parameters:
    case OperandKind::Gradients:
      return shards ? Check()
                    : Check("expected no shards, because it visits none of their elements");
    case OperandKind::BlockRows:
      return {};
    }
    return "an operand of unknown kind";
  }

  Check inWorkspace(int64_t offset, int64_t bytes) {
    int64_t all = plan.workspaceBytes();
    if (offset < 0 || bytes < 0 || bytes > all || offset > all - bytes)
      return "expected operands inside of the workspace of " + std::to_string(all) +
             " bytes, found " + std::to_string(bytes) + " bytes from byte " +
             std::to_string(offset);
    if (offset % kAlignment)
      return "expected operands at multiples of " + std::to_string(kAlignment) +
             " bytes, found one at byte " + std::to_string(offset);
    return {};
  }

  Check copy(const Command &command) {
    if (Check wrong = oneTable(command, {TableKind::Copy}); !wrong.empty())
      return wrong;
    if (command.operands.size() != 2)
      return "expected where it moves from and to, found " +
             std::to_string(command.operands.size()) + " operands";
    const Table &table = at(plan.tables, command.tables[0]);
    const Group &group = groupOf(command.tables[0]);
    for (size_t side = 0; side < 2; ++side) {
      const Operand &operand = command.operands[side];
      bool shard = (side == 0 ? table.from : table.to).isResting(Distribution::Shards);
      if (operand.kind != (shard ? OperandKind::State : OperandKind::Workspace))
        return shard ? "expected the shards of a state where its table has shards"
                     : "expected a part of the workspace where its table has no shards";
      if (Check wrong = this->operand(operand, group, shard); !wrong.empty())
        return wrong;
      if (!shard)
        continue;
      const State &state = at(at(plan.rules, group.rule).states, operand.value);
      if (byteSize(state.dtype) != table.elementBytes || state.kind != table.from.value)
        return "state " + state.name + " has another type or shape than its table";
    }
    return {};
  }

  Check communicator(const Communicator &communicator) {
    if (communicator.mesh == -1)
      return communicator.factors.empty() ? Check() : "expected no factors of the world";
    if (!inside(communicator.mesh, plan.meshes))
      return outside("mesh", communicator.mesh);
    const std::vector<int64_t> &sizes = at(plan.meshes, communicator.mesh).sizes;
    for (const Factor &factor : communicator.factors)
      if (!inside(factor.axis, sizes) || factor.stride < 1 || factor.size < 1 ||
          factor.stride > at(sizes, factor.axis) || factor.size > at(sizes, factor.axis) ||
          at(sizes, factor.axis) % (factor.stride * factor.size) != 0)
        return "expected factors that divide an axis of the mesh";
    return {};
  }

  Check start(const Command &command) {
    ++started;
    if (command.collective != CollectiveKind::Exchange &&
        command.collective != CollectiveKind::AllGather)
      return "unknown kind of collective";
    if (Check wrong = communicator(command.communicator); !wrong.empty())
      return wrong;
    for (int64_t index : command.tables)
      if (!inside(index, plan.tables) || at(plan.tables, index).kind != TableKind::Message)
        return "table " + std::to_string(index) + " is not a message table";
    if (command.operands.size() != 2 * command.tables.size())
      return "expected a send and a receive for each of " + std::to_string(command.tables.size()) +
             " tables, found " + std::to_string(command.operands.size()) + " operands";
    for (const Operand &operand : command.operands) {
      if (operand.kind != OperandKind::Workspace)
        return "expected to send from the workspace and to receive there";
      if (Check wrong = inWorkspace(operand.value, operand.bytes); !wrong.empty())
        return wrong;
    }
    return {};
  }

  const Plan &plan;
  int64_t started = 0;
  std::vector<bool> awaited;
};

/// The element behind the last that a strided row of a copy touches.
int64_t endOf(int64_t first, int64_t stride, const CopyRow &row) {
  return row.rows == 0 || row.cols == 0 ? 0 : first + (row.rows - 1) * stride + row.cols;
}

} // namespace

std::string validateProgram(const Plan &plan, int64_t *command) {
  return ProgramValidator(plan).run(command);
}

std::string checkReach(const Plan &plan, const Command &command,
                       const std::vector<RankTable> &tables) {
  bool copies = command.kind == CommandKind::Copy;
  if (!copies && command.kind != CommandKind::Start)
    return {};
  size_t count = command.tables.size();
  for (size_t i = 0; i < count; ++i) {
    auto index = static_cast<size_t>(command.tables[i]);
    int64_t from = 0, to = 0;
    for (const CopyRow &row : tables[index].copies) {
      from = std::max(from, endOf(row.source, row.sourceStride, row));
      to = std::max(to, endOf(row.target, row.targetStride, row));
    }
    for (const Message &message : tables[index].messages) {
      from = std::max(from, message.sendOffset + message.sendCount);
      to = std::max(to, message.receiveOffset + message.receiveCount);
    }
    int64_t bytes = plan.tables[index].elementBytes;
    for (auto [operand, end] : {std::pair(&command.operands[i], from),
                                std::pair(&command.operands[copies ? 1 : count + i], to)})
      if (operand->kind == OperandKind::Workspace && end * bytes > operand->bytes)
        return std::string(name(command.kind)) + " of table " + std::to_string(index) + " needs " +
               std::to_string(end * bytes) + " bytes, its operand has " +
               std::to_string(operand->bytes);
  }
  return {};
}

} // namespace stepc::plan
