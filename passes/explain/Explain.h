//===- Explain.h - What was decided, why, and what it costs -----*- C++ -*-===//
//
// The report is read from a scheduled program. Bytes and messages come from the plan's tables. The runtime's
// own function expands them, so they equal what a step counts.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_EXPLAIN_EXPLAIN_H
#define STEPC_PASSES_EXPLAIN_EXPLAIN_H

#include "dialects/optim/Saturate.h"
#include "passes/cost/ProductLaunches.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/Target.h"
#include "passes/plan/MoveKinds.h"
#include "passes/plan/PlanFromIR.h"
#include "passes/plan/ProductForms.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/Tables.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::explain {

/// Floating-point operations: those that kernels execute, and those if all results were whole.
struct Flops {
  int64_t executed = 0, full = 0;
  Flops &operator+=(const Flops &other);
  Flops operator*(int64_t count) const;
};

/// What one rank does in a step.
struct RankCost {
  int64_t messagesSent = 0, bytesSent = 0, messagesReceived = 0, bytesReceived = 0;
  Flops flops; ///< of matrix space: products and functions of blocks

  RankCost &operator+=(const RankCost &other);
};

struct Range {
  int64_t least = 0, most = 0;
};

/// Bytes that a rank holds between steps.
struct RankMemory {
  int64_t parameters = 0, gradients = 0, states = 0;
};
Range rangeOf(llvm::ArrayRef<RankMemory> ranks, int64_t RankMemory::*bytes);

/// The costs of all ranks, as ranges.
struct Cost {
  Range bytesSent, messagesSent, bytesReceived, messagesReceived, flops, fullFlops;
  double balance = 1.0; ///< most executed FLOPs of a rank over the mean; 1 if there are none
};
Cost summarize(llvm::ArrayRef<RankCost> ranks);

/// A strategy for a group, chosen or not.
struct Alternative {
  std::string strategy;
  bool chosen = false;
  /// Why it is chosen; why it is illegal; or why it is not chosen, although it takes fewer seconds.
  std::string why;
  std::optional<Cost> cost; ///< none if it is illegal
  double seconds = 0;       ///< for the group's step, by the model that chooses strategies
};

/// An orthogonalization of a group's rule, for the group's blocks.
struct OrthogonalizeReport {
  optim::Form asked = optim::Form::Standard; ///< as the rule says it
  bool isGram = false;
  int64_t steps = 0;
  std::vector<int64_t> restarts; ///< of the Gram form: the numbers of steps that are done before
  std::string why;
  /// The form of the blocks: standard or gram.
  llvm::StringRef form() const {
    return plan::name(isGram ? optim::Form::Gram : optim::Form::Standard);
  }
};

struct GroupReport {
  std::string name, rule;
  bool isOfModel = false; ///< it has no parameters of the trainer, but the model's numbers
  std::vector<std::string> parameters, routes;
  std::vector<int64_t> shape;
  std::string part; // "rows 0:4 of ", of divided matrices
  int64_t batchAxes = 0, flatten = 0, blocks = 0, waves = 1;
  std::string type, gradientType, placements, mesh;
  std::vector<Alternative> strategies; ///< the chosen one first
  std::vector<OrthogonalizeReport> orthogonalizations;
  plan::BytesByKind bytesFor; ///< bytes that all ranks send, by purpose
  /// Bytes of the states of its parameters, over the ranks of the mesh. A parameter whose matrices are in
  /// several groups counts for the first of them.
  Range stateBytes;
  /// The states that stay with blocks, and the bytes of these.
  std::vector<std::string> blockStates;
  Range blockStateBytes;
};

/// A communicator, and how many ranks and exchanges use it.
struct CommunicatorReport {
  plan::Communicator communicator;
  int64_t ranks = 0, exchanges = 0; ///< how many ranks meet, and in how many exchanges
};

/// Products of blocks that are equal, and how a target computes them.
struct ProductReport {
  cost::BlockProduct shape;
  /// Element types. An operand that is stored transposed has "ᵀ" behind its type.
  std::string lhs, rhs, out;
  std::string addend; ///< its type; empty without one
  /// Each group with such products, and how many of them it has per block.
  std::vector<std::pair<std::string, int64_t>> groups;
  exec::Accumulation accumulation;
  kernels::ProductTile tile;
  std::string notOnWarpgroups; ///< if the target has warpgroups: why the kernel is another one
  /// The kernel as reports call it: "mma.sync".
  llvm::StringRef kernel() const;
  std::vector<plan::PinnedAlgorithm> pinned; ///< by which cuBLASLt computes it on some GPUs
  std::string notPinned;                     ///< with a table: why `pinned` is empty
};

