//===- Places.h - Where values stand, and what moves them -------*- C++ -*-===//
//
// Segments of blocks, the distributions in which their values lie, and the tables that lead from one place
// to another. Sizes and offsets are in elements unless a name says bytes.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_PLACES_H
#define STEPC_RUNTIME_PLAN_PLACES_H

#include "runtime/model/Model.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepc::plan {

/// Blocks of one group that one wave handles, in the order of their slots.
struct Segment {
  std::string name;
  int64_t group = 0;
  std::vector<int64_t> blocks; // indices in the group; empty if `all` is set
  bool all = false;
};

/// How the blocks of a segment are spread over ranks.
struct Distribution {
  enum Kind : int64_t {
    Shards = 0, ///< in pieces, as the group's placements say
    Blocks = 1, ///< each whole (or a slab of each) on the ranks that compute it: [slot, R, C]
    Pieces = 2, ///< in pieces, as hop `hop` leaves them; after the last hop they are blocks
    // In pieces, by placements of the gradient or the states that differ from the parameter's. If lists of
    // placements are equal, the first of parameter, gradient and states gives the name.
    GradientShards = 3,
    StateShards = 4,
    ReducedShards = 5, ///< in pieces, by the reduced gradient's placements
    // Only for groups with slabs. A value of a block is the sum of the parts of all ranks that have a slab
    // of the block (Parts). Each of these ranks adds up one range of the elements of all their common
    // blocks (Ranges).
    Parts = 6,
    Ranges = 7,
    // Exact sums of rows, columns and blocks that are cut between ranks: what each rank adds up of its own
    // elements, and the sum of these parts, each on one rank (ShardsKind).
    LineParts = 8,
    LineSums = 9,
    /// States that stay with blocks, in memory that the trainer has bound: of each parameter the blocks that
    /// the rank computes, one after another and each whole.
    StateBlocks = 10,
    /// Exact sums of what a rank adds to a number of the whole model, one after another (geometry::sumsFor).
    /// Of ranks with copies of an element one alone adds it up.
    ModelParts = 11,
  };
  Kind kind = Shards;
  int64_t hop = 0;

  constexpr Distribution(Kind kind = Shards, int64_t hop = 0) : kind(kind), hop(hop) {}
  bool isShards() const {
    return kind != Blocks && kind != Pieces && kind != ModelParts && !isSummed();
  }
  bool isSummed() const { return kind == Parts || kind == Ranges; }
  bool isOfLines() const { return kind == LineParts || kind == LineSums; }
  /// The tensor whose placements say where the shards lie; the parameter if the distribution is not shards.
  ShardsKind whose() const {
    return kind == GradientShards  ? ShardsKind::Gradient
           : kind == StateShards   ? ShardsKind::State
           : kind == ReducedShards ? ShardsKind::Reduced
           : kind == LineParts     ? ShardsKind::LineParts
           : kind == LineSums      ? ShardsKind::LineSums
           : kind == StateBlocks   ? ShardsKind::StateBlocks
                                   : ShardsKind::Parameter;
  }
  /// How many hops lead from the shards to this distribution.
  int64_t level(const Group &group) const;
  /// The distribution after `hops` of a group's hops, one at least.
  static Distribution after(const Group &group, int64_t hops);
  auto operator<=>(const Distribution &) const = default;
};
template <>
inline constexpr auto kNames<Distribution::Kind> = std::to_array<std::string_view>(
    {"shards", "blocks", "hop", "gradient_shards", "state_shards", "reduced_shards", "parts",
     "ranges", "line_parts", "line_sums", "state_blocks", "model_parts"});
std::string name(Distribution distribution); // "shards", "blocks", "hop 1", "state_shards", …
/// The distribution of the shards of a group's parameter, gradient, states or reduced gradient, or of lines.
Distribution shardsOf(const Group &group, ShardsKind kind);
/// The shards over which a group's stages run and from which its hops start: the states' shards, or the
/// parameter's if the rule keeps no state for the group.
Distribution home(const Group &group, const Rule &rule);
/// The shards over which stages run that reduce to numbers of the whole model: home if each rank's gradient
/// has the elements of its shard there, so that no gradient need travel. Otherwise those of the gradient.
Distribution modelShards(const Group &group, const Rule &rule, const Mesh &mesh);

