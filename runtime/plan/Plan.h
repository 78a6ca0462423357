//===- Plan.h - The compact plan that a library carries ---------*- C++ -*-===//
//
// A plan is what the generated program needs to know of parameters, placements and owners. All ranks have
// the same plan. `expand` (Tables.h) turns it into the tables of one rank when a library is opened. The
// compiler builds the plan from the scheduled IR, the verifier expands it for every rank, and the library
// carries it as bytes (`serialize`).
//
// Sizes and offsets are in elements unless a name says bytes. "Rank" is the index in the library's world
// (the sorted union of its meshes' global ranks).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_PLAN_H
#define STEPC_RUNTIME_PLAN_PLAN_H

#include "runtime/plan/Kernel.h"
#include "runtime/plan/Places.h"
#include "runtime/plan/commands/Command.h"

namespace stepc::plan {

/// The most elements of a row of a table, if no target says otherwise.
inline constexpr int64_t kChunkElements = 16384;

/// A whole plan, as a library carries it.
struct Plan {
  std::string name; // the library's
  std::string chip; // the LLVM cpu that the code is for, with its features
  std::string numerics = "exact";
  // The workspace of a rank: the arena, with buffers at offsets that the compiler chose, and after it one
  // region of scratch for products and functions of blocks, which run one at a time.
  int64_t arenaBytes = 0;
  int64_t scratchBytes = 0;
  int64_t chunkElements = kChunkElements; // the most of a row of a table: the target's
  std::vector<Mesh> meshes;
  std::vector<Rule> rules;
  std::vector<Route> routes;
  std::vector<Group> groups;
  std::vector<Parameter> parameters;
  // The parameter that stands for the model: with its hyperparameters and step count, an element on each
  // rank, and no memory for them. -1: the specification has no model.
  int64_t model = -1;
  std::vector<Segment> segments;
  std::vector<Table> tables;
  std::vector<Pool> pools;
  std::vector<Kernel> kernels;   // in the order of stepc_program's
  std::vector<Command> commands; // the program; for a module at level scheduled, only its starts
  uint64_t programHash = 0;      // of the generated code's IR: part of the plan's hash

  /// Whether a group has the parameter that stands for the model.
  bool isOfModel(const Group &group) const {
    return model >= 0 && group.parameters == std::vector<int64_t>{model};
  }
  /// The number of its group. Only for plans with a model.
  int64_t groupOfModel() const;
  /// Whether kernels decide that a step is skipped, so that the host does not know how many were taken.
  bool skipsOnDevice() const;
  /// Whether it is the mesh of all ranks, on which the model's numbers are.
  bool isMeshOfModel(const Mesh &mesh) const {
    return model >= 0 && &mesh == &meshes[size_t(groups[size_t(groupOfModel())].mesh)];
  }
  /// How many parameters of the trainer there are, and groups of them.
  int64_t countOfParameters() const { return int64_t(parameters.size()) - (model >= 0); }
  int64_t countOfGroups() const { return int64_t(groups.size()) - (model >= 0); }
  /// The world: the sorted union of the meshes' ranks that some group uses.
  std::vector<int64_t> world() const;
  /// The starts of the program, by number: the collectives in the one order of all ranks.
  std::vector<const Start *> starts() const;
  /// Where the scratch begins: the arena's end, aligned.
  int64_t scratchOffset() const { return aligned(arenaBytes); }
  int64_t workspaceBytes() const { return scratchOffset() + scratchBytes; }
};

/// Per world rank, a number that is equal for ranks that meet in the communicator. It is -1 if the rank
/// takes no part.
std::vector<int64_t> meetings(const Plan &plan, const Communicator &communicator);
/// Whether any two ranks meet in both communicators.
bool shareAPair(const Plan &plan, const Communicator &one, const Communicator &other);
/// The world ranks that a rank meets in the communicator, itself included, ascending. Empty if it takes no
/// part.
std::vector<int64_t> members(const Plan &plan, const Communicator &communicator, int64_t rank);

/// The tensor whose placements say how the values of a place lie in shards: at this place, or at the end of
/// its move that is shards. For moves without shards, and for blocks, it is the tensor at whose shards hops
/// start.
ShardsKind whose(const Plan &plan, const Place &place);
/// What is wrong with the shards that a place names; empty if nothing is. If several tensors of a group have
/// equal placements, the place must name the first of parameter, gradient and states. Moves by hops must
/// start or end at the shards that `home` returns. The place's segment must exist.
std::string checkShards(const Plan &plan, const Place &place);

/// What the bytes per element of a table of this kind must be, in words, if `bytes` are not; otherwise empty.
/// `from`: where its rows lead from. Exact sums have several words.
std::string expectedBytes(TableKind kind, Distribution from, int64_t bytes);

/// Bytes, little-endian, versioned; equal plans give equal bytes.
std::vector<uint8_t> serialize(const Plan &plan);
/// Returns nothing and sets `error` if the bytes are not a plan of this version.
std::optional<Plan> deserialize(const uint8_t *bytes, size_t size, std::string &error);
/// A 64-bit hash of the serialized plan (FNV-1a), compared by ranks when they meet.
uint64_t hash(const Plan &plan);

} // namespace stepc::plan

#endif
