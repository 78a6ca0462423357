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
    // In pieces, where the gradient's or the states' placements are of their own. What stands by
    // equal lists is named by the first of parameter, gradient and states.
    GradientShards = 3,
    StateShards = 4,
    ReducedShards = 5, ///< the same of where contributions of a gradient are added up
    // Of a group with slabs, what each rank adds to a value of its blocks: the value is the sum of those of
    // all ranks that have a slab of the block. Of these each adds up a range of what all blocks have.
    Parts = 6,
    Ranges = 7,
  };
  Kind kind = Shards;
  int64_t hop = 0;

  constexpr Distribution(Kind kind = Shards, int64_t hop = 0) : kind(kind), hop(hop) {}
  bool isShards() const { return kind != Blocks && kind != Pieces && !isSummed(); }
  bool isSummed() const { return kind == Parts || kind == Ranges; }
  /// By whose placements shards stand; the parameter's for all that is none.
  ShardsKind whose() const {
    return kind == GradientShards  ? ShardsKind::Gradient
           : kind == StateShards   ? ShardsKind::State
           : kind == ReducedShards ? ShardsKind::Reduced
                                   : ShardsKind::Parameter;
  }
  /// How many hops lead there.
  int64_t level(const Group &group) const;
  /// Where so many of a group's hops lead, more than none.
  static Distribution after(const Group &group, int64_t hops);
  auto operator<=>(const Distribution &) const = default;
};
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
  /// One list of elements in the workspace.
  bool isPacked() const { return end != End::Rest; }
  bool isMoving() const { return end == End::Sent || end == End::Received; }
  /// Bound shards.
  bool isBound() const { return end == End::Rest && from.isShards(); }
  /// Bound shards, or a copy of them.
  bool isOfShards() const { return !isMoving() && from.isShards(); }
  bool isResting(Distribution in) const { return end == End::Rest && from == in; }
  /// One item per computed block.
  bool isBatch() const { return isResting(Distribution::Blocks) || isResting(Distribution::Parts); }
  /// The distribution whose holders have it in their memory.
  Distribution standsIn() const { return end == End::Received ? to : from; }
  /// Whether an element of `walked`, which is at rest, leads to one here: from shards to what is
  /// packed where they are, and to whole blocks; from blocks to what is at rest there, whatever its
  /// kind.
  bool isAddressableFrom(const Place &walked) const;
  /// Whether it can be copied there on one rank.
  bool copiesTo(const Place &other) const;
  /// Whether contributions stand here, which arrived, whose sums stand in `other`.
  bool sumsTo(const Plan &plan, const Place &other) const;
  /// Whether it is what is sent, and `other` what arrives, of one move (of any two segments).
  bool travelsTo(const Place &other) const;
  auto operator<=>(const Place &) const = default;
};

enum class TableKind : int64_t {
  ShardChunks = 0, ///< rows of a stage over shards; `to` is where its staged operands stand
  BlockChunks = 1, ///< rows of a stage over computed blocks
  Copy = 2,        ///< rows that move a value from `from` to `to`
  Message = 3,     ///< per peer, the elements of a value sent from `from` and received in `to`
  Sum = 4,         ///< rows of `to`, and of each all contributions (or parts), in `from`
};
std::string_view name(TableKind kind); // "shard chunks", … of a known kind

/// One table that the program uses. Tables are referred to by index. Chunks have `from` equal to
/// `to`, but for the staged operands of shards.
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

/// Ranks that meet in collectives: the world, or of a mesh those that differ along `factors`.
struct Communicator {
  int64_t mesh = -1; // the world
  std::vector<Factor> factors;
  bool operator==(const Communicator &) const = default;
};

