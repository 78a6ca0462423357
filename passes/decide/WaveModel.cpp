//===- WaveModel.cpp - What a division into waves costs --------------------===//

#include "passes/decide/WaveModel.h"

#include "dialects/optim/Saturate.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

/// Assumes that stages before matrix space read the gradient, and read and write all states. Stages after it
/// read and write the parameter and a master state.
WaveModel::Touched WaveModel::touched(const plan::Group &group, RuleOp rule, int64_t travelling) {
  Touched bytes{double(plan::byteSize(group.gradientType) + travelling),
                double(2 * plan::byteSize(group.parameterType) + travelling)};
  for (const plan::State &state : optim::toPlan(rule).states)
    if (state.kind == plan::ValueKind::Full && plan::stateExists(group, state))
      (state.master ? bytes.out : bytes.in) += 2 * double(plan::byteSize(state.dtype));
  return bytes;
}

size_t WaveModel::numberOf(int64_t rank) {
  return numberByRank.try_emplace(rank, numberByRank.size()).first->second;
}

void WaveModel::addElementwise(GroupOp group) {
  auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
  GroupGeometry geometry(group);
  Touched bytes = touched(geometry.group, rule, 0);
  for (auto [position, rank] : llvm::enumerate(geometry.mesh.ranks)) {
    size_t number = numberOf(rank);
    fill.resize(std::max(fill.size(), number + 1), 0);
    double held = 0;
    for (int64_t area : geometry.heldByBlock(int64_t(position)))
      held += double(area) * double(geometry.parameters);
    fill[number] += cluster.device.seconds(0, (bytes.in + bytes.out) * held);
  }
}

void WaveModel::add(GroupOp group) {
  auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
  GroupGeometry geometry(group);
  Bases base(geometry);
  MatrixExtents block = MatrixExtents::whole(geometry.group);
  lists.push_back(listMoves(geometry, rule));
  if (!geometry.group.reducedPlacements.empty())
    reduced =
        saturatingAdd(reduced, saturatingMul(mostElements(geometry, plan::ShardsKind::Reduced),
                                             plan::byteSize(geometry.group.gradientType)));
  BlockBytes model{};
  if (group.getHops())
    model = geometry.group.slabs.factors.empty() ? modelledBytes(rule, block)
                                                 : modelledSlabBytes(rule, geometry);
  int64_t room = 0;
  for (const ListMove &move : lists.back())
    room = saturatingAdd(room, move.room / geometry.blockCount());
  for (int64_t block = 0, e = geometry.blockCount(); block < e; ++block) {
    int64_t rank = -1;
    if (!base.of.empty())
      rank = geometry.mesh.ranks[base.of[block]];
    else if (group.getHops() && geometry.group.hops.empty())
      rank = geometry.mesh.ranks[geometry.firstHolder(block % geometry.blocksPerParameter())];
    int64_t bytes = saturatingAdd(saturatingAdd(model.work, model.scratch), room);
    items.push_back({ops.size(), block, rank, bytes});
    totals[rank] = saturatingAdd(totals[rank], bytes);
  }
  ops.push_back(group);
  numbers.emplace_back();
  for (int64_t rank : geometry.mesh.ranks)
    numbers.back().push_back(numberOf(rank));
  mostHops = std::max(mostHops, geometry.group.hops.size());
  mostRounds = std::max(mostRounds, lists.back().size() + 2 * geometry.group.hops.size() + 1);
  stages.push_back(touched(geometry.group, rule, group.getHops() ? model.element : 0));
  meetings.push_back(cluster.meeting(geometry.mesh.ranks));
  travels.push_back(hopTravel(geometry, geometry.group.hops));
  met.push_back(
      hopMeetings(geometry.group, geometry.home, geometry.mesh, geometry.group.hops, cluster));
  bases.push_back(std::move(base.of));
  computing.emplace_back();
  together.push_back(teams(geometry, geometry.group.hops));
  routes.emplace_back(geometry);
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position)
    computing.back()[base.at(position)].push_back(position);
  geometries.push_back(std::move(geometry));
  bytesOf.push_back(model);
  chains.push_back(model.chain);
  std::vector<int64_t> sharing;
  for (const plan::Hop &hop : geometries.back().group.hops)
    for (const plan::Factor &factor : hop.replicated)
      sharing.insert(sharing.end(), {factor.axis, factor.stride, factor.size});
  shares.push_back(!sharing.empty());
  const std::vector<plan::Hop> &hops = geometries.back().group.hops;
  chooses.push_back(false);
  for (size_t hop = 0; hop < hops.size(); ++hop)
    chooses.back() = chooses.back() || plan::chooses(hops, hop);
  if (!geometries.back().group.hops.empty())
    sharings.insert({geometries.back().mesh.name, std::move(sharing)});
  listed.emplace_back();
  if (const plan::Group &cut = geometries.back().group; !cut.slabs.factors.empty()) {
    seconds.push_back({slabSeconds(rule, cut, cluster.device),
                       slabChainSeconds(rule, cut, cluster.device),
                       slabRanks(cut, geometries.back().mesh, cut.slabs, geometries.back().home)});
    list(MatrixWork(rule, cut));
    return;
  }
  if (!group.getHops()) {
    // Without a matrix space waves only divide the memory for moves between shards. A wave costs a few
    // launches.
    seconds.push_back({0, 4 * cluster.device.launch});
    return;
  }
  seconds.push_back(
      {blockSeconds(rule, block, cluster.device), chainSeconds(rule, block, cluster.device)});
  list(MatrixWork(rule, block));
}