/// Launches of equal products on one rank that take equal time. Each has a list of tiles for each of some
/// clusters of GPU blocks.
struct LaunchReport {
  struct Product {
    cost::LaunchedProduct product;
    std::vector<std::string> groups; ///< whose blocks it has
  };
  int64_t times = 0; ///< launches of a step that are equal
  std::vector<Product> products;
  bool besideMessages = false; ///< whether lists leave multiprocessors to NCCL
  int64_t lists = 0;
  plan::ListTimes tiles; ///< all 0 if the kernel takes no lists
  double seconds = 0;    ///< of one launch, modelled
  int64_t flops() const; ///< of one launch, executed
};

/// The launches of products on the rank whose products take longest.
struct LaunchesReport {
  int64_t globalRank = 0;
  int64_t lists = 0, listsBesideMessages = 0;
  int64_t products = 0; ///< commands of a step with blocks on the rank
  std::vector<LaunchReport> launches;
  int64_t count() const;
  double seconds() const;
  int64_t flops() const;
};

/// What NCCL takes of a GPU's memory beside the workspace, roughly: docs/runtime.md says why.
struct NcclMemory {
  static constexpr int64_t kConnectionBytes = (4 << 20) + (512 << 10) + 4800 * 1024;
  static constexpr int64_t kLeastChannels = 2, kMostChannels = plan::kMessageBlocks;
  int64_t connections = 0; ///< through which a rank receives: the most of any rank
  Range bytes() const {
    int64_t each = connections * kConnectionBytes;
    return {each * kLeastChannels, each * kMostChannels};
  }
};

struct Report {
  std::string name, numerics;
  std::string target; ///< as given; without it there are no products and no NCCL memory
  std::vector<ProductReport> products;
  bool hasTable = false;        ///< whether the module has a table of pinned products
  std::optional<GpuTarget> gpu; ///< the GPU that the program is for
  std::optional<NcclMemory> nccl;
  std::optional<LaunchesReport> launches; ///< if some kernels take lists of tiles
  int64_t arena = 0, limit = 0, exchanges = 0;
  bool reducesAgain = false; ///< partial gradients, for the model and for the rules
  int64_t parameters = 0;    ///< of the trainer
  int64_t stateLimit = 0;    ///< the most bytes of states on a rank; 0: any number
  int64_t scratch = 0;       ///< an upper bound, because only a target decides
  /// Arena and scratch are the workspace, which --workspace-limit bounds.
  int64_t workspaceAtMost() const { return saturatingAdd(arena, scratch); }
  cost::Cluster cluster; ///< on which seconds are modelled
  /// Seconds of the busiest rank in matrix space, and the least that any choice of owners can give it. 0 if
  /// no block has an owner.
  double busiest = 0, leastBusiest = 0;
  /// `busiest` and `leastBusiest` of each mesh, by its name.
  std::map<std::string, std::pair<double, double>> busiestOfMesh;
  std::vector<plan::Mesh> meshes;
  /// The name of the mesh of all ranks, on which the model is. Empty without a model.
  std::string meshOfModel;
  /// Parameters for which the specification's blocks hold, although the manifest has others.
  std::vector<std::string> overridden;
  std::vector<GroupReport> groups;
  std::vector<CommunicatorReport> communicators;
  std::vector<int64_t> world;     ///< global ranks
  std::vector<RankCost> ranks;    ///< per rank of the world
  std::vector<RankMemory> memory; ///< per rank of the world
};

/// The report of a module at level scheduled. If `target` is not null, the report also says how the target
/// computes products. Emits an error if the module is at another level.
mlir::FailureOr<Report> explain(mlir::ModuleOp module, const kernels::Target *target);

/// Adds what the ranks hold of a group's parameters to a report and to the group's part of it.
void addMemory(const plan::Plan &plan, int64_t group, plan::Expander &expander, Report &report,
               GroupReport &out);

/// Adds equal products of blocks to a report, in the order of their first use, with what the module's table
/// of pinned products (if any) has for them.
mlir::LogicalResult addProducts(mlir::ModuleOp module, const ProgramPlan &program,
                                const kernels::Target &target, Report &report);

/// The products that share each launch, for a GPU whose kernels take lists of tiles.
mlir::FailureOr<LaunchesReport> launchesOf(mlir::ModuleOp module, const kernels::Target &target,
                                           const cost::Device &device);

/// Tables for people, at most 120 columns.
std::string toText(const Report &report);
std::string toJson(const Report &report);

} // namespace stepc::explain

#endif
