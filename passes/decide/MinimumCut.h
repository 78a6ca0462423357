//===- MinimumCut.h - A minimum cut on a small graph ------------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_MINIMUMCUT_H
#define STEPC_PASSES_DECIDE_MINIMUMCUT_H

#include <cstdint>
#include <vector>

namespace stepc::decide {

/// Assigns 0 or 1 to nodes so that the sum of paid costs is least. Edmonds–Karp is fast enough, because
/// rules have tens of operations. Among several optima it chooses the one with the fewest ones.
class MinimumCut {
public:
  static constexpr int64_t kNever = int64_t(1) << 40;

  MinimumCut() { graph.resize(2); }
  int addNode();
  void fixOne(int node) { addEdge(kSource, node, kNever); }
  void fixZero(int node) { addEdge(node, kSink, kNever); }
  /// Pays `cost` if `one` is 1 and `zero` is 0. The cost kNever forbids this assignment.
  void pay(int one, int zero, int64_t cost) { addEdge(one, zero, cost); }
  /// Pays `cost` when the node is 1.
  void payIfOne(int node, int64_t cost) { addEdge(node, kSink, cost); }
  /// Pays `cost` when the node is 0.
  void payIfZero(int node, int64_t cost) { addEdge(kSource, node, cost); }
  /// Returns for each node whether it is 1 in the best assignment.
  std::vector<bool> solve();

private:
  static constexpr int kSource = 0, kSink = 1;
  struct Edge {
    int target;
    int64_t capacity;
    int reverse;
  };
  void addEdge(int from, int to, int64_t capacity);
  std::vector<std::vector<Edge>> graph;
};

} // namespace stepc::decide

#endif
