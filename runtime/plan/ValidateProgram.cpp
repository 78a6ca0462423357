//===- ValidateProgram.cpp - What makes a program safe to walk -----------===//
//
// Whatever passes here names tables, groups, kernels and states that are there, stays in the workspace, and
// awaits each collective once, after its start. What kernels compute the verifier proves at level 4.
//
//===----------------------------------------------------------------------===//

#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Checks.h"
#include "runtime/plan/Tables.h"

namespace stepc::plan {
namespace {

constexpr int64_t kMostItems = int64_t(1) << 42; // of a block: far above any matrix

class ProgramValidator {
public:
  explicit ProgramValidator(const Plan &plan) : plan(plan), starts(plan.starts()) {}

  std::string run(int64_t *which) {
    awaited.assign(starts.size(), false);
    calls.assign(plan.kernels.size(), {});
    for (size_t i = 0; i < plan.commands.size(); ++i) {
      if (which)
        *which = static_cast<int64_t>(i);
      Check wrong = command(plan.commands[i]);
      if (wrong.empty())
        wrong = calling(plan.commands[i]);
      if (!wrong.empty())
        return "command " + std::to_string(i) + " (" + std::string(name(plan.commands[i].kind)) +
               "): " + wrong;
    }
    if (which)
      *which = static_cast<int64_t>(plan.commands.size()) - 1;
    for (size_t i = 0; i < awaited.size(); ++i)
      if (!awaited[i])
        return "expected each collective to be awaited, found that number " + std::to_string(i) +
               " never is";
    for (size_t i = 0; i < plan.commands.size(); ++i)
      if ((plan.commands[i].kind == CommandKind::AdvanceSteps) != (i + 1 == plan.commands.size()))
        return "expected the last command, and no other, to advance the step counts, found "
               "command " +
               std::to_string(i);
    if (plan.commands.empty())
      return "expected commands, found none";
    for (size_t i = 0; i < calls.size(); ++i)
      if (calls[i].empty())
        return "expected each kernel to be called by some command, found that kernel " +
               plan.kernels[i] + " is by none";
    return {};
  }

private:
  const Group &groupOf(int64_t table) const {
    return at(plan.groups, at(plan.segments, at(plan.tables, table).from.segment).group);
  }

  Check command(const Command &command) {
    switch (command.kind) {
    case CommandKind::Chunks:
    case CommandKind::Parameters:
      if (!inside(command.kernel, plan.kernels))
        return outside("kernel", command.kernel, plan.kernels);
      return command.kind == CommandKind::Chunks ? chunks(command) : parameters(command);
    case CommandKind::Sum:
      return sum(command);
    case CommandKind::Product:
    case CommandKind::Reduce:
      return batch(command);
    case CommandKind::Copy:
      return copy(command, TableKind::Copy);
    case CommandKind::Start:
      return start(command);
    case CommandKind::Await:
      if (Check wrong = optionalKernel(command); !wrong.empty())
        return wrong;
      if (command.index < 0 || command.index >= started)
        return "expected a collective that is under way, found number " +
               std::to_string(command.index);
      if (awaited[static_cast<size_t>(command.index)])
        return "expected each collective to be awaited once, found number " +
               std::to_string(command.index) + " again";
      if ((starts[static_cast<size_t>(command.index)]->kernel == -1) != (command.kernel == -1))
        return "expected a kernel exactly where its start has one";
      awaited[static_cast<size_t>(command.index)] = true;
      return {};
    case CommandKind::AdvanceSteps:
      return optionalKernel(command);
    }
    return unknown("a kind of command", command.kind, CommandKind::Sum);
  }

  /// Some devices have a kernel for these commands.
  Check optionalKernel(const Command &command) const {
    return command.kernel == -1 || inside(command.kernel, plan.kernels)
               ? Check()
               : outside("kernel", command.kernel, plan.kernels);
  }

  /// A kernel is code for one way to be called: a command that calls it otherwise names a wrong one. The
  /// command is known to be in order.
  Check calling(const Command &command) {
    std::vector<int64_t> call = {static_cast<int64_t>(command.kind)};
    if (command.isBatch()) {
      for (const Batch::Kernel &kernel : command.batch.kernels) {
        call.resize(1);
        call.push_back(kernel.items);
        if (Check wrong = called(kernel.kernel, call); !wrong.empty())
          return wrong;
      }
      return {};
    }
    // What kernels of messages take does not depend on the command.
    if (command.kind == CommandKind::Start || command.kind == CommandKind::Await)
      return command.kernel == -1 ? Check() : called(command.kernel, call);
    size_t count =
        command.kind == CommandKind::Chunks ? command.tables.size() : command.groups.size();
    if (command.kind == CommandKind::Chunks)
      call.push_back(static_cast<int64_t>(at(plan.tables, command.tables[0]).kind));
    for (size_t i = 0; count > 0 && i < command.operands.size() / count; ++i) {
      const Operand &operand = command.operands[i];
      // Whose shards they are is all one to a kernel.
      bool areShards = operand.kind == OperandKind::Gradients || operand.kind == OperandKind::State;
      call.push_back(static_cast<int64_t>(areShards ? OperandKind::Parameters : operand.kind));
      call.push_back(operand.kind == OperandKind::Scalars ? operand.bytes : 0);
    }
    return command.kernel == -1 ? Check() : called(command.kernel, call);
  }

