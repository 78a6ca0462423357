//===- Matrix.cpp - Products and functions of computed blocks -------------===//

#include "runtime/plan/Pinned.h"
#include "runtime/plan/TileLists.h"
#include "runtime/plan/commands/ProgramChecks.h"

#include <algorithm>
#include <utility>

namespace stepc::plan {

constexpr int64_t kMostItems = int64_t(1) << 42; // of a block: far above any matrix

std::string MatrixCommand::check(ProgramChecks &checks,
                                 const std::vector<const Operand *> &operands) const {
  const Plan &plan = checks.plan;
  if (Check wrong = checks.table(table, TableKind::BlockChunks); !wrong.empty())
    return wrong;
  int64_t blocks = std::max<int64_t>(1, checks.groupOf(table).blockCount());
  for (const BlockKernel &each : kernels) {
    if (!inside(each.kernel, plan.kernels))
      return outside("kernel", each.kernel, plan.kernels);
    if (each.items < 1 || each.items > kMostItems / blocks)
      return "expected 1 to " + std::to_string(kMostItems / blocks) + " items per block, found " +
             std::to_string(each.items);
  }
  if (scratchBytes < 0 || scratchBytes > plan.scratchBytes)
    return "expected scratch within the " + std::to_string(plan.scratchBytes) +
           " bytes that the workspace has, found " + std::to_string(scratchBytes) +
           " for each block";
  for (const Operand *operand : operands) {
    if (operand->kind != OperandKind::Batch)
      return "expected batches of blocks, found " + std::string(describe(operand->kind));
    if (operand->rows < 0 || operand->cols < 0 || operand->type == DType::F64 ||
        operand->rows > kMostItems || operand->cols > kMostItems)
      return "expected blocks of a type of 32 bits or fewer, found " +
             std::to_string(operand->rows) + " x " + std::to_string(operand->cols) + " of " +
             std::string(name(operand->type));
    if (Check wrong = checks.inWorkspace(operand->value, operand->bytes); !wrong.empty())
      return wrong;
    if (Check wrong = checks.pooled(*operand, at(plan.tables, table).from, operand->blockBytes());
        !wrong.empty())
      return wrong;
  }
  return {};
}

/// Checks how a command calls its kernels.
static Check calls(ProgramChecks &checks, const std::vector<BlockKernel> &kernels,
                   size_t operands) {
  for (const BlockKernel &each : kernels)
    if (Check wrong = checks.kernel(each.kernel, {each.items, static_cast<int64_t>(operands)});
        !wrong.empty())
      return wrong;
  return {};
}

bool takesLists(const Plan &plan, const MatrixCommand &command) {
  for (const BlockKernel &each : command.kernels)
    if (const auto &launch = at(plan.kernels, each.kernel).launch)
      if (launch->grid == Grid::Lists)
        return true;
  return false;
}

static Check disagree(const std::vector<const Operand *> &operands) {
  Check extents;
  for (const Operand *operand : operands)
    extents += (extents.empty() ? "" : ", ") + std::to_string(operand->rows) + " x " +
               std::to_string(operand->cols);
  return "expected operands whose extents agree, found " + extents;
}

void MatrixCommand::effects(const std::vector<const Operand *> &operands, Effects &list) const {
  if (scratchBytes > 0)
    list.push_back({nullptr, -1, Access::Updates, Effect::Blocks, table, {}, scratchBytes});
  for (size_t k = 0; k < operands.size(); ++k)
    list.push_back({operands[k],
                    static_cast<int64_t>(k),
                    k + 1 == operands.size() ? Access::Writes : Access::Reads,
                    Effect::Blocks,
                    table,
                    {},
                    operands[k]->blockBytes()});
}

std::vector<const Operand *> Product::operands() const {
  std::vector<const Operand *> all = {&lhs, &rhs};
  if (addend)
    all.push_back(&*addend);
  all.push_back(&out);
  return all;
}

bool Product::doExtentsAgree() const {
  auto [m, k] = transposeLhs ? std::pair(lhs.cols, lhs.rows) : std::pair(lhs.rows, lhs.cols);
  auto [l, n] = transposeRhs ? std::pair(rhs.cols, rhs.rows) : std::pair(rhs.rows, rhs.cols);
  return k == l && out.rows == m && out.cols == n && (!symmetric || m == n) &&
         (!addend || (addend->rows == m && addend->cols == n));
}

std::string Product::checkJoined(const ProgramChecks &checks) const {
  for (int64_t i = checks.number - 1;; --i) {
    const auto *other =
        i < 0 ? nullptr : std::get_if<Product>(&checks.plan.commands[static_cast<size_t>(i)]);
    if (!other)
      return "expected a product before one that joins it, found " +
             (i < 0 ? std::string("none")
                    : "a command of kind " +
                          std::string(name(checks.plan.commands[static_cast<size_t>(i)])));
    if (form() != other->form() || accumulation != other->accumulation)
      return "expected products of one form that join, found other types, transposes, symmetry or "
             "accumulation in command " +
             std::to_string(i);
    auto kernelsOf = [](const Product &p) {
      std::vector<int64_t> numbers;
      for (const BlockKernel &each : p.kernels)
        numbers.push_back(each.kernel.value);
      return numbers;
    };
    if ((takesLists(checks.plan, *this) || takesLists(checks.plan, *other)) &&
        kernelsOf(*this) != kernelsOf(*other))
      return "expected products that join to call one kernel of tiles, found another kernel in "
             "command " +
             std::to_string(i);
    if (!pinned.empty() || !other->pinned.empty())
      return "expected no algorithms of products that join, found some in command " +
             std::to_string(pinned.empty() ? i : checks.number);
    for (auto [writer, reader] : {std::pair(this, other), std::pair(other, this)})
      for (const Operand *operand : reader->operands())
        if (mayShareBytes(writer->out, *operand))
          return "expected products that join, none of which writes what another reads or writes, "
                 "found that commands " +
                 std::to_string(i) + " and " + std::to_string(checks.number) +
                 " share bytes from byte " +
                 std::to_string(std::max(writer->out.value, operand->value));
    if (!other->joins)
      return {};
  }
}

std::string Product::checkJoinedTiles(ProgramChecks &checks) const {
  auto tilesOf = [&](const Product &product) {
    return mostTiles(product.out.rows, product.out.cols,
                     checks.groupOf(product.table).blockCount());
  };
  double tiles = tilesOf(*this);
  const Product *last = this;
  for (int64_t i = checks.number - 1; last->joins; --i) {
    last = &std::get<Product>(checks.plan.commands[static_cast<size_t>(i)]);
    tiles += tilesOf(*last);
  }
  return tiles <= kMostTiles
             ? Check()
             : "expected products that join of fewer than 2^31 tiles, found about " +
                   std::to_string(static_cast<int64_t>(tiles));
}

std::string Product::check(ProgramChecks &checks) const {
  if (Check wrong = MatrixCommand::check(checks, operands()); !wrong.empty())
    return wrong;
  if (!doExtentsAgree())
    return disagree(operands());
  if (shift != 0 && !symmetric)
    return "expected a shift of 0 of a product that is not symmetric, found " +
           std::to_string(shift);
  if (Check wrong = joins ? checkJoined(checks) : Check(); !wrong.empty())
    return wrong;
  if (Check wrong = checkPinned(checks.plan, *this); !wrong.empty())
    return wrong;
  if (!takesLists(checks.plan, *this))
    return calls(checks, kernels, operands().size());
  if (kernels.size() != 1 || kernels.front().items != 1)
    return "expected one kernel of tiles, called once, found " + std::to_string(kernels.size()) +
           " kernels and " + std::to_string(kernels.front().items) + " items per block";
  if (Check wrong = checkTiled(*this, checks.groupOf(table).blockCount()); !wrong.empty())
    return wrong;
  if (Check wrong = joins ? checkJoinedTiles(checks) : Check(); !wrong.empty())
    return wrong;
  // A kernel of tiles takes products of one form, and of all shapes.
  return checks.kernel(kernels.front().kernel, {tileBits(form())});
}

void Product::effects(const Plan &plan, Effects &list) const {
  size_t first = list.size();
  MatrixCommand::effects(operands(), list);
  // A pinned algorithm uses the scratch for all blocks together, so the effect covers all of it.
  if (!pinned.empty() && plan.scratchBytes > 0) {
    if (scratchBytes == 0)
      list.insert(list.begin() + static_cast<int64_t>(first), Effect());
    list[first] = {nullptr, -1, Access::Updates, Effect::All, table, {}, scratchBytes};
  }
}

std::vector<const Operand *> Apply::operands() const {
  std::vector<const Operand *> all;
  for (const Operand &source : sources)
    all.push_back(&source);
  all.push_back(&out);
  return all;
}

std::string Apply::check(ProgramChecks &checks) const {
  if (sources.empty())
    return "expected at least one source, found none";
  if (flops < 0)
    return "expected operations of 0 or more, found " + std::to_string(flops);
  if (Check wrong = MatrixCommand::check(checks, operands()); !wrong.empty())
    return wrong;
  if (takesLists(checks.plan, *this))
    return "expected kernels of blocks, found one of tiles, which is for products";
  return calls(checks, kernels, operands().size());
}

void Apply::effects(const Plan &, Effects &list) const { MatrixCommand::effects(operands(), list); }

} // namespace stepc::plan
