//===- BlockSeconds.cpp - What blocks and slabs take where they are computed -===//

#include "passes/decide/StrategyModel.h"

#include <map>
#include <set>

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

double decide::blockSeconds(RuleOp rule, int64_t rows, int64_t cols, const cost::Device &device) {
  double elements = double(rows) * double(cols), bytes = 8 * elements;
  // Each Newton–Schulz step reads the iterate twice and writes it once, in f32 at most.
  rule.walk([&](OrthogonalizeOp op) { bytes += 12 * elements * double(op.getSteps().size()); });
  return device.seconds(double(modelledFlops(rule, rows, cols)), bytes);
}

double decide::chainSeconds(RuleOp rule, int64_t rows, int64_t cols, const cost::Device &device) {
  int64_t r = std::min(rows, cols), c = std::max(rows, cols);
  double chain = 2 * device.launch; // packing and unpacking
  rule.walk([&](OrthogonalizeOp op) {
    chain += device.launch; // the norm
    for (std::array<double, 3> step : op.getSteps())
      chain += device.once(r, r, c) + device.once(r, c, r) +
               (step[2] == 0.0 ? 0.0 : device.once(r, r, r));
  });
  return chain;
}

double decide::slabSeconds(RuleOp rule, const plan::Group &group, const cost::Device &device) {
  auto [blocks, rows, cols] = plan::computedView(group, plan::ValueKind::Full);
  double elements = double(rows) * double(cols);
  auto n = double(plan::view(group, plan::ValueKind::Gram).rows);
  double bytes = 8 * elements, flops = 16 * elements;
  rule.walk([&](OrthogonalizeOp op) {
    for (std::array<double, 3> step : op.getSteps()) {
      // The slab as of whole blocks, and the Gram matrix as it is made, packed, received, added up, gathered,
      // unpacked, rounded and squared.
      bytes += 12 * elements + 4 * 12 * n * n;
      flops += 3 * n * elements + (step[2] == 0.0 ? 0 : n * n * n);
    }
  });
  return device.seconds(flops, bytes);
}

double decide::slabChainSeconds(RuleOp rule, const plan::Group &group, const cost::Device &device) {
  auto [blocks, rows, cols] = plan::computedView(group, plan::ValueKind::Full);
  int64_t n = plan::view(group, plan::ValueKind::Gram).rows;
  int64_t inner = group.slabs.axis == plan::Division::Rows ? rows : cols;
  // A sum packs, keeps its own part, adds up, packs, keeps its own range and unpacks.
  double sum = 6 * device.launch, chain = 0;
  rule.walk([&, rows = rows, cols = cols](OrthogonalizeOp op) {
    // The slab's norm, what it is of all of them, the block's, and the division by that.
    chain += 4 * device.launch + 2 * sum;
    bool isRounded = !op.getType().getElementType().isF32();
    for (std::array<double, 3> step : op.getSteps())
      chain += device.once(n, n, inner) + sum + (isRounded ? device.launch : 0) +
               device.once(rows, cols, n) + (step[2] == 0.0 ? 0.0 : device.once(n, n, n));
  });
  return chain;
}

SlabRanks decide::slabRanks(const plan::Group &group, const plan::Mesh &mesh,
                            const plan::Slabs &slabs, plan::ShardsKind home) {
  std::set<std::vector<int64_t>> teams; // of many blocks the same ranks have slabs
  for (std::vector<int64_t> &holders : geometry::slabHolders(group, mesh, slabs, home))
    teams.insert(std::move(holders));
  size_t most = 1;
  std::map<int64_t, std::set<int64_t>> peers;
  std::map<int64_t, int64_t> counts;
  for (const std::vector<int64_t> &team : teams)
    for (int64_t position : team)
      ++counts[position];
  for (const std::vector<int64_t> &team : teams) {
    most = std::max(most, team.size());
    for (int64_t position : team)
      if (counts[position] > 1)
        peers[position].insert(team.begin(), team.end());
  }
  size_t met = most;
  for (auto &[position, others] : peers)
    met = std::max(met, others.size());
  return {double(most), double(met) - 1};
}

double decide::summingSeconds(RuleOp rule, const GroupGeometry &geometry, const plan::Slabs &slabs,
                              const SlabRanks &ranks, double blocks, const cost::Cluster &cluster) {
  std::vector<int64_t> met; // by the first one; all others meet alike
  for (auto [position, rank] : llvm::enumerate(geometry.mesh.ranks))
    if (int64_t(position) == plan::along(geometry.mesh, slabs.factors, int64_t(position)))
      met.push_back(rank);
  std::vector<double> meeting = cluster.meeting(met);
  auto n = double(plan::view(geometry.group, plan::ValueKind::Gram).rows);
  double total = 0;
  // Parts of each range to who adds it up, and the sums from there: as many bytes.
  auto sum = [&](double elements) {
    double received = 4 * elements * (ranks.ofBlock - 1) / ranks.ofBlock;
    return 2 * cluster.exchange(meeting, std::min(ranks.peers, elements), received);
  };
  rule.walk([&](OrthogonalizeOp op) {
    total += 2 * sum(blocks) + double(op.getSteps().size()) * sum(blocks * n * n);
  });
  return total;
}
