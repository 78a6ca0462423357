//===- WaveModel.cpp - What a division into waves costs --------------------===//

#include "passes/decide/WaveModel.h"

#include "passes/cost/Saturate.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

WaveModel::Seconds WaveModel::secondsOf(RuleOp rule, int64_t rows, int64_t cols) const {
  const cost::Device &device = cluster.device;
  int64_t r = std::min(rows, cols), c = std::max(rows, cols);
  // Packing and unpacking, and what the rule does besides.
  double chain = 6 * device.launch;
  rule.walk([&](OrthogonalizeOp op) {
    chain += 2 * device.launch; // norm and scaling
    for (std::array<double, 3> step : op.getSteps())
      chain += device.once(r, r, c) + device.once(r, c, r) +
               (step[2] == 0.0 ? 0.0 : device.once(r, r, r));
  });
  return {blockSeconds(rule, rows, cols, device), chain};
}

void WaveModel::add(GroupOp group) {
  auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
  GroupGeometry geometry(group);
  Bases base(geometry);
  int64_t rows = geometry.group.rows(), cols = geometry.group.cols();
  lists.push_back(listMoves(geometry, rule));
  BlockBytes model{};
  if (group.getHops())
    model = modelledBytes(rule, rows, cols);
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
  meetings.push_back(cluster.meeting(geometry.mesh.ranks));
  travels.push_back(hopTravel(geometry, geometry.group.hops));
  met.push_back(
      hopMeetings(geometry.group, geometry.home, geometry.mesh, geometry.group.hops, cluster));
  bases.push_back(std::move(base.of));
  computing.emplace_back();
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position)
    computing.back()[base.at(position)].push_back(position);
  geometries.push_back(std::move(geometry));
  bytesOf.push_back(model);
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
  // Without a matrix space there is memory to divide, and a few more launches to pay.
  seconds.push_back(group.getHops() ? secondsOf(rule, rows, cols)
                                    : Seconds{0, 4 * cluster.device.launch});
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

WaveModel::Need WaveModel::need(size_t group, ArrayRef<int64_t> blocks,
                                std::map<int64_t, Load> &loads) const {
  const GroupGeometry &geometry = geometries[group];
  bool local = geometry.group.hops.empty(), owned = !bases[group].empty();
  auto ranks = int64_t(geometry.mesh.ranks.size());
  int64_t element = bytesOf[group].element, size = geometry.group.rows() * geometry.group.cols();
  // Blocks at one place of their parameters are held alike: they are counted by place and base.
  std::map<int64_t, std::map<int64_t, int64_t>> counts;
  for (int64_t block : blocks)
    ++counts[block % geometry.blocksPerParameter()][owned ? bases[group][block] : 0];
  // By position: elements held, blocks computed, elements sent there and received there, and peers.
  std::vector<int64_t> held(ranks), computed(ranks), peers(ranks);
  std::vector<double> sent(ranks), received(ranks);
  for (auto &[place, byBase] : counts) {
    int64_t count = 0, holders = 0;
    double copies = 0; // of a block or another, where they are computed
    for (auto [base, part] : byBase) {
      count += part;
      copies += local ? 0 : double(part) * double(computing[group].at(base).size());
    }
    double whole = 0;
    for (int64_t position = 0; position < ranks; ++position) {
      int64_t area = geometry.held(position, place);
      held[position] = saturatingAdd(held[position], saturatingMul(area, count));
      whole += double(area);
      holders += area > 0;
      sent[position] += double(area) * copies;
      if (local && area > 0)
        computed[position] += count;
    }
    if (local)
      continue;
    double comes = owned ? whole : double(size);
    for (auto [base, part] : byBase)
      for (int64_t position : computing[group].at(base)) {
        int64_t area = geometry.held(position, place);
        computed[position] += part;
        sent[position] -= double(area) * double(part);
        received[position] += (comes - double(area)) * double(part);
        peers[position] = std::max(peers[position], holders - (area > 0));
      }
  }
  double part = double(blocks.size()) / double(geometry.blockCount());
  // Of several hops it is not followed which rank has what: all have as much as the average.
  SmallVector<HopTravel> several;
  if (travels[group].size() > 1)
    for (const HopTravel &travel : travels[group]) {
      double bytes = double(element) * part / travel.owners;
      several.push_back(
          {travel.peersThere, travel.peersBack, travel.there * bytes, travel.back * bytes});
    }
  int64_t owners = llvm::count_if(computed, [](int64_t count) { return count > 0; });
  for (int64_t position = 0; position < ranks; ++position) {
    Load &load = loads[geometry.mesh.ranks[position]];
    if (computed[position] > 0)
      load.compute += double(computed[position]) * seconds[group].block + seconds[group].chain;
    if (sent[position] > 0)
      peers[position] = std::max(peers[position], owners - (computed[position] > 0));
    double bytes = double(element) * std::max(sent[position], received[position]);
    auto others = double(peers[position]);
    HopTravel only{others, others, bytes, owned ? bytes : 0};
    for (auto [index, hop] : llvm::enumerate(met[group])) {
      const HopTravel &round = several.empty() ? only : several[index];
      // All groups' parts for one peer travel in one message: taken for the first group's alone.
      bool isFirst = index >= load.rounds;
      double there = cluster.exchange(hop.there, isFirst ? round.peersThere : 0, round.there);
      load.there += there;
      load.back += cluster.exchange(hop.back, isFirst ? round.peersBack : 0, round.back);
      if (there > 0)
        load.rounds = std::max(load.rounds, index + 1);
    }
    for (const ListMove &move : lists[group])
      (move.back ? load.back : load.there) +=
          cluster.exchange(meetings[group], move.peers, move.bytes * part);
    if (owned)
      load.whole = saturatingAdd(load.whole, saturatingMul(computed[position], element * size));
  }
  int64_t most = *llvm::max_element(computed);
  Need result;
  result.work = saturatingMul(most, bytesOf[group].work);
  result.scratch = saturatingMul(most, bytesOf[group].scratch);
  for (const ListMove &move : lists[group])
    result.room = saturatingAdd(result.room, int64_t(std::ceil(double(move.room) * part)));
  if (!local) {
    result.held = saturatingMul(*llvm::max_element(held), element);
    // Where a hop chooses, all ranks are given all.
    int64_t arriving = chooses[group] ? int64_t(blocks.size()) : most;
    result.whole = saturatingMul(arriving, element * size);
    if (shares[group] && sharings.size() > 1)
      result.held = std::max(result.held, result.whole);
  }
  return result;
}

