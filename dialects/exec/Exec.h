//===- Exec.h - The exec dialect --------------------------------*- C++ -*-===//
//
// The public header of the dialect: the step as a list of commands (level 5).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_EXEC_EXEC_H
#define STEPC_DIALECTS_EXEC_EXEC_H

#include "dialects/comm/Comm.h"
#include "dialects/optim/PlanFields.h"
#include "runtime/plan/Plan.h"

#include "dialects/exec/ExecDialect.h.inc"

namespace stepc::exec {
using plan::Accumulation, plan::TableKind;

class PoolAttr;
class TableAttr;

/// On a module up to level scheduled: entries of a table of pinned products (ProductEntryAttr).
inline constexpr llvm::StringLiteral kProductsAttr = "exec.products";

/// Gives the symbols, tables and tokens of a program their numbers in a plan. Tables and kernels
/// are appended to the plan when a command first uses them; equal tables are one.
class Numbering {
public:
  using Index = llvm::DenseMap<mlir::StringAttr, int64_t>;
  /// `meshes`, `groups` and `segments`: where the plan has those symbols.
  Numbering(plan::Plan &plan, const Index &meshes, const Index &groups, const Index &segments)
      : plan(plan), meshes(meshes), groups(groups), segments(segments) {}

  // Each is an error at `op` where the symbol or token is not of the program.
  mlir::FailureOr<int64_t> group(mlir::Operation *op, mlir::FlatSymbolRefAttr name);
  mlir::FailureOr<int64_t> table(mlir::Operation *op, TableAttr table);
  mlir::FailureOr<plan::Communicator> communicator(mlir::Operation *op,
                                                   comm::CommunicatorAttr ranks);
  mlir::FailureOr<int64_t> token(mlir::Operation *op, mlir::Value token);
  /// Appends a pool of the program at `op`.
  mlir::LogicalResult pool(mlir::Operation *op, PoolAttr pool);
  plan::KernelNumber kernel(mlir::FlatSymbolRefAttr name);
  /// The next collective in the one total order; `token` stands for it.
  void start(mlir::Value token) { tokens.try_emplace(token, tokens.size()); }
  /// The plan's form of an operand of a command on the blocks of `group`.
  mlir::LogicalResult operand(mlir::Operation *op, mlir::Attribute operand, int64_t group,
                              plan::Operand &made);
  mlir::LogicalResult operands(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> operands,
                               int64_t group, std::vector<plan::Operand> &made);
  /// The group of a table of the plan.
  int64_t groupOf(int64_t table) const {
    return plan.segments[plan.tables[table].from.segment].group;
  }

private:
  mlir::FailureOr<int64_t> segment(mlir::Operation *op, mlir::FlatSymbolRefAttr name);

  plan::Plan &plan;
  const Index &meshes, &groups, &segments;
  Index kernels;
  llvm::DenseMap<mlir::Attribute, int64_t> tables;
  llvm::DenseMap<mlir::Value, int64_t> tokens;
};

} // namespace stepc::exec

#include "dialects/exec/ExecAttrInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/exec/ExecAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/exec/ExecOpInterfaces.h.inc"
#include "dialects/exec/ExecTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/exec/ExecOps.h.inc"

namespace stepc::exec {

/// How a GPU starts the kernel that has it.
inline constexpr llvm::StringLiteral kLaunchAttr = "exec.launch";

/// Whether a kernel takes either attribute for one operand: they are of the same kind, and shards are equal,
/// because a kernel has one list of them.
bool areAlike(mlir::Attribute operand, mlir::Attribute other);

/// A table of a plan as an attribute, with the plan's segments as symbols.
TableAttr toAttribute(mlir::MLIRContext *context, const plan::Plan &plan, const plan::Table &table);
PoolAttr toAttribute(mlir::MLIRContext *context, const plan::Plan &plan, const plan::Pool &pool);

} // namespace stepc::exec

#endif
