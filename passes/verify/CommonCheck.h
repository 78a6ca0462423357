//===- CommonCheck.h - One table on ranks that have it in common -*- C++ -*-===//
//
// Ranks that hold or compute other blocks, or whose shards begin elsewhere in them, often have the
// same rows but for that. Where the ground truth differs between two ranks in just what the rows
// differ in, what was shown on one of them holds on the other.
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

  /// Of the last one: how far it reaches (TableCheck).
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

  /// Whether its rows are about blocks that a shard holds or about those that the rank computes, and these
  /// are the ones that it names.
  bool isCommon(const plan::CommonTable &table, int64_t position);
  /// Whether what is true of `one` is true of a table with its rows at another position.
  bool isAlike(const Shown &one, const plan::CommonTable &table, int64_t position);
  /// Whether blocks are of the same parameters as each other.
  bool haveParametersAlike(const std::vector<int64_t> &a, const std::vector<int64_t> &b) const;
  /// Pieces with numbers for blocks, or nothing where a block has none.
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
