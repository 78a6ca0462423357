//===- StrategyModel.cpp - What each strategy would cost -------------------===//

#include "passes/decide/StrategyModel.h"

#include "passes/cost/OwnerQueues.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

cost::Cluster decide::clusterOf(ModuleOp module) {
  cost::Cluster cluster = cost::Cluster::builtIn();
  auto set = [](double &field, std::optional<APFloat> value) {
    if (value)
      field = value->convertToDouble();
  };
  for (ClusterOp op : module.getOps<ClusterOp>()) {
    cluster.ranksPerNode = op.getRanksPerNode().value_or(cluster.ranksPerNode);
    set(cluster.inside.bandwidth, op.getInsideBandwidth());
    set(cluster.inside.latency, op.getInsideLatency());
    set(cluster.between.bandwidth, op.getBetweenBandwidth());
    set(cluster.between.latency, op.getBetweenLatency());
    set(cluster.device.flops, op.getFlops());
    set(cluster.device.memory, op.getMemory());
  }
  return cluster;
}

double decide::blockSeconds(RuleOp rule, int64_t rows, int64_t cols, const cost::Device &device) {
  double elements = double(rows) * double(cols), bytes = 8 * elements;
  // Each Newton–Schulz step reads the iterate twice and writes it once, in f32 at most.
  rule.walk([&](OrthogonalizeOp op) { bytes += 12 * elements * double(op.getSteps().size()); });
  return device.seconds(double(modelledFlops(rule, rows, cols)), bytes);
}

static RuleOp ruleOf(GroupOp group) {
  return SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
}

StrategyModel::StrategyModel(ModuleOp module) : cluster(clusterOf(module)) {
  // Longest processing time first, as owners are given, from what the groups' shapes tell alone.
  using Work = std::vector<std::pair<int64_t, int64_t>>; // cost of a block, how many
  std::map<std::vector<int64_t>, Work> byRanks;
  for (GroupOp group : module.getOps<GroupOp>()) {
    RuleOp rule = ruleOf(group);
    if (!hasMatrixSpace(rule))
      continue;
    double seconds = blockSeconds(rule, group.getRows(), group.getCols(), cluster.device);
    MeshOp mesh = lookupMesh(group, group.getExemplar().getMeshAttr());
    int64_t elements = 1, block = std::max<int64_t>(1, group.getRows() * group.getCols());
    for (int64_t size : group.getExemplar().getShape())
      elements *= size;
    byRanks[mesh.getRanks().vec()].push_back(
        {cost::picoseconds(seconds), elements / block * int64_t(group.getParameters().size())});
  }
  for (auto &[ranks, work] : byRanks) {
    std::vector<std::vector<int64_t>> held(ranks.size(), {0});
    cost::Loads loads;
    cost::OwnerQueues queues(ranks, held, loads);
    llvm::sort(work, std::greater<>());
    double total = 0, most = 0;
    for (auto [cost, count] : work) {
      total += double(cost) * double(count);
      for (int64_t block = 0; block < count; ++block)
        queues.give(0, cost);
    }
    for (auto [rank, load] : loads)
      most = std::max(most, double(load));
    unevenness[ranks] = total > 0 ? most * double(ranks.size()) / total : 1;
  }
}

Judgements StrategyModel::judge(GroupOp group, const GroupGeometry &geometry) const {
  Judgements result;
  RuleOp rule = ruleOf(group);
  const std::vector<int64_t> &ranks = geometry.mesh.ranks;
  auto count = double(ranks.size()), blocks = double(geometry.blockCount());
  auto parameters = double(geometry.parameters);
  double block = blockSeconds(rule, group.getRows(), group.getCols(), cluster.device);
  double element = double(modelledBytes(rule, group.getRows(), group.getCols()).element);
  // Elements of all blocks, and those that all ranks together hold; the ranks that hold any.
  double whole = blocks * double(group.getRows()) * double(group.getCols()), held = 0, holders = 0;
  double mostComputed = 0, computed = 0;
  for (int64_t position = 0; position < int64_t(ranks.size()); ++position) {
    double area = 0, parts = 0;
    for (int64_t each : geometry.heldByBlock(position)) {
      area += double(each);
      parts += each > 0;
    }
    held += area * parameters;
    holders += area > 0;
    computed += parts * parameters;
    mostComputed = std::max(mostComputed, parts * parameters);
  }
  double copies = whole > 0 ? std::max(1.0, held / whole) : 1;
  // Of the blocks that a rank computes it holds a part already; the rest comes from as many ranks
  // as one copy stands on.
  double missing = whole - held / count, senders = std::max(0.0, holders / copies - 1);
  double nearby = cluster.nearby(ranks);
  result[Strategy::Elementwise].refusal = "the rule has operations that need whole matrices";

  Judgement &local = result[Strategy::Local];
  if (!geometry::blocksAreWhole(geometry.group, geometry.mesh))
    local.refusal =
        "placements " + describe(group.getExemplar().getPlacements()) + " cut the blocks";
  else if (!group.getExemplar().standsInOneWay())
    local.refusal = "gradient or states stand apart from the parameter";
  local.seconds = mostComputed * block;
  local.repeats = computed > blocks;

  auto found = unevenness.find(ranks);
  double busiest = (found == unevenness.end() ? 1 : found->second) / count;
  // The way back of one wave travels with the way there of the next: bytes add up, messages of
  // the longer way are waited for.
  double back = held - held / count, readers = std::max(0.0, holders - 1);
  result[Strategy::Owner].seconds =
      blocks * block * busiest +
      cluster.exchange(nearby, missing > 0 ? std::max(senders, readers) : readers,
                       element * (missing + back) * busiest);

  Judgement &gather = result[Strategy::Gather];
  gather.seconds = blocks * block + cluster.exchange(nearby, senders, element * missing);
  gather.repeats = count > 1;
  return result;
}

Strategy StrategyModel::choose(const Judgements &judgements) {
  constexpr double kSaving = 0.9;
  Strategy best = Strategy::Owner; // always legal
  double least = judgements[best].seconds;
  const Judgement &local = judgements[Strategy::Local];
  if (local.isLegal() && local.seconds <= least * (local.repeats ? kSaving : 1)) {
    best = Strategy::Local;
    least = local.seconds;
  }
  const Judgement &gather = judgements[Strategy::Gather];
  // Where both repeat work, neither has to save.
  bool both = local.repeats && best == Strategy::Local;
  if (gather.seconds < least * (gather.repeats && !both ? kSaving : 1))
    best = Strategy::Gather;
  return best;
}
