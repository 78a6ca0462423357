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
  /// States that stay with blocks: those that matrix operations read, and those with new values.
  llvm::SetVector<unsigned> blockStates;
  llvm::SmallVector<unsigned> blockStatesOut;
  llvm::SmallVector<optim::ReduceOp> onShards; ///< reductions that stages over shards do
  llvm::SetVector<mlir::Value> linesIn;        ///< results of these that matrix operations read
  /// Rows, cols and one states that stages over shards write, by space, and those of them whose new values
  /// other stages read.
  llvm::SmallVector<std::pair<optim::Space, unsigned>> lineWrites;
  llvm::SetVector<unsigned> keptLines;
  // The lines (values of kind rows, cols or one) that stages over shards read.
  llvm::SetVector<unsigned> oldStates;   ///< states as they were
  llvm::SetVector<unsigned> newStates;   ///< states of f32 with new values, of `statesOut`
  llvm::SetVector<mlir::Value> linesOut; ///< other values, which are made in matrix space
  llvm::DenseMap<mlir::Value, unsigned>
      stored; ///< new f32 states stored in `in`: read back in `out`
  bool hasMatrix = false;
};
Crossings findCrossings(optim::RuleOp rule);

/// The distributions (from, to) between which values travel: by each hop on the way there, and on the way
/// back (plan::waysBack).
using Moves = std::vector<std::pair<comm::Distribution, comm::Distribution>>;
Moves movesThere(const plan::Group &group, comm::Distribution home);
Moves movesBack(const plan::Group &group, comm::Distribution home);

/// Builds the operations of one segment: stages of `in`, collectives, matrix operations, collectives, stages
/// of `out`.
class GroupChain {
public:
  GroupChain(mlir::OpBuilder &builder, optim::GroupOp group, optim::RuleOp rule,
             const Crossings &crossings, const ScalarColumns &columns, mlir::Value active,
             Communicators &communicators);
  void build(mlir::FlatSymbolRefAttr segment);

  /// Reduces values of a scratch rule, which reads the parameter and its gradient alone, to this rank's parts
  /// of numbers of the whole model: one value for each of `sources`, of the reductions `kinds`.
  llvm::SmallVector<mlir::Value> partsOfModel(mlir::FlatSymbolRefAttr segment,
                                              optim::RuleOp scratch,
                                              llvm::ArrayRef<plan::Reduction> kinds,
                                              mlir::ValueRange sources,
                                              const ScalarColumns &columns);
  /// For the group that stands for the model: adds up what partsOfModel made in all groups, of `terms` terms,
  /// on all ranks. Returns a line of one value for each of the reductions.
  llvm::SmallVector<mlir::Value> addUpModel(mlir::FlatSymbolRefAttr segment,
                                            llvm::ArrayRef<plan::Reduction> kinds,
                                            llvm::ArrayRef<llvm::SmallVector<mlir::Value>> parts,
                                            int64_t terms);

  /// For the same group: computes a value of kind one of the model from its numbers alone, which `columns`
  /// have. Returns the value, kept in f32.
  mlir::Value valueOfModel(mlir::FlatSymbolRefAttr segment, mlir::Value source,
                           const ScalarColumns &columns);
  /// For the same group: a copy of a state of the model.
  mlir::Value stateOfModel(mlir::FlatSymbolRefAttr segment, unsigned state);
  /// From now on sums of a partial gradient are not kept from one call to the next.
  void reduceAgain() { reducesAgain = true; }
  /// The flags of parameters that the operations which are built from now on work for.
  void setActive(mlir::Value flags) { active = flags; }

private:
  // Shards of the group, made on first use.
  mlir::Value shards(comm::ShardsKind kind, llvm::StringRef state, mlir::Type type,
                     comm::Distribution in);
  mlir::Value parameterShards();
  mlir::Value stateShards(unsigned state);
  mlir::Value parameterSource(); // the master if there is one
  bool hasMaster() const { return master >= 0; }
  void addShardLeaves(llvm::DenseMap<mlir::Value, mlir::Value> &leaves);
  /// Adds what a stage of `space` stores. Returns true if the stage's last out is the new parameter; the
  /// caller must then give it back (giveBack).
  bool addWrites(StageBuilder &stage, optim::Space space);
  /// Creates a stage over the shards at `home`. First it copies, or moves there, all shards that the stage
  /// reads and that have other placements.
  comm::StageOp createStage(StageBuilder &stage, llvm::DenseMap<mlir::Value, mlir::Value> &leaves);

