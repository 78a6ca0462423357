//===- Tables.h - One rank's tables, expanded from the plan -----*- C++ -*-===//
//
// `expand` is what the runtime calls when a library is opened and what the
// verifier calls for every rank: the same function, so that what is proven is
// what runs.
//
// The hops of a group lead from its shards to whole blocks. After hop k, p has of block b what the
// holders h hold that are at p's coordinates along every factor that no hop up to k has resolved,
// and along resolved ones where the shards are replicated (the serving replica); anywhere else
// along the rest. And p must be at b's base along every owned factor up to k. After the last hop the
// ranks that have b are those that compute it. A move takes what stands in the lower distribution to
// the upper one, from the one rank that has it and differs along the hop's factors alone; and
// results back, from the one rank at the base along the owned factors to every rank of the lower
// distribution. Hops without owned factors need no way back: the result is there. A hop that chooses
// brings nothing: what arrived by the hop before is copied where it is computed, and results go back to
// where that hop started.
//
// Places on one rank (elements; every list in the order given):
//   blocks             slot k · R · C of the k-th computed block in segment order
//   upwards, sent      sets of receivers by their least world rank (one copy for all of a set);
//                      blocks in segment order; their holders by world rank; rectangles
//   upwards, received  senders ascending; blocks; holders; rectangles
//   back, sent         receivers ascending; blocks; holders; rectangles of the receiver
//   back, received     senders ascending; blocks; holders; own rectangles
//   between shards     sent: sets of receivers that hold equal shards, by the least world rank of
//                      those sent to (one copy for all of a set); blocks; rectangles that both hold
//                      by row and column. Received: senders ascending; blocks; rectangles. Who has
//                      an element sends it to those that have his coordinates along the axes that
//                      replicate it.
//   shards, kept       blocks in segment order, each as it stands in the shard
//   parts to ranges    sent: all parts as they stand. Received: the own range, sender by sender
//   ranges, kept       the own range; sent to blocks the same, once for all. Received: all ranges
// A rank's own part is sent and received like any other; the runtime copies it. A group without
// hops packs nothing, and its Message tables are empty.
//
// What is packed has the parts of all peers in this order, each an interval of elements; where a
// part stands in memory is a question of all that travels with it (Parcels.h).
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
/// ShardChunks row holds at most Plan::chunkElements elements where it can be split, and what it stages
/// packed is of one peer's part.
/// BlockChunks rows are never merged: they cover whole rows of one block, as
/// many as fit in these (at least one); `staged` = slot·R·C + row·C,
/// stride C, `local` = 0 (R and C are those of the table's value kind
/// throughout). A row never spans parameters.
struct Chunk {
  int64_t parameter, block, slot, row, col, rows, cols, local, localStride, staged, stagedStride,
      reserved;
};

/// Moves rows × cols elements; merged and split like ShardChunks. An offset on
/// the side of shards at rest is into the shard of `parameter`, one in a packed place counts its
/// elements.
struct CopyRow {
  int64_t parameter, rows, cols, source, sourceStride, target, targetStride;
  bool operator==(const CopyRow &) const = default;
};

/// Adds up rows × cols elements of all contributions: those of number i stand from element
/// lists[list + i] + source on, rows `sourceStride` apart; `count` of them. `target` is in the copy of shards, or in the range.
struct SumRow {
  int64_t parameter, rows, cols, source, sourceStride, target, targetStride, list, count;
};

/// What goes to and comes from one peer (world rank, itself included): elements of one value, or
/// bytes of all that travel with a start.
struct Message {
  int64_t peer, sendOffset, sendCount, receiveOffset, receiveCount;
};

struct RankTable {
  std::vector<Chunk> chunks;     // ShardChunks, BlockChunks
  std::vector<CopyRow> copies;   // Copy
  std::vector<SumRow> sums;      // Sum
  std::vector<int64_t> lists;    // Sum: where contributions begin in what is packed
  std::vector<Message> messages; // Message: peers ascending, no empty ones
  int64_t blocks = 0;            // BlockChunks: computed blocks on this rank
};

/// A table as all ranks have it that differ in which blocks they hold or compute, and in where their
/// shards begin in these, alone: of 256 ranks with a slice each of every matrix, mostly one serves
/// all. Its rows have numbers in `blocks` for blocks, in Chunk::block and the others' `parameter`, and
/// what a Chunk's row and column are beyond (row, col).
struct CommonTable {
  std::shared_ptr<const RankTable> rows;
  std::shared_ptr<const std::vector<int64_t>>
      blocks; // of the group; none: the rows are as they stand
  int64_t row = 0, col = 0;

