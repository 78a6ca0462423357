//===- Tables.h - One rank's tables, expanded from the plan -----*- C++ -*-===//
//
// `expand` is what the runtime calls when a library is opened and what the
// verifier calls for every rank: the same function, so that what is proven is
// what runs.
//
// The hops of a group lead from its shards to whole blocks. After hop k, a rank p has pieces of block b only
// if it is at b's base along every owned factor up to k. It has what these holders h hold: along every factor
// that no hop up to k has resolved, h is at p's coordinates. Along resolved factors that replicate the
// shards, h also is at p's coordinates (the serving replica). Along all other factors h is anywhere. After
// the last hop, the ranks that have b are those that compute it.
//
// A move takes what stands in the lower distribution to the upper one, from the one rank that has it and
// differs only along the hop's factors. Results go back from the one rank at the base along the owned factors
// to every rank of the lower distribution. Hops without owned factors need no way back, because the result is
// there already. A hop that chooses brings nothing: what arrived by the hop before is copied where it is
// computed. Results go back to where that hop started.
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

/// One row of a stage's table; its layout is part of the kernel ABI (kernel_abi.h). It has `rows` × `cols`
/// elements, of which the first is (row, col) of the block. In the local shard they start at `local`, with
/// rows `localStride` apart. In staged operands they start at `staged`, with rows `stagedStride` apart.
/// `staged` is -1 if this replica does not send, and 0 if nothing is staged. `parameter` indexes
/// Plan::parameters, `block` is the index in the group. `slot` is the computed block's index on this rank
/// (BlockChunks), otherwise -1.
///
/// Rows of ShardChunks that are contiguous everywhere are merged (rows = 1). A row of ShardChunks that can be
/// split holds at most Plan::chunkElements elements. What it stages packed is in one peer's part. Rows of
/// BlockChunks are never merged: they cover whole rows of one block, as many as fit in that number (at least
/// one). They have `staged` = slot·R·C + row·C, stride C and `local` = 0, with R and C of the table's value
/// kind. A row never spans parameters.
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

/// Adds up rows × cols elements of `count` contributions. Contribution number i begins at element lists[list
/// + i] + source and has rows `sourceStride` apart. `target` is in the copy of shards, or in the range.
struct SumRow {
  int64_t parameter, rows, cols, source, sourceStride, target, targetStride, list, count;
};

/// What a rank sends to and receives from one peer (a world rank, itself included): elements of one value, or
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

/// A table that several ranks have in common. They differ only in which blocks they hold or compute, and in
/// where their shards begin in these. When each of 256 ranks has a slice of every matrix, one table mostly
/// serves all. Rows have indices into `blocks` in the place of blocks: Chunk::block, and `parameter` of other
/// rows. A Chunk's row and column count from (row, col).
struct CommonTable {
  std::shared_ptr<const RankTable> rows;
  std::shared_ptr<const std::vector<int64_t>>
      blocks; // of the group; none: the rows are as they stand
  int64_t row = 0, col = 0;

  CommonTable() = default;
  /// A table that one rank alone has.
  CommonTable(RankTable own) : rows(std::make_shared<const RankTable>(std::move(own))) {}
  /// The rank's own rows. Indices in rows must be below the number of blocks, and blocks must be in the
  /// group.
  RankTable resolve(const Group &group) const;
  /// Writes the rank's own rows to `own` and reuses its memory.
  void resolve(const Group &group, RankTable &own) const;
};

/// A run of a packed value's elements, and the byte of the start's buffer where it begins.
struct PackedRun {
  int64_t first, count, byte;
  bool operator==(const PackedRun &) const = default;
};

/// Bytes of a start's buffer that are needed in a second place of it.
struct PartCopy {
  int64_t from, to, bytes;
  auto operator<=>(const PartCopy &) const = default;
};

/// The size in bytes of the seal at the end of each message. By the seal, ranks find that they step with
/// different numbers (runtime/core/Agreement.h).
inline constexpr int64_t kSealBytes = 32;

/// The buffer that a start sends, or receives into. Peers' parts begin at multiples of 64 bytes (in an
/// all-gather, of its largest element); the gap is not sent. A part has the values by falling size of their
/// elements, then in the start's order, without gaps, and the seal after them. Peers that get the same bytes
/// share a part. When several peers get a value beside different other values, it is packed for the first of
/// them and copied for the others as the start begins.
struct Parcel {
  std::vector<std::vector<PackedRun>> values; // of each value that travels, by element
  std::vector<PartCopy> copies;
  int64_t bytes = 0;

  /// The part that holds an element of a value, or nothing.
  const PackedRun *find(int64_t value, int64_t element) const;
};

/// Where the members of a pool begin on one rank, in bytes: multiples of 64, in their order, without overlap.
/// `bytes` is the size of all of them.
struct RankPool {
  std::vector<int64_t> begins;
  int64_t bytes = 0;

  /// How many bytes a member may have: up to the next one, or to the pool's end.
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

/// Answers for many ranks, and keeps what the answers share. Refers to the plan, which must not change.
/// Several threads must not use it at a time.
class Expander {
public:
  explicit Expander(const Plan &plan);
  ~Expander();
  Expander(Expander &&) noexcept;

  RankTables tables(int64_t rank);
  RankTable table(const Table &table, int64_t rank);
  /// The table before it is resolved. Ranks that have it in common mostly get the same rows.
  CommonTable common(const Table &table, int64_t rank);
  /// What a start does on a rank. Ranks that have it in common mostly get the same object.
  std::shared_ptr<const RankStart> start(const Start &start, int64_t rank);
  RankPool pool(const Pool &pool, int64_t rank);
  /// The number of elements in a place on one rank, which is the least size of its buffer. 0 for ranks
  /// outside of the group's mesh.
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

/// Checks indices and sizes, so that `expand` is safe on any bytes: an empty string, or what is wrong.
std::string validate(const Plan &plan);

/// Checks the commands of a plan that `validate` accepts. What each names exists and is of a fitting kind,
/// and operands stand in the workspace. Every collective is awaited once after its start, and the last
/// command advances the step counts. `command` is the first that is wrong.
std::string validateProgram(const Plan &plan, int64_t *command = nullptr);

} // namespace stepc::plan

#endif
