//===- Explain.cpp - What was decided, why, and what it costs --------------===//

#include "passes/explain/Explain.h"

#include "dialects/optim/Saturate.h"
#include "passes/decide/ClusterOfModule.h"
#include "passes/decide/OwnerTable.h"
#include "passes/decide/StrategyModel.h"
#include "passes/distribute/GroupChain.h"
#include "passes/explain/Travel.h"
#include "passes/plan/StepScratch.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::explain;

namespace {

/// Counts the messages of one rank in one start: one per peer. What stays on the rank is no message.
class Tally {
public:
  Tally(int64_t rank, size_t ranks) : rank(rank), sentTo(ranks), receivedFrom(ranks) {}

  /// Adds a table whose elements have `bytes` bytes. Returns the bytes that the rank sends of it.
  int64_t add(const plan::RankTable &table, int64_t bytes) {
    int64_t before = cost.bytesSent;
    for (const plan::Message &message : table.messages) {
      if (message.peer == rank)
        continue;
      cost.messagesSent += message.sendCount > 0 && !sentTo[message.peer];
      cost.messagesReceived += message.receiveCount > 0 && !receivedFrom[message.peer];
      sentTo[message.peer] = sentTo[message.peer] || message.sendCount > 0;
      receivedFrom[message.peer] = receivedFrom[message.peer] || message.receiveCount > 0;
      cost.bytesSent += message.sendCount * bytes;
      cost.bytesReceived += message.receiveCount * bytes;
    }
    return cost.bytesSent - before;
  }
  /// The cost, with the bytes of a seal per message.
  RankCost sealed() const {
    RankCost result = cost;
    result.bytesSent += cost.messagesSent * plan::kSealBytes;
    result.bytesReceived += cost.messagesReceived * plan::kSealBytes;
    return result;
  }
  /// By rank: whether it sends to this rank.
  const std::vector<bool> &heard() const { return receivedFrom; }
  RankCost cost;

private:
  int64_t rank;
  std::vector<bool> sentTo, receivedFrom;
};

class Explainer {
public:
  Explainer(ModuleOp module, const kernels::Target *target)
      : module(module), target(target), strategies(module) {}

  FailureOr<Report> run() {
    FailureOr<ProgramPlan> made = planFromModule(module);
    if (failed(made))
      return failure();
    program = std::move(*made);
    const plan::Plan &plan = program.plan;
    report.name = plan.name;
    report.numerics = plan.numerics;
    report.arena = plan.arenaBytes;
    report.cluster = decide::clusterOf(module);
    for (auto step : module.getOps<func::FuncOp>())
      report.scratch = scratchBound(program, step, MostBlocks(program));
    report.exchanges = plan.starts().size();
    report.parameters = plan.countOfParameters();
    report.meshes = plan.meshes;
    for (const plan::Mesh &mesh : plan.meshes)
      if (plan.isMeshOfModel(mesh))
        report.meshOfModel = mesh.name;
    report.world = plan.world();
    report.ranks.resize(report.world.size());
    report.memory.resize(report.world.size());
    report.reducesAgain = module->hasAttr(comm::kReducesAgainAttr);
    if (auto limit = module->getAttrOfType<IntegerAttr>(comm::kLimitAttr))
      report.limit = limit.getInt();
    if (auto limit = module->getAttrOfType<IntegerAttr>(optim::kStateLimitAttr))
      report.stateLimit = limit.getInt();
    decide::OwnerTable owners(report.cluster);
    owners.addAll(module);
    if (!owners.problem.kinds.empty()) {
      int64_t most = cost::mostOf(cost::loadsOf(owners.problem, owners.counts));
      report.busiest = double(most) * 1e-12;
      report.leastBusiest = double(cost::loadBound(owners.problem)) * 1e-12;
      for (const cost::MeshBalance &each : cost::meshBalances(owners.problem, owners.counts))
        for (const plan::Mesh &mesh : plan.meshes)
          if (mesh.name != report.meshOfModel &&
              std::is_permutation(mesh.ranks.begin(), mesh.ranks.end(), each.ranks.begin(),
                                  each.ranks.end()))
            report.busiestOfMesh[mesh.name] = {double(each.most) * 1e-12,
                                               double(each.bound) * 1e-12};
    }
    expander.emplace(plan);
    countMessages();
    countFlops();
    for (auto parameter : module.getOps<optim::ParameterOp>())
      if (parameter.getOverridden() || parameter.getFlattenOverridden())
        report.overridden.push_back(parameter.getSymName().str());
    for (auto group : module.getOps<optim::GroupOp>())
      describe(group);
    if (target) {
      if (failed(addProducts(module, program, *target, report)))
        return failure();
      if (isCuda(target->chip()))
        report.gpu = llvm::cantFail(cudaTarget(target->chip()));
      if (std::optional<GpuTarget> gpu = gpuOfChip(target->chip());
          gpu && gpu->hasWarpgroups() && !report.products.empty()) {
        FailureOr<LaunchesReport> launches = launchesOf(module, *target, report.cluster.device);
        if (failed(launches))
          return failure();
        if (llvm::any_of(launches->launches, [](const LaunchReport &one) { return one.lists > 0; }))
          report.launches = std::move(*launches);
      }
      if (report.gpu && report.exchanges > 0)
        report.nccl = countConnections();
    }
    return std::move(report);
  }

private:
  //===--------------------------------------------------------------------===//
  // What the program does
  //===--------------------------------------------------------------------===//