/// Adds the last group's products if some work off lists of tiles. addLaunches has their launches, so these
/// leave the seconds of the chain.
void WaveModel::list(const MatrixWork &work) {
  auto hasList = [&](const MatrixStep &step) {
    return step.isProduct && launches.canJoin(step.shape);
  };
  if (llvm::none_of(work.steps, hasList))
    return;
  std::map<size_t, size_t> places; // by step: its place in the chain
  for (auto [number, step] : llvm::enumerate(work.steps)) {
    if (!step.isProduct)
      continue;
    if (hasList(step))
      seconds.back().chain -= cluster.device.once(step.shape);
    int64_t form = forms.try_emplace(step.form, int64_t(forms.size())).first->second;
    cost::ChainProduct product{form, {}};
    for (size_t before : step.after)
      product.after.push_back(places.at(before));
    places[number] = listed.back().chain.size();
    listed.back().chain.push_back(std::move(product));
    listed.back().shapes.push_back(step.shape);
  }
}

std::vector<int64_t> WaveModel::assign(int64_t count) const {
  std::map<int64_t, int64_t> before;
  std::vector<int64_t> result;
  for (const Item &item : items) {
    int64_t total = std::max<int64_t>(1, totals.at(item.rank));
    int64_t &sum = before[item.rank];
    // The middle of the item decides, so that equal items divide evenly.
    double middle = double(sum) + double(item.bytes) / 2;
    result.push_back(
        int64_t(std::min(double(count - 1), std::floor(middle * double(count) / double(total)))));
    sum = saturatingAdd(sum, item.bytes);
  }
  std::map<int64_t, int64_t> numbers;
  for (int64_t wave : result)
    numbers[wave] = 0;
  for (auto [index, entry] : llvm::enumerate(numbers))
    entry.second = index;
  for (int64_t &wave : result)
    wave = numbers.at(wave);
  return result;
}

/// Adds what a group's blocks of one wave cost to `loads`. A group without exchanges and without sums over
/// ranks is local.
void WaveModel::addLoads(size_t group, double part, const Counted &counted, WaveLoads &loads,
                         ComputedAt &computed) const {
  const GroupGeometry &geometry = geometries[group];
  double summing = 0;
  if (const plan::Slabs &slabs = geometry.group.slabs; !slabs.factors.empty()) {
    optim::GroupOp op = ops[group];
    summing = summingSeconds(SymbolTable::lookupNearestSymbolFrom<RuleOp>(op, op.getRuleAttr()),
                             geometry, slabs, seconds[group].slabs,
                             double(*llvm::max_element(counted.computed)), cluster);
  }
  size_t staged = 0, reached = 0;
  std::vector<Leg> legs = this->legs(group, part, counted, staged, reached);
  for (size_t round = reached + 1; round < legs.size(); ++round)
    loads.relay(round);
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    size_t rank = numbers[group][position];
    WaveLoads::Work &load = loads.work(rank);
    double held = double(counted.held[position]);
    double in = cluster.device.seconds(0, stages[group].in * held);
    double out = cluster.device.seconds(0, stages[group].out * held);
    int64_t blocks = counted.computed[position];
    double compute = blocks > 0 ? double(blocks) * seconds[group].block + seconds[group].chain : 0;
    bool isLocal = legs.empty() && summing == 0;
    if (blocks > 0 && !listed[group].chain.empty())
      computed[{rank, isLocal ? kLocal : reached}].emplace_back(group, blocks);
    if (isLocal) {
      load.local += in + compute + out;
    } else {
      loads.round(rank, staged).in += in;
      loads.round(rank, reached).compute += compute;
      loads.round(rank, reached).sums += blocks > 0 ? summing : 0;
      loads.round(rank, legs.size()).out += out;
    }
    for (auto [round, leg] : llvm::enumerate(legs))
      loads.travel(rank, round, leg.back, *leg.meeting, leg.travels[position].messages,
                   leg.travels[position].bytes);
  }
}

