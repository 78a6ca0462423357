//===- Reach.cpp - Whether a rank's rows stay in their operands ----------===//

#include "runtime/plan/Tables.h"

#include <algorithm>

namespace stepc::plan {
namespace {

/// The element behind the last that a strided row touches.
int64_t endOf(int64_t first, int64_t stride, int64_t rows, int64_t cols) {
  return rows == 0 || cols == 0 ? first : first + (rows - 1) * stride + cols;
}

class Reach {
public:
  Reach(const Plan &plan, const RankTables &tables) : plan(plan), tables(tables) {}

  std::string run() {
    size_t started = 0;
    for (const Command &command : plan.commands) {
      describe = name(command.kind);
      if (command.kind != CommandKind::Start && !command.tables.empty())
        describe += " of table " + std::to_string(command.tables[0]);
      if (command.isBatch())
        batch(command);
      else if (command.kind == CommandKind::Start)
        start(command, tables.starts[started++]);
      else if (command.kind == CommandKind::Copy)
        copy(command);
      else if (command.kind == CommandKind::Sum)
        sum(command);
      else if (command.kind == CommandKind::Chunks)
        chunks(command);
      if (!wrong.empty())
        break;
    }
    return wrong;
  }

private:
  const RankTable &rowsOf(int64_t table) const { return tables.tables[static_cast<size_t>(table)]; }
  const Table &tableOf(int64_t table) const { return plan.tables[static_cast<size_t>(table)]; }

  /// In numbers that cannot overflow: extents are below 2^42 each.
  void needs(double bytes, int64_t has, const char *whose) {
    if (wrong.empty() && bytes > double(has))
      wrong = describe + " needs " + std::to_string(static_cast<int64_t>(std::min(bytes, 9e18))) +
              " bytes, " + whose + " " + std::to_string(has);
  }

  void needs(double bytes, const Operand &operand) {
    needs(bytes, operand.pool < 0 ? operand.bytes : roomInPool(operand), "its operand has");
  }

  int64_t roomInPool(const Operand &operand) const {
    auto pool = static_cast<size_t>(operand.pool);
    return tables.pools[pool].room(plan.pools[pool], operand.member);
  }

  void batch(const Command &command) {
    auto blocks = double(rowsOf(command.tables[0]).blocks);
    for (const Operand &operand : command.operands)
      needs(blocks * double(operand.rows) * double(operand.cols) * double(byteSize(operand.type)),
            operand);
    needs(blocks * double(command.batch.scratchBytes), plan.scratchBytes, "the scratch has");
  }

  void start(const Command &command, const RankStart &start) {
    needs(double(start.sent.bytes), command.operands[0]);
    needs(double(start.received.bytes), command.operands[1]);
  }

  void copy(const Command &command) {
    const Table &table = tableOf(command.tables[0]);
    int64_t from = 0, to = 0;
    for (const CopyRow &row : rowsOf(command.tables[0]).copies) {
      int64_t source = endOf(row.source, row.sourceStride, row.rows, row.cols);
      int64_t target = endOf(row.target, row.targetStride, row.rows, row.cols);
      packed(command.operands[0], table.from, row.source, source);
      packed(command.operands[1], table.to, row.target, target);
      from = std::max(from, source);
      to = std::max(to, target);
    }
    auto whole = [&](const Operand &operand, const Place &place, int64_t end) {
      if (operand.kind == OperandKind::Workspace && !place.isMoving())
        needs(double(end) * double(table.elementBytes), operand);
    };
    whole(command.operands[0], table.from, from);
    whole(command.operands[1], table.to, to);
  }

  void sum(const Command &command) {
    const Table &table = tableOf(command.tables[0]);
    const RankTable &rows = rowsOf(command.tables[0]);
    int64_t to = 0;
    for (const SumRow &row : rows.sums) {
      to = std::max(to, endOf(row.target, row.targetStride, row.rows, row.cols));
      for (int64_t i = 0; i < row.count; ++i) {
        int64_t first = rows.lists[static_cast<size_t>(row.list + i)] + row.source;
        packed(command.operands[0], table.from, first,
               endOf(first, row.sourceStride, row.rows, row.cols));
      }
    }
    needs(double(to) * double(table.elementBytes), command.operands[1]);
  }

  void chunks(const Command &command) {
    size_t each = command.operands.size() / command.tables.size();
    for (size_t i = 0; i < command.operands.size(); ++i) {
      int64_t table = command.tables[i / each];
      const Place &place = tableOf(table).to;
      if (!place.isMoving())
        continue;
      for (const Chunk &row : rowsOf(table).chunks)
        if (row.staged >= 0)
          packed(command.operands[i], place, row.staged,
                 endOf(row.staged, row.stagedStride, row.rows, row.cols));
    }
  }

  /// Checks that a row stays in one part of what is packed.
  void packed(const Operand &operand, const Place &place, int64_t first, int64_t end) {
    if (!wrong.empty() || operand.kind != OperandKind::Workspace || !place.isMoving())
      return;
    const RankStart &start = tables.starts[static_cast<size_t>(operand.start)];
    const Parcel &parcel = place.end == End::Received ? start.received : start.sent;
    const Part *part = parcel.find(operand.traveller, first);
    if (end > first && (!part || end > part->first + part->count))
      wrong = describe + " leads to elements " + std::to_string(first) + " to " +
              std::to_string(end) + " of what is packed, which are no part of it";
  }

  const Plan &plan;
  const RankTables &tables;
  std::string describe, wrong; // the command at hand, and the first that is wrong
};

} // namespace

std::string checkReach(const Plan &plan, const RankTables &tables) {
  return Reach(plan, tables).run();
}

} // namespace stepc::plan
