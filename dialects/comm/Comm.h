//===- Comm.h - The comm dialect --------------------------------*- C++ -*-===//
//
// The public header of the dialect: one program for all ranks (levels 3 and 4).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_COMM_COMM_H
#define STEPC_DIALECTS_COMM_COMM_H

#include "dialects/optim/Optim.h"

#include "dialects/comm/CommDialect.h.inc"
#include "dialects/comm/CommEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/comm/CommTypes.h.inc"

namespace stepc::comm::detail {
/// The constraints that all collectives share.
mlir::LogicalResult verifyCollective(mlir::Operation *op);
} // namespace stepc::comm::detail

#include "dialects/comm/CommInterfaces.h.inc"
namespace stepc::comm {
using ValueKind = optim::ValueKind;
}
#define GET_OP_CLASSES
#include "dialects/comm/CommOps.h.inc"

namespace stepc::comm {

/// Set on the module: which level its program is at ("optim", "decided", "comm", "scheduled",
/// "exec", "llvm").
inline constexpr llvm::StringLiteral kLevelAttr = "stepc.level";
/// Set on the step function of a scheduled program: workspace bytes per rank.
inline constexpr llvm::StringLiteral kArenaAttr = "comm.arena_bytes";
/// Set on the module: the user's limit of workspace bytes per rank.
inline constexpr llvm::StringLiteral kLimitAttr = "comm.workspace_limit";
/// Set on allocations by comm-assign-arena: their place in the workspace.
inline constexpr llvm::StringLiteral kOffsetAttr = "comm.offset", kBytesAttr = "comm.bytes";
/// Set on optim.orthogonalize in a step: the blocks that it works on.
inline constexpr llvm::StringLiteral kSegmentAttr = "comm.segment";
/// Offsets into the workspace are multiples of it.
inline constexpr int64_t kAlignment = 64;

/// In the metadata of a diagnostic past level decided: what the user asked for is wrong, not the
/// compiler. Without it a driver has to take such an error for a fault of the compiler.
inline constexpr llvm::StringLiteral kInputErrorMark = "stepc.input";
/// Marks a diagnostic so.
mlir::InFlightDiagnostic blameInput(mlir::InFlightDiagnostic diagnostic);

} // namespace stepc::comm

#endif
