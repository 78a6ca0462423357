//===- StageBuilder.h - Fuse elementwise operations of a rule ---*- C++ -*-===//
#ifndef STEPC_PASSES_DISTRIBUTE_STAGEBUILDER_H
#define STEPC_PASSES_DISTRIBUTE_STAGEBUILDER_H

#include "dialects/comm/Comm.h"
#include "dialects/optim/Optim.h"

#include "mlir/IR/IRMapping.h"

namespace stepc::distribute {

/// The scalars that a rule uses together with tensors. Each has a column in the table of scalars.
struct ScalarColumns {
  llvm::SmallVector<mlir::Value> values; // f64 values of the rule, distinct
  mlir::Value table;                     // of comm.scalars; null when there are none
  /// The column of a value. Returns -1 if it has none.
  int64_t find(mlir::Value value) const;
};

/// Collects the non-constant f64 operands of the rule's splats.
ScalarColumns collectColumns(optim::RuleOp rule);
/// Collects those of the splats from which a value follows.
ScalarColumns columnsFor(mlir::ArrayRef<mlir::Value> values);

/// Clones the f64 operations that compute `value` into the builder's block.
mlir::Value cloneScalar(mlir::OpBuilder &builder, mlir::Value value, mlir::IRMapping &mapping);

/// Builds one comm.stage from values of a rule. Leaves that it reads become inputs. Operations between leaves
/// and outputs are cloned into its region.
class StageBuilder {
public:
  /// `leaves`: rule value → shards, staged tensor or batch that holds it.
  StageBuilder(const llvm::DenseMap<mlir::Value, mlir::Value> &leaves, const ScalarColumns &columns)
      : leaves(leaves), columns(columns) {}

  /// Stores a rule value in shards, rounded to their element type.
  void write(mlir::Value value, mlir::Value shards) { writes.push_back({value, shards}); }
  /// Adds the staged out `init`, which gets a rule value, rounded to its element type.
  void yield(mlir::Value value, mlir::Value init) { outs.push_back({value, init}); }
  /// The stage visits the elements of rows, cols or one values.
  void visit(plan::ValueKind kind) { walked = kind; }
  /// The stage reduces the values that it yields, the terms, to a line.
  void reduce(plan::Reduction kind) { reduction = kind; }
  /// The stage visits the elements of a leaf, although it needs no value of it.
  void visitAlso(mlir::Value leaf) { collect(leaf); }
  bool empty() const { return writes.empty() && outs.empty(); }
  /// The leaves that the stage reads, as rule values.
  llvm::ArrayRef<mlir::Value> reads();

  comm::StageOp create(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::FlatSymbolRefAttr segment, comm::Distribution::Kind iteration,
                       mlir::Value active = {});

private:
  struct Output {
    mlir::Value value, place;
  };
  void collect(mlir::Value value);
  mlir::Value scalarOf(mlir::OpBuilder &builder, mlir::Value value);

  const llvm::DenseMap<mlir::Value, mlir::Value> &leaves;
  const ScalarColumns &columns;
  llvm::SmallVector<Output> writes, outs;
  llvm::SetVector<mlir::Value> inputs; // rule values that are leaves
  llvm::DenseSet<mlir::Value> visited;
  std::optional<plan::ValueKind> walked;
  std::optional<plan::Reduction> reduction;
  bool usesColumns = false;
  llvm::DenseMap<mlir::Value, mlir::Value> scalars; // rule value → region value
  mlir::Block *body = nullptr;
};

} // namespace stepc::distribute

#endif
