//===- CommonCheck.h - One table on ranks that have it in common -*- C++ -*-===//
//
// Ranks often share the rows of a table. They differ only in the blocks that they hold or compute, or in
// where their shards begin in the blocks. If the ground truth of two ranks differs in the same way, the check
// of one rank also holds for the other.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_COMMONCHECK_H
#define STEPC_PASSES_VERIFY_COMMONCHECK_H

#include "passes/verify/TableCheck.h"

#include <optional>

namespace stepc::verify {

class CommonCheck {
public:
  explicit CommonCheck(GroundTruth &truth) : truth(truth) {}

  /// Checks a table on one rank. Returns its packed buffer, which is empty if nothing is packed. Returns
  /// nullopt and sets `error` if the check fails. Callers should check all ranks of one table before the next
  /// table, because results are kept for one table only.
  std::optional<Packed> run(const TableUse &use, int64_t rank, const plan::CommonTable &table);

  /// Whether the rows name only blocks of the group, as CommonTable::resolve requires. Sets `error` if not.
  bool canResolve(int64_t table, int64_t rank, const plan::CommonTable &rows);

  /// See TableCheck, for the last table that `run` checked.
  int64_t fromEnd = 0, toEnd = 0;
  std::string error;

private:
  /// A table that was checked on the rank at `position`, with the results.
  struct Shown {
    plan::CommonTable table;
    int64_t position = -1;
    std::shared_ptr<const std::vector<Piece>> packed;
    int64_t fromEnd = 0, toEnd = 0;
  };

  /// Whether other ranks may use the results of a table's check at `position`: the rows index `table.blocks`,
  /// and the table is about shards or about computed blocks, not both. In the second case `table.blocks` must
  /// be the blocks that the rank computes.
  bool isCommon(const plan::CommonTable &table, int64_t position);
  /// Whether the results of `one` hold for a table with the same rows at another position.
  bool isAlike(const Shown &one, const plan::CommonTable &table, int64_t position);
  /// Whether both lists are grouped by ascending parameters and change the parameter at the same indices.
  bool haveParametersAlike(const std::vector<int64_t> &a, const std::vector<int64_t> &b) const;
  /// The pieces with indices into `table.blocks` instead of blocks. Returns null if a block is not among
  /// them.
  std::shared_ptr<const std::vector<Piece>> numbered(const std::vector<Piece> &pieces,
                                                     const plan::CommonTable &table);
  bool isOfShards() const { return table->from.isOfShards() || table->to.isOfShards(); }

  GroundTruth &truth;
  const plan::Table *table = nullptr; // the last table that `run` checked
  int64_t group = 0;
  std::map<const plan::RankTable *, Shown> shown;
  size_t shownRows = 0;
  plan::RankTable resolved; // memory that `run` uses again
};

} // namespace stepc::verify

#endif