std::vector<WaveModel::Wave> WaveModel::divide(ArrayRef<int64_t> wavesOf) const {
  std::map<std::pair<int64_t, size_t>, std::vector<int64_t>> blocks;
  for (auto [item, wave] : llvm::zip(items, wavesOf))
    blocks[{wave, item.group}].push_back(item.block);
  std::vector<Wave> waves;
  std::map<int64_t, Load> loads; // of the wave at hand, by rank
  auto close = [&] {
    for (auto &[rank, load] : loads) {
      Load &most = waves.back().load;
      most = {std::max(most.compute, load.compute), std::max(most.there, load.there),
              std::max(most.back, load.back), std::max(most.whole, load.whole)};
    }
    loads.clear();
  };
  for (auto &[key, list] : blocks) {
    if (key.first == int64_t(waves.size())) {
      close();
      waves.emplace_back();
    }
    Wave &wave = waves.back();
    const Need &last = wave.needs.emplace_back(need(key.second, list, loads));
    wave.travel =
        saturatingAdd(saturatingAdd(wave.travel, last.room), saturatingAdd(last.held, last.whole));
  }
  close();
  return waves;
}

/// While a group is computed, the next wave travels there, the one before it back, and the wave's
/// other groups wait to be computed or sent. What is sent back stands in memory twice at its ends: all
/// of it is unpacked before a part is computed, and computed before a part is packed. Scratch is one
/// region beside all that.
int64_t WaveModel::workspace(ArrayRef<Wave> waves) {
  int64_t most = 0, scratch = 0;
  size_t chains = 0;
  for (size_t wave = 0; wave < waves.size(); ++wave) {
    int64_t flying = saturatingAdd(wave > 0 ? waves[wave - 1].travel : 0,
                                   wave + 1 < waves.size() ? waves[wave + 1].travel : 0);
    int64_t others = 0;
    for (const Need &n : waves[wave].needs)
      others = saturatingAdd(others, n.whole);
    most = std::max(most, saturatingAdd(flying, waves[wave].travel));
    most = std::max(most, saturatingAdd(flying, saturatingMul(2, waves[wave].load.whole)));
    for (const Need &n : waves[wave].needs) {
      most = std::max(most, saturatingAdd(flying, saturatingAdd(others - n.whole, n.work)));
      scratch = std::max(scratch, n.scratch);
    }
    chains += waves[wave].needs.size();
  }
  // Buffers of several sizes leave gaps between them; those of one chain do not. In plans that
  // were looked at the gaps took up to 15 per cent of one wave, and mostly below 25 of several.
  int64_t gaps = chains <= 1 ? 0 : waves.size() == 1 ? most / 20 * 3 : most / 4;
  return saturatingAdd(saturatingAdd(most, gaps), scratch);
}

/// The first wave's way there and the last one's back are seen; the rest hides behind products, as
/// far as they take longer.
double WaveModel::time(ArrayRef<Wave> waves) {
  double total = waves.front().load.there + waves.back().load.back;
  for (size_t wave = 0; wave < waves.size(); ++wave) {
    double flying = (wave > 0 ? waves[wave - 1].load.back : 0) +
                    (wave + 1 < waves.size() ? waves[wave + 1].load.there : 0);
    total += std::max(waves[wave].load.compute, flying);
  }
  return total;
}

WaveCost WaveModel::cost(ArrayRef<int64_t> wavesOf) const {
  std::vector<Wave> waves = divide(wavesOf);
  return {workspace(waves), time(waves)};
}
