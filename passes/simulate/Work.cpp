//===- Work.cpp - What a rank's commands take by themselves ---------------===//

#include "passes/simulate/Work.h"

#include "runtime/geometry/Geometry.h"
#include "runtime/plan/BlockStates.h"

#include <algorithm>

using namespace stepc;
using namespace stepc::simulate;

Effort &Effort::operator+=(const Effort &other) {
  seconds += other.seconds;
  flops += other.flops;
  fullFlops += other.fullFlops;
  bytes += other.bytes;
  productSeconds += other.productSeconds;
  productLaunches += other.productLaunches;
  return *this;
}

Work::Work(const plan::Plan &plan, plan::Expander &expander, const cost::Device &device)
    : plan(plan), expander(expander), device(device), launches(device), ranks(plan.world().size()),
      times(plan.commands.size() * ranks), totals(ranks), shards(ranks), starts(plan.starts()) {
  for (const cost::PlannedLaunch &launch : cost::plannedLaunches(plan))
    for (size_t command : launch.commands)
      launchOf[command] = launch;
  for (size_t at = 0; at < plan.commands.size(); ++at) {
    std::vector<Effort> each = efforts(at);
    for (size_t rank = 0; rank < each.size(); ++rank) {
      times[at * ranks + rank] = each[rank].seconds;
      totals[rank] += each[rank];
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
  // Sums up rows once that ranks share. The expander may free rows and reuse their address, so owners are
  // compared.
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

/// What a command takes on each rank. Bytes follow from its effects. Without a table it works on every rank.
std::vector<Effort> Work::efforts(size_t number) {
  const plan::Command &command = plan.commands[number];
  if (std::holds_alternative<plan::Start>(command) || std::holds_alternative<plan::Await>(command))
    return {}; // the engine times exchanges
  std::vector<Effort> result(ranks);
  std::vector<Sums> all(ranks);
  bool hasTable = false;
  plan::forEach<plan::TableNumber>(command, [&](plan::TableNumber table) {
    hasTable = true;
    for (size_t rank = 0; rank < ranks; ++rank)
      all[rank] += sumsOf(table)[rank];
  });
  for (const plan::Effect &effect : plan::effects(plan, command)) {
    if (!effect.operand || effect.table.isNone())
      continue;
    Rate each = rate(effect);
    const std::vector<Sums> &sums = sumsOf(effect.table);
    for (size_t rank = 0; rank < ranks; ++rank)
      result[rank].bytes += each.element * double(sums[rank].elements) +
                            each.staged * double(sums[rank].staged) +
                            each.block * double(sums[rank].blocks);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (hasTable && all[rank].items == 0 && all[rank].blocks == 0)
      continue;
    Extra more = std::visit([&](const auto &each) { return extra(each, all[rank]); }, command);
    result[rank].flops = more.flops;
    result[rank].fullFlops = more.fullFlops;
    result[rank].seconds = more.launch;
    const auto *product = std::get_if<plan::Product>(&command);
    if (hasTable && !product)
      result[rank].seconds += device.seconds(more.operations, result[rank].bytes);
    if (!product)
      continue;
    result[rank].seconds += launches.seconds(cost::launchedProduct(*product, all[rank].blocks));
    std::optional<double> launch = launchSeconds(number, rank);
    result[rank].productLaunches = launch.has_value();
    result[rank].seconds += launch.value_or(0);
    result[rank].productSeconds = result[rank].seconds;
  }
  return result;
}

std::optional<double> Work::launchSeconds(size_t number, size_t rank) {
  const cost::PlannedLaunch &launch = launchOf.at(number);
  cost::ProductLaunches::Products products;
  for (size_t each : launch.commands) {
    const auto &product = std::get<plan::Product>(plan.commands[each]);
    int64_t blocks = sumsOf(product.table)[rank].blocks;
    if (blocks == 0)
      continue;
    if (products.empty() && each != number)
      return {};
    products.push_back(cost::launchedProduct(product, blocks));
  }
  if (products.empty())
    return {};
  return launches.overhead(products, launch.besideMessages);
}

Work::Extra Work::extra(const plan::Product &product, const Sums &sums) const {
  cost::BlockProduct shape = cost::blockProductOf(product);
  auto blocks = double(sums.blocks);
  return {0, 0, double(cost::executedFlops(shape)) * blocks,
          double(cost::fullFlops(shape)) * blocks};
}

Work::Extra Work::extra(const plan::Apply &apply, const Sums &sums) const {
  return {double(apply.kernels.size()) * device.launch, double(apply.flops) * double(sums.blocks)};
}

Work::Extra Work::extra(const plan::Sum &, const Sums &sums) const {
  return {device.launch, double(sums.staged)};
}

Work::Extra Work::extra(const plan::AdvanceSteps &command, const Sums &) const {
  return {command.kernel.isNone() ? 0 : device.launch};
}

Work::Extra Work::extra(const plan::Skip &command, const Sums &) const {
  return {command.kernel.isNone() ? 0 : device.launch};
}

Work::Rate Work::rate(const plan::Effect &effect) {
  const plan::Table &table = plan.tables[size_t(effect.table.value)];
  const plan::Operand &operand = *effect.operand;
  auto moved = double(effect.elementBytes);
  if (operand.isShards())
    return {shardRate(operand, table) * (effect.access == plan::Access::Updates ? 2 : 1)};
  if (operand.kind == plan::OperandKind::Batch)
    return {0, 0, double(effect.blockBytes)};
  if (operand.kind != plan::OperandKind::Workspace)
    return {}; // a few numbers per parameter, or one per row
  if (table.kind == plan::TableKind::Sum && effect.extent == plan::Effect::From)
    return {0, moved};
  return moved > 0 ? Rate{moved} : workspaceRate(effect, table);
}

/// Bytes of a shard's elements, per element of the table's rows.
double Work::shardRate(const plan::Operand &operand, const plan::Table &table) const {
  const plan::Group &group = plan.groups[size_t(plan.segments[size_t(table.from.segment)].group)];
  plan::State of = operand.elements(plan, group);
  plan::View own = plan::view(group, of.kind), rows = plan::view(group, table.from.value);
  double elements = double(rows.rows) * double(rows.cols);
  return elements > 0
             ? double(plan::byteSize(of.dtype)) * double(own.rows) * double(own.cols) / elements
             : 0;
}

/// Bytes in the workspace, per element of the rows. Only kernels know the types of these operands. A packed
/// value has the size of what travels. A batch in a pool has the size of its blocks. Any other value has at
/// most the operand's bytes, for the rank with most elements.
Work::Rate Work::workspaceRate(const plan::Effect &effect, const plan::Table &table) {
  const plan::Operand &operand = *effect.operand;
  if (!operand.start.isNone()) {
    int64_t travels = starts[size_t(operand.start.value)]->tables[size_t(operand.traveller)];
    return {0, double(plan.tables[size_t(travels)].elementBytes)};
  }
  const plan::Group &group = plan.groups[size_t(plan.segments[size_t(table.from.segment)].group)];
  plan::View iterated = plan::view(group, table.from.value);
  if (effect.blockBytes > 0)
    return {double(effect.blockBytes) /
            double(std::max<int64_t>(1, iterated.rows * iterated.cols))};
  int64_t most = 1;
  for (const Sums &one : sumsOf(effect.table))
    most = std::max(most, one.elements);
  return {double(operand.bytes) / double(most)};
}

void Work::countShards() {
  std::map<int64_t, size_t> rankOf;
  for (int64_t global : plan.world())
    rankOf.emplace(global, rankOf.size());
  plan::Expander expander(plan);
  for (const plan::Group &group : plan.groups) {
    // Parameters with parts belong to several groups. Count their whole shards once, with the group of the
    // first part.
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
      if (!plan.isOfModel(group)) // which has states alone
        sum += bytes(Parameter, plan::ValueKind::Full, group.parameterType) +
               bytes(Gradient, plan::ValueKind::Full, group.gradientType);
      sum += count * plan::shardStateBytes(group, rule, mesh, int64_t(position));
      if (!group.blockStates.empty())
        sum += int64_t(expander
                           .computedOf(&group - plan.groups.data(),
                                       int64_t(rankOf.at(mesh.ranks[position])))
                           .size()) *
               plan::blockStateBytes(group, rule);
    }
  }
}
