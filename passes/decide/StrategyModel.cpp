//===- StrategyModel.cpp - What each strategy would cost -------------------===//

#include "passes/decide/StrategyModel.h"

#include "passes/cost/OwnerBalance.h"
#include "passes/decide/ClusterOfModule.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

static RuleOp ruleOf(GroupOp group) {
  return SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
}

/// Whether several ranks hold elements of one block, because it is cut or replicated. With most strategies
/// elements of the block then travel.
static bool anyOnSeveralRanks(const GroupGeometry &geometry) {
  std::vector<int64_t> holders(geometry.blocksPerParameter());
  for (const std::vector<int64_t> &areas : geometry.held())
    for (auto [block, area] : llvm::enumerate(areas))
      holders[block] += area > 0;
  return llvm::any_of(holders, [](int64_t count) { return count > 1; });
}

/// Per position, the seconds that it takes to compute all blocks of which it holds elements.
static std::vector<double> secondsWhereHeld(const GroupGeometry &geometry, double block,
                                            double chain) {
  std::vector<double> seconds;
  for (const std::vector<int64_t> &areas : geometry.held()) {
    int64_t count = llvm::count_if(areas, [](int64_t area) { return area > 0; });
    seconds.push_back(count > 0 ? double(count * geometry.parameters) * block + chain : 0);
  }
  return seconds;
}

StrategyModel::StrategyModel(ModuleOp module)
    : cluster(clusterOf(module)), isFast(optim::isFast(module)) {
  if (auto most = module->getAttrOfType<IntegerAttr>(kMaxPeersAttr))
    maxPeers = most.getInt();
  // Deals out owners like optim-balance-owners, but only by the shapes of groups: no strategy is known yet.
  std::map<std::vector<int64_t>, cost::OwnerProblem> byRanks;
  for (GroupOp group : module.getOps<GroupOp>()) {
    RuleOp rule = ruleOf(group);
    if (!hasMatrixSpace(rule))
      continue;
    plan::Group layout = group.toPlan();
    int64_t rows = layout.rows(), cols = layout.cols();
    int64_t blocks = rows * cols > 0 ? layout.blocksPerParameter() : 0;
    std::vector<int64_t> ranks =
        lookupMesh(group, group.getExemplar().getMeshAttr()).getRanks().vec();
    MatrixExtents extents = MatrixExtents::whole(layout);
    double block = blockSeconds(rule, extents, cluster.device);
    int64_t cost = cost::picoseconds(block);
    std::vector<cost::BlockKind> &kinds = byRanks[ranks].kinds;
    blocks *= int64_t(group.getParameters().size());
    GroupGeometry geometry(group);
    if (anyOnSeveralRanks(geometry)) {
      ++travelling[ranks];
    } else {
      std::vector<double> &together = alone[ranks];
      together.resize(ranks.size());
      double chain = chainSeconds(rule, extents, cluster.device);
      for (auto [sum, seconds] : llvm::zip(together, secondsWhereHeld(geometry, block, chain)))
        sum += seconds;
    }
    if (auto same = llvm::find_if(kinds, [&](auto &kind) { return kind.cost == cost; });
        same != kinds.end())
      same->count += blocks;
    else
      kinds.push_back({ranks, cost, blocks});
  }
  for (auto &[ranks, problem] : byRanks) {
    double total = 0;
    for (const cost::BlockKind &kind : problem.kinds)
      total += double(kind.cost) * double(kind.count);
    auto most = double(cost::balanceOwners(problem, cost::longestFirst(problem)).most);
    unevenness[ranks] = total > 0 ? most * double(ranks.size()) / total : 1;
  }
}

static double ranksAlong(const std::vector<plan::Factor> &factors) {
  double ranks = 1;
  for (const plan::Factor &factor : factors)
    ranks *= double(factor.size);
  return ranks;
}

