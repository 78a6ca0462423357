//===- Plan.h - The compact plan that a library carries ---------*- C++ -*-===//
//
// A plan is what the generated program needs to know of parameters, placements
// and owners. It is the same for all ranks; `expand` (Tables.h) turns it into
// the tables of one rank when a library is opened. The compiler builds it from
// the scheduled IR, the verifier expands it for every rank, and the library
// carries it as bytes (`serialize`).
//
// Sizes and offsets are in elements unless a name says bytes. "Rank" is the
// index in the library's world (the sorted union of its meshes' global ranks).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_PLAN_H
#define STEPC_RUNTIME_PLAN_PLAN_H

#include "runtime/model/Model.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace stepc::plan {

/// Blocks of one group that one wave handles, in the order of their slots.
struct Segment {
  std::string name;
  int64_t group = 0;
  std::vector<int64_t> blocks; // empty with `all`: every block of the group
  bool all = false;
};

/// How the blocks of a segment are spread over ranks.
struct Distribution {
  enum Kind : int64_t {
    Shards = 0, ///< in pieces, as the group's placements say
    Blocks = 1, ///< each whole (or a slab of each) on the ranks that compute it: [slot, R, C]
    Pieces = 2, ///< in pieces, as hop `hop` leaves them; after the last hop they are blocks
    // In pieces, by placements of the gradient or the states that differ from the parameter's. Equal lists
    // have one name: that of the first of parameter, gradient and states.
    GradientShards = 3,
    StateShards = 4,
    ReducedShards = 5, ///< in pieces, as contributions to a gradient are added up
    // Only for groups with slabs. A value of a block is the sum of the parts of all ranks that have a slab of
    // it (Parts). Each of these ranks adds up one range of the elements of all these blocks (Ranges).
    Parts = 6,
    Ranges = 7,
  };
  Kind kind = Shards;
  int64_t hop = 0;

  constexpr Distribution(Kind kind = Shards, int64_t hop = 0) : kind(kind), hop(hop) {}
  bool isShards() const { return kind != Blocks && kind != Pieces && !isSummed(); }
  bool isSummed() const { return kind == Parts || kind == Ranges; }
  /// Whose placements say where the shards lie. It is the parameter's if the distribution is not shards.
  ShardsKind whose() const {
    return kind == GradientShards  ? ShardsKind::Gradient
           : kind == StateShards   ? ShardsKind::State
           : kind == ReducedShards ? ShardsKind::Reduced
                                   : ShardsKind::Parameter;
  }
  /// How many hops lead there.
  int64_t level(const Group &group) const;
  /// The distribution after `hops` of a group's hops, one at least.
  static Distribution after(const Group &group, int64_t hops);
  auto operator<=>(const Distribution &) const = default;
};
template <>
inline constexpr auto kNames<Distribution::Kind> =
    std::to_array<std::string_view>({"shards", "blocks", "hop", "gradient_shards", "state_shards",
                                     "reduced_shards", "parts", "ranges"});
std::string name(Distribution distribution); // "shards", "blocks", "hop 1", "state_shards", …
/// Where the shards of a group's parameter, gradient or states stand.
Distribution shardsOf(const Group &group, ShardsKind kind);
/// Where the stages over a group's shards run and its hops start: with the states, or with the
/// parameter of a rule that keeps none for it.
Distribution home(const Group &group, const Rule &rule);

/// A value is at rest in a distribution, or packed for peers at an end of a move between two.
enum class End : int64_t {
  Rest = 0,
  Sent = 1,     ///< packed per receiving rank, then block, then rectangle
  Received = 2, ///< packed per sending rank, then block, then rectangle
  Kept =
      3, ///< a copy of a rank's shards: block by block, each as it stands in the shard; or its range
};
template <>
inline constexpr auto kNames<End> =
    std::to_array<std::string_view>({"rest", "sent", "received", "kept"});

struct Plan;

