//===- TableMutator.h - Plants one fault in a rank's tables -----*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_VERIFY_TABLEMUTATOR_H
#define STEPC_TEST_UNIT_VERIFY_TABLEMUTATOR_H

#include "test/unit/verify/RandomProgram.h"

#include "passes/verify/Verify.h"

#include <optional>

namespace stepc::test {

/// A change of one row of a table, or of what a start sends and receives.
struct Mutation {
  int64_t table, rank;
  std::string what;
  plan::CommonTable rows;
  int64_t start = -1;
  plan::RankStart moved = {};
  bool inCommon = false;  // rows have numbers for blocks
  bool keepsRows = false; // shared with other ranks; only what is the rank's own changes
};

class TableMutator {
public:
  explicit TableMutator(Random &random) : random(random) {}

  /// Draws a change of a row that says something; nothing for an empty table.
  std::optional<Mutation> mutate(const plan::Plan &plan) {
    Mutation m;
    m.rank = draw(random, 0, int64_t(plan.world().size()) - 1);
    std::vector<const plan::Start *> starts = plan.starts();
    if (!starts.empty() && draw(random, 0, 2) == 0) {
      m.table = -1;
      m.start = draw(random, 0, int64_t(starts.size()) - 1);
      m.moved = *plan::Expander(plan).start(*starts[m.start], m.rank);
      return mutate(m, plan, *starts[m.start]) ? std::optional(m) : std::nullopt;
    }
    m.table = draw(random, 0, int64_t(plan.tables.size()) - 1);
    const plan::Table &table = plan.tables[m.table];
    bool common = table.kind != plan::TableKind::Message && draw(random, 0, 2) == 0;
    if (common)
      m.rows = plan::Expander(plan).common(table, m.rank);
    if (common && m.rows.blocks && draw(random, 0, 1))
      return mutateCommon(m, plan, table) ? std::optional(m) : std::nullopt;
    plan::RankTable rows = common ? *m.rows.rows : plan::Expander(plan).table(table, m.rank);
    m.inCommon = common;
    bool changed = table.kind == plan::TableKind::Message ? mutate(m, rows.messages)
                   : table.kind == plan::TableKind::Copy  ? mutate(m, rows.copies)
                   : table.kind == plan::TableKind::Sum   ? mutateSums(m, rows)
                                                          : mutate(m, rows.chunks, table);
    if (common)
      m.what += " of a common table";
    m.rows.rows = std::make_shared<const plan::RankTable>(std::move(rows));
    return changed ? std::optional(m) : std::nullopt;
  }

private:
  /// A contribution left out, added twice or out of its order, or a row that is wrong.
  bool mutateSums(Mutation &m, plan::RankTable &rows) {
    if (rows.sums.empty() || draw(random, 0, 1))
      return mutate(m, rows.sums);
    int64_t one = draw(random, 0, int64_t(rows.lists.size()) - 1), other = one;
    while (other == one)
      other = draw(random, 0, int64_t(rows.lists.size()) - 1);
    if (draw(random, 0, 1)) {
      m.what = "two contributions swapped";
      std::swap(rows.lists[one], rows.lists[other]);
    } else {
      m.what = "a contribution twice and another left out";
      rows.lists[one] = rows.lists[other];
    }
    return true;
  }
  bool shift(Mutation &m, plan::SumRow &row) {
    std::vector<std::pair<const char *, int64_t *>> fields = {
        {"rows of a sum", &row.rows},     {"cols of a sum", &row.cols},
        {"source of a sum", &row.source}, {"target of a sum", &row.target},
        {"contributions", &row.count},    {"list of contributions", &row.list}};
    if (!m.inCommon)
      fields.push_back({"parameter of a sum", &row.parameter});
    if (row.rows > 1) {
      fields.push_back({"source stride of a sum", &row.sourceStride});
      fields.push_back({"target stride of a sum", &row.targetStride});
    }
    return shift(m, fields);
  }

