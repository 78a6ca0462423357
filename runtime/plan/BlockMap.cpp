//===- BlockMap.cpp - Who holds and computes which blocks after each hop ----===//

#include "runtime/plan/BlockMap.h"

#include <numeric>

namespace stepc::plan {

using geometry::Rect;

BlockMap::BlockMap(const Plan &plan) : thePlan(plan), ranks(plan.world()) {
  for (const Mesh &mesh : plan.meshes) {
    MeshView view;
    view.positionOf.assign(ranks.size(), -1);
    for (size_t position = 0; position < mesh.ranks.size(); ++position) {
      auto found = std::lower_bound(ranks.begin(), ranks.end(), mesh.ranks[position]);
      // A mesh that no group uses may have ranks outside of the world.
      bool inside = found != ranks.end() && *found == mesh.ranks[position];
      view.worldOf.push_back(inside ? found - ranks.begin() : -1);
      if (inside)
        view.positionOf[static_cast<size_t>(view.worldOf.back())] = static_cast<int64_t>(position);
    }
    view.byWorld.resize(mesh.ranks.size());
    std::iota(view.byWorld.begin(), view.byWorld.end(), 0);
    std::sort(view.byWorld.begin(), view.byWorld.end(),
              [&](int64_t a, int64_t b) { return at(view.worldOf, a) < at(view.worldOf, b); });
    meshes.push_back(std::move(view));
  }
  for (const Group &group : plan.groups) {
    blocksPerParameter.push_back(group.blocksPerParameter());
    presences.push_back(group.rows() * group.cols() > 0 ? ValueKind::Full : ValueKind::One);
  }
  kinds.resize(plan.groups.size() * kShardsKinds);
  segments.resize(plan.segments.size());
}

void BlockMap::trim() {
  constexpr int64_t kMostBytes = int64_t(32) << 20;
  if (likeBytes > kMostBytes) {
    for (std::forward_list<KnownKind> &each : kinds)
      for (KnownKind &known : each)
        std::vector<int32_t>().swap(known.likes);
    likeBytes = 0;
  }
  if (heldBytes <= kMostBytes)
    return;
  for (std::forward_list<KnownKind> &each : kinds)
    for (KnownKind &known : each)
      known.view.reset();
  for (std::unique_ptr<SegmentBlocks> &blocks : segments)
    blocks.reset();
  heldBytes = 0;
}

int64_t BlockMap::positionIn(int64_t group, int64_t rank) const {
  if (rank < 0 || rank >= worldSize())
    return -1;
  return at(at(meshes, at(thePlan.groups, group).mesh).positionOf, rank);
}

BlockMap::KnownKind &BlockMap::known(int64_t group, ShardForm form) {
  int64_t index = group * kShardsKinds + static_cast<int64_t>(form.whose);
  std::forward_list<KnownKind> &all = kinds[static_cast<size_t>(index)];
  for (KnownKind &known : all)
    if (known.value == form.value)
      return known;
  return all.emplace_front(form.value);
}

KindView &BlockMap::kind(int64_t group, ShardForm form) {
  std::unique_ptr<KindView> &view = known(group, form).view;
  if (!view) {
    const Group &g = at(thePlan.groups, group);
    view = std::make_unique<KindView>();
    geometry::View shape = computedView(g, form.value);
    view->rows = shape.rows;
    view->cols = shape.cols;
    view->replicated = geometry::replicatedAxes(g, form.value, form.whose);
    std::vector<Factor> resolved;
    std::vector<int64_t> left = at(thePlan.meshes, g.mesh).sizes;
    for (size_t axis = 0; axis < left.size(); ++axis)
      left[axis] = view->replicated[axis] ? 1 : left[axis];
    for (size_t level = 0; level <= g.hops.size(); ++level) {
      bool all =
          level > 0 && std::all_of(left.begin(), left.end(), [](auto size) { return size == 1; });
      view->levels.push_back({&classes(g.mesh, resolved), all});
      if (level == g.hops.size())
        break;
      if (chooses(g.hops, level))
        continue;
      for (const auto *factors : {&g.hops[level].owned, &g.hops[level].replicated})
        for (const Factor &factor : *factors)
          if (auto axis = static_cast<size_t>(factor.axis); !view->replicated[axis]) {
            resolved.push_back(factor);
            left[axis] /= factor.size;
          }
    }
  }
  return *view;
}

void ShardRects::index(size_t blocks) {
  first.assign(blocks + 1, 0);
  elements.assign(blocks, 0);
  for (const Rect &rect : rects) {
    if (held.empty() || held.back() != rect.block)
      held.push_back(rect.block);
    ++first[static_cast<size_t>(rect.block) + 1];
    elements[static_cast<size_t>(rect.block)] += rect.rows * rect.cols;
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  filled = true;
}

int64_t ShardRects::bytes() const {
  constexpr size_t kLists = 5, kOfAllocation = 16;
  return static_cast<int64_t>(
      sizeof(ShardRects) + kLists * kOfAllocation + rects.size() * sizeof(Rect) +
      (first.size() + elements.size() + held.size() + inSlab.size()) * sizeof(int64_t));
}

void ShardRects::findSlabs(Division::Axis axis) {
  for (int64_t block : held) {
    std::vector<geometry::Run> runs = geometry::slabRuns(of(block), axis);
    for (const Rect &rect : of(block)) {
      int64_t begin = axis == Division::Rows ? rect.row : rect.col;
      auto run = std::partition_point(runs.begin(), runs.end(), [&](const geometry::Run &each) {
        return each.global + each.length <= begin;
      });
      inSlab.push_back(run == runs.end() ? 0 : run->local + begin - run->global);
    }
  }
}

/// Whether two shards have equal rectangles, except that all are shifted by some rows and columns.
static bool areAlike(const ShardRects &a, const ShardRects &b) {
  return std::equal(a.rects.begin(), a.rects.end(), b.rects.begin(), b.rects.end(),
                    [&](Rect x, const Rect &y) {
                      x.row += b.row - a.row;
                      x.col += b.col - a.col;
                      return x == y;
                    });
}

const ShardRects &BlockMap::shard(int64_t group, ShardForm form, int64_t position) {
  const Group &g = at(thePlan.groups, group);
  std::vector<ShardRects> &shards = kind(group, form).shards;
  shards.resize(at(thePlan.meshes, g.mesh).ranks.size()); // only once, so references stay valid
  ShardRects &shard = shards[static_cast<size_t>(position)];
  if (shard.filled)
    return shard;
  if (form.whose == ShardsKind::StateBlocks) {
    View each = view(g, form.value);
    for (int64_t block = 0; block < at(blocksPerParameter, group); ++block)
      shard.rects.push_back({block, 0, 0, each.rows, each.cols, 0, each.cols});
  } else if (at(blocksPerParameter, group) > 0) {
    // Geometry gives a value of kind One a rectangle even if the parameter has no blocks. It is left out.
    shard.rects =
        geometry::rectangles(g, at(thePlan.meshes, g.mesh), position, form.value, form.whose);
  }
  shard.index(static_cast<size_t>(at(blocksPerParameter, group)));
  if (!shard.rects.empty()) {
    shard.row = shard.rects[0].row;
    shard.col = shard.rects[0].col;
  }
  if (!g.slabs.factors.empty() && form.value == ValueKind::Full)
    shard.findSlabs(g.slabs.axis);
  std::vector<int64_t> &unlike = kind(group, form).unlike;
  auto same = std::find_if(unlike.begin(), unlike.end(),
                           [&](int64_t other) { return areAlike(shard, at(shards, other)); });
  if (same == unlike.end())
    same = unlike.insert(same, position);
  shard.like = *same;
  heldBytes += shard.bytes();
  return shard;
}

int64_t BlockMap::like(int64_t group, ShardForm form, int64_t position) {
  std::vector<int32_t> &known = this->known(group, form).likes;
  if (known.empty()) {
    known.resize(at(thePlan.meshes, at(thePlan.groups, group).mesh).ranks.size(), -1);
    likeBytes += static_cast<int64_t>(known.size() * sizeof(int32_t));
  }
  int32_t &result = known[static_cast<size_t>(position)];
  if (result < 0)
    result = static_cast<int32_t>(shard(group, form, position).like);
  return result;
}

//===----------------------------------------------------------------------===//
// Hops
//===----------------------------------------------------------------------===//

std::vector<Factor> BlockMap::factors(const Group &group, int64_t lower, int64_t upper, bool owned,
                                      bool replicated) {
  std::vector<Factor> result;
  for (int64_t level = lower; level < upper; ++level) {
    const Hop &hop = at(group.hops, level);
    if (owned)
      result.insert(result.end(), hop.owned.begin(), hop.owned.end());
    if (replicated)
      result.insert(result.end(), hop.replicated.begin(), hop.replicated.end());
  }
  return result;
}

std::vector<Factor> BlockMap::along(const KindView &view, std::vector<Factor> factors,
                                    bool replicated) {
  std::erase_if(factors, [&](const Factor &factor) {
    return view.replicated[static_cast<size_t>(factor.axis)] != replicated;
  });
  return factors;
}

Lists::Lists(const std::vector<int64_t> &keys, int64_t lists, const std::vector<int64_t> *order)
    : items(keys.size()), first(static_cast<size_t>(lists) + 1, 0) {
  for (int64_t key : keys)
    ++first[static_cast<size_t>(key) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<int64_t> next = first;
  for (size_t i = 0; i < keys.size(); ++i) {
    int64_t item = order ? (*order)[i] : static_cast<int64_t>(i);
    items[static_cast<size_t>(next[static_cast<size_t>(keys[static_cast<size_t>(item)])]++)] = item;
  }
}

const Classes &BlockMap::classes(int64_t mesh, const std::vector<Factor> &factors) {
  const std::vector<int64_t> &sizes = at(thePlan.meshes, mesh).sizes;
  std::vector<std::pair<int64_t, int64_t>> digits;
  for (const Factor &factor : factors) {
    int64_t apart = factor.stride;
    for (size_t axis = static_cast<size_t>(factor.axis) + 1; axis < sizes.size(); ++axis)
      apart *= sizes[axis];
    if (factor.size > 1)
      digits.push_back({apart, factor.size});
  }
  MeshView &view = meshes[static_cast<size_t>(mesh)];
  auto [found, isNew] = view.classes.try_emplace(std::move(digits));
  Classes &result = found->second;
  if (!isNew)
    return result;
  size_t count = view.worldOf.size();
  result.of.resize(count);
  for (size_t position = 0; position < count; ++position) {
    auto rest = static_cast<int64_t>(position);
    for (auto [apart, size] : found->first)
      rest -= static_cast<int64_t>(position) / apart % size * apart;
    result.of[position] = rest;
  }
  result.members = Lists(result.of, static_cast<int64_t>(count), &view.byWorld);
  return result;
}

const ShardRects &BlockMap::pieces(int64_t group, ShardForm form, int64_t level, int64_t position) {
  if (level == 0)
    return shard(group, form, position);
  KindView &view = kind(group, form);
  const Classes *holders = at(view.levels, level).holders;
  int64_t which = at(holders->of, position);
  ShardRects &result = view.pieces[{level, which}];
  if (result.filled)
    return result;
  int64_t blocks = at(blocksPerParameter, group);
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t holder : holders->members.of(which)) {
      std::span<const Rect> rects = shard(group, form, holder).of(block);
      result.rects.insert(result.rects.end(), rects.begin(), rects.end());
    }
  result.index(static_cast<size_t>(blocks));
  heldBytes += result.bytes();
  return result;
}

//===----------------------------------------------------------------------===//
// Blocks of segments
//===----------------------------------------------------------------------===//

int64_t BlockMap::blockCount(int64_t segment) const {
  const Segment &s = at(thePlan.segments, segment);
  if (!s.all)
    return static_cast<int64_t>(s.blocks.size());
  return at(blocksPerParameter, s.group) *
         static_cast<int64_t>(at(thePlan.groups, s.group).parameters.size());
}

SegmentBlocks &BlockMap::blocksOf(int64_t segment) {
  std::unique_ptr<SegmentBlocks> &blocks = segments[static_cast<size_t>(segment)];
  if (blocks)
    return *blocks;
  blocks = std::make_unique<SegmentBlocks>();
  int64_t perParameter = at(blocksPerParameter, at(thePlan.segments, segment).group);
  blocks->within.resize(static_cast<size_t>(perParameter));
  for (int64_t index = 0, count = blockCount(segment); index < count; ++index)
    blocks->within[static_cast<size_t>(block(segment, index) % perParameter)].push_back(index);
  return *blocks;
}

const Bases &BlockMap::bases(int64_t segment, int64_t lower, int64_t upper) {
  SegmentBlocks &blocks = blocksOf(segment);
  auto [found, isNew] = blocks.bases.try_emplace({lower, upper});
  Bases &result = found->second;
  if (!isNew)
    return result;
  const Group &group = groupOf(segment);
  auto count = blockCount(segment);
  result.of.assign(static_cast<size_t>(count), 0);
  std::vector<Factor> all = factors(group, lower, upper, true, false);
  result.owned = all.empty() ? nullptr : &classes(group.mesh, all);
  for (int64_t level = lower; level < upper; ++level) {
    const Hop &hop = at(group.hops, level);
    const Classes &owned = classes(group.mesh, hop.owned);
    for (int64_t index = 0; index < count && !hop.base.empty(); ++index)
      result.of[static_cast<size_t>(index)] += owned.part(at(hop.base, block(segment, index)));
  }
  result.at =
      Lists(result.of, static_cast<int64_t>(at(meshes, group.mesh).worldOf.size()), nullptr);
  heldBytes += static_cast<int64_t>(sizeof(int64_t)) *
               (2 * count + static_cast<int64_t>(result.at.first.size()));
  for (const std::vector<int64_t> &within : blocks.within) {
    auto &list = result.counts.emplace_back();
    for (int64_t index : within)
      list.push_back({at(result.of, index), 1});
    std::sort(list.begin(), list.end());
    size_t kept = 0;
    for (auto [base, number] : list)
      if (kept > 0 && list[kept - 1].first == base)
        list[kept - 1].second += number;
      else
        list[kept++] = {base, number};
    list.resize(kept);
  }
  return result;
}

void BlockMap::collect(const ShardRects &shard, const std::vector<std::vector<int64_t>> &within,
                       int64_t count, std::vector<int64_t> &out) {
  bool all = shard.held.size() == within.size();
  out.clear();
  if (all) {
    out.resize(static_cast<size_t>(count));
    std::iota(out.begin(), out.end(), 0);
    return;
  }
  for (int64_t place : shard.held)
    out.insert(out.end(), at(within, place).begin(), at(within, place).end());
  if (!std::is_sorted(out.begin(), out.end()))
    std::sort(out.begin(), out.end());
}

std::vector<int64_t> BlockMap::held(int64_t segment, const ShardRects &shard) {
  std::vector<int64_t> result;
  collect(shard, blocksOf(segment).within, blockCount(segment), result);
  return result;
}

std::optional<std::span<const int64_t>> BlockMap::based(int64_t segment, int64_t level,
                                                        int64_t position) {
  const Bases *bases = level > 0 ? &this->bases(segment, 0, level) : nullptr;
  if (!bases || !bases->owned)
    return std::nullopt;
  return bases->at.of(bases->owned->part(position));
}

std::vector<int64_t> BlockMap::standing(int64_t segment, ShardForm form, int64_t level,
                                        int64_t position) {
  int64_t group = at(thePlan.segments, segment).group;
  std::optional<std::span<const int64_t>> allowed = based(segment, level, position);
  std::vector<int64_t> result;
  if (at(kind(group, form).levels, level).all) {
    if (allowed)
      return {allowed->begin(), allowed->end()};
    result.resize(static_cast<size_t>(blockCount(segment)));
    std::iota(result.begin(), result.end(), 0);
    return result;
  }
  const ShardRects &pieces = this->pieces(group, form, level, position);
  if (!allowed)
    return held(segment, pieces);
  for (int64_t index : *allowed)
    if (!pieces.of(block(segment, index) % at(blocksPerParameter, group)).empty())
      result.push_back(index);
  return result;
}

std::vector<int64_t> BlockMap::standing(const Place &place, int64_t position) {
  if (isBetweenShards(place))
    return held(place.segment, sharedOf(place, position));
  // A block has the same slot for values of all kinds. So `presence` says which blocks have slots: a kind
  // that drops an axis may also stand on ranks that do not compute the block.
  ShardForm form = formOf(place);
  if (!place.standsIn().isShards() && place.standsIn().kind != Distribution::Pieces)
    form.value = presence(place.segment);
  return standing(place.segment, form, place.standsIn().level(groupOf(place.segment)), position);
}

std::vector<int64_t> BlockMap::computed(int64_t segment, int64_t position) {
  return groupOf(segment).computes ? standing(computedIn(segment), position)
                                   : std::vector<int64_t>();
}

std::vector<int64_t> BlockMap::computedOf(int64_t group, int64_t position) {
  const Group &g = at(thePlan.groups, group);
  std::vector<int64_t> result;
  int64_t perParameter = at(blocksPerParameter, group),
          count = perParameter * static_cast<int64_t>(g.parameters.size());
  if (!g.computes || count == 0)
    return result;
  auto level = static_cast<int64_t>(g.hops.size());
  // Hops that own factors, each with the classes of positions along its factors.
  std::vector<std::pair<const Hop *, const Classes *>> owning;
  for (const Hop &hop : g.hops)
    if (!hop.base.empty())
      owning.push_back({&hop, &classes(g.mesh, hop.owned)});
  ShardForm form(at(presences, group), home(g, at(thePlan.rules, g.rule)).whose());
  const ShardRects &pieces = this->pieces(group, form, level, position);
  for (int64_t block = 0; block < count; ++block) {
    bool comes = !pieces.of(block % perParameter).empty();
    for (auto [hop, along] : owning)
      comes = comes && along->part(at(hop->base, block)) == along->part(position);
    if (comes)
      result.push_back(block);
  }
  return result;
}

int64_t BlockMap::computedCount(int64_t segment, int64_t position) {
  const Group &group = groupOf(segment);
  auto level = static_cast<int64_t>(group.hops.size());
  ShardForm form = formOf(computedIn(segment));
  if (!group.computes || !at(kind(at(thePlan.segments, segment).group, form).levels, level).all)
    return static_cast<int64_t>(computed(segment, position).size());
  std::optional<std::span<const int64_t>> allowed = based(segment, level, position);
  return allowed ? static_cast<int64_t>(allowed->size()) : blockCount(segment);
}

} // namespace stepc::plan