/// Where a value of a segment's blocks stands.
struct Place {
  int64_t segment = -1;
  ValueKind value = ValueKind::Full;
  Distribution from = Distribution::Shards, to = Distribution::Shards; // equal unless it moves
  End end = End::Rest;

  static Place resting(int64_t segment, ValueKind value, Distribution in) {
    return {segment, value, in, in, End::Rest};
  }
  /// Whether it is one list of elements in the workspace.
  bool isPacked() const { return end != End::Rest; }
  bool isMoving() const { return end == End::Sent || end == End::Received; }
  /// Whether it is shards that the trainer has bound.
  bool isBound() const { return end == End::Rest && from.isShards(); }
  /// Whether it is bound shards, or a copy of them.
  bool isOfShards() const { return !isMoving() && from.isShards(); }
  bool isResting(Distribution in) const { return end == End::Rest && from == in; }
  /// Whether it has one item per computed block.
  bool isBatch() const { return isResting(Distribution::Blocks) || isResting(Distribution::Parts); }
  /// The distribution whose holders have it in their memory.
  Distribution standsIn() const { return end == End::Received ? to : from; }
  /// Whether an element of `walked`, which is at rest, leads to one here. Shards lead to what is packed on
  /// the same rank and to whole blocks. Blocks lead to what is at rest in blocks, whatever its kind.
  bool isAddressableFrom(const Place &walked) const;
  /// Whether a rank can copy its values to `other`, which stands on the same rank.
  bool copiesTo(const Place &other) const;
  /// Whether this place has the contributions that arrived, and `other` has their sums.
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
  Sum = 4,         ///< rows of `to`, each with all its contributions (or parts), which stand in `from`
};
template <>
inline constexpr auto kNames<TableKind> =
    std::to_array<std::string_view>({"shard_chunks", "block_chunks", "copy", "message", "sum"});

/// One table that the program uses. Tables are referred to by index. Chunks have `from` equal to `to`, except
/// for the staged operands of shards.
struct Table {
  TableKind kind = TableKind::ShardChunks;
  Place from, to;
  int64_t elementBytes = 0; // Message and Copy
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
  int64_t mesh = -1; // the world
  std::vector<Factor> factors;
  bool operator==(const Communicator &) const = default;
};

