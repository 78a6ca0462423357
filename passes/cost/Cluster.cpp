//===- Cluster.cpp - Machines, links, and what work takes on them ----------===//

#include "passes/cost/Cluster.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace stepc::cost {

double Link::seconds(double messages, double bytes) const {
  return std::min(messages, 1.0) * latency + std::max(messages - 1, 0.0) * gap + bytes / bandwidth;
}

double Device::seconds(double operations, double bytes) const {
  return std::max(operations / flops, bytes / memory);
}

double Device::rate(const BlockProduct &shape) const {
  return rateOf(kernelOf(products, shape), flops, shape);
}

double Device::operations(const BlockProduct &shape) const {
  return static_cast<double>(executedFlops(shape)) * (flops / rate(shape));
}

double Device::once(const BlockProduct &shape) const {
  auto [m, n, k] = std::tie(shape.m, shape.n, shape.k);
  if (ProductKernel kernel = kernelOf(products, shape); kernel != ProductKernel::Stated) {
    ProductPart part = partOf(kernel, shape);
    double tile = 2 * static_cast<double>(std::min(m, part.rows) * std::min(n, part.columns)) *
                  static_cast<double>(k);
    double units = std::max(threads / static_cast<double>(part.sharers), 1.0);
    // Lists of tiles end in halves.
    double last = kernel == ProductKernel::Warpgroup ? tile / 2 : tile;
    return launch + last / 2 * (units - 1) / rate(shape);
  }
  constexpr int64_t kCached = 98304, kFewest = 24, kMost = 128, kItems = 48, kLeast = 1 << 21;
  int64_t rows = std::min(m, std::clamp(kCached / std::max<int64_t>(k, 1), kFewest, kMost));
  int64_t cols = std::min(n, kMost);
  auto items = [&] { return ((m + rows - 1) / rows) * ((n + cols - 1) / cols); };
  auto work = [&] { return static_cast<double>(rows * cols) * static_cast<double>(k); };
  while (rows > kFewest / 4 && items() < kItems && work() > kLeast)
    rows = (rows + 1) / 2;
  return 2 * launch + work() * (threads - 1) / flops;
}

size_t Cluster::levelOf(int64_t a, int64_t b) const {
  size_t level = 0;
  while (level + 1 < levels.size() && a / levels[level].ranks != b / levels[level].ranks)
    ++level;
  return level;
}

std::vector<double> Cluster::meeting(const std::vector<int64_t> &ranks) const {
  std::vector<double> parts(levels.size(), 0);
  auto count = static_cast<double>(ranks.size());
  if (count < 2)
    return parts;
  double further = count * (count - 1), inner = 0; // ordered pairs
  for (size_t level = 0; level < levels.size(); ++level) {
    std::map<int64_t, double> domains;
    for (int64_t rank : ranks)
      ++domains[level + 1 < levels.size() ? rank / levels[level].ranks : 0];
    double pairs = 0;
    for (auto [domain, size] : domains)
      pairs += size * (size - 1);
    parts[level] = (pairs - inner) / further;
    inner = pairs;
  }
  return parts;
}

double Cluster::exchange(const std::vector<double> &meeting, double messages, double bytes) const {
  double longest = 0;
  messages = bytes > 0 ? messages : 0;
  for (size_t level = 0; level < levels.size(); ++level)
    longest = std::max(
        longest, levels[level].link.seconds(messages * meeting[level], bytes * meeting[level]));
  return longest;
}

int64_t picoseconds(double seconds) {
  constexpr double kMost = 9e18;
  return static_cast<int64_t>(std::clamp(seconds * 1e12, 0.0, kMost));
}

} // namespace stepc::cost
