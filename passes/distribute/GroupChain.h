//===- GroupChain.h - The chain of one group in one wave --------*- C++ -*-===//
#ifndef STEPC_PASSES_DISTRIBUTE_GROUPCHAIN_H
#define STEPC_PASSES_DISTRIBUTE_GROUPCHAIN_H

#include "passes/distribute/Communicators.h"
#include "passes/distribute/StageBuilder.h"

namespace stepc::distribute {

/// What crosses between the spaces of a decided rule.
struct Crossings {
  llvm::SetVector<mlir::Value> fullIn;   ///< full values made on shards, used by matrix operations
  llvm::SetVector<unsigned> statesIn;    ///< rows, cols and one states that matrix operations read
  llvm::SetVector<mlir::Value> fullOut;  ///< full values made in matrix space, used on shards
  llvm::SmallVector<unsigned> statesOut; ///< rows, cols and one states with new values
  llvm::DenseMap<mlir::Value, unsigned>
      stored; ///< new f32 states stored in `in`: read back in `out`
  bool hasMatrix = false;
};
Crossings findCrossings(optim::RuleOp rule);

/// Between which distributions values travel: by each of a group's hops there, and back (plan::waysBack).
using Moves = std::vector<std::pair<comm::Distribution, comm::Distribution>>;
Moves movesThere(const plan::Group &group, comm::Distribution home);
Moves movesBack(const plan::Group &group, comm::Distribution home);

/// Builds in → collectives → matrix → collectives → out of one segment.
class GroupChain {
public:
  GroupChain(mlir::OpBuilder &builder, optim::GroupOp group, optim::RuleOp rule,
             const Crossings &crossings, const ScalarColumns &columns, mlir::Value active,
             Communicators &communicators);
  void build(mlir::FlatSymbolRefAttr segment);

private:
  // Shards of the group, made on first use.
  mlir::Value shards(comm::ShardsKind kind, llvm::StringRef state, mlir::Type type);
  mlir::Value stateShards(unsigned state);
  mlir::Value parameterSource(); // the master if there is one
  bool hasMaster() const { return master >= 0; }
  void addShardLeaves(llvm::DenseMap<mlir::Value, mlir::Value> &leaves);
  /// True where the last out is the new parameter, which then has to be given back.
  bool addWrites(StageBuilder &stage, optim::Space space);
  /// A stage over the shards at home; what it reads of others is brought there.
  comm::StageOp createStage(StageBuilder &stage, llvm::DenseMap<mlir::Value, mlir::Value> &leaves);

  // Shards that stand apart from each other.
  comm::Distribution standing(plan::ShardsKind kind) const { return plan::shardsOf(layout, kind); }
  mlir::Value emptyCopy(mlir::Type element); // at home
  mlir::Value emptyCopy(mlir::Type element, comm::Distribution in);
  /// The gradient, of which the shards hold contributions, as it is kept where these are added up.
  mlir::Value reduce(mlir::Value contributions);
  /// Stores the new parameter, of which there is a copy at home.
  void giveBack(mlir::Value parameter);

  // Staging and batches.
  /// Fresh memory in a place; `shape`: rows and columns of a batch.
  mlir::Value empty(comm::PlaceAttr place, mlir::Type element, std::array<int64_t, 2> shape = {});
  mlir::RankedTensorType batchType(optim::ValueKind kind, mlir::Type element) const;
  mlir::Value batch(optim::ValueKind kind, mlir::Type element);
  /// Zero, where slabs come into a batch that are shorter than others.
  mlir::Value filled(mlir::Value batch);
  mlir::Value send(optim::ValueKind kind, comm::Distribution from, comm::Distribution to,
                   mlir::Type element);
  mlir::Value copy(mlir::Value source, mlir::Value target);
  llvm::SmallVector<mlir::Value> exchange(mlir::ValueRange sends, bool gathers = false);

  void buildIn();
  void buildOut();

  // MatrixSpace.cpp
  void buildMatrix();
  mlir::Value materialize(mlir::Value value, mlir::Type element);

  mlir::OpBuilder &builder;
  optim::GroupOp group;
  optim::RuleOp rule;
  const Crossings &crossings;
  const ScalarColumns &columns;
  mlir::Value active; // flags of all parameters
  Communicators &communicators;
  mlir::Location loc;
  optim::ParameterOp exemplar;
  plan::Group layout; // shape, placements, hops and slabs
  plan::Mesh mesh;
  comm::Distribution home; // what stages over shards visit
  bool apart;              // not all shards stand there
  int master = -1;         // index of the master state, if it exists for this group

  mlir::FlatSymbolRefAttr segment;
  std::map<std::pair<int, std::string>, mlir::Value> shardsOf;
  llvm::DenseMap<comm::PlaceAttr, mlir::Value> extents; // of this segment
  llvm::DenseMap<mlir::Value, mlir::Value> copies;      // at home, of shards that stand elsewhere
  llvm::DenseMap<mlir::Value, mlir::Value> matrix;      // rule value → batch
  llvm::DenseMap<mlir::Value, mlir::Value> back;        // rule value → what `out` reads
};

} // namespace stepc::distribute

#endif
