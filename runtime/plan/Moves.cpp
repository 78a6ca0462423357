//===- Moves.cpp - Who sends which rectangle to whom, and where it is packed -===//

#include "runtime/plan/BlockMap.h"

#include <utility>

namespace stepc::plan {

using geometry::Rect;

std::vector<int64_t> numbersOf(const Place &place) {
  return {place.segment,  place.value.rows, place.value.cols, place.from.kind,
          place.from.hop, place.to.kind,    place.to.hop,     static_cast<int64_t>(place.end)};
}

const Move &BlockMap::moveOf(const Place &place) {
  const Group &group = groupOf(place.segment);
  KindView &view = kind(at(thePlan.segments, place.segment).group, formOf(place));
  int64_t from = place.from.level(group), to = place.to.level(group);
  auto [found, isNew] = view.moves.try_emplace({from, to});
  Move &move = found->second;
  if (!isNew)
    return move;
  move.lower = std::min(from, to);
  move.upper = std::max(from, to);
  auto of = [&](const std::vector<Factor> &factors) { return &classes(group.mesh, factors); };
  std::vector<Factor> owned = factors(group, move.lower, move.upper, true, false);
  if (from > to) { // a result goes to all ranks that hold a piece
    move.peers = move.kept = of(owned);
    move.targets = move.serving = of({});
    return move;
  }
  std::vector<Factor> spread =
      along(view, factors(group, move.lower, move.upper, false, true), false);
  move.peers = of(along(view, factors(group, move.lower, move.upper, true, true), false));
  move.targets = of(spread);
  move.serving = of(along(view, owned, true));
  spread.insert(spread.end(), owned.begin(), owned.end());
  move.kept = of(spread);
  return move;
}

//===----------------------------------------------------------------------===//
// Packed places
//===----------------------------------------------------------------------===//

LowerParts BlockMap::lower(const Place &place, int64_t position) {
  LowerParts result;
  if (!travels(place))
    return result;
  int64_t segment = place.segment, group = at(thePlan.segments, segment).group;
  int64_t perParameter = at(blocksPerParameter, group);
  const Move &move = moveOf(place);
  const MeshView &mesh = at(meshes, groupOf(segment).mesh);
  const ShardRects &pieces = this->pieces(group, formOf(place), move.lower, position);
  const Bases &bases = this->bases(segment, move.lower, move.upper);
  // One part per set of receivers. Parts are in the order of the least world ranks of these sets.
  result.next.assign(ranks.size(), 0);
  auto add = [&](int64_t base, int64_t size) {
    if (move.serving->part(base) == move.serving->part(position))
      result.next[static_cast<size_t>(firstOf(move, mesh, base, position))] += size;
  };
  if (based(segment, move.lower, position)) {
    for (int64_t index : standing(segment, formOf(place), move.lower, position))
      add(at(bases.of, index), at(pieces.elements, block(segment, index) % perParameter));
  } else {
    for (int64_t within : pieces.held)
      for (auto [base, count] : at(bases.counts, within))
        add(base, count * at(pieces.elements, within));
  }
  int64_t total = 0;
  bool shared = false;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    int64_t size = std::exchange(result.next[rank], total);
    if (size == 0)
      continue;
    std::span<const int64_t> receivers =
        move.targets->members.of(at(move.targets->of, mesh.positionOf[rank]));
    for (int64_t receiver : receivers)
      result.peers.push_back({at(mesh.worldOf, receiver), total, size});
    shared |= receivers.size() > 1;
    total += size;
  }
  if (shared)
    std::sort(result.peers.begin(), result.peers.end(),
              [](const PeerPart &a, const PeerPart &b) { return a.peer < b.peer; });
  return result;
}