/// The alignment in bytes of what stands apart in memory: a cache line, and the widest vector.
inline constexpr int64_t kAlignment = 64;
constexpr int64_t aligned(int64_t bytes, int64_t alignment = kAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Per world rank, a number that is equal for ranks that meet there; -1 if the rank takes no part.
std::vector<int64_t> meetings(const Plan &plan, const Communicator &communicator);
/// Whether some two ranks meet in both.
bool shareAPair(const Plan &plan, const Communicator &one, const Communicator &other);
/// The world ranks that a rank meets there, itself included, ascending; empty if it takes no part.
std::vector<int64_t> members(const Plan &plan, const Communicator &communicator, int64_t rank);

/// Batches of computed blocks that share a part of the workspace. On each rank every member begins where
/// those before it end there (Tables.h). So a pool is as large as the most that any rank needs of all
/// members, and not the sum of what different ranks need of each.
struct Pool {
  struct Member {
    int64_t segment = 0;
    int64_t blockBytes = 0;
  };
  int64_t offset = 0; // in the workspace
  int64_t bytes = 0;
  std::vector<Member> members;
};

/// What a command reads or writes.
enum class OperandKind : int64_t {
  Workspace = 0,  ///< `bytes` bytes of the workspace, from byte `value`
  Scalars = 1,    ///< scalars in the workspace from byte `value`, `bytes` bytes per parameter
  Parameters = 2, ///< the shards of the parameters: a pointer for each of the plan's
  Gradients = 3,  ///< the shards of their gradients, likewise
  State = 4,      ///< the shards of state `value` of the rule, likewise
  BlockRows = 5,  ///< the number of rows of the group's blocks, in place of a pointer
  Batch = 6,      ///< as Workspace: `rows` × `cols` of `type` for each computed block
};
std::string_view name(OperandKind kind); // "a part of the workspace", "scalars", …
struct Operand {
  OperandKind kind = OperandKind::Workspace;
  int64_t value = 0;
  int64_t bytes = 0;
  // Only for packed values: the program's start with which the value travels, and its number among that
  // start's tables. Parcels.h says where it stands in the start's buffer.
  int64_t start = -1;
  int64_t traveller = 0;
  int64_t rows = 0, cols = 0; // Batch
  DType type = DType::F32;    // Batch
  // Only for batches in a pool; `value` and `bytes` are then the pool's.
  int64_t pool = -1;
  int64_t member = 0;
};

/// The order in which a product adds up. It is one chain of multiply-adds over increasing k, rounded once
/// each; or each product is rounded before it is added; or groups of 16 steps are added as a GPU's tensor
/// cores add them.
enum class Accumulation : int64_t { FusedChain = 0, RoundedChain = 1, TensorCore = 2 };
template <>
inline constexpr auto kNames<Accumulation> =
    std::to_array<std::string_view>({"fused_chain", "rounded_chain", "tensorcore"});
enum class Reduction : int64_t { Sum = 0, Mean = 1, Rms = 2, Norm = 3, Max = 4 };
template <>
inline constexpr auto kNames<Reduction> =
    std::to_array<std::string_view>({"sum", "mean", "rms", "norm", "max"});

/// An algorithm of cuBLASLt that computes a product in place of its kernels, if the library, the GPU and its
/// number of multiprocessors match. It computes one part of k after another, never several at once (split-K
/// 1).
struct PinnedAlgorithm {
  int64_t cublasLt = 0; // cublasLtGetVersion()
  int64_t chip = 0;     // 90: sm_90
  int64_t multiprocessors = 0;
  int64_t alignment = 0; // bytes that the address of each operand is a multiple of
  // The algorithm and its attributes (cublasLtMatmulAlgoConfigAttributes_t).
  int64_t algorithm = -1, tile = 0, stages = 0, swizzling = 0, customOption = 0;
  int64_t innerShape = 0, clusterShape = 0;
  int64_t workspaceBytes = 0; // that it may use for all blocks together
  auto operator<=>(const PinnedAlgorithm &) const = default;
};
/// Visits all fields by their names, in the order in which they are serialized and printed.
template <typename Self, typename Visit>
  requires std::is_same_v<std::remove_const_t<Self>, PinnedAlgorithm>
void fields(Self &self, Visit visit) {
  visit("cublaslt", self.cublasLt);
  visit("chip", self.chip);
  visit("multiprocessors", self.multiprocessors);
  visit("alignment", self.alignment);
  visit("algorithm", self.algorithm);
  visit("tile", self.tile);
  visit("stages", self.stages);
  visit("swizzling", self.swizzling);
  visit("custom_option", self.customOption);
  visit("inner_shape", self.innerShape);
  visit("cluster_shape", self.clusterShape);
  visit("workspace", self.workspaceBytes);
}

/// What a product or a reduction computes for every block; dialects/optim/OptimBatchOps.td defines it to the
/// last bit. If the device has no means of its own, the kernels do it, one after another. Each gets the
/// scratch, then the command's operands.
struct Batch {
  Accumulation accumulation = Accumulation::FusedChain; // Product, as the next ones
  double alpha = 1, beta = 0;
  bool transposeLhs = false, transposeRhs = false, symmetric = false;
  Reduction reduction = Reduction::Sum; // Reduce, as the next
  int64_t exponent = 0;                 // the result is multiplied by 2 to this
  struct Kernel {
    int64_t kernel = -1; // index into Plan::kernels
    int64_t items = 1;   // of each block; item i of block slot s is number s · items + i
  };
  std::vector<Kernel> kernels;
  int64_t scratchBytes = 0;            // of each block
  std::vector<PinnedAlgorithm> pinned; // Product; each for another library or GPU
};

/// One command of a step. Commands and tables tell what a rank must have done at the end of a step; the
/// runtime refuses a step that did anything else.
enum class CommandKind : int64_t {
  Chunks = 0,       ///< a kernel over the rows of `tables`; operands of the first, the second, …
  Parameters = 1,   ///< a kernel over the parameters of `groups`; operands of the first, …
  Product = 2,      ///< for every computed block of table `tables[0]`: lhs, rhs[, addend], out
  Reduce = 3,       ///< for every computed block of table `tables[0]`: source, out
  Copy = 4,         ///< the rows of table `tables[0]`, from `operands[0]` to `operands[1]`
  Start = 5,        ///< begins a collective: the values of Message tables travel together, from
                    ///< `operands[0]` to `operands[1]`
  Await = 6,        ///< waits for the program's start number `index`
  AdvanceSteps = 7, ///< counts the step for all parameters that it did not skip
  Sum =
      8, ///< adds up the contributions of table `tables[0]`'s rows in f32 in their order, divides by
         ///< `index` and rounds once: from `operands[0]` to `operands[1]`
};
std::string_view name(CommandKind kind); // "chunks", "parameters", "product", …
struct Command {
  CommandKind kind = CommandKind::Chunks;
  int64_t kernel = -1; // index into Plan::kernels; -1: none, as a Copy or AdvanceSteps may have
  int64_t index = 0;
  std::vector<int64_t> tables;
  std::vector<Operand> operands;
  std::vector<int64_t> groups;
  CollectiveKind collective = CollectiveKind::Exchange; // Start
  Communicator communicator = {};                       // Start
  Batch batch = {};                                     // Product, Reduce
  bool isBatch() const { return kind == CommandKind::Product || kind == CommandKind::Reduce; }
};

/// The most elements of a row of a table, if no target says otherwise.
inline constexpr int64_t kChunkElements = 16384;

/// A whole plan, as a library carries it.
struct Plan {
  std::string name; // the library's
  std::string chip; // LLVM cpu that the code is for, with its features
  std::string numerics = "exact";
  // Workspace per rank: buffers at places that were decided, and behind them one region of scratch
  // for products and reductions, which run one at a time.
  int64_t arenaBytes = 0;
  int64_t scratchBytes = 0;
  int64_t chunkElements = kChunkElements; // at most, of a row of a table: the target's
  std::vector<Mesh> meshes;
  std::vector<Rule> rules;
  std::vector<Route> routes;
  std::vector<Group> groups;
  std::vector<Parameter> parameters;
  std::vector<Segment> segments;
  std::vector<Table> tables;
  std::vector<Pool> pools;
  std::vector<std::string> kernels; // names, in the order of stepc_program's
  std::vector<Command> commands;    // the program; of a module at level scheduled, its starts alone
  uint64_t programHash = 0;         // of the generated code's IR: part of the plan's hash

  /// The world: the sorted union of the meshes' ranks that some group uses.
  std::vector<int64_t> world() const;
  /// The starts of the program, by number: the collectives in the one order of all ranks.
  std::vector<const Command *> starts() const;
  /// Where the scratch begins: the arena's end, aligned.
  int64_t scratchOffset() const { return aligned(arenaBytes); }
  int64_t workspaceBytes() const { return scratchOffset() + scratchBytes; }
};

/// Whose placements say how a place's values lie in shards: there, before the move or after it. For pieces
/// between hops and for blocks they are those of the shards where the hops start.
ShardsKind whose(const Plan &plan, const Place &place);
/// What is wrong with the shards of a place, whose segment must exist: equal lists have one name, and hops
/// lead only from and to the shards at home.
std::string checkShards(const Plan &plan, const Place &place);

/// Bytes, little-endian, versioned; equal plans give equal bytes.
std::vector<uint8_t> serialize(const Plan &plan);
/// Nothing, and `error` set, when the bytes are not a plan of this version.
std::optional<Plan> deserialize(const uint8_t *bytes, size_t size, std::string &error);
/// A 64-bit hash of the serialized plan (FNV-1a), compared by ranks when they meet.
uint64_t hash(const Plan &plan);

} // namespace stepc::plan

#endif
