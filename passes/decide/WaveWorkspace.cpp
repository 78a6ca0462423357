//===- WaveWorkspace.cpp - The workspace that waves need -------------------===//
//
// These functions predict the bytes that comm-assign-arena gives. A wave's groups share buffers: of messages,
// of the blocks that have come together, of those that products begin with, and of results.
//
//===----------------------------------------------------------------------===//

#include "passes/decide/WaveModel.h"

#include "dialects/optim/Saturate.h"

#include <utility>

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;

template <typename Combine>
void WaveModel::Buffers::combine(const Buffers &other, Combine combine) {
  for (auto member :
       {&Buffers::sent, &Buffers::received, &Buffers::sentBack, &Buffers::receivedBack,
        &Buffers::room, &Buffers::roomBack, &Buffers::reducing, &Buffers::arrived,
        &Buffers::prepared, &Buffers::results, &Buffers::reused})
    this->*member = combine(this->*member, other.*member);
}

void WaveModel::Buffers::add(const Buffers &other) {
  combine(other, [](int64_t a, int64_t b) { return saturatingAdd(a, b); });
}

void WaveModel::Buffers::include(const Buffers &other) {
  combine(other, [](int64_t a, int64_t b) { return std::max(a, b); });
}

int64_t WaveModel::Wave::there() const {
  return saturatingAdd(buffers.room, saturatingAdd(buffers.sent, buffers.received));
}

int64_t WaveModel::Wave::back() const {
  return saturatingAdd(buffers.roomBack, saturatingAdd(buffers.sentBack, buffers.receivedBack));
}

WaveModel::Need WaveModel::need(size_t group, ArrayRef<int64_t> blocks, WaveLoads &loads,
                                ComputedAt &computed, std::vector<Buffers> &buffers) const {
  const GroupGeometry &geometry = geometries[group];
  const ChainBytes &chain = chains[group];
  int64_t element = bytesOf[group].element, size = geometry.group.rows() * geometry.group.cols();
  double part = double(blocks.size()) / double(geometry.blockCount());
  Counted counted = count(group, blocks);
  addLoads(group, part, counted, loads, computed);
  Need result;
  result.group = group;
  result.blocks = *llvm::max_element(counted.computed);
  result.work = saturatingMul(result.blocks, bytesOf[group].work);
  result.scratch = saturatingMul(result.blocks, bytesOf[group].scratch);
  result.resting = saturatingMul(result.blocks, bytesOf[group].resting);
  // Bytes per element of what goes back.
  double returned = chain.results > 0 ? double(chain.results) / double(std::max<int64_t>(1, size))
                                      : double(element);
  Buffers moves;
  int64_t most = 0;
  for (const ListMove &move : lists[group]) {
    bool isBefore = keepsReduced && move.sums > 0;
    int64_t &room = isBefore ? moves.reducing : move.behind ? moves.roomBack : moves.room;
    int64_t bytes = move.room - (isBefore ? move.sums : 0);
    room = saturatingAdd(room, int64_t(std::ceil(double(bytes) * part)));
  }
  bool hasHops = !geometry.group.hops.empty();
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    Buffers made = moves;
    if (hasHops) {
      int64_t own = counted.computed[position];
      made.arrived = saturatingMul(own, chain.arrived);
      int64_t results = saturatingMul(own, chain.results);
      (chain.reuses ? made.reused : made.prepared) = saturatingMul(own, chain.prepared);
      made.results = chain.reuses ? 0 : results;
      // If a hop chooses (plan::chooses: an earlier hop has brought copies to all its ranks), all ranks get
      // all blocks.
      int64_t arriving = chooses[group] ? int64_t(blocks.size()) : own;
      made.received = saturatingMul(arriving, element * size);
      made.sent = saturatingMul(counted.sending[position], element);
      if (shares[group] && sharings.size() > 1)
        made.sent = std::max(made.sent, made.received);
      if (!bases[group].empty()) {
        made.sentBack = std::max(results, int64_t(counted.back[position] * returned));
        made.receivedBack = int64_t(double(counted.held[position]) * returned);
      }
      most = std::max(most, made.sent);
    }
    buffers[numbers[group][position]].add(made);
  }
  // A hop that chooses sends nothing.
  if (geometry.group.hops.size() > 1 + size_t(chooses[group]))
    result.between = saturatingMul(2, most);
  return result;
}