LowerParts BlockMap::lowerOffsets(const Place &place, int64_t position) {
  LowerParts result = lower(place, position);
  int64_t segment = place.segment, group = at(thePlan.segments, segment).group;
  const Move &move = moveOf(place);
  std::vector<int64_t> indices = standing(segment, formOf(place), move.lower, position);
  result.offsets.assign(indices.size(), -1);
  if (result.next.empty())
    return result;
  const MeshView &mesh = at(meshes, groupOf(segment).mesh);
  const ShardRects &pieces = this->pieces(group, formOf(place), move.lower, position);
  const Bases &bases = this->bases(segment, move.lower, move.upper);
  for (size_t k = 0; k < indices.size(); ++k) {
    int64_t base = at(bases.of, indices[k]);
    if (move.serving->part(base) != move.serving->part(position))
      continue;
    int64_t &next = result.next[static_cast<size_t>(firstOf(move, mesh, base, position))];
    result.offsets[k] = next;
    next += at(pieces.elements, block(segment, indices[k]) % at(blocksPerParameter, group));
  }
  return result;
}

std::vector<PeerPart> BlockMap::upperPeers(const Place &place, int64_t position,
                                           const std::map<int64_t, int64_t> &counts) {
  std::vector<PeerPart> peers;
  int64_t group = at(thePlan.segments, place.segment).group, offset = 0;
  const Move &move = moveOf(place);
  const MeshView &mesh = at(meshes, groupOf(place.segment).mesh);
  for (int64_t peer : move.peers->members.of(at(move.peers->of, position))) {
    const ShardRects &pieces = this->pieces(group, formOf(place), move.lower, peer);
    int64_t size = 0;
    for (auto [within, count] : counts)
      size += count * at(pieces.elements, within);
    if (size > 0)
      peers.push_back({at(mesh.worldOf, peer), offset, size});
    offset += size;
  }
  return peers;
}

std::shared_ptr<const std::vector<PeerPart>> BlockMap::peers(const Place &place, int64_t position) {
  auto rows = [](const std::vector<PeerPart> &peers) { return peers.size(); };
  auto known = [&](std::optional<std::vector<int64_t>> key, auto make) {
    std::vector<int64_t> full = numbersOf(place);
    if (key)
      full.insert(full.end(), key->begin(), key->end());
    else
      full.push_back(position);
    return knownPeers.of(full, make, rows);
  };
  if (place.from.isSummed())
    return known(std::nullopt, [&] { return summedParts(place, position); });
  if (isBetweenShards(place))
    return known(meetingKey(place, position), [&] { return meet(place, position).peers; });
  if (isLower(place))
    return known(lowerKey(place, position), [&] { return lower(place, position).peers; });
  std::map<int64_t, int64_t> counts;
  std::vector<int64_t> key{-1};
  if (travels(place)) {
    const Move &move = moveOf(place);
    auto allowed = based(place.segment, move.upper, position);
    if (allowed && allowed->empty()) // most ranks own no block of most groups
      return noPeers;
    const std::vector<int64_t> &alike = alikeBlocks(place, position);
    if (allowed) {
      for (int64_t index : *allowed)
        ++counts[at(alike, block(place.segment, index) % static_cast<int64_t>(alike.size()))];
    } else {
      const std::vector<std::vector<int64_t>> &within = blocksOf(place.segment).within;
      for (size_t i = 0; i < within.size(); ++i)
        counts[alike[i]] += static_cast<int64_t>(within[i].size());
    }
    key = {at(move.peers->of, position)};
    for (auto [within, count] : counts)
      key.insert(key.end(), {within, count});
  }
  return known(std::move(key), [&] { return upperPeers(place, position, counts); });
}

BlockMap::PeersOfPlace::PeersOfPlace(BlockMap &map, const Place &place) : map(map), place(place) {
  if (place.from.isSummed() || isBetweenShards(place) || !map.travels(place))
    return;
  const Move &found = map.moveOf(place);
  if (map.isLower(place)) {
    move = found.lower == 0 ? &found : nullptr;
  } else if (const Bases &all = map.bases(place.segment, 0, found.upper); all.owned) {
    move = &found;
    bases = &all;
  }
}

std::shared_ptr<const std::vector<PeerPart>> BlockMap::PeersOfPlace::at(int64_t position) {
  if (!move)
    return map.peers(place, position);
  if (bases) // most ranks own no block of most groups
    return bases->at.of(bases->owned->part(position)).empty() ? map.noPeers
                                                              : map.peers(place, position);
  auto next = map.lowerKey(place, *move, position);
  if (!last || next != key) {
    key = next;
    last = map.peers(place, position);
  }
  return last;
}