/// A value is at rest in a distribution, or it is packed at one of the two ends of a move.
enum class End : int64_t {
  Rest = 0,
  Sent = 1,     ///< packed per receiving rank, then block, then rectangle
  Received = 2, ///< packed per sending rank, then block, then rectangle
  /// A copy of a rank's shards, block by block, each as it stands in the shard; or a copy of a rank's range.
  Kept = 3,
};
template <>
inline constexpr auto kNames<End> =
    std::to_array<std::string_view>({"rest", "sent", "received", "kept"});

struct Plan;

/// Which value of a segment's blocks is meant, and how it is shared out among ranks.
struct Place {
  int64_t segment = -1;
  ValueKind value = ValueKind::Full;
  Distribution from = Distribution::Shards, to = Distribution::Shards; // equal at rest
  End end = End::Rest;

  static Place resting(int64_t segment, ValueKind value, Distribution in) {
    return {segment, value, in, in, End::Rest};
  }
  /// A copy of what stands in a distribution.
  static Place kept(int64_t segment, ValueKind value, Distribution in) {
    return {segment, value, in, in, End::Kept};
  }
  /// Whether the value is one list of elements in the workspace.
  bool isPacked() const { return end != End::Rest; }
  bool isMoving() const { return end == End::Sent || end == End::Received; }
  /// Whether the value is shards that the trainer has bound.
  bool isBound() const { return end == End::Rest && from.isShards(); }
  /// Whether the value is bound shards, or a copy of shards.
  bool isOfShards() const { return !isMoving() && from.isShards(); }
  bool isResting(Distribution in) const { return end == End::Rest && from == in; }
  /// Whether the value has one item per computed block.
  bool isBatch() const { return isResting(Distribution::Blocks) || isResting(Distribution::Parts); }
  /// The distribution whose ranks have the value in their memory.
  Distribution standsIn() const { return end == End::Received ? to : from; }
  /// Whether a stage that walks over the elements of `walked`, which is at rest, can address an element
  /// here for each of them. From shards a stage addresses what is packed on the same rank, and whole
  /// blocks. From blocks it addresses values of any kind that are at rest in blocks.
  bool isAddressableFrom(const Place &walked) const;
  /// Whether a rank can copy the values here to `other`, which lies on the same rank.
  bool copiesTo(const Place &other) const;
  /// Whether this place has the contributions (or parts) that arrived, and `other` has their sums.
  bool sumsTo(const Plan &plan, const Place &other) const;
  /// Whether this is the sent end and `other` the received end of one move. Their segments may differ.
  bool travelsTo(const Place &other) const;
  auto operator<=>(const Place &) const = default;
};

enum class TableKind : int64_t {
  ShardChunks = 0, ///< rows of a stage over shards; `to` is where its staged operands stand
  BlockChunks = 1, ///< rows of a stage over computed blocks
  Copy = 2,        ///< rows that move a value from `from` to `to`
  Message = 3,     ///< per peer, the elements of a value sent from `from` and received in `to`
  Sum = 4, ///< rows that add up contributions (or parts) in `from` and write the sum to `to`
  /// As ShardChunks. Rows also lead to values per row, per column and per block, in copies of the shards of
  /// these kinds.
  LineChunks = 5,
  /// Rows of a reduction of shards to a value per row (WholeRows), or per column (WholeColumns). As
  /// LineChunks, but a row has all elements of the rows (columns) of its block that it has elements of.
  WholeRows = 6,
  WholeColumns = 7,
  /// Rows that add up exactly what a rank has of each row, column or block. Several rows may lead to one sum
  /// (Chunk::more).
  PartRows = 8,
  PartColumns = 9,
  PartBlocks = 10,
  /// As PartBlocks, but the sums are parts of a number of the whole model.
  PartModel = 11,
  /// Rows that each name a sum that a stage over PartModel wrote, and the parameter that it is of.
  Collect = 12,
  /// As ShardChunks, but each row is a rectangle of its block, so that its rows and columns can be counted.
  RectangleChunks = 13,
};
template <>
inline constexpr auto kNames<TableKind> = std::to_array<std::string_view>(
    {"shard_chunks", "block_chunks", "copy", "message", "sum", "line_chunks", "whole_rows",
     "whole_columns", "part_rows", "part_columns", "part_blocks", "part_model", "collect",
     "rectangle_chunks"});