std::vector<HopTravel> decide::hopTravel(const GroupGeometry &geometry, ArrayRef<plan::Hop> hops) {
  const plan::Mesh &mesh = geometry.mesh;
  auto count = double(mesh.ranks.size());
  int64_t rows = geometry.group.rows(), cols = geometry.group.cols();
  // `whole`: elements of all blocks. `held`: elements that ranks hold, summed over ranks. `holders`: ranks
  // that hold any.
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
  double pieces = 1; // ranks that together hold one copy
  for (auto [size, copied] : llvm::zip(mesh.sizes, replicated))
    pieces *= copied ? 1 : double(size);
  // Summed over ranks: `standing`, elements that they hold after the hops so far; `origin`, elements that
  // they hold where results go back to.
  double standing = held, origin = held, owners = 1;
  std::vector<HopTravel> result;
  std::vector<plan::Hop> all = hops.vec();
  std::vector<bool> returns(all.size(), true); // per hop: whether the way back ends there
  double passed = 1; // ranks along owned factors of hops that it passes over
  for (size_t hop = 0; hop < all.size(); ++hop)
    for (size_t before = plan::returnsTo(all, hop); before < hop && !all[hop].owned.empty();
         ++before)
      returns[before] = false;
  for (auto [index, hop] : llvm::enumerate(hops)) {
    double ranks = 1, apart = 1, before = standing;
    bool chooses = plan::chooses(all, index);
    for (const auto *factors : {&hop.owned, &hop.replicated})
      for (const plan::Factor &factor : *factors) {
        ranks *= double(factor.size);
        apart *= replicated[factor.axis] ? 1 : double(factor.size);
        owners *= factors == &hop.owned ? double(factor.size) : 1;
      }
    standing *= chooses ? 1 : apart;
    HopTravel &travel = result.emplace_back();
    travel.owners = owners;
    // A rank already holds a part of the blocks that come to it. It receives the rest from the other ranks
    // that together hold one copy.
    travel.there = standing / count - before / count;
    if (travel.there > 0)
      travel.peersThere = std::max(0.0, holders / copies * (apart / pieces) - 1);
    if (!returns[index])
      passed *= ranksAlong(hop.owned);
    if (!hop.owned.empty() && returns[index]) {
      ranks *= std::exchange(passed, 1);
      travel.back = origin * ranks / count - origin / count;
      travel.peersBack = std::max(0.0, holders * (ranks / count) - 1);
      origin = standing;
    }
  }
  return result;
}

std::vector<HopMeeting> decide::hopMeetings(const plan::Group &group, plan::ShardsKind home,
                                            const plan::Mesh &mesh, ArrayRef<plan::Hop> hops,
                                            const cost::Cluster &cluster) {
  auto among = [&](const std::vector<plan::Factor> &factors) {
    std::map<int64_t, std::vector<int64_t>>
        met; // the ranks of each set that meets, by its first position
    for (auto [position, rank] : llvm::enumerate(mesh.ranks))
      met[int64_t(position) - plan::along(mesh, factors, int64_t(position))].push_back(rank);
    std::vector<double> result(cluster.levels.size(), 0);
    for (auto &[first, ranks] : met)
      for (auto [sum, part] : llvm::zip(result, cluster.meeting(ranks)))
        sum += part / double(met.size());
    return result;
  };
  std::vector<bool> replicated = geometry::replicatedAxes(group, plan::ValueKind::Full, home);
  std::vector<HopMeeting> result;
  for (const plan::Hop &hop : hops) {
    std::vector<plan::Factor> all = hop.owned, apart;
    all.insert(all.end(), hop.replicated.begin(), hop.replicated.end());
    llvm::copy_if(all, std::back_inserter(apart),
                  [&](const plan::Factor &factor) { return !replicated[factor.axis]; });
    std::vector<double> there = among(apart);
    result.push_back({there, apart.size() == all.size() ? there : among(all)});
  }
  return result;
}

/// Returns an empty text, or a refusal if a rank would exchange with more others in a hop or in a sum over
/// slabs than the module allows.
static std::string tooManyPeers(const StrategyQuery &query, const Judgement &judgement) {
  if (!query.maxPeers)
    return {};
  auto refuse = [&](int64_t peers, StringRef where) -> std::string {
    if (peers <= query.maxPeers)
      return {};
    return ("a rank would exchange with " + Twine(peers) + " others in a " + where + ", at most " +
            Twine(query.maxPeers) + " are allowed (--max-peers)")
        .str();
  };
  if (!judgement.slabs.factors.empty())
    return refuse(int64_t(slabRanks(query.group, query.mesh, judgement.slabs, query.home).peers),
                  "sum");
  std::vector<bool> replicated =
      geometry::replicatedAxes(query.group, plan::ValueKind::Full, query.home);
  for (const plan::Hop &hop : judgement.hops) {
    int64_t ranks = 1;
    // Owned factors always count: along an axis that replicates the shards, results still travel back.
    for (const plan::Factor &factor : hop.owned)
      ranks *= factor.size;
    for (const plan::Factor &factor : hop.replicated)
      ranks *= replicated[factor.axis] ? 1 : factor.size;
    if (std::string refusal = refuse(ranks - 1, "hop"); !refusal.empty())
      return refusal;
  }
  return {};
}