  Check called(int64_t kernel, const std::vector<int64_t> &call) {
    std::vector<int64_t> &known = calls[static_cast<size_t>(kernel)];
    if (known.empty())
      known = call;
    return known == call
               ? Check()
               : "expected kernel " + at(plan.kernels, kernel) +
                     " to be called as by an earlier command, found other items or operands";
  }

  static Check ofKind(std::string_view expected, TableKind found) {
    return "expected a table of " + std::string(expected) + ", found one of " +
           std::string(name(found));
  }

  Check oneTable(const Command &command, TableKind kind) {
    if (command.tables.size() != 1)
      return "expected one table, found " + std::to_string(command.tables.size());
    if (!inside(command.tables[0], plan.tables))
      return outside("table", command.tables[0], plan.tables);
    TableKind found = at(plan.tables, command.tables[0]).kind;
    return found == kind ? Check() : ofKind(name(kind), found);
  }

  Check batch(const Command &command) {
    if (Check wrong = oneTable(command, TableKind::BlockChunks); !wrong.empty())
      return wrong;
    for (const Batch::Kernel &kernel : command.batch.kernels) {
      if (!inside(kernel.kernel, plan.kernels))
        return outside("kernel", kernel.kernel, plan.kernels);
      const Segment &segment = at(plan.segments, at(plan.tables, command.tables[0]).from.segment);
      int64_t blocks = std::max<int64_t>(1, at(plan.groups, segment.group).blockCount());
      if (kernel.items < 1 || kernel.items > kMostItems / blocks)
        return "expected 1 to " + std::to_string(kMostItems / blocks) + " items per block, found " +
               std::to_string(kernel.items);
    }
    if (command.batch.scratchBytes < 0 || command.batch.scratchBytes > plan.scratchBytes)
      return "expected scratch within the " + std::to_string(plan.scratchBytes) +
             " bytes that the workspace has, found " + std::to_string(command.batch.scratchBytes) +
             " for each block";
    const std::vector<Operand> &all = command.operands;
    for (const Operand &operand : all) {
      if (operand.kind != OperandKind::Batch)
        return "expected batches of blocks, found " + std::string(name(operand.kind));
      if (operand.rows < 0 || operand.cols < 0 || operand.type == DType::F64 ||
          operand.rows > kMostItems || operand.cols > kMostItems)
        return "expected blocks of a type of 32 bits or fewer, found " +
               std::to_string(operand.rows) + " x " + std::to_string(operand.cols) + " of " +
               std::string(name(operand.type));
      if (Check wrong = inWorkspace(operand.value, operand.bytes); !wrong.empty())
        return wrong;
      if (Check wrong = pooled(operand, at(plan.tables, command.tables[0]).from,
                               operand.rows * operand.cols * byteSize(operand.type));
          !wrong.empty())
        return wrong;
    }
    if (doExtentsAgree(command))
      return checkPinned(plan, command);
    Check extents;
    for (const Operand &operand : all)
      extents += (extents.empty() ? "" : ", ") + std::to_string(operand.rows) + " x " +
                 std::to_string(operand.cols);
    return "expected operands whose extents agree, found " + extents;
  }

  static Check share(const Command &command, size_t count, const char *of) {
    return std::string("expected as many operands for each of its ") + of + ", found " +
           std::to_string(command.operands.size()) + " for " + std::to_string(count);
  }

  Check chunks(const Command &command) {
    size_t count = command.tables.size();
    if (count == 0 || command.operands.size() % count)
      return share(command, count, "tables");
    size_t each = command.operands.size() / count;
    for (size_t i = 0; i < count; ++i) {
      int64_t index = command.tables[i];
      if (!inside(index, plan.tables))
        return outside("table", index, plan.tables);
      TableKind kind = at(plan.tables, index).kind, first = at(plan.tables, command.tables[0]).kind;
      if (kind != TableKind::ShardChunks && kind != TableKind::BlockChunks)
        return ofKind("chunks", kind);
      if (kind != first)
        return ofKind(name(first), kind);
      const Place &walked = at(plan.tables, index).from;
      if (Check wrong = operands(command, i * each, each, groupOf(index),
                                 kind == TableKind::ShardChunks ? &walked : nullptr);
          !wrong.empty())
        return wrong;
      // A kernel has one list of pointers to shards for all tables.
      for (size_t k = 0; k < each; ++k) {
        const Operand &first = command.operands[k], &other = command.operands[i * each + k];
        if (first.kind != other.kind ||
            (first.kind == OperandKind::State && first.value != other.value))
          return "expected the same operands for each of its tables, found others for table " +
                 std::to_string(index);
        if (other.kind != OperandKind::Workspace)
          continue;
        if (Check wrong = placed(other, at(plan.tables, index).to, -1); !wrong.empty())
          return wrong;
      }
    }
    return {};
  }