/// What stands apart in memory begins at multiples of it: a cache line, and the widest vector.
inline constexpr int64_t kAlignment = 64;
constexpr int64_t aligned(int64_t bytes, int64_t alignment = kAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Per world rank, a number that those have in common who meet there; -1 where it takes no part.
std::vector<int64_t> meetings(const Plan &plan, const Communicator &communicator);
/// Whether some two ranks meet in both.
bool shareAPair(const Plan &plan, const Communicator &one, const Communicator &other);
/// The world ranks that a rank meets there, itself included, ascending; none where it takes no part.
std::vector<int64_t> members(const Plan &plan, const Communicator &communicator, int64_t rank);

/// Batches of computed blocks that share a part of the workspace. On each rank every member begins
/// where those before it end there (Tables.h), so that a pool is as large as the most that any rank
/// needs of all members, and not the sum of what different ranks need of each.
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
  Gradients = 3,  ///< the same of their gradients
  State = 4,      ///< the same of state `value` of the rule
  BlockRows = 5,  ///< the number of rows of the group's blocks, in place of a pointer
  Batch = 6,      ///< as Workspace: `rows` × `cols` of `type` for each computed block
};
std::string_view name(OperandKind kind); // "a part of the workspace", "scalars", …
struct Operand {
  OperandKind kind = OperandKind::Workspace;
  int64_t value = 0;
  int64_t bytes = 0;
  // Of a packed value: the program's start with which it travels, and which of that start's tables
  // it is. It stands there as Parcels.h says.
  int64_t start = -1;
  int64_t traveller = 0;
  int64_t rows = 0, cols = 0; // Batch
  DType type = DType::F32;    // Batch
  // Of batches that stand in a pool: `value` and `bytes` are the pool's.
  int64_t pool = -1;
  int64_t member = 0;
};

/// In which order a product adds up: one chain of multiply-adds over increasing k, rounded once each,
/// or each product rounded before it is added, or groups of 16 steps as a GPU's tensor cores add them.
enum class Accumulation : int64_t { FusedChain = 0, RoundedChain = 1, TensorCore = 2 };
enum class Reduction : int64_t { Sum = 0, Mean = 1, Rms = 2, Norm = 3, Max = 4 };

/// An algorithm of cuBLASLt that makes a product in place of its kernels, where the library, the GPU and its number
/// of multiprocessors are these. One part of k after another, never several at once (split-K 1).
struct PinnedAlgorithm {
  int64_t cublasLt = 0; // cublasLtGetVersion()
  int64_t chip = 0;     // 90: sm_90
  int64_t multiprocessors = 0;
  int64_t alignment = 1; // bytes that the address of each operand is a multiple of
  // The algorithm and its attributes (cublasLtMatmulAlgoConfigAttributes_t).
  int64_t algorithm = 0, tile = 0, stages = 0, swizzling = 0, customOption = 0;
  int64_t innerShape = 0, clusterShape = 0;
  int64_t workspaceBytes = 0; // that it may use, of all blocks together
  auto operator<=>(const PinnedAlgorithm &) const = default;
};

/// What a product or a reduction computes of every block (dialects/optim/OptimBatchOps.td says it to
/// the last bit), and the kernels that do it one after another on a device that does not do it by
/// itself. Each is given the scratch, then the command's operands.
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

/// One thing that a step does. With the tables the commands tell what a rank must have done at the
/// end of a step; the runtime refuses a step that did otherwise.
enum class CommandKind : int64_t {
  Chunks = 0,       ///< a kernel over the rows of `tables`; operands of the first, the second, …
  Parameters = 1,   ///< a kernel over the parameters of `groups`; operands of the first, …
  Product = 2,      ///< of every computed block of table `tables[0]`: lhs, rhs[, addend], out
  Reduce = 3,       ///< of every computed block of table `tables[0]`: source, out
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

/// Rows of tables are cut at so many elements where no target has said otherwise.
inline constexpr int64_t kChunkElements = 16384;

/// The whole.
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

/// By whose placements what stands in a place lies in shards: there, before the move or after it;
/// of what is between hops and in blocks, where the hops start.
ShardsKind whose(const Plan &plan, const Place &place);
/// What is wrong with the shards of a place of a known segment: they have one name, and hops lead from
/// and to those at home alone.
std::string checkShards(const Plan &plan, const Place &place);

/// Bytes, little-endian, versioned; equal plans give equal bytes.
std::vector<uint8_t> serialize(const Plan &plan);
/// Nothing, and `error` set, when the bytes are not a plan of this version.
std::optional<Plan> deserialize(const uint8_t *bytes, size_t size, std::string &error);
/// A 64-bit hash of the serialized plan (FNV-1a), compared by ranks when they meet.
uint64_t hash(const Plan &plan);

} // namespace stepc::plan

#endif