  void countMessages() {
    const plan::Plan &plan = program.plan;
    costs.assign(plan.groups.size(), std::vector<RankCost>(report.world.size()));
    bytesFor.resize(plan.groups.size());
    peers.resize(report.world.size());
    for (const plan::Start *start : plan.starts()) {
      countMeeting(start->communicator);
      llvm::MapVector<int64_t, SmallVector<int64_t>> tablesOf; // by group
      for (int64_t index : start->tables)
        tablesOf[plan.segments[plan.tables[index].from.segment].group].push_back(index);
      for (size_t rank = 0; rank < report.world.size(); ++rank) {
        Tally all(rank, report.world.size());
        for (auto &[group, tables] : tablesOf) {
          Tally own(rank, report.world.size());
          for (int64_t index : tables) {
            const plan::Table &table = plan.tables[index];
            plan::RankTable rows = expander->table(table, rank);
            bytesFor[group].of(plan::kindOf(table.from)) += own.add(rows, table.elementBytes);
            all.add(rows, table.elementBytes);
          }
          costs[group][rank] += own.cost;
        }
        report.ranks[rank] += all.sealed();
        if (start->collective == plan::CollectiveKind::Exchange)
          for (auto [peer, heard] : llvm::enumerate(all.heard()))
            if (heard)
              peers[rank].insert(peer);
      }
      if (start->collective == plan::CollectiveKind::AllGather)
        rings.insert(llvm::find_if(report.communicators,
                                   [&](const CommunicatorReport &one) {
                                     return one.communicator == start->communicator;
                                   }) -
                     report.communicators.begin());
    }
  }

  /// Connections of the rank with most of them: one per peer that sends in exchanges, one per ring of
  /// all-gathers.
  NcclMemory countConnections() const {
    size_t most = 0;
    for (const std::set<int64_t> &senders : peers)
      most = std::max(most, senders.size());
    return {int64_t(most + rings.size())};
  }

  void countMeeting(const plan::Communicator &communicator) {
    auto known = llvm::find_if(report.communicators, [&](const CommunicatorReport &one) {
      return one.communicator == communicator;
    });
    if (known == report.communicators.end()) {
      int64_t ranks = communicator.mesh < 0 ? int64_t(report.world.size()) : 1;
      for (const plan::Factor &factor : communicator.factors)
        ranks *= factor.size;
      known = report.communicators.insert(known, {communicator, ranks, 0});
    }
    ++known->exchanges;
  }

  /// Operations for one block in one operation of matrix space; 0 for any other operation.
  static Flops flopsOf(Operation *op) {
    if (auto product = dyn_cast<optim::ProductOp>(op)) {
      cost::BlockProduct shape = blockProductOf(product);
      return {cost::executedFlops(shape), cost::fullFlops(shape)};
    }
    if (auto apply = dyn_cast<optim::ApplyOp>(op)) {
      int64_t flops = apply.getFunction().flops(apply.getSourceBlocks(), apply.getOutBlock());
      return {flops, flops};
    }
    return {};
  }

  void countFlops() {
    const plan::Plan &plan = program.plan;
    flopsPerBlock.assign(plan.groups.size(), {});
    // All waves of a group do the same with other blocks, so one wave is counted.
    std::map<int64_t, int64_t> segmentOf;
    module.walk([&](Operation *op) {
      Flops flops = flopsOf(op);
      if (!flops.full)
        return;
      int64_t index = ProgramPlan::find(program.segments, comm::segmentOfBatch(op));
      int64_t group = plan.segments[index].group;
      if (segmentOf.try_emplace(group, index).first->second == index)
        flopsPerBlock[group] += flops;
    });
  }