  Check parameters(const Command &command) {
    size_t count = command.groups.size();
    if (count == 0 || command.operands.size() % count)
      return share(command, count, "groups");
    size_t each = command.operands.size() / count;
    for (size_t i = 0; i < count; ++i) {
      if (!inside(command.groups[i], plan.groups))
        return outside("group", command.groups[i], plan.groups);
      for (size_t k = i * each; k < (i + 1) * each; ++k)
        if (command.operands[k].kind != OperandKind::Scalars)
          return "expected to write scalars, found " + std::string(name(command.operands[k].kind));
      if (Check wrong =
              operands(command, i * each, each, at(plan.groups, command.groups[i]), nullptr);
          !wrong.empty())
        return wrong;
    }
    return {};
  }

  /// `shards`: of which the command visits elements, or null.
  Check operands(const Command &command, size_t first, size_t count, const Group &group,
                 const Place *shards) {
    for (size_t i = first; i < first + count; ++i)
      if (Check wrong = operand(command.operands[i], group, shards); !wrong.empty())
        return wrong;
    return {};
  }

  Check operand(const Operand &operand, const Group &group, const Place *shards) {
    if (operand.pool != -1 && operand.kind != OperandKind::Workspace)
      return "expected no pool of what is no batch, found pool " + std::to_string(operand.pool);
    switch (operand.kind) {
    case OperandKind::Workspace:
      return inWorkspace(operand.value, operand.bytes);
    case OperandKind::Batch:
      return "expected what chunks and parameters have, found a batch, which is for products and "
             "reductions";
    case OperandKind::Scalars: {
      auto rows = static_cast<int64_t>(group.parameters.size());
      if (operand.bytes < 0 || (rows > 0 && operand.bytes > plan.workspaceBytes() / rows))
        return "expected scalars that fit in the workspace of " +
               std::to_string(plan.workspaceBytes()) + " bytes, found " +
               std::to_string(operand.bytes) + " bytes for each of " + std::to_string(rows) +
               " parameters";
      return inWorkspace(operand.value, operand.bytes * rows);
    }
    case OperandKind::State: {
      const Rule &rule = at(plan.rules, group.rule);
      if (!inside(operand.value, rule.states))
        return outside("state", operand.value, rule.states);
      if (!stateExists(group, at(rule.states, operand.value)))
        return "expected a state that group " + group.name + " has, found " +
               at(rule.states, operand.value).name;
      [[fallthrough]];
    }
    case OperandKind::Parameters:
    case OperandKind::Gradients:
      if (!shards)
        return "expected no shards, because it visits none of their elements, found those of the " +
               std::string(name(whose(operand)));
      return shardsOf(group, whose(operand)) == shards->from
                 ? Check()
                 : "expected shards that stand in " + name(shards->from) + ", found those of the " +
                       std::string(name(whose(operand)));
    case OperandKind::BlockRows:
      return {};
    }
    return unknown("a kind of operand", operand.kind, OperandKind::Batch);
  }

  Check placed(const Operand &operand, const Place &place, int64_t blockBytes) {
    Check wrong = packed(operand, place);
    return wrong.empty() ? pooled(operand, place, blockBytes) : wrong;
  }

  /// Whether an operand that names a member of a pool is that member. `blockBytes`: what the command
  /// takes a block for; -1 where that is not in the plan.
  Check pooled(const Operand &operand, const Place &place, int64_t blockBytes) {
    if (operand.pool == -1)
      return {};
    if (!inside(operand.pool, plan.pools))
      return outside("pool", operand.pool, plan.pools);
    const Pool &pool = at(plan.pools, operand.pool);
    if (!inside(operand.member, pool.members))
      return outside("member of pool " + std::to_string(operand.pool), operand.member,
                     pool.members);
    const Pool::Member &member = at(pool.members, operand.member);
    if (place.isBatch() && place.segment == member.segment &&
        (blockBytes == -1 || blockBytes == member.blockBytes) && operand.value == pool.offset &&
        operand.bytes == pool.bytes)
      return {};
    return "expected member " + std::to_string(operand.member) + " of pool " +
           std::to_string(operand.pool) + " in that pool, found another";
  }