/// Groups with hops are all unpacked before one is computed. Then their chains multiply in turn, and all are
/// computed before one is packed. If there are several groups with owners, those that can reuse the memory of
/// prepared values do so. Each group without hops is done before the next one begins.
int64_t WaveModel::whileComputed(const Wave &wave, bool withHops, bool sideBySide) const {
  SmallVector<const Need *> needs;
  for (const Need &need : wave.needs)
    if (const plan::Group &group = geometries[need.group].group;
        group.slabs.factors.empty() && group.hops.empty() != withHops)
      needs.push_back(&need);
  auto reuses = [&](const Need *need) { return chains[need->group].reuses; };
  bool isBeside =
      llvm::count_if(needs, [&](const Need *need) { return !bases[need->group].empty(); }) > 1;
  Buffers shared = wave.buffers;
  if (!isBeside) {
    shared.prepared = saturatingAdd(shared.prepared, std::exchange(shared.reused, 0));
    for (const Need *need : needs)
      if (reuses(need))
        shared.results =
            saturatingAdd(shared.results, saturatingMul(need->blocks, chains[need->group].results));
  }
  int64_t most = 0, together = 0;
  if (withHops) {
    int64_t prepared = saturatingAdd(shared.prepared, shared.reused);
    most = std::max(saturatingAdd(shared.arrived, std::max(shared.received, prepared)),
                    saturatingAdd(saturatingAdd(shared.reused, shared.results), shared.sentBack));
  }
  for (auto [index, need] : llvm::enumerate(needs)) {
    const ChainBytes &chain = chains[need->group];
    int64_t prepared = saturatingMul(need->blocks, chain.prepared);
    int64_t results = saturatingMul(need->blocks, chain.results);
    int64_t alone = std::max(saturatingAdd(saturatingMul(need->blocks, chain.arrived), prepared),
                             chain.most(need->blocks, prepared, results, /*follows=*/false,
                                        /*precedes=*/false));
    together = saturatingAdd(together, alone);
    if (!withHops) {
      most = std::max(most, alone);
      continue;
    }
    auto areOthers = [&](ArrayRef<const Need *> chains) {
      return llvm::any_of(chains, [&](const Need *other) { return !isBeside || !reuses(other); });
    };
    bool follows = areOthers(ArrayRef(needs).take_front(index));
    bool precedes = areOthers(ArrayRef(needs).drop_front(index + 1));
    bool reusesNow =
        isBeside && chain.reuses; // then its values are all in the buffer that is reused
    int64_t bytes =
        reusesNow ? saturatingAdd(
                        chain.most(need->blocks, 0, 0, false, false),
                        saturatingAdd(precedes ? shared.prepared : 0, follows ? shared.results : 0))
                  : chain.most(need->blocks, shared.prepared, shared.results, follows, precedes);
    most = std::max(most, saturatingAdd(shared.reused, bytes));
  }
  return sideBySide ? std::max(most, together) : most;
}

/// The workspace of a rank, in bytes. While a wave is computed, the next one travels to its owners and the
/// one before travels back. With several hops, further waves are each in another hop. A wave's groups without
/// hops are computed while the others travel. Slabs wait for sums while slabs of other groups are computed,
/// and two neighbouring waves of slabs take turns. Scratch is one region beside all this.
int64_t WaveModel::workspace(ArrayRef<Wave> waves, bool sideBySide) const {
  auto sum = [&](size_t wave, auto bytesOf) {
    int64_t bytes = 0;
    for (const Need &need : waves[wave].needs)
      bytes = saturatingAdd(bytes, bytesOf(need));
    return bytes;
  };
  auto resting = [&](size_t wave) {
    return wave < waves.size() ? sum(wave, [](const Need &n) { return n.resting; }) : 0;
  };
  int64_t most = 0, scratch = 0;
  for (size_t wave = 0; wave < waves.size(); ++wave) {
    int64_t flying = saturatingAdd(wave > 0 ? waves[wave - 1].back() : 0,
                                   wave + 1 < waves.size() ? waves[wave + 1].there() : 0);
    for (size_t away = 2; away <= mostHops; ++away)
      for (size_t other : {wave - away, wave + away})
        if (other < waves.size())
          flying = saturatingAdd(flying, sum(other, [](const Need &n) { return n.between; }));
    int64_t beside = std::max(resting(wave - 1), resting(wave + 1));
    int64_t slabs = saturatingAdd(beside, resting(wave));
    int64_t there = waves[wave].there(), onRank = whileComputed(waves[wave], false, sideBySide);
    int64_t travelling = whileComputed(waves[wave], true, sideBySide);
    most = std::max(most, waves[wave].buffers.reducing); // nothing else has begun
    for (int64_t bytes : {saturatingAdd(there, onRank), saturatingAdd(slabs, travelling),
                          saturatingAdd(slabs, onRank), waves[wave].back()})
      most = std::max(most, saturatingAdd(flying, bytes));
    int64_t others = saturatingAdd(slabs, waves[wave].buffers.arrived), working = beside;
    for (const Need &n : waves[wave].needs) {
      scratch = std::max(scratch, n.scratch);
      if (geometries[n.group].group.slabs.factors.empty())
        continue;
      working = saturatingAdd(working, n.work);
      most = std::max(most, saturatingAdd(flying, saturatingAdd(others - n.resting, n.work)));
    }
    if (sideBySide)
      most = std::max(most, saturatingAdd(flying, working));
  }
  // Buffers have different sizes and leave gaps between them. In the plans that were measured the gaps mostly
  // took below 15 %.
  return saturatingAdd(saturatingAdd(most, most / 20 * 3), scratch);
}
