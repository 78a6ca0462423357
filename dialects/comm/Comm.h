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

/// The kind of a place's contents.
enum class Contents {
  Values = 0,  ///< values of blocks
  Scalars = 1, ///< scalars of a group's parameters
};

/// The type of `count` exact sums (of max: maxima) of the terms of a reduction, as one number of a line: a
/// wide integer.
mlir::Type lineSumsType(mlir::MLIRContext *context, plan::Reduction reduction, int64_t count);
/// How many exact sums (maxima) of a reduction a type stands for; 0 if it is no such type.
int64_t lineSumsIn(mlir::Type type, plan::Reduction reduction);
/// Whether a type stands for exact sums or maxima, of any reduction.
bool areLineSums(mlir::Type type);

/// Parses the distribution in a type of shards: a comma and its name. Without a comma `distribution` stays
/// as it was. printStanding prints nothing for the distribution `shards`.
mlir::ParseResult parseStanding(mlir::AsmParser &parser, Distribution &distribution);
void printStanding(mlir::AsmPrinter &printer, const Distribution &distribution);
/// Parses a list of factors in brackets. The list may be empty.
mlir::ParseResult parseFactors(mlir::AsmParser &parser, llvm::SmallVector<plan::Factor> &factors);
void printFactors(mlir::AsmPrinter &printer, llvm::ArrayRef<plan::Factor> factors);
} // namespace stepc::comm

#include "dialects/comm/CommDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/comm/CommAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/comm/CommTypes.h.inc"

namespace stepc::comm {
/// The place that the type of a staged value carries. Null if the type has no place, as that of shards.
PlaceAttr placeOf(mlir::Type type);
inline PlaceAttr placeOf(mlir::Value value) { return placeOf(value.getType()); }
/// The type of one element: of shards, of a staged value, or of a rule's tensor.
mlir::Type elementOf(mlir::Type type);
inline mlir::Type elementOf(mlir::Value value) { return elementOf(value.getType()); }
/// The segment that the place of the operation's first operand names. Null if this operand is no batch
/// (PlaceAttr::isBatch).
mlir::FlatSymbolRefAttr segmentOfBatch(mlir::Operation *op);

/// The ranks of a communicator. A null attribute stands for the world. Returns nullopt if neither comm.world
/// nor comm.communicator defines the value.
std::optional<CommunicatorAttr> ranksOf(mlir::Value communicator);
/// Emits an error at `op` if the mesh of `ranks` does not exist, or if the factors do not divide this mesh.
mlir::LogicalResult verifyRanks(mlir::Operation *op, CommunicatorAttr ranks,
                                mlir::SymbolTableCollection &symbols);

namespace detail {
/// Verifies the constraints that all collectives share.
mlir::LogicalResult verifyCollective(mlir::Operation *op);
/// Verifies that each staged operand and result has a place, and as many axes as this place demands.
mlir::LogicalResult verifyPlaces(mlir::Operation *op);
/// Verifies that the segments and groups that these places name exist.
mlir::LogicalResult verifyPlaceSymbols(mlir::Operation *op, mlir::SymbolTableCollection &symbols);
} // namespace detail

/// The trait of operations on staged values. Their operands and results have places, whose segments and
/// groups exist.
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

/// The one start that sends or receives a packed value, and the value's index among the sends or receives.
/// Emits an error if there are two starts. Emits an error at `user`, which uses the value, if there is none.
mlir::FailureOr<std::pair<StartOp, int64_t>> startOf(mlir::Operation *user, mlir::Value packed);

/// Set on the module: which level its program is at ("optim", "decided", "comm", "scheduled",
/// "exec", "llvm").
inline constexpr llvm::StringLiteral kLevelAttr = "stepc.level";
/// The level in the module's attribute kLevelAttr. Null if the module has no such attribute.
mlir::StringAttr levelOf(mlir::ModuleOp module);
/// Sets the level that the module has reached. frontends/import calls it, and so does the last pass of each
/// level.
void setLevel(mlir::ModuleOp module, llvm::StringRef level);
/// Set on the step function of a scheduled program: workspace bytes per rank.
inline constexpr llvm::StringLiteral kArenaAttr = "comm.arena_bytes";
/// Set on the module: the user's limit of workspace bytes per rank.
inline constexpr llvm::StringLiteral kLimitAttr = "comm.workspace_limit";
/// Set on the module by optim-assign-waves: the chains of a wave do their products side by side, in columns
/// of one form (passes/cost/SideBySide.h). So one launch may serve products of several chains.
inline constexpr llvm::StringLiteral kSideBySideAttr = "comm.side_by_side";
/// Set on the module by optim-assign-waves: a gradient to which ranks contribute is reduced for each round
/// of the model's numbers and once more for its rule. Otherwise its sums are kept in between.
inline constexpr llvm::StringLiteral kReducesAgainAttr = "comm.reduces_again";
/// Set on operations of the step, a unit: they make numbers of the whole model, and come before all others.
inline constexpr llvm::StringLiteral kOfModelAttr = "comm.of_model";
/// Set on allocations by comm-assign-arena: their offset in the workspace and their size, in bytes.
inline constexpr llvm::StringLiteral kOffsetAttr = "comm.offset", kBytesAttr = "comm.bytes";
/// Set by comm-assign-arena on allocations of batches that stand side by side in one part of the workspace:
/// the number of that part, their pool. The batches stand in the order of their allocations.
inline constexpr llvm::StringLiteral kPoolAttr = "comm.pool";
/// Offsets into the workspace are multiples of this number of bytes.
using plan::kAlignment;

/// In the metadata of an error past level decided: the user's input is wrong, and not the compiler. The
/// driver reports errors past level decided without this mark as faults of the compiler.
inline constexpr llvm::StringLiteral kInputErrorMark = "stepc.input";
/// Adds kInputErrorMark to a diagnostic and returns the diagnostic.
mlir::InFlightDiagnostic blameInput(mlir::InFlightDiagnostic diagnostic);
/// Marks an error of the input as a schedule that needs `bytes` of workspace, which is above the limit.
/// Another schedule may need less. `neededBytes` returns these bytes, or 0 for any other diagnostic.
mlir::InFlightDiagnostic blameWorkspace(mlir::InFlightDiagnostic diagnostic, int64_t bytes);
int64_t neededBytes(mlir::Diagnostic &diagnostic);

} // namespace stepc::comm

#endif
