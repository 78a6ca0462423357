//===- Dispatch.cpp - Kernels over chunks and over parameters -------------===//

#include "runtime/plan/commands/ProgramChecks.h"

namespace stepc::plan {

/// Checks that all runs have equally many operands, and appends to `call` how the kernel is called with
/// them.
template <typename Run>
static Check share(const std::vector<Run> &runs, const char *of, std::vector<int64_t> &call) {
  if (runs.empty())
    return std::string("expected at least one ") + of + ", found none";
  const std::vector<Operand> &first = runs[0].operands;
  for (const Run &run : runs)
    if (run.operands.size() != first.size())
      return std::string("expected as many operands for each ") + of + ", found " +
             std::to_string(first.size()) + " and " + std::to_string(run.operands.size());
  for (const Operand &operand : first) {
    // A kernel is the same whether shards are of the parameter, the gradient or a state.
    call.push_back(
        static_cast<int64_t>(operand.isShards() ? OperandKind::Parameters : operand.kind));
    call.push_back(operand.kind == OperandKind::Scalars ? operand.bytes : 0);
  }
  return {};
}

std::string DispatchChunks::check(ProgramChecks &checks) const {
  const Plan &plan = checks.plan;
  if (!inside(kernel, plan.kernels))
    return outside("kernel", kernel, plan.kernels);
  std::vector<int64_t> call(1);
  if (Check wrong = share(runs, "table", call); !wrong.empty())
    return wrong;
  for (const Run &run : runs) {
    if (!inside(run.table, plan.tables))
      return outside("table", run.table, plan.tables);
    const Table &table = at(plan.tables, run.table), &first = at(plan.tables, runs[0].table);
    if (!table.isOverShards() && table.kind != TableKind::BlockChunks)
      return ProgramChecks::ofKind("chunks", table.kind);
    if (table.kind != first.kind)
      return ProgramChecks::ofKind(name(first.kind), table.kind);
    for (const Operand &operand : run.operands) {
      if (Check wrong = checks.operand(operand, checks.groupOf(run.table),
                                       table.isOverShards() ? &table.from : nullptr);
          !wrong.empty())
        return wrong;
      if (operand.kind == OperandKind::Line && !table.leadsToLines() && !table.reduces())
        return ProgramChecks::ofKind("line_chunks or of a reduction", table.kind) +
               ", which leads to no line";
    }
    // A kernel has one list of pointers to shards for all tables.
    for (size_t k = 0; k < run.operands.size(); ++k) {
      const Operand &first = runs[0].operands[k], &other = run.operands[k];
      if (first.kind != other.kind ||
          (first.kind == OperandKind::State && first.value != other.value))
        return "expected the same operands for each of its tables, found others for table " +
               std::to_string(run.table);
      if (other.kind != OperandKind::Workspace)
        continue;
      if (Check wrong = checks.placed(other, table.to, -1); !wrong.empty())
        return wrong;
    }
  }
  call[0] = static_cast<int64_t>(at(plan.tables, runs[0].table).kind);
  return checks.kernel(kernel, std::move(call));
}

void DispatchChunks::effects(const Plan &plan, Effects &list) const {
  for (const Run &run : runs) {
    const Table &table = at(plan.tables, run.table);
    for (size_t k = 0; k < run.operands.size(); ++k) {
      const Operand &operand = run.operands[k];
      Effect effect{&operand, static_cast<int64_t>(k), Access::ReadsOrWrites};
      effect.table = run.table;
      if (operand.kind == OperandKind::Scalars)
        effect.access = Access::Reads, effect.extent = Effect::Row;
      else if (operand.kind == OperandKind::Line) {
        effect.extent = Effect::All;
        if (!table.reduces())
          effect.access = Access::Reads;
      } else if (operand.isShards())
        effect.access = operand.kind == OperandKind::Gradients || table.reduces() ? Access::Reads
                                                                                  : Access::Updates,
        effect.extent = Effect::From;
      else {
        effect.extent = table.isOverShards() ? Effect::To : Effect::Blocks;
        if (!operand.pool.isNone())
          effect.blockBytes = at(at(plan.pools, operand.pool).members, operand.member).blockBytes;
      }
      list.push_back(effect);
    }
  }
}

std::string DispatchParameters::check(ProgramChecks &checks) const {
  const Plan &plan = checks.plan;
  if (!inside(kernel, plan.kernels))
    return outside("kernel", kernel, plan.kernels);
  std::vector<int64_t> call;
  if (Check wrong = share(runs, "group", call); !wrong.empty())
    return wrong;
  for (const Run &run : runs) {
    if (!inside(run.group, plan.groups))
      return outside("group", run.group, plan.groups);
    // The first operand is written. The kernel reads numbers of the model from the others.
    for (size_t k = 0; k < run.operands.size(); ++k) {
      const Operand &operand = run.operands[k];
      if (operand.kind != OperandKind::Scalars && (k == 0 || operand.kind != OperandKind::Line))
        return "expected scalars, and numbers of the model behind them, found " +
               std::string(describe(operand.kind));
      if (k > 0 && plan.model < 0)
        return "expected no numbers of a model, which the specification does not have, found some";
      int64_t group = k == 0 ? run.group.value : plan.groupOfModel();
      if (Check wrong = checks.operand(operand, at(plan.groups, group), nullptr); !wrong.empty())
        return wrong;
    }
  }
  return checks.kernel(kernel, std::move(call));
}

void DispatchParameters::effects(const Plan &plan, Effects &list) const {
  for (const Run &run : runs)
    for (size_t k = 0; k < run.operands.size(); ++k) {
      const Operand &operand = run.operands[k];
      Effect effect{&operand, static_cast<int64_t>(k), k == 0 ? Access::Writes : Access::Reads,
                    operand.kind == OperandKind::Scalars ? Effect::Row : Effect::All};
      effect.group = k == 0 ? run.group : GroupNumber(plan.groupOfModel());
      list.push_back(effect);
    }
}

std::string Skip::check(ProgramChecks &checks) const {
  const Plan &plan = checks.plan;
  if (plan.model < 0)
    return "expected a plan of a specification with a model, found another";
  if (value.kind != OperandKind::Line || value.bytes < byteSize(DType::F32))
    return "expected a line with " + std::to_string(byteSize(DType::F32)) +
           " bytes, found another operand";
  if (Check wrong = checks.operand(value, at(plan.groups, plan.groupOfModel()), nullptr);
      !wrong.empty())
    return wrong;
  return checks.optionalKernel(kernel);
}

void Skip::effects(const Plan &, Effects &list) const {
  list.push_back({&value, 0, Access::Reads});
}

std::string AdvanceSteps::check(ProgramChecks &checks) const {
  return checks.optionalKernel(kernel);
}

} // namespace stepc::plan