//===----------------------------------------------------------------------===//
// What positions have in common
//===----------------------------------------------------------------------===//

const std::vector<int64_t> &BlockMap::alikeBlocks(const Place &place, int64_t position) {
  int64_t group = at(thePlan.segments, place.segment).group;
  const Move &move = moveOf(place);
  int64_t which = at(move.peers->of, position);
  auto [found, isNew] =
      kind(group, formOf(place)).alikeBlocks.try_emplace({move.lower, move.peers, which});
  std::vector<int64_t> &alike = found->second;
  if (!isNew)
    return alike;
  if (at(blocksPerParameter, group) == 1)
    return alike = {0};
  std::vector<std::vector<int64_t>> rects(static_cast<size_t>(at(blocksPerParameter, group)));
  for (int64_t peer : move.peers->members.of(which))
    for (const Rect &r : pieces(group, formOf(place), move.lower, peer).rects) {
      auto &list = rects[static_cast<size_t>(r.block)];
      list.insert(list.end(), {peer, r.row, r.col, r.rows, r.cols});
    }
  std::map<std::vector<int64_t>, int64_t> firsts;
  for (std::vector<int64_t> &list : rects)
    alike.push_back(
        firsts.try_emplace(std::move(list), static_cast<int64_t>(alike.size())).first->second);
  return alike;
}

std::optional<std::vector<int64_t>> BlockMap::lowerKey(const Place &place, int64_t position) {
  const Move &move = moveOf(place);
  if (move.lower > 0)
    return std::nullopt;
  std::array<int64_t, 3> key = lowerKey(place, move, position);
  return std::vector(key.begin(), key.end());
}

std::optional<std::vector<int64_t>> BlockMap::walkKey(const Place &place, int64_t position) {
  if (place.from.isSummed())
    return std::nullopt;
  if (isBetweenShards(place))
    return meetingKey(place, position);
  if (isLower(place) || !travels(place))
    return lowerKey(place, position);
  const std::vector<int64_t> &alike = alikeBlocks(place, position);
  auto perParameter = static_cast<int64_t>(alike.size());
  std::vector<int64_t> key{at(moveOf(place).peers->of, position)};
  int64_t last = -1;
  for (int64_t index : standing(place, position)) {
    int64_t b = block(place.segment, index);
    // A row may go on from one block to the next only within a parameter.
    bool goesOn = b / perParameter == std::exchange(last, b / perParameter);
    key.push_back(2 * at(alike, b % perParameter) + goesOn);
  }
  return key;
}

std::vector<int64_t> BlockMap::shiftsOfBlocks(const Place &place, int64_t position) {
  int64_t group = at(thePlan.segments, place.segment).group,
          perParameter = at(blocksPerParameter, group);
  View each = view(at(thePlan.groups, group), place.value);
  std::vector<int64_t> all = computedOf(group, position), result;
  for (int64_t index : computed(place.segment, position)) {
    int64_t b = block(place.segment, index);
    auto first = std::lower_bound(all.begin(), all.end(), b / perParameter * perParameter);
    result.push_back((std::lower_bound(first, all.end(), b) - first) * each.rows * each.cols);
  }
  return result;
}

std::vector<int64_t> BlockMap::shifts(const Place &place, int64_t position, int64_t *total) {
  int64_t group = at(thePlan.segments, place.segment).group, next = 0;
  if (place.from == Distribution::StateBlocks)
    return shiftsOfBlocks(place, position);
  const ShardRects &shard = this->shard(group, {place.value, place.from.whose()}, position);
  std::vector<int64_t> result;
  for (int64_t index : held(place.segment, shard)) {
    auto rects = shard.of(block(place.segment, index) % at(blocksPerParameter, group));
    result.push_back(place.isBound() ? 0 : next - rects.front().offset);
    int64_t end = 0;
    for (const Rect &rect : rects)
      end = std::max(end, rect.offset + (rect.rows - 1) * rect.stride + rect.cols);
    next += end - rects.front().offset;
  }
  if (total)
    *total = next;
  return result;
}

} // namespace stepc::plan