  //===--------------------------------------------------------------------===//
  // What it could have done
  //===--------------------------------------------------------------------===//

  /// The tables by which the program moves values between a group's lists of placements, start by start.
  /// Takes those of the group's first wave, and renumbers them to a segment 0 of all blocks.
  std::vector<std::vector<plan::Table>> listMoves(const plan::Group &group) const {
    const plan::Plan &plan = program.plan;
    auto first = llvm::find_if(plan.segments, [&](const plan::Segment &segment) {
      return &plan.groups[segment.group] == &group;
    });
    std::vector<std::vector<plan::Table>> starts;
    for (const plan::Start *start : plan.starts()) {
      std::vector<plan::Table> tables;
      for (int64_t index : start->tables) {
        plan::Table table = plan.tables[index];
        if (table.from.segment != first - plan.segments.begin() || !table.from.from.isShards() ||
            !table.from.to.isShards())
          continue;
        table.from.segment = table.to.segment = 0;
        tables.push_back(table);
      }
      if (!tables.empty())
        starts.push_back(std::move(tables));
    }
    return starts;
  }

  /// The cost of each rank of the mesh, if this group by itself were stepped by another strategy.
  std::vector<RankCost> model(const plan::Group &group, const decide::GroupGeometry &geometry,
                              optim::RuleOp rule, const decide::Judgement &other, Flops flops) {
    plan::Plan alone;
    alone.meshes = {geometry.mesh};
    alone.rules = {optim::toPlan(rule)};
    alone.groups = {group};
    plan::Group &copy = alone.groups[0];
    copy.mesh = copy.rule = 0;
    copy.hops = other.hops;
    copy.slabs = other.slabs;
    Flops there = matrixFlops(rule, copy), here = matrixFlops(rule, group);
    flops.executed += there.executed - here.executed;
    flops.full += there.full - here.full;
    // Ranks own equal blocks in turn, as balancing this group alone would choose.
    for (plan::Hop &hop : copy.hops)
      for (int64_t block = 0, e = geometry.blockCount(); block < e && !hop.owned.empty(); ++block)
        hop.base.push_back(block % int64_t(geometry.mesh.ranks.size()));
    copy.parameters.clear();
    for (int64_t i = 0; i < geometry.parameters; ++i) {
      copy.parameters.push_back(i);
      alone.parameters.push_back({"", 0, 0, i});
    }
    alone.segments.push_back({"", 0, {}, true});

    // Moves between the group's lists of placements do not depend on hops.
    std::vector<std::vector<plan::Table>> starts = listMoves(group);
    for (const plan::Table &table : travellers(rule, copy)) {
      auto joined = llvm::find_if(starts, [&](const std::vector<plan::Table> &start) {
        const plan::Place &first = start.front().from;
        return first.from == table.from.from && first.to == table.from.to;
      });
      if (joined == starts.end())
        joined = starts.insert(joined, std::vector<plan::Table>());
      joined->push_back(table);
    }
    for (const plan::Table &table : sums(rule, copy))
      starts.push_back({table});
    std::vector<int64_t> world = alone.world();
    std::vector<RankCost> ranks(world.size());
    plan::Expander expander(alone);
    for (size_t rank = 0; rank < world.size(); ++rank) {
      ranks[rank].flops = flops * expander.computedBlocks(0, rank);
      for (const std::vector<plan::Table> &start : starts) {
        Tally tally(rank, world.size());
        for (const plan::Table &table : start)
          tally.add(expander.table(table, rank), table.elementBytes);
        ranks[rank] += tally.cost;
      }
    }
    return ranks;
  }

  static std::vector<OrthogonalizeReport> orthogonalizationsOf(optim::RuleOp rule,
                                                               optim::GroupOp group) {
    std::vector<OrthogonalizeReport> found;
    rule.walk([&](optim::OrthogonalizeOp op) {
      int64_t rows = group.getRows(), cols = group.getCols();
      OrthogonalizeReport &one = found.emplace_back();
      one.asked = op.getForm().value_or(optim::Form::Standard);
      one.isGram = op.isGram(rows, cols);
      one.steps = op.getSteps().size();
      if (one.isGram)
        one.restarts = op.getRestarts().value_or(ArrayRef<int64_t>());
      one.why = "the default";
      if (op.getForm())
        one.why = "form = " + std::string(plan::name(one.asked));
      if (one.asked == optim::Form::Auto)
        one.why += ": longer / shorter side = " + optim::whyForm(rows, cols);
    });
    return found;
  }

