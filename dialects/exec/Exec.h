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

/// On a module up to level scheduled: the entries of a table of pinned products (ProductEntryAttr). They say
/// which algorithm of cuBLASLt computes which product.
inline constexpr llvm::StringLiteral kProductsAttr = "exec.products";

/// Gives the symbols, tables and tokens of a program their numbers in a plan. It appends a table or kernel
/// to the plan when a command first uses it. Equal tables get one number.
class Numbering {
public:
  using Index = llvm::DenseMap<mlir::StringAttr, int64_t>;
  /// `meshes`, `groups` and `segments` give the index in the plan of each of these symbols.
  Numbering(plan::Plan &plan, const Index &meshes, const Index &groups, const Index &segments)
      : plan(plan), meshes(meshes), groups(groups), segments(segments) {}

  // Each of the next four returns a number of the plan, or its form. It emits an error at `op` if the program
  // has no such symbol or token.
  mlir::FailureOr<int64_t> group(mlir::Operation *op, mlir::FlatSymbolRefAttr name);
  mlir::FailureOr<int64_t> table(mlir::Operation *op, TableAttr table);
  mlir::FailureOr<plan::Communicator> communicator(mlir::Operation *op,
                                                   comm::CommunicatorAttr ranks);
  mlir::FailureOr<int64_t> token(mlir::Operation *op, mlir::Value token);
  /// Appends a pool to the plan. Emits an error at `op` if the program lacks the segment of a member.
  mlir::LogicalResult pool(mlir::Operation *op, PoolAttr pool);
  /// The number of the kernel `name`. Without a name it returns no number: a command may have no kernel.
  plan::KernelNumber kernel(mlir::FlatSymbolRefAttr name);
  /// Gives the next number in the total order of collectives to the start whose result is `token`.
  void start(mlir::Value token) { tokens.try_emplace(token, tokens.size()); }
  /// Writes the plan's form of an operand of a command on the blocks of `group` to `made`.
  mlir::LogicalResult operand(mlir::Operation *op, mlir::Attribute operand, int64_t group,
                              plan::Operand &made);
  mlir::LogicalResult operands(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> operands,
                               int64_t group, std::vector<plan::Operand> &made);
  /// The index of the group that a table of the plan is for.
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

/// On a kernel: how a GPU starts it (LaunchAttr).
inline constexpr llvm::StringLiteral kLaunchAttr = "exec.launch";

/// On the function of a kernel that reduces the terms which its region yields: comm::ReductionAttr.
inline constexpr llvm::StringLiteral kReductionAttr = "exec.reduction";
/// On such a function: it writes exact sums (of max: maxima) of what a rank has of each line, as many for
/// each value as this i64 says (geometry::sumsPerValue).
inline constexpr llvm::StringLiteral kSumsAttr = "exec.sums";

/// Whether one kernel can take `operand` in one run and `other` in another. Both must be of the same kind of
/// attribute. Shards must be equal, because a kernel gets one list of shards for all its runs.
bool areAlike(mlir::Attribute operand, mlir::Attribute other);

/// A table or pool of a plan as an attribute, with names in place of the indices of segments.
TableAttr toAttribute(mlir::MLIRContext *context, const plan::Plan &plan, const plan::Table &table);
PoolAttr toAttribute(mlir::MLIRContext *context, const plan::Plan &plan, const plan::Pool &pool);

} // namespace stepc::exec

#endif