/// Whether a value that is made where it is used depends on where an element stands.
static bool dependsOnWhere(Value value, llvm::DenseSet<Value> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op || hasSpace(op) || !seen.insert(value).second)
    return false;
  return optim::dependsOnPlace(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
           return dependsOnWhere(operand, seen);
         });
}

std::string StrategyModel::whyNotFast(const StrategyQuery &query, RuleOp rule,
                                      StrategyAttrInterface strategy) const {
  if (!strategy.roundsOtherwise())
    return {};
  if (!isFast)
    return "it rounds otherwise than one rank, which is for fast numerics (--numerics=fast)";
  plan::Group cut = query.group;
  cut.slabs = strategy.slabs(query);
  if (cut.slabs.factors.empty())
    return {};
  // A slab lacks rows or columns of its block. So a rule with slabs may have no other matrix operation, no
  // values per row, column or block, and no numbers of rows, columns or elements.
  std::string name = "rule " + rule.getWrittenName().str();
  if (rule.hasStatesOfOtherSizes())
    return name + " has states of sizes of their own, which belong to whole blocks";
  for (Operation &op : rule.getBody().front()) {
    auto matrix = dyn_cast<MatrixOpInterface>(op);
    if (spaceOf(&op) != Space::Matrix || (matrix && matrix.takesSlabs()))
      continue;
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return name + " takes the " + std::string(plan::name(reduce.getKind())) +
             " of values where blocks have to be whole";
    if (matrix)
      return name + " has " + op.getName().stripDialect().str() +
             " of blocks, which have to be whole";
    llvm::DenseSet<Value> seen;
    if (llvm::any_of(op.getOperands(), [&](Value value) { return dependsOnWhere(value, seen); }))
      return name + " counts rows, columns or elements where blocks have to be whole";
    for (Value value : placedOperands(&op))
      if (ValueKind kind = kindOf(value.getType()).value_or(ValueKind::Full);
          kind != ValueKind::Full)
        return name + " has a value per " +
               (kind == ValueKind::Rows   ? "row"
                : kind == ValueKind::Cols ? "column"
                                          : "block") +
               " where blocks have to be whole";
  }
  for (auto [number, write] : llvm::enumerate(writesOf(rule)))
    if (write == Space::Matrix && !(number > 0 && rule.isBlockState(unsigned(number - 1))))
      return name + " stores a state where blocks have to be whole";
  // A shorter slab has zeros behind its end. Operations of the rule may make other numbers of these zeros.
  for (Operation &op : rule.getBody().front())
    if (isa<MatrixOpInterface>(op) && spaceOf(&op) == Space::Matrix && plan::hasPadding(cut))
      for (Value value : placedOperands(&op))
        if (spaceOf(value.getDefiningOp()) == Space::Matrix)
          return name + " has " + op.getName().stripDialect().str() +
                 " of what it makes of blocks, which needs slabs of equal length, found " +
                 geometry::slabLengths(cut, query.mesh, cut.slabs, query.home);
  return {};
}

