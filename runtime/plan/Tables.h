//===- Tables.h - One rank's tables, expanded from the plan -----*- C++ -*-===//
//
// `expand` is what the runtime calls when a library is opened, and what the verifier calls for every rank.
// It is the same function, so that what is proven is what runs.
//
// The hops of a group lead from its shards to whole blocks. After hop k, a rank p has pieces of block b
// only if p is at b's base along every owned factor up to k. Then p has the pieces that these holders h
// hold: along every factor that no hop up to k has resolved, h is at p's coordinates. Along resolved
// factors that replicate the shards, h is also at p's coordinates (the serving replica). Along all other
// factors h is anywhere. After the last hop, the ranks that have b are the ranks that compute b.
//
// A move has two distributions. The *lower* one is nearer to the shards, the *upper* one nearer to the
// blocks. On the way to the upper one, a rank receives each piece from the one rank that has it and differs
// from the receiver only along the hop's factors. On the way back, the one rank at the base along the owned
// factors sends results to every rank of the lower distribution. A hop without owned factors needs no way
// back, because all ranks have the result. A hop that chooses brings nothing: a rank that computes a block
// copies what arrived by the hop before, and results go back to where that hop started.
//
// The order of elements in each place on one rank (the first word of a list names the outermost order):
//   blocks             slot k · R · C of the k-th computed block in segment order
//   upwards, sent      sets of receivers by their least world rank (one copy for all of a set);
//                      blocks in segment order; their holders by world rank; rectangles
//   upwards, received  senders ascending; blocks; holders; rectangles
//   back, sent         receivers ascending; blocks; holders; rectangles of the receiver
//   back, received     senders ascending; blocks; holders; own rectangles
//   between shards     sent: sets of receivers that hold equal shards, by the least world rank of
//                      the receivers (one copy for all of a set); blocks; rectangles that both
//                      hold, by row and column. Received: senders ascending; blocks; rectangles.
//                      A holder of an element sends it to the ranks that have the holder's
//                      coordinates along the axes that replicate the element.
//   shards, kept       blocks in segment order, each as it stands in the shard
//   parts to ranges    sent: all parts as they stand. Received: the own range, sender by sender
//   ranges, kept       the own range. It is sent to blocks once for all ranks. Received: all ranges
// A rank's own part is sent and received like any other; the runtime copies it. A group without hops packs
// nothing, and its Message tables are empty.
//
// A packed value has the parts of all peers in this order. Each part is an interval of elements. Where a
// part lies in memory depends on all values that travel with it (Parcels.h).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_TABLES_H
#define STEPC_RUNTIME_PLAN_TABLES_H

#include "runtime/plan/Plan.h"

#include <memory>
#include <numeric>

