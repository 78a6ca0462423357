//===- Work.cpp - What a rank's commands take by themselves ---------------===//

#include "passes/simulate/Work.h"

#include "runtime/geometry/Geometry.h"

#include <algorithm>

using namespace stepc;
using namespace stepc::simulate;

Work::Work(const plan::Plan &plan, plan::Expander &expander, const cost::Device &device)
    : plan(plan), expander(expander), device(device), ranks(plan.world().size()),
      times(plan.commands.size() * ranks), totals(ranks), shards(ranks) {
  for (size_t at = 0; at < plan.commands.size(); ++at) {
    std::vector<Effort> each = efforts(plan.commands[at]);
    for (size_t rank = 0; rank < each.size(); ++rank) {
      times[at * ranks + rank] = each[rank].seconds;
      totals[rank].seconds += each[rank].seconds;
      totals[rank].flops += each[rank].flops;
      totals[rank].bytes += each[rank].bytes;
    }
  }
  countShards();
  known.clear();
}

double Work::copySeconds(int64_t bytes) const {
  return bytes > 0 ? device.launch + device.seconds(0, 2 * double(bytes)) : 0;
}

Sums Work::sum(const plan::RankTable &rows) const {
  Sums sums;
  sums.items = int64_t(rows.chunks.size() + rows.copies.size() + rows.sums.size());
  sums.blocks = rows.blocks;
  for (const plan::Chunk &chunk : rows.chunks) {
    sums.elements += chunk.rows * chunk.cols;
    sums.staged += chunk.staged < 0 ? 0 : chunk.rows * chunk.cols;
  }
  for (const plan::CopyRow &row : rows.copies)
    sums.elements += row.rows * row.cols;
  for (const plan::SumRow &row : rows.sums) {
    sums.elements += row.rows * row.cols;
    sums.staged += row.rows * row.cols * row.count; // contributions
  }
  return sums;
}

const std::vector<Sums> &Work::sumsOf(int64_t table) {
  auto [found, isNew] = known.try_emplace(table);
  if (!isNew)
    return found->second;
  // Rows that live on are not summed twice; those that the expander forgot may leave their address to others.
  std::map<const plan::RankTable *, std::pair<std::weak_ptr<const plan::RankTable>, Sums>> seen;
  std::vector<Sums> &sums = found->second;
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::shared_ptr<const plan::RankTable> rows =
        expander.common(plan.tables[size_t(table)], int64_t(rank)).rows;
    auto &[owner, value] = seen[rows.get()];
    if (owner.lock() != rows) {
      owner = rows;
      value = sum(*rows);
    }
    sums.push_back(value);
  }
  return sums;
}

std::vector<Effort> Work::efforts(const plan::Command &command) {
  using enum plan::CommandKind;
  switch (command.kind) {
  case Chunks:
    return chunks(command);
  case Product:
  case Reduce:
    return batch(command);
  case Copy:
    return copy(command);
  case Sum:
    return addUp(command);
  case Parameters:
    // A few numbers per parameter.
    return std::vector<Effort>(ranks, {device.launch, 0, 0});
  case AdvanceSteps:
    return std::vector<Effort>(ranks, {command.kernel < 0 ? 0 : device.launch, 0, 0});
  case Start:
  case Await:
    break; // exchanges'
  }
  return {};
}

/// Elements of a block that a kind of value has, by those of another kind.
static double ratio(const plan::Group &group, plan::ValueKind kind, plan::ValueKind to) {
  plan::View one = plan::view(group, kind), other = plan::view(group, to);
  double elements = double(other.rows) * double(other.cols);
  return elements > 0 ? double(one.rows) * double(one.cols) / elements : 0;
}

/// Bytes of a block in a segment's batch of a pool.
double Work::bytesInPool(const plan::Operand &operand, int64_t segment) const {
  for (const plan::Pool::Member &member : plan.pools[size_t(operand.pool)].members)
    if (member.segment == segment)
      return double(member.blockBytes);
  return 0;
}