  // Shards with different placements.
  comm::Distribution standing(plan::ShardsKind kind) const { return plan::shardsOf(layout, kind); }
  mlir::Value emptyCopy(mlir::Type element); // at home
  /// Memory for a copy at home of a value per row, column or block.
  mlir::Value emptyLine(optim::ValueKind kind, mlir::Type element);
  mlir::Value emptyCopy(mlir::Type element, comm::Distribution in);
  /// Exchanges and adds up contributions to a partial gradient, once for a segment or, if the chain reduces
  /// again, once for each call that begins a segment. Returns the sums, kept in
  /// `reduced_shards` (or the equal distribution that its place names).
  mlir::Value reduce(mlir::Value contributions);
  /// Stores the new parameter in the parameter's shards, from its copy at home.
  void giveBack(mlir::Value parameter);

  // Buffers, copies and exchanges.
  /// New memory in a place. For a batch, `shape` has its rows and columns.
  mlir::Value empty(comm::PlaceAttr place, mlir::Type element, std::array<int64_t, 2> shape = {});
  mlir::RankedTensorType batchType(optim::ValueKind kind, mlir::Type element) const;
  mlir::Value batch(optim::ValueKind kind, mlir::Type element);
  /// Sets a batch to zero if shorter slabs come into it. Otherwise it returns the batch as it is.
  mlir::Value filled(mlir::Value batch);
  mlir::Value send(optim::ValueKind kind, comm::Distribution from, comm::Distribution to,
                   mlir::Type element);
  mlir::Value copy(mlir::Value source, mlir::Value target);
  llvm::SmallVector<mlir::Value> exchange(mlir::ValueRange sends, bool gathers = false);

  void buildIn();
  void buildOut();
  /// Reduces on shards what the rule reduces in a space, and adds the results to `leaves` and `lines`.
  void reduceOnShards(optim::Space space, llvm::DenseMap<mlir::Value, mlir::Value> &leaves);
  /// Creates the stage of a reduction. Its result is a line, or the rank's part of one that is cut.
  mlir::Value reduceStage(optim::ReduceOp op, llvm::DenseMap<mlir::Value, mlir::Value> &leaves);
  /// Reductions of lines that are cut, and this rank's part of each. Ranks that differ along the factors have
  /// parts of the same lines.
  struct CutLines {
    std::vector<plan::Factor> factors;
    llvm::SmallVector<optim::ReduceOp> ops;
    llvm::SmallVector<plan::Reduction> kinds;
    llvm::SmallVector<mlir::Value> parts;
  };
  /// Adds up parts of lines, each of `terms` terms; otherwise of as many as the group's lines have. Returns
  /// the lines.
  llvm::SmallVector<mlir::Value> addUp(llvm::ArrayRef<plan::Reduction> kinds,
                                       mlir::ValueRange parts,
                                       std::optional<int64_t> terms = std::nullopt);
  /// Begins to build the operations of a segment.
  void begin(mlir::FlatSymbolRefAttr segment);
  /// Writes the rows, cols and one states that a space stores, and adds new values to `leaves` and `lines`.
  void writeLines(optim::Space space, llvm::DenseMap<mlir::Value, mlir::Value> &leaves);

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
  comm::Distribution home;    // what stages over shards visit
  comm::Distribution ofModel; // what stages visit that reduce to numbers of the model
  bool apart;                 // whether shards of parameter or gradient are not at home
  int master = -1;            // index of the master state, if it exists for this group

  mlir::FlatSymbolRefAttr segment;
  std::map<std::pair<int, std::string>, mlir::Value> shardsOf;
  llvm::DenseMap<comm::PlaceAttr, mlir::Value> extents; // of this segment
  llvm::DenseMap<mlir::Value, mlir::Value> copies;      // shards elsewhere → their copy at home
  llvm::DenseMap<mlir::Attribute, mlir::Value>
      reduced; // segment → sums of contributions to its gradient
  bool reducesAgain = false;
  llvm::DenseMap<mlir::Value, mlir::Value> matrix; // rule value → batch
  llvm::DenseMap<mlir::Value, mlir::Value> back;   // rule value → what `out` reads
  llvm::DenseMap<mlir::Value, mlir::Value> lines;  // rule value → its copy at home
};

} // namespace stepc::distribute

#endif
