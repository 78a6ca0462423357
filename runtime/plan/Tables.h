//===- Tables.h - One rank's tables, expanded from the plan -----*- C++ -*-===//
//
// `expand` is what the runtime calls when a library is opened and what the
// verifier calls for every rank: the same function, so that what is proven is
// what runs.
//
// For a segment of a group and its strategy, C(b) is the set of ranks that
// compute block b: its owner (Owner), every rank of the mesh (Gather), every
// rank that holds it (Local). A rectangle of block b held by h goes to q ∈ C(b)
// iff h serves q (geometry::servingReplica); a result goes from a rank of C(b)
// to every holder (from itself where it computes b).
//
// Places on one rank (elements; every list in the order given):
//   blocks                        slot k · R · C of the k-th computed block in segment order
//   shards to blocks, sent        receivers ascending; blocks in segment order; rectangles
//                                 (Gather: one copy, sent to every receiver that h serves)
//   shards to blocks, received    senders ascending; blocks in segment order; rectangles
//   blocks to shards, sent        receivers ascending; blocks; rectangles of the receiver
//   blocks to shards, received    senders ascending; blocks; own rectangles
// A rank's own part is sent and received like any other; the runtime copies it. In a local
// group nothing is packed, and its Message tables are empty.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_TABLES_H
#define STEPC_RUNTIME_PLAN_TABLES_H

#include "runtime/plan/Plan.h"

#include <memory>

namespace stepc::plan {

/// One row of a stage's table; its layout is part of the kernel ABI
/// (kernel_abi.h). `rows` × `cols` elements whose first is (row, col) of the
/// block; in the local shard they start at `local` with rows `localStride`
/// apart; in staged operands at `staged` with rows `stagedStride` apart, or
/// nowhere (`staged` = -1: this replica does not send; 0 where nothing is staged).
/// `parameter` indexes Plan::parameters, `block` is the index in the group.
/// `slot` is the computed block's index on this rank (BlockChunks), else -1.
/// Rows that are contiguous everywhere are merged (rows = 1) in ShardChunks; a
/// ShardChunks row holds at most kChunkElements elements where it can be split.
/// BlockChunks rows are never merged: they cover whole rows of one block, as
/// many as fit in kChunkElements (at least one); `staged` = slot·R·C + row·C,
/// stride C, `local` = 0 (R and C are those of the table's value kind
/// throughout). A row never spans parameters.
struct Chunk {
  int64_t parameter, block, slot, row, col, rows, cols, local, localStride, staged, stagedStride,
      reserved;
};
inline constexpr int64_t kChunkElements = 16384;

/// Moves rows × cols elements; merged and split like ShardChunks. An offset on
/// the side of shards at rest is into the shard of `parameter`.
struct CopyRow {
  int64_t parameter, rows, cols, source, sourceStride, target, targetStride, reserved;
  bool operator==(const CopyRow &) const = default;
};

/// Elements that go to and come from one peer (world rank, itself included).
struct Message {
  int64_t peer, sendOffset, sendCount, receiveOffset, receiveCount;
};

struct RankTable {
  std::vector<Chunk> chunks;     // ShardChunks, BlockChunks
  std::vector<CopyRow> copies;   // Copy
  std::vector<Message> messages; // Message: peers ascending, no empty ones
  int64_t blocks = 0;            // BlockChunks: computed blocks on this rank
};

struct RankTables {
  std::vector<RankTable> tables; // one per Plan::tables
};

/// Elements in a place on one rank: the least size of its buffer. Also answers for ranks outside
/// the group's mesh (0).
int64_t elements(const Plan &plan, const Place &place, int64_t rank);

/// The tables of world rank `rank` (index into plan.world()). A rank outside a
/// group's mesh gets empty tables for it. Never fails on a plan that `validate`
/// accepts.
RankTables expand(const Plan &plan, int64_t rank);
RankTable expandTable(const Plan &plan, const Table &table, int64_t rank);

class Routes;

/// The same functions with what they share kept: for callers that ask about
/// many ranks. Refers to the plan, which must not change; not for use by
/// several threads at a time.
class Expander {
public:
  explicit Expander(const Plan &plan);
  ~Expander();
  Expander(Expander &&) noexcept;

  RankTables tables(int64_t rank);
  RankTable table(const Table &table, int64_t rank);
  int64_t elements(const Place &place, int64_t rank);
  /// How many of a segment's blocks a rank computes.
  int64_t computedBlocks(int64_t segment, int64_t rank);

private:
  std::unique_ptr<Routes> routes;
};

/// The largest workspace of a rank, far above any device's memory.
inline constexpr int64_t kMostArenaBytes = int64_t(1) << 50;

/// Consistency of indices and sizes, so that `expand` is safe on any bytes: an
/// empty string, or what is wrong.
std::string validate(const Plan &plan);

/// The same of the commands, on a plan that `validate` accepts: what each names is there and of a
/// fitting kind, operands stand in the workspace, every collective is awaited once after its start,
/// and the last command advances the step counts. `command` is the first that is wrong.
std::string validateProgram(const Plan &plan, int64_t *command = nullptr);

/// Whether the rows of a command's table on one rank stay in its operands' parts of the workspace:
/// empty, or what does not. For Copy and Start; kernels' types are not in the plan.
std::string checkReach(const Plan &plan, const Command &command,
                       const std::vector<RankTable> &tables);

} // namespace stepc::plan

#endif
