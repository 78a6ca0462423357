//===- StrategyModel.cpp - What each strategy would cost -------------------===//

#include "passes/decide/StrategyModel.h"

#include "passes/cost/OwnerQueues.h"
#include "passes/decide/ClusterOfModule.h"

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
    plan::Group layout = group.toPlan();
    int64_t rows = layout.rows(), cols = layout.cols();
    int64_t blocks = rows * cols > 0 ? layout.blocksPerParameter() : 0;
    MeshOp mesh = lookupMesh(group, group.getExemplar().getMeshAttr());
    byRanks[mesh.getRanks().vec()].push_back(
        {cost::picoseconds(blockSeconds(rule, rows, cols, cluster.device)),
         blocks * int64_t(group.getParameters().size())});
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

std::vector<HopTravel> decide::hopTravel(const GroupGeometry &geometry, ArrayRef<plan::Hop> hops) {
  const plan::Mesh &mesh = geometry.mesh;
  auto count = double(mesh.ranks.size());
  int64_t rows = geometry.group.rows(), cols = geometry.group.cols();
  // Elements of all blocks, and those that all ranks together hold; the ranks that hold any.
  double whole = double(geometry.blockCount()) * double(rows) * double(cols), held = 0, holders = 0;
  for (int64_t position = 0; position < int64_t(mesh.ranks.size()); ++position) {
    double area = 0;
    for (int64_t each : geometry.heldByBlock(position))
      area += double(each);
    held += area * double(geometry.parameters);
    holders += area > 0;
  }
  double copies = whole > 0 ? std::max(1.0, held / whole) : 1;
  std::vector<bool> replicated =
      geometry::replicatedAxes(geometry.group, plan::ValueKind::Full, geometry.home);
  double pieces = 1; // of which each copy consists
  for (auto [size, copied] : llvm::zip(mesh.sizes, replicated))
    pieces *= copied ? 1 : double(size);
  double standing = held, owners = 1; // elements that stand after a hop, times ranks
  std::vector<HopTravel> result;
  for (const plan::Hop &hop : hops) {
    double ranks = 1, apart = 1, before = standing;
    for (const auto *factors : {&hop.owned, &hop.replicated})
      for (const plan::Factor &factor : *factors) {
        ranks *= double(factor.size);
        apart *= replicated[factor.axis] ? 1 : double(factor.size);
        owners *= factors == &hop.owned ? double(factor.size) : 1;
      }
    standing *= apart;
    HopTravel &travel = result.emplace_back();
    travel.owners = owners;
    // Of the blocks that come to a rank it holds a part already; the rest comes from as many
    // ranks as one copy stands on.
    travel.there = standing / count - before / count;
    if (travel.there > 0)
      travel.peers = std::max(0.0, holders / copies * (apart / pieces) - 1);
    if (!hop.owned.empty()) {
      travel.back = before * ranks / count - before / count;
      travel.peers = std::max(travel.peers, holders * (ranks / count) - 1);
    }
  }
  return result;
}

std::vector<Judgement> StrategyModel::judge(GroupOp group, const GroupGeometry &geometry) const {
  std::vector<Judgement> result;
  const plan::Mesh &mesh = geometry.mesh;
  auto blocks = double(geometry.blockCount()), parameters = double(geometry.parameters);
  RuleOp rule = ruleOf(group);
  int64_t rows = geometry.group.rows(), cols = geometry.group.cols();
  double block = blockSeconds(rule, rows, cols, cluster.device);
  double element = double(modelledBytes(rule, rows, cols).element);
  std::vector<double> meeting = cluster.meeting(mesh.ranks);
  double lists = 0;
  for (const ListMove &move : listMoves(geometry, rule))
    lists += cluster.exchange(meeting, move.peers, move.bytes);
  auto found = unevenness.find(mesh.ranks);
  double uneven = found == unevenness.end() ? 1 : found->second;

  for (StrategyAttrInterface strategy : strategies(group.getContext())) {
    Judgement &judgement = result.emplace_back();
    judgement.strategy = strategy;
    judgement.refusal = strategy.whyIllegal(geometry.group, mesh, geometry.home);
    if (!judgement.isLegal())
      continue;
    judgement.hops = strategy.hops(geometry.group, mesh);
    // Among how many ranks owners are chosen, and the busiest one's part of what comes together.
    double owners = 1, share = 1, travelling = lists;
    for (const HopTravel &travel : hopTravel(geometry, judgement.hops)) {
      owners = travel.owners;
      share = owners > 1 ? uneven / owners : 1;
      // The way back of one wave travels with the way there of the next: bytes add up, messages
      // of the longer way are waited for.
      travelling +=
          cluster.exchange(meeting, travel.peers, element * (travel.there + travel.back) * share);
    }
    std::vector<plan::Factor> resolved;
    for (const plan::Hop &hop : judgement.hops)
      for (const auto *factors : {&hop.owned, &hop.replicated})
        resolved.insert(resolved.end(), factors->begin(), factors->end());
    // Blocks of which something stands with the ranks that come together in one.
    std::map<int64_t, std::pair<double, std::vector<bool>>> met;
    for (int64_t position = 0; position < int64_t(mesh.ranks.size()); ++position) {
      auto &[members, any] = met[position - plan::along(mesh, resolved, position)];
      ++members;
      any.resize(geometry.blocksPerParameter());
      for (auto [block, area] : llvm::enumerate(geometry.heldByBlock(position)))
        any[block] = any[block] || area > 0;
    }
    double most = 0, computed = 0;
    for (const auto &[first, part] : met) {
      double parts = double(llvm::count(part.second, true)) * parameters;
      most = std::max(most, parts);
      computed += parts * part.first / owners;
    }
    judgement.seconds = most * block * share + travelling;
    judgement.repeats = computed > blocks;
  }
  return result;
}

const Judgement *StrategyModel::find(ArrayRef<Judgement> judgements,
                                     StrategyAttrInterface strategy) {
  const Judgement *found =
      llvm::find_if(judgements, [&](const Judgement &each) { return each.strategy == strategy; });
  return found == judgements.end() ? nullptr : found;
}

const Judgement &StrategyModel::choose(ArrayRef<Judgement> judgements) {
  constexpr double kSaving = 0.9;
  const Judgement *best[2] = {nullptr, nullptr}; // of those that repeat no work, and that do
  for (const Judgement &each : judgements)
    if (const Judgement *&least = best[each.repeats];
        each.isLegal() && (!least || each.seconds < least->seconds))
      least = &each;
  auto [single, repeating] = best;
  if (!single || !repeating)
    return single ? *single : *repeating;
  double enough = single->seconds * kSaving;
  bool saves = repeating < single ? repeating->seconds <= enough : repeating->seconds < enough;
  return saves ? *repeating : *single;
}
