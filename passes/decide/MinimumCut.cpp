//===- MinimumCut.cpp - Edmonds–Karp ---------------------------------------===//

#include "passes/decide/MinimumCut.h"

#include <algorithm>
#include <queue>

using namespace stepc::decide;

int MinimumCut::addNode() {
  graph.emplace_back();
  return int(graph.size()) - 1;
}

void MinimumCut::addEdge(int from, int to, int64_t capacity) {
  graph[from].push_back({to, capacity, int(graph[to].size())});
  graph[to].push_back({from, 0, int(graph[from].size()) - 1});
}

std::vector<bool> MinimumCut::solve() {
  while (true) {
    // Breadth-first search for an augmenting path. If there is no path, the reached nodes are the ones that
    // are 1.
    std::vector<std::pair<int, int>> via(graph.size(), {-1, -1});
    std::vector<bool> reached(graph.size(), false);
    std::queue<int> queue({kSource});
    reached[kSource] = true;
    while (!queue.empty()) {
      int node = queue.front();
      queue.pop();
      for (int i = 0, e = int(graph[node].size()); i < e; ++i) {
        const Edge &edge = graph[node][i];
        if (edge.capacity == 0 || reached[edge.target])
          continue;
        reached[edge.target] = true;
        via[edge.target] = {node, i};
        queue.push(edge.target);
      }
    }
    if (!reached[kSink])
      return reached;
    int64_t flow = kNever;
    for (int node = kSink; node != kSource; node = via[node].first)
      flow = std::min(flow, graph[via[node].first][via[node].second].capacity);
    for (int node = kSink; node != kSource; node = via[node].first) {
      Edge &edge = graph[via[node].first][via[node].second];
      edge.capacity -= flow;
      graph[node][edge.reverse].capacity += flow;
    }
  }
}