std::vector<Effort> Work::chunks(const plan::Command &command) {
  std::vector<Effort> result(ranks);
  std::vector<const plan::Command *> starts = plan.starts();
  size_t each = command.operands.size() / command.tables.size();
  std::vector<char> any(ranks);
  for (size_t i = 0; i < command.tables.size(); ++i) {
    const plan::Table &table = plan.tables[size_t(command.tables[i])];
    const plan::Group &group = plan.groups[size_t(plan.segments[size_t(table.from.segment)].group)];
    const plan::Rule &rule = plan.rules[size_t(group.rule)];
    const std::vector<Sums> &sums = sumsOf(command.tables[i]);
    int64_t most = 1;
    for (const Sums &one : sums)
      most = std::max(most, one.elements);
    plan::View iterated = plan::view(group, table.from.value);
    // Bytes per element of the rows, and of those that stage something. What a kernel may both read and
    // write, it does: parameters and states.
    double element = 0, staged = 0;
    for (size_t k = i * each; k < (i + 1) * each; ++k) {
      const plan::Operand &operand = command.operands[k];
      using enum plan::OperandKind;
      switch (operand.kind) {
      case Parameters:
        element += 2 * double(plan::byteSize(group.parameterType));
        break;
      case Gradients:
        element += double(plan::byteSize(group.gradientType));
        break;
      case State: {
        const plan::State &state = rule.states[size_t(operand.value)];
        element +=
            2 * double(plan::byteSize(state.dtype)) * ratio(group, state.kind, table.from.value);
        break;
      }
      case Workspace:
        // A packed value has the size of what travels. A copy of shards has the size on the rank with most, a
        // batch in a pool that of its member's blocks.
        if (operand.start >= 0)
          staged += double(
              plan.tables[size_t(starts[size_t(operand.start)]->tables[size_t(operand.traveller)])]
                  .elementBytes);
        else if (operand.pool >= 0)
          element += bytesInPool(operand, table.from.segment) /
                     double(std::max<int64_t>(1, iterated.rows * iterated.cols));
        else
          element += double(operand.bytes) / double(most);
        break;
      case Batch: // no chunk has one
      case Scalars:
      case BlockRows:
        break;
      }
    }
    for (size_t rank = 0; rank < ranks; ++rank) {
      any[rank] |= sums[rank].items > 0;
      result[rank].bytes +=
          element * double(sums[rank].elements) + staged * double(sums[rank].staged);
    }
  }
  for (size_t rank = 0; rank < ranks; ++rank)
    if (any[rank])
      result[rank].seconds = device.launch + device.seconds(0, result[rank].bytes);
  return result;
}

std::vector<Effort> Work::batch(const plan::Command &command) {
  std::vector<Effort> result(ranks);
  const std::vector<Sums> &sums = sumsOf(command.tables[0]);
  const plan::Operand &first = command.operands.front(), &out = command.operands.back();
  double bytes = 0; // of a block
  for (const plan::Operand &operand : command.operands)
    bytes += double(operand.rows) * double(operand.cols) * double(plan::byteSize(operand.type));
  double flops = 2 * double(first.rows) * double(first.cols);
  double once = double(command.batch.kernels.size()) * device.launch;
  if (command.kind == plan::CommandKind::Product) {
    int64_t k = command.batch.transposeLhs ? first.rows : first.cols;
    flops = double(cost::productFlops(out.rows, out.cols, k, command.batch.symmetric));
    once = device.once(out.rows, out.cols, k);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    auto blocks = double(sums[rank].blocks);
    if (blocks > 0)
      result[rank] = {once + device.seconds(flops * blocks, bytes * blocks), flops * blocks,
                      bytes * blocks};
  }
  return result;
}

std::vector<Effort> Work::copy(const plan::Command &command) {
  std::vector<Effort> result(ranks);
  const std::vector<Sums> &sums = sumsOf(command.tables[0]);
  int64_t element = plan.tables[size_t(command.tables[0])].elementBytes;
  for (size_t rank = 0; rank < ranks; ++rank)
    result[rank] = {copySeconds(sums[rank].elements * element), 0,
                    2 * double(sums[rank].elements * element)};
  return result;
}

std::vector<Effort> Work::addUp(const plan::Command &command) {
  std::vector<Effort> result(ranks);
  const std::vector<Sums> &sums = sumsOf(command.tables[0]);
  int64_t element = plan.tables[size_t(command.tables[0])].elementBytes;
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (sums[rank].items == 0)
      continue;
    auto flops = double(sums[rank].staged);
    double bytes = double((sums[rank].elements + sums[rank].staged) * element);
    result[rank] = {device.launch + device.seconds(flops, bytes), flops, bytes};
  }
  return result;
}

void Work::countShards() {
  std::map<int64_t, size_t> rankOf;
  for (int64_t global : plan.world())
    rankOf.emplace(global, rankOf.size());
  for (const plan::Group &group : plan.groups) {
    // Only the group of the first parts counts: its parameters' whole shards.
    if (plan.parameters[size_t(group.parameters[0])].group != &group - plan.groups.data())
      continue;
    plan::Group whole = geometry::whole(group);
    const plan::Mesh &mesh = plan.meshes[size_t(group.mesh)];
    const plan::Rule &rule = plan.rules[size_t(group.rule)];
    auto count = int64_t(group.parameters.size());
    for (size_t position = 0; position < mesh.ranks.size(); ++position) {
      auto bytes = [&](plan::ShardsKind whose, plan::ValueKind kind, plan::DType type) {
        int64_t elements = 0;
        for (const geometry::Rect &rect :
             geometry::rectangles(whole, mesh, int64_t(position), kind, whose))
          elements += rect.rows * rect.cols;
        return elements * count * plan::byteSize(type);
      };
      using enum plan::ShardsKind;
      int64_t &sum = shards[rankOf.at(mesh.ranks[position])];
      sum += bytes(Parameter, plan::ValueKind::Full, group.parameterType) +
             bytes(Gradient, plan::ValueKind::Full, group.gradientType);
      for (const plan::State &state : rule.states)
        if (plan::stateExists(group, state))
          sum += bytes(State, state.kind, state.dtype);
    }
  }
}
