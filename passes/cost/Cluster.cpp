//===- Cluster.cpp - Machines, links, and what work takes on them ----------===//

#include "passes/cost/Cluster.h"

#include "passes/cost/Saturate.h"

#include <algorithm>
#include <map>

namespace stepc::cost {

double Device::seconds(double operations, double bytes) const {
  return std::max(operations / flops, bytes / memory);
}

double Device::once(int64_t m, int64_t n, int64_t k) const {
  constexpr int64_t kCached = 98304, kFewest = 24, kMost = 128, kItems = 48, kLeast = 1 << 21;
  int64_t rows = std::min(m, std::clamp(kCached / std::max<int64_t>(k, 1), kFewest, kMost));
  int64_t cols = std::min(n, kMost);
  auto items = [&] { return ((m + rows - 1) / rows) * ((n + cols - 1) / cols); };
  auto work = [&] { return static_cast<double>(rows * cols) * static_cast<double>(k); };
  while (rows > kFewest / 4 && items() < kItems && work() > kLeast)
    rows = (rows + 1) / 2;
  return 2 * launch + work() * (threads - 1) / flops;
}

Cluster Cluster::builtIn() {
  constexpr Link network{20e-6, 12.5e9};
  return {1, network, network, {1e12, 100e9, 5e-6, 16}};
}

double Cluster::nearby(const std::vector<int64_t> &ranks) const {
  auto count = static_cast<double>(ranks.size());
  if (count < 2)
    return 0;
  std::map<int64_t, double> nodes;
  for (int64_t rank : ranks)
    ++nodes[rank / ranksPerNode];
  double pairs = 0;
  for (auto [node, size] : nodes)
    pairs += size * (size - 1);
  return pairs / (count * (count - 1));
}

double Cluster::exchange(double nearby, double messages, double bytes) const {
  if (bytes <= 0)
    return 0;
  return std::max(inside.seconds(messages * nearby, bytes * nearby),
                  between.seconds(messages * (1 - nearby), bytes * (1 - nearby)));
}

int64_t productFlops(int64_t m, int64_t n, int64_t k, bool symmetric) {
  return symmetric ? saturatingMul(saturatingMul(m, m + 1), k)
                   : saturatingMul(saturatingMul(2 * m, n), k);
}

int64_t picoseconds(double seconds) {
  constexpr double kMost = 9e18;
  return static_cast<int64_t>(std::clamp(seconds * 1e12, 0.0, kMost));
}

} // namespace stepc::cost