WaveLoads::Launches WaveModel::launchesOf(const Computed &computed, bool besideMessages) {
  auto [found, isNew] = knownLaunches.try_emplace({besideMessages, computed});
  if (!isNew)
    return found->second;
  auto add = [&](double &sum, const cost::ProductLaunches::Products &products) {
    if (launches.canJoin(products.front().shape)) // the products of a launch have one form
      sum += launches.overhead(products, besideMessages);
  };
  Computed whole; // Products of slabs wait for sums, and share no launches.
  std::vector<cost::Chain> chains;
  for (auto [group, blocks] : computed) {
    for (const cost::BlockProduct &shape : listed[group].shapes)
      add(found->second.apart, {{shape, blocks}});
    if (geometries[group].group.slabs.factors.empty()) {
      whole.emplace_back(group, blocks);
      chains.push_back(listed[group].chain);
      continue;
    }
    for (const cost::BlockProduct &shape : listed[group].shapes)
      add(found->second.joined, {{shape, blocks}});
  }
  std::map<size_t, cost::ProductLaunches::Products> columns;
  for (auto [of, places] : llvm::zip(whole, cost::columnsOf(chains)))
    for (auto [shape, column] : llvm::zip(listed[of.first].shapes, places))
      columns[column].push_back({shape, of.second});
  for (const auto &[column, products] : columns)
    add(found->second.joined, products);
  return found->second;
}

void WaveModel::addLaunches(const ComputedAt &computed, bool exchanges, bool severalWaves,
                            WaveLoads &loads) {
  for (const auto &[at, groups] : computed) {
    auto [rank, round] = at;
    if (round == kLocal)
      loads.work(rank).launches = launchesOf(groups, exchanges);
    else
      loads.round(rank, round).launches = launchesOf(groups, exchanges && severalWaves);
  }
}

WaveCosts WaveModel::cost(ArrayRef<int64_t> wavesOf) {
  std::map<std::pair<int64_t, size_t>, std::vector<int64_t>> blocks;
  for (auto [item, wave] : llvm::zip(items, wavesOf))
    blocks[{wave, item.group}].push_back(item.block);
  std::vector<Wave> waves;
  WaveLoads loads(cluster, numberByRank.size(), mostRounds);
  WavePipeline pipeline(cluster, fill);
  std::optional<WavePipeline> sideBySide;
  if (llvm::count_if(listed, [](const Listed &of) { return !of.chain.empty(); }) > 1)
    sideBySide.emplace(cluster, fill, /*joins=*/true);
  ComputedAt computed;
  std::vector<Buffers> buffers(numberByRank.size());
  bool exchanges = llvm::any_of(geometries, [](const GroupGeometry &geometry) {
    return !geometry.group.hops.empty() || !geometry.group.slabs.factors.empty();
  });
  // While a wave is computed, those before and after it travel. Local groups of a wave are computed while its
  // other groups travel.
  bool severalWaves = blocks.rbegin()->first.first > 0;
  auto close = [&] {
    for (const Buffers &ofRank : buffers)
      waves.back().buffers.include(ofRank);
    buffers.assign(buffers.size(), {});
    addLaunches(computed, exchanges, severalWaves, loads);
    pipeline.add(loads);
    if (sideBySide)
      sideBySide->add(loads);
    loads.clear();
    computed.clear();
  };
  for (auto &[key, list] : blocks) {
    if (key.first == int64_t(waves.size())) {
      if (!waves.empty())
        close();
      waves.emplace_back();
    }
    waves.back().needs.push_back(need(key.second, list, loads, computed, buffers));
  }
  close();
  WaveCosts costs{{workspace(waves, /*sideBySide=*/false), pipeline.finish()}, {}};
  if (sideBySide)
    costs.sideBySide = {workspace(waves, /*sideBySide=*/true), sideBySide->finish()};
  return costs;
}