  void describe(optim::GroupOp op) {
    int64_t index = program.groups.lookup(op.getSymNameAttr());
    const plan::Plan &plan = program.plan;
    const plan::Group &group = plan.groups[index];
    auto rule = SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(op, op.getRuleAttr());
    decide::GroupGeometry geometry(op);

    GroupReport &out = report.groups.emplace_back();
    out.name = group.name;
    out.bytesFor = bytesFor[index];
    out.rule = rule.getWrittenName().str();
    llvm::MapVector<int64_t, bool> routes;
    for (int64_t parameter : group.parameters) {
      out.parameters.push_back(plan.parameters[parameter].name);
      routes[plan.parameters[parameter].route] = true;
    }
    for (auto [route, unused] : routes)
      out.routes.push_back(plan.routes[route].name);
    out.shape = group.shape;
    out.part = plan::describeParts(group);
    out.batchAxes = group.batchAxes;
    out.flatten = group.flatten;
    out.blocks = group.matrix().blocks * geometry.parameters;
    out.type = plan::name(group.parameterType);
    out.gradientType = plan::name(group.gradientType);
    optim::ParameterOp exemplar = op.getExemplar();
    out.placements = optim::describe(exemplar.getPlacements());
    if (ArrayAttr own = exemplar.getGradientPlacementsAttr())
      out.placements += ", gradient " + optim::describe(own);
    if (ArrayAttr own = exemplar.getStatePlacementsAttr())
      out.placements += ", states " + optim::describe(own);
    out.isOfModel = plan.isOfModel(group);
    addMemory(plan, index, *expander, report, out);
    out.orthogonalizations = orthogonalizationsOf(rule, op);
    out.mesh = geometry.mesh.name = plan.meshes[group.mesh].name;
    out.waves =
        llvm::count_if(plan.segments, [&](const plan::Segment &s) { return s.group == index; });

    // The chosen strategy: the program's own messages, on the ranks of the group's mesh.
    std::vector<RankCost> ranks;
    for (int64_t global : geometry.mesh.ranks) {
      int64_t rank = llvm::lower_bound(report.world, global) - report.world.begin(), blocks = 0;
      for (size_t segment = 0; segment < plan.segments.size(); ++segment)
        if (plan.segments[segment].group == index)
          blocks += expander->computedBlocks(segment, rank);
      costs[index][rank].flops = flopsPerBlock[index] * blocks;
      report.ranks[rank].flops += costs[index][rank].flops;
      ranks.push_back(costs[index][rank]);
    }
    out.strategies.push_back(
        {group.strategy, true, op.getReason().value_or("").str(), summarize(ranks)});
    if (!group.computes)
      return;
    std::vector<decide::Judgement> judgements = strategies.judge(op, geometry);
    const decide::Judgement *chosen = decide::StrategyModel::find(judgements, op.getStrategyAttr());
    out.strategies.front().seconds = chosen ? chosen->seconds : 0;
    for (const decide::Judgement &other : judgements) {
      std::string name = other.strategy.name().str();
      if (&other == chosen || (other.strategy.roundsOtherwise() && !optim::isFast(module)))
        continue;
      if (!other.isLegal()) {
        out.strategies.push_back({name, false, other.refusal, std::nullopt});
        continue;
      }
      bool isForced = chosen && chosen != decide::StrategyModel::choose(judgements);
      std::string why;
      if (chosen && other.seconds < chosen->seconds)
        why = decide::StrategyModel::whyNot(other, *chosen, isForced);
      out.strategies.push_back(
          {name, false, why, summarize(model(group, geometry, rule, other, flopsPerBlock[index])),
           other.seconds});
    }
  }

  ModuleOp module;
  const kernels::Target *target; // null: none
  decide::StrategyModel strategies;
  ProgramPlan program;
  std::optional<plan::Expander> expander; // of the program's plan
  Report report;
  std::vector<std::vector<RankCost>> costs; // per group, rank of the world
  std::vector<plan::BytesByKind> bytesFor;  // per group
  std::vector<Flops> flopsPerBlock;         // per group
  std::vector<std::set<int64_t>> peers;     // per rank: the ranks that send to it in exchanges
  std::set<int64_t> rings;                  // numbers of communicators of all-gathers
};

} // namespace

FailureOr<Report> explain::explain(ModuleOp module, const kernels::Target *target) {
  StringAttr level = comm::levelOf(module);
  if (!level || level.getValue() != "scheduled")
    return module.emitError("expected a module at level scheduled to explain");
  return Explainer(module, target).run();
}
