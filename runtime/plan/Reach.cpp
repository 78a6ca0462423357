//===- Reach.cpp - Whether a rank's rows stay in their operands ----------===//

#include "runtime/plan/Tables.h"

#include <algorithm>

namespace stepc::plan {
namespace {

/// The element behind the last that a strided row touches.
int64_t endOf(int64_t first, int64_t stride, int64_t rows, int64_t cols) {
  return rows == 0 || cols == 0 ? first : first + (rows - 1) * stride + cols;
}

/// Follows the effects of all commands on one rank.
class Reach {
public:
  Reach(const Plan &plan, const RankTables &tables) : plan(plan), tables(tables) {}

  std::string run() {
    for (const Command &command : plan.commands) {
      started += std::holds_alternative<Start>(command);
      for (const Effect &effect : effects(plan, command)) {
        describe = name(command);
        if (!effect.table.isNone())
          describe += " of table " + std::to_string(effect.table);
        follow(effect);
        if (!wrong.empty())
          return wrong;
      }
    }
    return {};
  }

private:
  const Table &tableOf(int64_t table) const { return plan.tables[static_cast<size_t>(table)]; }
  const RankTable &rowsOf(int64_t table) const { return tables.tables[static_cast<size_t>(table)]; }

  void follow(const Effect &effect) {
    switch (effect.extent) {
    case Effect::All: // validateProgram has compared it with the workspace
    case Effect::Row:
      break;
    case Effect::Blocks:
      needs(double(rowsOf(effect.table).blocks) * double(effect.blockBytes), effect);
      break;
    case Effect::Sent:
      needs(double(start().sent.bytes), effect);
      break;
    case Effect::Received:
      needs(double(start().received.bytes), effect);
      break;
    case Effect::From:
    case Effect::To:
      followRows(effect);
      break;
    }
  }

  const RankStart &start() const { return tables.starts[static_cast<size_t>(started) - 1]; }

  void followRows(const Effect &effect) {
    if (effect.operand->kind != OperandKind::Workspace)
      return;
    const Table &table = tableOf(effect.table);
    const Place &place = effect.extent == Effect::From ? table.from : table.to;
    int64_t last = 0;
    forEachRow(effect, [&](int64_t first, int64_t end) {
      last = std::max(last, end);
      if (place.isMoving())
        followPacked(*effect.operand, place, first, end);
    });
    if (!place.isMoving())
      needs(double(last) * double(effect.elementBytes), effect);
  }

  /// Calls `row` with the first element of each row of a table on one side, and with that behind its last.
  template <typename Row> void forEachRow(const Effect &effect, Row row) {
    const RankTable &rows = rowsOf(effect.table);
    for (const CopyRow &copy : rows.copies) {
      bool from = effect.extent == Effect::From;
      int64_t first = from ? copy.source : copy.target;
      row(first, endOf(first, from ? copy.sourceStride : copy.targetStride, copy.rows, copy.cols));
    }
    for (const SumRow &sum : rows.sums)
      if (effect.extent == Effect::To)
        row(sum.target, endOf(sum.target, sum.targetStride, sum.rows, sum.cols));
      else
        for (int64_t i = 0; i < sum.count; ++i) {
          int64_t first = rows.lists[static_cast<size_t>(sum.list + i)] + sum.source;
          row(first, endOf(first, sum.sourceStride, sum.rows, sum.cols));
        }
    for (const Chunk &chunk : rows.chunks)
      if (chunk.staged >= 0)
        row(chunk.staged, endOf(chunk.staged, chunk.stagedStride, chunk.rows, chunk.cols));
  }

  /// Compares in numbers that cannot overflow: extents are below 2^42 each.
  void needs(double bytes, const Effect &effect) {
    int64_t has = plan.scratchBytes;
    if (const Operand *operand = effect.operand)
      has = operand->pool.isNone() ? operand->bytes : roomInPool(*operand);
    if (wrong.empty() && bytes > double(has))
      wrong = describe + " needs " + std::to_string(static_cast<int64_t>(std::min(bytes, 9e18))) +
              " bytes, " + (effect.operand ? "its operand has " : "the scratch has ") +
              std::to_string(has);
  }

  int64_t roomInPool(const Operand &operand) const {
    auto pool = static_cast<size_t>(operand.pool.value);
    return tables.pools[pool].room(plan.pools[pool], operand.member);
  }

  /// Checks that a row stays in one part of what is packed.
  void followPacked(const Operand &operand, const Place &place, int64_t first, int64_t end) {
    if (!wrong.empty())
      return;
    const RankStart &start = tables.starts[static_cast<size_t>(operand.start.value)];
    const Parcel &parcel = place.end == End::Received ? start.received : start.sent;
    const Part *part = parcel.find(operand.traveller, first);
    if (end > first && (!part || end > part->first + part->count))
      wrong = describe + " leads to elements " + std::to_string(first) + " to " +
              std::to_string(end) + " of what is packed, which are no part of it";
  }

  const Plan &plan;
  const RankTables &tables;
  int64_t started = 0;
  std::string describe, wrong; // the command at hand, and the first that is wrong
};

} // namespace

std::string checkReach(const Plan &plan, const RankTables &tables) {
  return Reach(plan, tables).run();
}

} // namespace stepc::plan