namespace stepc::plan {

/// The least rows, or columns, of a row of WholeRows or WholeColumns: enough for the warps of a GPU's block,
/// and for what a core adds up side by side (sums::kColumns).
inline constexpr int64_t kWholeRows = 8, kWholeColumns = 64;

/// A chunk, which is one row of a stage's table. Its layout is part of the kernel ABI (kernel_abi.h). A
/// chunk has `rows` × `cols` elements, of which the first is (row, col) of the block. In the local shard
/// its elements start at `local`, with rows `localStride` apart. In staged operands they start at `staged`,
/// with rows `stagedStride` apart. `staged` is -1 if this replica does not send, and 0 if nothing is
/// staged. `parameter` indexes Plan::parameters, `block` is the index in the group. Where a value has one
/// element per row, the chunk's rows have its elements from `perRow` on, `perRowStride` apart. `perColumn`
/// leads likewise to a value per column, whose elements stand one after another, and `perBlock` to a value
/// per block. All three are -1 in ShardChunks.
///
/// Rows of ShardChunks that are contiguous everywhere are merged (rows = 1). A row of ShardChunks that can
/// be split holds at most Plan::chunkElements elements. If it stages to a packed place, all its elements
/// are in one peer's part. Rows of LineChunks and RectangleChunks are only merged with what follows in the
/// same row of the block. A row of WholeRows (WholeColumns) has all elements of some of its block's rows
/// (columns): at least kWholeRows (kWholeColumns), or all that the rank has. Rows of BlockChunks are never
/// merged: each covers whole rows of one block, as many as make Plan::chunkElements elements, but at least
/// one. They have `staged` = slot·R·C + row·C, stride C, `local` = 0, `perRow` = slot·R + row, stride 1,
/// `perColumn` = slot·C and `perBlock` = slot, with R and C of the table's value kind. A row never spans
/// parameters.
///
/// The first element of a chunk of full values has the number `element` among those of its parameter
/// (ElementOrder), and the numbers of its rows are `elementStride` apart. Both are 0 for other values, and in
/// BlockChunks of slabs.
///
/// A row of PartRows (PartColumns, PartBlocks) and the `more` rows behind it have all elements that a rank
/// has of some rows (columns) of a block, or a share of what it has of the block. All lead to the same
/// values.
/// `part` is the number of a sum among those of each value (geometry::sumsPerValue). It is -1 in the rows
/// behind the first. A row without elements leads to sums of nothing: its `cols` (`rows`) are 0.
struct Chunk {
  int64_t parameter, block, row, col, rows, cols, local, localStride, staged, stagedStride;
  int64_t perRow = -1, perRowStride = 0, perColumn = -1, perBlock = -1;
  int64_t part = -1, more = 0;
  int64_t element = 0, elementStride = 0;
};

/// The bytes of the words of which an element of so many bytes consists: the element itself, or words of a
/// wider one, which is copied word by word.
constexpr int64_t wordOf(int64_t elementBytes) { return std::gcd(elementBytes, int64_t(8)); }

/// Moves rows × cols elements. Rows are merged and split like those of ShardChunks. On the side of shards
/// at rest, an offset counts elements of the shard of `parameter`. On the side of a packed place it counts
/// the elements of this place.
struct CopyRow {
  int64_t parameter, rows, cols, source, sourceStride, target, targetStride;
  bool operator==(const CopyRow &) const = default;
};

/// Adds up rows × cols elements of `count` contributions, or of parts of as many ranks. Contribution number i
/// begins at element lists[list + i] + source of the packed place. Its rows are `sourceStride` apart.
/// `target` is an element of the copy of shards, or of the rank's range.
struct SumRow {
  int64_t parameter, rows, cols, source, sourceStride, target, targetStride, list, count;
};

/// What a rank sends to one peer and receives from it. The peer is a world rank, maybe the rank itself.
/// Offsets and counts are elements of one value, or bytes of all values that travel with a start.
struct Message {
  int64_t peer, sendOffset, sendCount, receiveOffset, receiveCount;
};

struct RankTable {
  std::vector<Chunk> chunks;     // of chunks of any kind
  std::vector<CopyRow> copies;   // Copy
  std::vector<SumRow> sums;      // Sum
  std::vector<int64_t> lists;    // Sum: where contributions begin in what is packed
  std::vector<Message> messages; // Message: peers ascending, no empty ones
  int64_t blocks = 0;            // BlockChunks: computed blocks on this rank
};

/// A table that several ranks have in common. The ranks differ only in which blocks they hold or compute,
/// and in where their shards begin in these blocks. If each of 256 ranks has a slice of every matrix, one
/// table mostly serves all of them. Instead of blocks, rows have indices into `blocks`: Chunk::block, and
/// `parameter` of other rows. A Chunk's row and column count from (row, col).
struct CommonTable {
  std::shared_ptr<const RankTable> rows;
  std::shared_ptr<const std::vector<int64_t>>
      blocks; // of the group; null: rows need not be resolved
  int64_t row = 0, col = 0;
  int64_t blockCols = 0; // of chunks of values whose elements are numbered
  ValueKind value;       // of these chunks

