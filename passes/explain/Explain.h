//===- Explain.h - What was decided, why, and what it costs -----*- C++ -*-===//
//
// Read from a scheduled program. Bytes and messages come from the plan's tables, expanded by the
// function that the runtime expands them with, so they equal what a step counts.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_EXPLAIN_EXPLAIN_H
#define STEPC_PASSES_EXPLAIN_EXPLAIN_H

#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::explain {

/// What one rank does in a step.
struct RankCost {
  int64_t messagesSent = 0, bytesSent = 0, messagesReceived = 0, bytesReceived = 0;
  int64_t flops = 0; ///< of matrix space: products and reductions

  RankCost &operator+=(const RankCost &other);
};

struct Range {
  int64_t least = 0, most = 0;
};

/// The ranks' costs in one place.
struct Cost {
  Range bytesSent, messagesSent, bytesReceived, messagesReceived, flops;
  double balance = 1.0; ///< most FLOPs of a rank over the mean; 1 where there are none
};
Cost summarize(llvm::ArrayRef<RankCost> ranks);

/// A strategy for a group, chosen or not.
struct Alternative {
  std::string strategy;
  bool chosen = false;
  std::string why;          ///< of the chosen one; why an illegal one is
  std::optional<Cost> cost; ///< nothing where it is illegal
  double seconds = 0; ///< that the model by which strategies are chosen gives the group's step
};

struct GroupReport {
  std::string name, rule;
  std::vector<std::string> parameters, routes;
  std::vector<int64_t> shape;
  std::string part; // "rows 0:4 of ", of divided matrices
  int64_t batchAxes = 0, blocks = 0, waves = 1;
  std::string type, gradientType, placements, mesh;
  std::vector<Alternative> strategies; ///< the chosen one first
};

/// What some exchanges are on.
struct CommunicatorReport {
  plan::Communicator communicator;
  int64_t ranks = 0, exchanges = 0; ///< that meet, and how often
};

struct Report {
  std::string name;
  int64_t arena = 0, limit = 0, exchanges = 0, parameters = 0;
  int64_t scratch = 0; ///< at most: a target decides
  std::vector<plan::Mesh> meshes;
  std::vector<GroupReport> groups;
  std::vector<CommunicatorReport> communicators;
  std::vector<int64_t> world;  ///< global ranks
  std::vector<RankCost> ranks; ///< per rank of the world
};

/// The report of a module at level scheduled; an error if it is at another.
mlir::FailureOr<Report> explain(mlir::ModuleOp module);

/// Tables for people, at most 120 columns.
std::string toText(const Report &report);
std::string toJson(const Report &report);

} // namespace stepc::explain

#endif