std::vector<Judgement> StrategyModel::judge(GroupOp group, const GroupGeometry &geometry) const {
  std::vector<Judgement> result;
  const plan::Mesh &mesh = geometry.mesh;
  auto blocks = double(geometry.blockCount()), parameters = double(geometry.parameters);
  RuleOp rule = ruleOf(group);
  int64_t rows = geometry.group.rows(), cols = geometry.group.cols();
  MatrixExtents extents = MatrixExtents::whole(geometry.group);
  double block = blockSeconds(rule, extents, cluster.device);
  double chain = chainSeconds(rule, extents, cluster.device);
  double element = double(modelledBytes(rule, extents).element);
  std::vector<double> meeting = cluster.meeting(mesh.ranks);
  // Groups share messages, so each group is charged an equal part of the time that an empty message takes.
  auto others = travelling.find(mesh.ranks);
  double sharing = others == travelling.end() ? 1 : std::max<double>(1, others->second);
  auto exchange = [&](const std::vector<double> &met, double peers, double bytes) {
    constexpr double kEmpty = 1e-6; // in bytes; a message of 0 bytes would not be sent
    double start = bytes > 0 ? cluster.exchange(met, peers, kEmpty) : 0;
    return start / sharing + cluster.exchange(met, peers, bytes) - start;
  };
  double lists = 0;
  for (const ListMove &move : listMoves(geometry, rule))
    lists += exchange(meeting, move.peers, move.bytes);
  auto found = unevenness.find(mesh.ranks);
  double uneven = found == unevenness.end() ? 1 : found->second;

  StrategyQuery query{
      geometry.group, geometry.parameters, mesh, geometry.home, geometry.held(), {}, {}, maxPeers};
  for (const plan::State &state : optim::toPlan(rule).states)
    if (state.kind.isLine())
      query.states.push_back(state.kind);
  // A rank that does not hold a block may still hold its line.
  for (plan::ValueKind kind : lineKinds(rule))
    query.states.push_back(kind);
  for (const cost::Level &level : llvm::drop_end(cluster.levels))
    query.domains.push_back(level.ranks);

  for (StrategyAttrInterface strategy : strategies(group.getContext())) {
    Judgement &judgement = result.emplace_back();
    judgement.strategy = strategy;
    judgement.refusal = whyNotFast(query, rule, strategy);
    if (judgement.isLegal())
      judgement.refusal = strategy.whyIllegal(query);
    if (judgement.isLegal()) {
      judgement.hops = strategy.hops(query);
      judgement.slabs = strategy.slabs(query);
      judgement.reason = strategy.reason(query);
      judgement.refusal = tooManyPeers(query, judgement);
    }
    if (!judgement.isLegal())
      continue;
    if (!judgement.slabs.factors.empty()) {
      plan::Group cut = geometry.group;
      cut.slabs = judgement.slabs;
      double most = geometry.mostBlocks();
      SlabRanks ranks = slabRanks(cut, mesh, cut.slabs, geometry.home);
      judgement.seconds = most * slabSeconds(rule, cut, cluster.device) +
                          slabChainSeconds(rule, cut, cluster.device) + lists +
                          summingSeconds(rule, geometry, cut.slabs, ranks, most, cluster);
      // All ranks that have slabs of a block compute the squares of its Gram matrices.
      judgement.repeats = true;
      continue;
    }
    // `owners`: the number of ranks among which the hops so far choose owners; after the loop, all hops.
    // `share`: which part of the blocks that come together the busiest of these ranks gets.
    double owners = 1, share = 1, moving = lists;
    for (const auto &[travel, met] :
         llvm::zip(hopTravel(geometry, judgement.hops),
                   hopMeetings(geometry.group, geometry.home, mesh, judgement.hops, cluster))) {
      owners = travel.owners;
      share = owners > 1 ? uneven / owners : 1;
      // A rank's exchanges follow each other, both within a wave and between waves.
      moving += exchange(met.there, travel.peersThere, element * travel.there * share) +
                exchange(met.back, travel.peersBack, element * travel.back * share);
      judgement.there += travel.there * share;
      judgement.back += travel.back * share;
    }
    double most = 0, computed = 0;
    for (const Team &team : teams(geometry, judgement.hops)) {
      double parts = double(team.blocks()) * parameters;
      most = std::max(most, parts);
      computed += parts * double(team.positions.size()) / owners;
    }
    // If there are fewer blocks than owners, some ranks get none and launch nothing for the group.
    judgement.seconds = most * block * share + std::min(1.0, most * share) * chain + moving;
    // If each block of a group lies on one rank alone, other groups may lie on other ranks. Together these
    // groups take the time of the busiest rank, and each group is charged its share of this time.
    if (judgement.hops.empty() && !anyOnSeveralRanks(geometry)) {
      const std::vector<double> &together = alone.at(mesh.ranks);
      std::vector<double> own = secondsWhereHeld(geometry, block, chain);
      double all = std::accumulate(together.begin(), together.end(), 0.0);
      double part = all > 0 ? std::accumulate(own.begin(), own.end(), 0.0) / all : 0;
      judgement.seconds = std::min(judgement.seconds, part * *llvm::max_element(together) + moving);
    }
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

std::string StrategyModel::whyNot(const Judgement &judgement, const Judgement &chosen,
                                  bool isForced) {
  if (!judgement.isLegal())
    return judgement.refusal;
  if (isForced)
    return "another one is forced";
  return judgement.seconds < chosen.seconds
             ? "it repeats work, and saves less than the tenth that is asked for then"
             : "it is modelled to take no less time";
}

const Judgement *StrategyModel::choose(ArrayRef<Judgement> judgements) {
  constexpr double kSaving = 0.9;
  const Judgement *best[2] = {nullptr, nullptr}; // of strategies that repeat no work, and of others
  for (const Judgement &each : judgements)
    if (const Judgement *&least = best[each.repeats];
        each.isLegal() && (!least || each.seconds < least->seconds))
      least = &each;
  auto [single, repeating] = best;
  if (!single || !repeating)
    return single ? single : repeating;
  double enough = single->seconds * kSaving;
  bool saves = repeating < single ? repeating->seconds <= enough : repeating->seconds < enough;
  return saves ? repeating : single;
}
