//===- Comm.h - The comm dialect --------------------------------*- C++ -*-===//
//
// The public header of the dialect: one program for all ranks (levels 3 and 4).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_COMM_COMM_H
#define STEPC_DIALECTS_COMM_COMM_H

#include "dialects/optim/Optim.h"
#include "runtime/plan/Plan.h"

namespace stepc::plan {
inline llvm::hash_code hash_value(const Distribution &distribution) {
  return llvm::hash_combine(distribution.kind, distribution.hop);
}
inline llvm::hash_code hash_value(const Place &place) {
  return llvm::hash_combine(place.segment, place.value, place.from, place.to, place.end);
}
} // namespace stepc::plan

namespace stepc::comm {
using plan::Distribution, plan::End, plan::ShardsKind, plan::CollectiveKind, plan::ValueKind;

/// The kinds of values that stand in a place.
enum class Contents {
  Values = 0,  ///< values of blocks
  Scalars = 1, ///< of a group's parameters
};

/// What stands after a comma in the type of shards; nothing for the parameter's.
mlir::ParseResult parseStanding(mlir::AsmParser &parser, Distribution &distribution);
void printStanding(mlir::AsmPrinter &printer, const Distribution &distribution);
/// A list of factors, which may be empty.
mlir::ParseResult parseFactors(mlir::AsmParser &parser, llvm::SmallVector<plan::Factor> &factors);
void printFactors(mlir::AsmPrinter &printer, llvm::ArrayRef<plan::Factor> factors);
} // namespace stepc::comm

#include "dialects/comm/CommDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/comm/CommAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/comm/CommTypes.h.inc"

namespace stepc::comm {
/// The place of a staged value, from its type. Null for values that have none, for example shards.
PlaceAttr placeOf(mlir::Type type);
inline PlaceAttr placeOf(mlir::Value value) { return placeOf(value.getType()); }
/// The type of one element: of shards, of a staged value, or of a rule's tensor.
mlir::Type elementOf(mlir::Type type);
inline mlir::Type elementOf(mlir::Value value) { return elementOf(value.getType()); }
/// The segment of an operation on batches of blocks, as the place of its first operand tells.
mlir::FlatSymbolRefAttr segmentOfBatch(mlir::Operation *op);

/// The ranks of a communicator; null for the world, and nothing where no operation makes it.
std::optional<CommunicatorAttr> ranksOf(mlir::Value communicator);
/// The mesh of a communicator exists, and its factors divide that.
mlir::LogicalResult verifyRanks(mlir::Operation *op, CommunicatorAttr ranks,
                                mlir::SymbolTableCollection &symbols);

namespace detail {
/// The constraints that all collectives share.
mlir::LogicalResult verifyCollective(mlir::Operation *op);
/// Every staged operand and result has a place and the rank that belongs to it.
mlir::LogicalResult verifyPlaces(mlir::Operation *op);
/// The segments and groups that places name exist.
mlir::LogicalResult verifyPlaceSymbols(mlir::Operation *op, mlir::SymbolTableCollection &symbols);
} // namespace detail

/// The trait of operations on staged values: their operands and results have places, and what these name
/// exists.
template <typename Op> class Placed : public mlir::OpTrait::TraitBase<Op, Placed> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return detail::verifyPlaces(op); }
  mlir::LogicalResult verifySymbolUses(mlir::SymbolTableCollection &symbols) {
    return detail::verifyPlaceSymbols(this->getOperation(), symbols);
  }
};
} // namespace stepc::comm

#include "dialects/comm/CommInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/comm/CommOps.h.inc"

namespace stepc::comm {

/// The one start with which a packed value travels, and its number among the sends or receives. An error if
/// there are two starts. If there is none, the error is at `user`, which uses the value.
mlir::FailureOr<std::pair<StartOp, int64_t>> startOf(mlir::Operation *user, mlir::Value packed);

/// Set on the module: which level its program is at ("optim", "decided", "comm", "scheduled",
/// "exec", "llvm").
inline constexpr llvm::StringLiteral kLevelAttr = "stepc.level";
/// The level that a module says to be at; null where it says none.
mlir::StringAttr levelOf(mlir::ModuleOp module);
/// Says so from here on: for what makes a module, and for the pass that ends a level.
void setLevel(mlir::ModuleOp module, llvm::StringRef level);
/// Set on the step function of a scheduled program: workspace bytes per rank.
inline constexpr llvm::StringLiteral kArenaAttr = "comm.arena_bytes";
/// Set on the module: the user's limit of workspace bytes per rank.
inline constexpr llvm::StringLiteral kLimitAttr = "comm.workspace_limit";
/// Set on allocations by comm-assign-arena: where they stand in the workspace.
inline constexpr llvm::StringLiteral kOffsetAttr = "comm.offset", kBytesAttr = "comm.bytes";
/// Also set there if several allocations share that part of the workspace: the number of their pool. They
/// stand in the pool in the order of their allocations.
inline constexpr llvm::StringLiteral kPoolAttr = "comm.pool";
/// Offsets into the workspace are multiples of it.
using plan::kAlignment;

/// In the metadata of a diagnostic past level decided: what the user asked for is wrong, not the
/// compiler. Without it a driver has to take such an error for a fault of the compiler.
inline constexpr llvm::StringLiteral kInputErrorMark = "stepc.input";
/// Marks a diagnostic so.
mlir::InFlightDiagnostic blameInput(mlir::InFlightDiagnostic diagnostic);

} // namespace stepc::comm

#endif