  CommonTable() = default;
  /// A table that one rank alone has.
  CommonTable(RankTable own) : rows(std::make_shared<const RankTable>(std::move(own))) {}
  /// Returns the rank's own rows. The caller guarantees that indices in rows are below the number of
  /// blocks, and that blocks are in the group.
  RankTable resolve(const Group &group) const;
  /// Writes the rank's own rows to `own` and reuses its memory.
  void resolve(const Group &group, RankTable &own) const;
};

/// A run of a packed value's elements, and the byte of the start's buffer where it begins.
struct PackedRun {
  int64_t first, count, byte;
  bool operator==(const PackedRun &) const = default;
};

/// Bytes of a start's buffer that are copied to a second place in the buffer, before the start begins.
struct PartCopy {
  int64_t from, to, bytes;
  auto operator<=>(const PartCopy &) const = default;
};

/// The size in bytes of the seal at the end of each message. By the seal, ranks find that they step with
/// different numbers (runtime/core/Agreement.h).
inline constexpr int64_t kSealBytes = 32;

/// The buffer that a start sends, or receives into. Each peer's part begins at a multiple of 64 bytes, or,
/// in an all-gather, of the size of its largest element. Gaps between parts are not sent. A part has the
/// values by falling size of their elements, then in the start's order, without gaps, and then the seal.
/// Peers that get equal bytes share a part. If several peers get a value, but beside different other
/// values, it is packed for the first peer and copied for the others as the start begins.
struct Parcel {
  std::vector<std::vector<PackedRun>> values; // per value that travels, ascending by element
  std::vector<PartCopy> copies;
  int64_t bytes = 0;

  /// Returns the run that holds an element of a value, or null.
  const PackedRun *find(int64_t value, int64_t element) const;
};

/// Where the members of a pool begin on one rank, in bytes: at multiples of 64, in the members' order,
/// without overlap. `bytes` is the size of all members together.
struct RankPool {
  std::vector<int64_t> begins;
  int64_t bytes = 0;

  /// How many bytes a member may take: up to where the next member begins, or to the pool's end.
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
  /// Per group whose states stay with blocks: the blocks that the rank computes, ascending. Empty for others.
  std::vector<std::vector<int64_t>> computed;
};

/// The tables of world rank `rank` (index into plan.world()). A rank outside a
/// group's mesh gets empty tables for it. Never fails on a plan that `validate`
/// accepts.
RankTables expand(const Plan &plan, int64_t rank);

/// Expands tables for many ranks, and keeps what ranks have in common. It refers to the plan, which must
/// not change. Only one thread may use it at a time.
class Expander {
public:
  explicit Expander(const Plan &plan);
  ~Expander();
  Expander(Expander &&) noexcept;

  RankTables tables(int64_t rank);
  RankTable table(const Table &table, int64_t rank);
  /// The table before it is resolved. Ranks that have a table in common mostly get the same object.
  CommonTable common(const Table &table, int64_t rank);
  /// What a start does on a rank. Ranks on which it does the same mostly get the same object.
  std::shared_ptr<const RankStart> start(const Start &start, int64_t rank);
  RankPool pool(const Pool &pool, int64_t rank);
  /// The number of elements in a place on one rank, which is the least size of its buffer. 0 for ranks
  /// outside of the group's mesh.
  int64_t elements(const Place &place, int64_t rank);
  /// The blocks of a group that a rank computes, ascending. None on ranks outside of the group's mesh.
  std::vector<int64_t> computedOf(int64_t group, int64_t rank);
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

/// Checks indices and sizes, so that `expand` is safe on any plan. Returns what is wrong, or an empty
/// string.
std::string validate(const Plan &plan);

/// Checks the commands of a plan that `validate` accepts. What a command names must exist and be of a
/// fitting kind, and operands must lie in the workspace. Every collective must be awaited once after its
/// start. The last command, and no other, must advance the step counts. `command` (may be null) receives
/// the index of the first wrong one.
std::string validateProgram(const Plan &plan, int64_t *command = nullptr);

} // namespace stepc::plan

#endif