  /// Changes what a rank has that others with the same rows do not.
  bool mutateCommon(Mutation &m, const plan::Plan &plan, const plan::Table &table) {
    m.keepsRows = true;
    std::vector<int64_t> blocks = *m.rows.blocks;
    if (m.rows.rows->chunks.empty() && m.rows.rows->copies.empty())
      return false; // of sums a block says its parameter alone
    int64_t what = draw(random, 0, 3), by = draw(random, 0, 1) ? 1 : -1;
    if (what < 2) {
      m.what = what ? "first column + 1 or - 1" : "first row + 1 or - 1";
      (what ? m.rows.col : m.rows.row) += by;
      return table.kind != plan::TableKind::Copy;
    }
    if (blocks.empty())
      return false;
    m.what = what == 2 ? "another block" : "a block dropped";
    // Of copies a block says no more than its parameter.
    const plan::Group &group = plan.groups[plan.segments[table.from.segment].group];
    if (what == 3)
      blocks.pop_back();
    else
      blocks[draw(random, 0, int64_t(blocks.size()) - 1)] +=
          by * (table.kind == plan::TableKind::Copy ? group.blocksPerParameter() : 1);
    bool isUsed = false;
    for (size_t i = 0; i < m.rows.blocks->size(); ++i) {
      auto names = [&](int64_t number) { return number == int64_t(i); };
      bool used = llvm::any_of(m.rows.rows->chunks, [&](auto &c) { return names(c.block); }) ||
                  llvm::any_of(m.rows.rows->copies, [&](auto &c) { return names(c.parameter); });
      isUsed |= used && (i >= blocks.size() || blocks[i] != (*m.rows.blocks)[i]);
    }
    m.rows.blocks = std::make_shared<const std::vector<int64_t>>(std::move(blocks));
    return isUsed;
  }

  /// Changes what a start sends or receives.
  bool mutate(Mutation &m, const plan::Plan &plan, const plan::Start &start) {
    bool sent = draw(random, 0, 1);
    plan::Parcel &parcel = sent ? m.moved.sent : m.moved.received;
    auto offset = sent ? &plan::Message::sendOffset : &plan::Message::receiveOffset;
    auto count = sent ? &plan::Message::sendCount : &plan::Message::receiveCount;
    auto &values = parcel.values;
    int64_t value = draw(random, 0, int64_t(values.size()) - 1);
    switch (draw(random, 0, 6)) {
    case 0: {
      // A message's parts change places with all that stands in them.
      int64_t other = draw(random, 0, int64_t(values.size()) - 1);
      m.what = "values swapped";
      if (values[value] == values[other] || values[value].empty() || values[other].empty())
        return false;
      for (size_t i = 0; i < std::min(values[value].size(), values[other].size()); ++i)
        std::swap(values[value][i].byte, values[other][i].byte);
      return true;
    }
    case 1: {
      m.what = "a message of wrong alignment";
      for (plan::Message &message : m.moved.messages)
        message.*offset += 1;
      for (auto &parts : values)
        for (plan::PackedRun &part : parts)
          part.byte += 1;
      parcel.bytes += 1;
      return parcel.bytes > 1;
    }
    case 2: {
      m.what = "a part shifted by an element";
      if (values[value].empty())
        return false;
      plan::PackedRun &part = values[value][draw(random, 0, int64_t(values[value].size()) - 1)];
      part.byte += plan.tables[start.tables[value]].elementBytes;
      return true;
    }
    case 3:
      m.what = "a buffer too short";
      return parcel.bytes-- > 0;
    case 4: {
      if (m.moved.messages.empty())
        return false;
      auto &message = m.moved.messages[draw(random, 0, int64_t(m.moved.messages.size()) - 1)];
      return shift(m, {{"message's peer", &message.peer}, {"message's bytes", &(message.*count)}});
    }
    case 5:
      if (!sent) {
        m.what = "a copy in what arrives";
        parcel.copies.push_back({0, 0, parcel.bytes});
        return true;
      }
      return mutate(m, parcel.copies);
    default:
      return mutate(m, values[value]);
    }
  }

  template <typename Row, typename... Extra>
  bool mutate(Mutation &m, std::vector<Row> &rows, const Extra &...extra) {
    if (rows.empty())
      return false;
    size_t at = size_t(draw(random, 0, int64_t(rows.size()) - 1));
    switch (draw(random, 0, 3)) {
    case 0:
      m.what = "a row dropped";
      rows.erase(rows.begin() + at);
      return true;
    case 1:
      m.what = "a row doubled";
      rows.insert(rows.begin() + at, rows[at]);
      return true;
    default:
      return shift(m, rows[at], extra...);
    }
  }