  /// Whether an operand names the start that what is packed there travels with.
  Check packed(const Operand &operand, const Place &place) {
    if (!place.isMoving())
      return operand.start == -1 ? Check()
                                 : "expected no start of what is not packed, found start " +
                                       std::to_string(operand.start);
    if (!inside(operand.start, starts))
      return outside("start", operand.start, starts);
    const Command &start = *at(starts, operand.start);
    if (!inside(operand.traveller, start.tables) || start.operands.size() != 2)
      return outside("value of start " + std::to_string(operand.start), operand.traveller,
                     start.tables);
    const Table &travels = at(plan.tables, at(start.tables, operand.traveller));
    bool received = place.end == End::Received;
    const Operand &buffer = start.operands[received];
    if (place == (received ? travels.to : travels.from) && buffer.value == operand.value &&
        buffer.bytes == operand.bytes)
      return {};
    return "expected value " + std::to_string(operand.traveller) + " of start " +
           std::to_string(operand.start) + " in that start's buffer, found another";
  }

  static ShardsKind whose(const Operand &operand) {
    return operand.kind == OperandKind::Gradients ? ShardsKind::Gradient
           : operand.kind == OperandKind::State   ? ShardsKind::State
                                                  : ShardsKind::Parameter;
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

  Check sum(const Command &command) {
    int64_t divisor = command.index;
    return divisor < 1 ? "expected a divisor of 1 or more, found " + std::to_string(divisor)
                       : copy(command, TableKind::Sum);
  }

  Check copy(const Command &command, TableKind kind) {
    if (Check wrong = oneTable(command, kind); !wrong.empty())
      return wrong;
    if (Check wrong = optionalKernel(command); !wrong.empty())
      return wrong;
    if (command.operands.size() != 2)
      return "expected where it moves from and to, found " +
             std::to_string(command.operands.size()) + " operands";
    const Table &table = at(plan.tables, command.tables[0]);
    const Group &group = groupOf(command.tables[0]);
    for (size_t side = 0; side < 2; ++side) {
      const Operand &operand = command.operands[side];
      const Place &place = side == 0 ? table.from : table.to;
      if ((operand.kind == OperandKind::Workspace) == place.isBound())
        return std::string("expected ") +
               (place.isBound() ? "shards where its table has shards"
                                : "a part of the workspace where its table has no shards") +
               ", found " + std::string(name(operand.kind));
      if (Check wrong = this->operand(operand, group, place.isBound() ? &place : nullptr);
          !wrong.empty())
        return wrong;
      if (!place.isBound()) {
        View view = computedView(group, place.value);
        if (Check wrong = placed(operand, place, view.rows * view.cols * table.elementBytes);
            !wrong.empty())
          return wrong;
        continue;
      }
      State of{"", group.parameterType};
      if (operand.kind == OperandKind::Gradients)
        of.dtype = group.gradientType;
      if (operand.kind == OperandKind::State)
        of = at(at(plan.rules, group.rule).states, operand.value);
      if (byteSize(of.dtype) != table.elementBytes || of.kind != place.value)
        return "expected " + std::string(name(place.value)) + " elements of " +
               std::to_string(table.elementBytes) + " bytes, as its table has, found the " +
               std::string(name(whose(operand))) + "'s: " + std::string(name(of.kind)) + " of " +
               std::string(name(of.dtype));
    }
    return {};
  }

  Check start(const Command &command) {
    ++started;
    if (Check wrong = optionalKernel(command); !wrong.empty())
      return wrong;
    if (command.collective != CollectiveKind::Exchange &&
        command.collective != CollectiveKind::AllGather)
      return unknown("a kind of collective", command.collective, CollectiveKind::AllGather);
    if (Check wrong = checkCommunicator(plan, command.communicator); !wrong.empty())
      return wrong;
    if (command.operands.size() != 2)
      return "expected where it sends from and receives to, found " +
             std::to_string(command.operands.size()) + " operands";
    for (const Operand &operand : command.operands) {
      if (operand.kind != OperandKind::Workspace)
        return "expected to send from the workspace and to receive there, found " +
               std::string(name(operand.kind));
      if (operand.pool != -1)
        return "expected no pool of what is no batch, found pool " + std::to_string(operand.pool);
      if (Check wrong = inWorkspace(operand.value, operand.bytes); !wrong.empty())
        return wrong;
    }
    return {};
  }

  const Plan &plan;
  std::vector<const Command *> starts;
  int64_t started = 0;
  std::vector<bool> awaited;
  std::vector<std::vector<int64_t>> calls; // by kernel: how it is called
};

} // namespace

std::string validateProgram(const Plan &plan, int64_t *command) {
  return ProgramValidator(plan).run(command);
}

} // namespace stepc::plan
