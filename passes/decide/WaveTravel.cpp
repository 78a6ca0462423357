//===- WaveTravel.cpp - What a wave computes, sends and receives -----------===//

#include "passes/decide/WaveModel.h"

#include "dialects/optim/Saturate.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;

WaveModel::Counted WaveModel::count(size_t group, ArrayRef<int64_t> blocks) const {
  const GroupGeometry &geometry = geometries[group];
  bool local = geometry.group.hops.empty(), owned = !bases[group].empty();
  auto ranks = int64_t(geometry.mesh.ranks.size());
  int64_t size = geometry.group.rows() * geometry.group.cols();
  // Blocks with equal numbers (place) within their parameters lie on the same ranks. So blocks are counted by
  // this number and by base.
  std::map<int64_t, std::map<int64_t, int64_t>> counts;
  for (int64_t block : blocks)
    ++counts[block % geometry.blocksPerParameter()][owned ? bases[group][block] : 0];
  std::vector<int64_t> held(ranks), computed(ranks), peers(ranks), sending(ranks);
  std::vector<double> sent(ranks), received(ranks), back(ranks);
  HopRoutes::Loads passed = routes[group].none();
  for (auto &[place, byBase] : counts) {
    int64_t count = 0, holders = 0;
    double copies = 0; // blocks times the ranks that compute each
    for (auto [base, part] : byBase) {
      count += part;
      copies += owned ? double(part) * double(computing[group].at(base).size()) : 0;
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
    if (!owned) {
      // The ranks of a team send each other the elements that they hold.
      for (const Team &team : together[group]) {
        if (!team.computes[place])
          continue;
        auto others = int64_t(team.positions.size()) - 1;
        int64_t having = llvm::count_if(
            team.positions, [&](int64_t position) { return geometry.held(position, place) > 0; });
        for (int64_t position : team.positions) {
          int64_t area = geometry.held(position, place);
          computed[position] += count;
          sent[position] += double(area) * double(count) * double(others);
          received[position] += double(size - area) * double(count);
          peers[position] = std::max(peers[position], area > 0 ? others : having);
        }
      }
      continue;
    }
    int64_t there = 0; // blocks that all ranks that compute them hold already
    for (auto [base, part] : byBase) {
      bool isThere = llvm::all_of(computing[group].at(base), [&](int64_t position) {
        return geometry.held(position, place) == size;
      });
      if (isThere) {
        there += part;
        for (int64_t position : computing[group].at(base))
          sending[position] = saturatingAdd(sending[position], saturatingMul(size, part));
      }
      if (routes[group].areFollowed())
        routes[group].add(place, base, part, passed);
      for (int64_t position : computing[group].at(base)) {
        int64_t area = geometry.held(position, place);
        computed[position] += part;
        sent[position] -= double(area) * double(part);
        received[position] += (whole - double(area)) * double(part);
        back[position] += whole * double(part);
        peers[position] = std::max(peers[position], holders - (area > 0));
      }
    }
    for (int64_t position = 0; position < ranks; ++position)
      sending[position] = saturatingAdd(
          sending[position], saturatingMul(geometry.held(position, place), count - there));
  }
  if (owned) {
    int64_t owners = llvm::count_if(computed, [](int64_t blocks) { return blocks > 0; });
    for (int64_t position = 0; position < ranks; ++position)
      if (sent[position] > 0)
        peers[position] = std::max(peers[position], owners - (computed[position] > 0));
  }
  if (!owned)
    sending = held;
  return {held, computed, peers, sending, sent, received, back, passed};
}

std::vector<WaveModel::Leg> WaveModel::legs(size_t group, double part, const Counted &counted,
                                            size_t &staged, size_t &reached) const {
  const std::vector<plan::Hop> &hops = geometries[group].group.hops;
  auto ranks = int64_t(geometries[group].mesh.ranks.size());
  bool owned = !bases[group].empty(), isFollowed = routes[group].areFollowed();
  auto element = double(bytesOf[group].element);
  std::vector<Leg> legs;
  auto add = [&](bool back, const std::vector<double> &meeting, auto travelOf) {
    Leg &leg = legs.emplace_back(Leg{back, &meeting, {}});
    for (int64_t position = 0; position < ranks; ++position)
      leg.travels.push_back(travelOf(position));
  };
  auto addLists = [&](bool behind) {
    for (const ListMove &move : lists[group])
      if (move.behind == behind &&
          move.bytes > 0) // without bytes, each rank copies its own elements
        add(behind, meetings[group],
            [&](int64_t) { return Leg::Travel{move.peers, move.bytes * part}; });
  };
  // A hop takes a round even if no bytes travel.
  auto addHop = [&](size_t index, bool back) {
    const HopMeeting &meeting = met[group][index];
    const HopTravel &travel = travels[group][index];
    double messages = back ? travel.peersBack : travel.peersThere;
    // If there are several hops and not all lead to owners, each rank is counted with the average.
    double average = element * part / travel.owners * (back ? travel.back : travel.there);
    add(back, back ? meeting.back : meeting.there, [&](int64_t position) -> Leg::Travel {
      if (isFollowed) {
        const HopRoutes::Load &load = counted.passed[index][position];
        return {messages, element * (back ? load.back() : load.there())};
      }
      if (hops.size() > 1)
        return {messages, average};
      return {double(counted.peers[position]),
              element * std::max(counted.sent[position], counted.received[position])};
    });
  };
  addLists(/*behind=*/false);
  staged = legs.size();
  for (size_t hop = 0; hop < hops.size(); ++hop)
    if (!plan::chooses(hops, hop))
      addHop(hop, /*back=*/false);
  reached = legs.size();
  // One exchange on the way back may pass over several hops. HopTravel has its elements at one of these hops.
  if (owned)
    for (auto [from, to] : plan::waysBack(hops)) {
      size_t sending = to;
      for (size_t hop = to; hop < from; ++hop)
        if (travels[group][hop].back > travels[group][sending].back)
          sending = hop;
      addHop(sending, /*back=*/true);
    }
  addLists(/*behind=*/true);
  return legs;
}