  /// Adds ±1 to one of the numbers.
  bool shift(Mutation &m, std::vector<std::pair<const char *, int64_t *>> fields) {
    auto [name, field] = fields[draw(random, 0, int64_t(fields.size()) - 1)];
    int64_t by = draw(random, 0, 1) ? 1 : -1;
    m.what = std::string(name) + (by > 0 ? " + 1" : " - 1");
    *field += by;
    return true;
  }
  /// Changes a row of sums of nothing, of which not all numbers say something.
  bool shiftEmpty(Mutation &m, plan::Chunk &c, const plan::Table &table) {
    std::vector<std::pair<const char *, int64_t *>> fields = {
        {"part", &c.part}, {"more", &c.more}, {"rows", &c.rows}, {"cols", &c.cols}};
    if (!m.inCommon)
      fields.insert(fields.end(), {{"block", &c.block}, {"parameter", &c.parameter}});
    if (table.reducesTo() == plan::ValueKind::Rows)
      fields.insert(fields.end(), {{"row", &c.row}, {"per row", &c.perRow}});
    else if (table.reducesTo() == plan::ValueKind::Cols)
      fields.insert(fields.end(), {{"col", &c.col}, {"per column", &c.perColumn}});
    else
      fields.push_back({"per block", &c.perBlock});
    m.what = "of nothing: ";
    return shift(m, fields);
  }
  bool shift(Mutation &m, plan::Chunk &c, const plan::Table &table) {
    if (table.reducesParts() && c.rows * c.cols == 0)
      return shiftEmpty(m, c, table);
    std::vector<std::pair<const char *, int64_t *>> fields = {{"block", &c.block},
                                                              {"row", &c.row},
                                                              {"col", &c.col},
                                                              {"rows", &c.rows},
                                                              {"cols", &c.cols}};
    if (!m.inCommon)
      fields.push_back({"parameter", &c.parameter});
    bool overShards = table.isOverShards();
    if (overShards)
      fields.push_back({"local", &c.local});
    if (!m.inCommon) // what ranks share has no numbers of elements
      fields.insert(fields.end(),
                    {{"element", &c.element}, {"element's stride", &c.elementStride}});
    bool leads = table.leadsToLines() || !table.isOverShards();
    if (leads)
      fields.insert(
          fields.end(),
          {{"per row", &c.perRow}, {"per column", &c.perColumn}, {"per block", &c.perBlock}});
    if (leads && c.rows > 1)
      fields.push_back({"per row's stride", &c.perRowStride});
    if (table.reducesParts())
      fields.insert(fields.end(), {{"part", &c.part}, {"more", &c.more}});
    if (table.to != table.from || !overShards)
      fields.push_back({"staged", &c.staged});
    if (overShards && c.rows > 1)
      fields.push_back({"local stride", &c.localStride});
    if (c.rows > 1 && c.staged >= 0 && (table.to != table.from || !overShards))
      fields.push_back({"staged stride", &c.stagedStride});
    return shift(m, fields);
  }
  bool shift(Mutation &m, plan::CopyRow &c) {
    std::vector<std::pair<const char *, int64_t *>> fields = {{"parameter", &c.parameter},
                                                              {"rows", &c.rows},
                                                              {"cols", &c.cols},
                                                              {"source", &c.source},
                                                              {"target", &c.target}};
    if (m.inCommon) // a block of the same parameter changes nothing
      fields.erase(fields.begin());
    if (c.rows > 1) {
      fields.push_back({"source stride", &c.sourceStride});
      fields.push_back({"target stride", &c.targetStride});
    }
    return shift(m, fields);
  }
  bool shift(Mutation &m, plan::PackedRun &c) {
    return shift(
        m, {{"part's first", &c.first}, {"part's count", &c.count}, {"part's byte", &c.byte}});
  }
  bool shift(Mutation &m, plan::PartCopy &c) {
    return shift(m, {{"copy's from", &c.from}, {"copy's to", &c.to}, {"copy's bytes", &c.bytes}});
  }
  bool shift(Mutation &m, plan::Message &c) {
    std::vector<std::pair<const char *, int64_t *>> fields = {
        {"peer", &c.peer}, {"send count", &c.sendCount}, {"receive count", &c.receiveCount}};
    if (c.sendCount)
      fields.push_back({"send offset", &c.sendOffset});
    if (c.receiveCount)
      fields.push_back({"receive offset", &c.receiveOffset});
    return shift(m, fields);
  }

  Random &random;
};

/// What the runtime gives, but for what was changed.
inline verify::Expand withMutation(const plan::Plan &plan, const Mutation &mutation) {
  verify::Expand expand = verify::runtimeExpand(plan);
  expand.table = [&mutation, truth = expand.table](int64_t table, int64_t rank) {
    plan::CommonTable common = truth(table, rank);
    if (table != mutation.table || rank != mutation.rank)
      return common;
    plan::CommonTable lie = mutation.rows;
    if (mutation.keepsRows)
      lie.rows = common.rows;
    return lie;
  };
  expand.start = [&mutation, truth = expand.start](int64_t start, int64_t rank) {
    return start == mutation.start && rank == mutation.rank
               ? std::make_shared<const plan::RankStart>(mutation.moved)
               : truth(start, rank);
  };
  return expand;
}

} // namespace stepc::test

#endif
