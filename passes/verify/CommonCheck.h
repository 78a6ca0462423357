//===- CommonCheck.h - One table on ranks that have it in common -*- C++ -*-===//
//
// Ranks often have the same rows, except that they hold or compute other blocks, or that their shards begin
// elsewhere in them. If the ground truth of two ranks differs in just what their rows differ in, what was
// shown on one of them holds on the other.
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

  /// Shows that a table does what it stands for on a rank: what moves, if anything does, or nothing
  /// and `error`. Best asked about all ranks of one table after each other.
  std::optional<Packed> run(const TableUse &use, int64_t rank, const plan::CommonTable &table);

  /// Whether the rows can be resolved; or `error`.
  bool canResolve(int64_t table, int64_t rank, const plan::CommonTable &rows);

  /// How far the last table reaches (TableCheck).
  int64_t fromEnd = 0, toEnd = 0;
  std::string error;

private:
  /// A table that was shown on the rank at a position.
  struct Shown {
    plan::CommonTable table;
    int64_t position = -1;
    std::shared_ptr<const std::vector<Piece>> packed;
    int64_t fromEnd = 0, toEnd = 0;
  };

  /// Whether its rows have numbers for the blocks that a shard holds, or for those that the rank computes,
  /// and these are the blocks that it names.
  bool isCommon(const plan::CommonTable &table, int64_t position);
  /// Whether what is true of `one` is true of a table with its rows at another position.
  bool isAlike(const Shown &one, const plan::CommonTable &table, int64_t position);
  /// Whether both lists have blocks of the same parameters at the same places.
  bool haveParametersAlike(const std::vector<int64_t> &a, const std::vector<int64_t> &b) const;
  /// The pieces with numbers for their blocks. Nothing if a block has none.
  std::shared_ptr<const std::vector<Piece>> numbered(const std::vector<Piece> &pieces,
                                                     const plan::CommonTable &table);
  bool isOfShards() const { return table->from.isOfShards() || table->to.isOfShards(); }

  GroundTruth &truth;
  const plan::Table *table = nullptr; // the last one
  int64_t group = 0;
  std::map<const plan::RankTable *, Shown> shown;
  size_t shownRows = 0;
  plan::RankTable resolved; // the last one, whose memory the next one gets
};

} // namespace stepc::verify

#endif
