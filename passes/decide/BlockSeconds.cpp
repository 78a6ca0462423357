//===- BlockSeconds.cpp - What blocks and slabs take where they are computed -===//

#include "passes/decide/MatrixWork.h"
#include "passes/decide/StrategyModel.h"

#include <map>
#include <set>

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

/// Bytes that products read and write of values with the extents of a block, counted as f32. Smaller values
/// stay in caches.
static double bytesOfProducts(const MatrixWork &work) {
  double bytes = 0;
  for (const MatrixStep &step : work.steps)
    bytes += step.isProduct ? 4 * double(step.elementsOfBlock) : 0;
  return bytes;
}

double decide::blockSeconds(RuleOp rule, const MatrixExtents &block, const cost::Device &device) {
  MatrixWork work(rule, block);
  double bytes = 8 * double(block.rows) * double(block.cols) + bytesOfProducts(work);
  return device.seconds(modelledOperations(work, block.rows, block.cols, device), bytes);
}

double decide::chainSeconds(RuleOp rule, const MatrixExtents &block, const cost::Device &device) {
  double chain = 2 * device.launch; // packing and unpacking
  for (const MatrixStep &step : MatrixWork(rule, block).steps)
    chain += step.isProduct ? device.once(step.shape) : device.launch;
  return chain;
}

double decide::slabSeconds(RuleOp rule, const plan::Group &group, const cost::Device &device) {
  MatrixExtents extents(group);
  MatrixWork work(rule, group);
  double bytes = 8 * double(extents.rows) * double(extents.cols) + bytesOfProducts(work);
  // A sum over ranks reads or writes its matrix some twelve times: when it is computed, packed, received,
  // added up, gathered, unpacked, rounded and squared. No product is computed meanwhile.
  double passes = 0;
  for (const MatrixStep &step : work.steps)
    passes += step.isProduct ? 4 * 12 * double(step.summed()) : 0;
  return device.seconds(modelledOperations(work, extents.rows, extents.cols, device), bytes) +
         device.seconds(0, passes);
}

double decide::slabChainSeconds(RuleOp rule, const plan::Group &group, const cost::Device &device) {
  // A sum takes six launches: pack the parts, copy the rank's own part, add up, pack the range of sums, copy
  // the rank's own range, unpack.
  double sum = 6 * device.launch, chain = 0;
  for (const MatrixStep &step : MatrixWork(rule, group).steps) {
    // Launches of a norm: the slab's norm, the square of its share in the sum, the block's norm, the
    // division.
    if (!step.isProduct)
      chain += 4 * device.launch + 2 * sum;
    else
      chain += device.once(step.shape) + (step.isSummed ? sum : 0) +
               (step.isSummed && step.bytes < 4 ? device.launch : 0);
  }
  return chain;
}

SlabRanks decide::slabRanks(const plan::Group &group, const plan::Mesh &mesh,
                            const plan::Slabs &slabs, plan::ShardsKind home) {
  std::set<std::vector<int64_t>> teams; // each set once: the ranks with slabs of one block
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
  std::vector<int64_t> met; // the first ranks along the factors, whose levels count for all ranks
  for (auto [position, rank] : llvm::enumerate(geometry.mesh.ranks))
    if (int64_t(position) == plan::along(geometry.mesh, slabs.factors, int64_t(position)))
      met.push_back(rank);
  std::vector<double> meeting = cluster.meeting(met);
  plan::Group cut = geometry.group;
  cut.slabs = slabs;
  double total = 0;
  // Parts of a range go to the rank that adds them up, and as many bytes of sums come from there.
  auto sum = [&](double elements) {
    double received = 4 * elements * (ranks.ofBlock - 1) / ranks.ofBlock;
    return 2 * cluster.exchange(meeting, std::min(ranks.peers, elements), received);
  };
  // A norm takes two sums over ranks.
  for (const MatrixStep &step : MatrixWork(rule, cut).steps)
    if (step.isSummed)
      total += (step.isProduct ? 1 : 2) * sum(blocks * double(step.summed()));
  return total;
}