  CommonTable() = default;
  /// What one rank alone has.
  CommonTable(RankTable own) : rows(std::make_shared<const RankTable>(std::move(own))) {}
  /// The rank's own rows. The numbers must be below the number of blocks, these in the group.
  RankTable resolve(const Group &group) const;
  /// The same, in the memory that another one's had.
  void resolve(const Group &group, RankTable &own) const;
};

/// Some of a packed value's elements, and from which byte of the start's buffer on they stand.
struct Part {
  int64_t first, count, byte;
  bool operator==(const Part &) const = default;
};

/// Bytes that stand in a start's buffer and are wanted a second time.
struct PartCopy {
  int64_t from, to, bytes;
  auto operator<=>(const PartCopy &) const = default;
};

/// At the end of each message stand so many bytes by which ranks find that they step with other numbers
/// (runtime/core/Agreement.h).
inline constexpr int64_t kSealBytes = 32;

/// The buffer that a start sends, or receives into. Peers' parts begin at multiples of 64 bytes
/// (of an all-gather: of its largest element); the gap is not sent. In each part stand those of the
/// values by falling size of their elements, then in the start's order, without gaps, and behind them the
/// seal. Peers to whom the same goes share a part. What goes to several peers beside different values is
/// packed for the first of them and copied for the others when the start begins.
struct Parcel {
  std::vector<std::vector<Part>> values; // of each value that travels, by element
  std::vector<PartCopy> copies;
  int64_t bytes = 0;

  /// The part that holds an element of a value, or nothing.
  const Part *find(int64_t value, int64_t element) const;
};

/// At which bytes of a pool its members begin on one rank: multiples of 64, in their order, none
/// inside of another; and how many bytes all of them have.
struct RankPool {
  std::vector<int64_t> begins;
  int64_t bytes = 0;

  /// How many bytes a member may have: to the next one, or to the pool's end.
  int64_t room(const Pool &pool, int64_t member) const;
};

/// What a start does on one rank.
struct RankStart {
  std::vector<Message> messages; // bytes; peers ascending, no empty ones
  Parcel sent, received;
};

struct RankTables {
  std::vector<RankTable> tables; // one per Plan::tables
  std::vector<RankStart> starts; // one per Plan::starts()
  std::vector<RankPool> pools;   // one per Plan::pools
};

/// The tables of world rank `rank` (index into plan.world()). A rank outside a
/// group's mesh gets empty tables for it. Never fails on a plan that `validate`
/// accepts.
RankTables expand(const Plan &plan, int64_t rank);

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
  /// The same before it is resolved. Ranks that have it in common mostly get the same rows.
  CommonTable common(const Table &table, int64_t rank);
  /// Ranks that have it in common mostly get the same one.
  std::shared_ptr<const RankStart> start(const Command &start, int64_t rank);
  RankPool pool(const Pool &pool, int64_t rank);
  /// Elements in a place on one rank: the least size of its buffer. Also answers for ranks outside
  /// the group's mesh (0).
  int64_t elements(const Place &place, int64_t rank);
  /// How many of a segment's blocks a rank computes.
  int64_t computedBlocks(int64_t segment, int64_t rank);

private:
  std::shared_ptr<const RankTable> messages(const Table &table, int64_t rank);

  struct Known;
  std::unique_ptr<Known> known;
};

/// The largest workspace of a rank, far above any device's memory.
inline constexpr int64_t kMostArenaBytes = int64_t(1) << 50;
/// The most elements of a row of a table: far above what one thread should take at a time.
inline constexpr int64_t kMostChunkElements = int64_t(1) << 31;

/// Consistency of indices and sizes, so that `expand` is safe on any bytes: an
/// empty string, or what is wrong.
std::string validate(const Plan &plan);

/// The same of the commands, on a plan that `validate` accepts: what each names is there and of a
/// fitting kind, operands stand in the workspace, every collective is awaited once after its start,
/// and the last command advances the step counts. `command` is the first that is wrong.
std::string validateProgram(const Plan &plan, int64_t *command = nullptr);

/// Whether the rows of the commands' tables on one rank stay in their operands' parts of the workspace:
/// empty, or what does not. Of Chunks, packed operands alone: other kernels' types are not in the
/// plan.
std::string checkReach(const Plan &plan, const RankTables &tables);

} // namespace stepc::plan

#endif