/// One table that the program uses. Tables are referred to by index. Chunks have `from` equal to `to`, except
/// for the staged operands of shards.
struct Table {
  TableKind kind = TableKind::ShardChunks;
  Place from, to;
  int64_t elementBytes = 0; // Message, Copy, Sum and Collect: of what is read
  /// Whether rows are chunks of shards.
  bool isOverShards() const {
    return kind == TableKind::ShardChunks || kind == TableKind::LineChunks ||
           kind == TableKind::RectangleChunks || reduces();
  }
  /// Whether each row is a rectangle of one block, over chunks of shards.
  bool hasRectangles() const { return kind == TableKind::RectangleChunks || leadsToLines(); }
  /// Whether rows lead to values per row, column and block.
  bool leadsToLines() const {
    return kind == TableKind::LineChunks || (reduces() && kind != TableKind::PartModel);
  }
  /// Whether rows lead to values of a kind. A stage that visits a value per row has no columns.
  bool leadsTo(ValueKind kind) const {
    bool has = from.value == ValueKind::Full || kind == ValueKind::One || kind == from.value;
    return leadsToLines() && has;
  }
  /// Whether the elements of rows, columns or blocks are reduced: whole ones, or what a rank has of each.
  bool reduces() const {
    return kind == TableKind::WholeRows || kind == TableKind::WholeColumns || reducesParts();
  }
  bool reducesParts() const {
    return kind == TableKind::PartRows || kind == TableKind::PartColumns ||
           kind == TableKind::PartBlocks || kind == TableKind::PartModel;
  }
  /// The kind of the line to which a table reduces.
  ValueKind reducesTo() const {
    return kind == TableKind::PartBlocks || kind == TableKind::PartModel ? ValueKind::One
           : kind == TableKind::WholeRows || kind == TableKind::PartRows ? ValueKind::Rows
                                                                         : ValueKind::Cols;
  }
  /// Where the line stands to which a table reduces.
  Place reduced() const {
    return Place::kept(from.segment, reducesTo(),
                       kind == TableKind::PartModel ? Distribution(Distribution::ModelParts)
                       : reducesParts()             ? Distribution(Distribution::LineParts)
                                                    : from.from);
  }
  /// Where values of a kind stand to which rows lead: a copy of the walked shards.
  Place line(ValueKind value) const { return Place::kept(from.segment, value, from.from); }
  auto operator<=>(const Table &) const = default;
};

enum class CollectiveKind : int64_t {
  Exchange = 0,  ///< ragged routes: exact sizes between any two ranks
  AllGather = 1, ///< every rank's part goes to every rank that lacks it
};
template <>
inline constexpr auto kNames<CollectiveKind> =
    std::to_array<std::string_view>({"exchange", "all_gather"});

/// Ranks that meet in collectives: the world, or the ranks of a mesh that differ only along `factors`.
struct Communicator {
  int64_t mesh = -1; // -1: the world
  std::vector<Factor> factors;
  bool operator==(const Communicator &) const = default;
};

/// The alignment of buffers and of parts of messages, in bytes: a cache line, and the widest vector.
inline constexpr int64_t kAlignment = 64;
constexpr int64_t aligned(int64_t bytes, int64_t alignment = kAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Batches of computed blocks that lie side by side in one part of the workspace. On each rank a member
/// begins where the rank's blocks of the members before it end (Tables.h). So a pool is as large as the
/// most that any rank needs for all members. It is not the sum of what different ranks need for each.
struct Pool {
  struct Batch {
    int64_t segment = 0;
    int64_t blockBytes = 0;
  };
  int64_t offset = 0; // in the workspace
  int64_t bytes = 0;
  std::vector<Batch> members;
};

} // namespace stepc::plan

#endif
