//===- BlockWalks.h - What stands in a packed place, in its order -*- C++ -*-===//
//
// Internal to the plan: the walks of BlockMap.h, for files that make rows of tables from them.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_BLOCKWALKS_H
#define STEPC_RUNTIME_PLAN_BLOCKWALKS_H

#include "runtime/plan/BlockMap.h"

namespace stepc::plan {

template <typename Visit>
void BlockMap::walkUpper(const Place &place, int64_t position, Visit visit) {
  if (!travels(place))
    return;
  int64_t segment = place.segment, group = at(thePlan.segments, segment).group;
  const Move &move = moveOf(place);
  std::vector<int64_t> mine = standing(place, position);
  if (mine.empty())
    return;
  int64_t perParameter = at(blocksPerParameter, group);
  // Numbers of the standing blocks, by block within the parameter: most holders hold only some of these.
  std::vector<std::vector<int64_t>> within(static_cast<size_t>(perParameter));
  std::vector<int64_t> numbers;
  for (size_t number = 0; number < mine.size(); ++number)
    within[static_cast<size_t>(block(segment, mine[number]) % perParameter)].push_back(
        static_cast<int64_t>(number));
  int64_t offset = 0;
  for (int64_t peer : move.peers->members.of(at(move.peers->of, position))) {
    const ShardRects &pieces = this->pieces(group, formOf(place), move.lower, peer);
    collect(pieces, within, static_cast<int64_t>(mine.size()), numbers);
    for (int64_t number : numbers) {
      int64_t b = block(segment, at(mine, number));
      for (const geometry::Rect &rect : pieces.of(b % perParameter)) {
        visit(number, b, rect, offset);
        offset += rect.rows * rect.cols;
      }
    }
  }
}

template <typename Visit>
void BlockMap::walkSums(const Place &place, int64_t position, Visit visit) {
  int64_t segment = place.segment, group = at(thePlan.segments, segment).group;
  const KindView &view = kind(group, formOf(place));
  int64_t each = view.rows * view.cols;
  std::vector<int64_t> slots = computed(segment, position);
  std::vector<Team> teams = teamsAt(place, position);
  // Visits a range as rectangles. A range may begin and end in the middle of a row.
  auto walkRange = [&](const TeamPart::Range &range, int64_t offset, int64_t own) {
    for (int64_t next = range.begin; next < range.end;) {
      int64_t inside = next % each, row = inside / view.cols, col = inside % view.cols, rows = 1;
      int64_t left = range.end - next, cols = std::min(left, view.cols - col);
      if (cols == view.cols)
        rows = std::min(left / cols, view.rows - row);
      int64_t number = at(teams[range.team].slots, next / each),
              b = block(segment, at(slots, number));
      int64_t done = next - range.begin;
      visit(number, b,
            geometry::Rect{b % at(blocksPerParameter, group), row, col, rows, cols, 0, cols},
            offset + done, static_cast<int64_t>(range.team), own < 0 ? -1 : own + done);
      next += rows * cols;
    }
  };
  std::vector<int64_t> own{0}; // per team, where the position's own range begins
  for (const Team &team : teams)
    own.push_back(own.back() + team.own());
  bool isRange = place.standsIn() == Distribution::Ranges;
  if (isRange && place.end == End::Received) {
    for (size_t i = 0; i < teams.size(); ++i) {
      int64_t self = teams[i].self;
      walkRange({i, teams[i].begin(self), teams[i].begin(self + 1)}, own[i], own[i]);
    }
    return;
  }
  int64_t done = 0;
  for (const TeamPart &part : teamParts(place, teams)) {
    if (part.offset < done) // earlier peers share this part
      continue;
    int64_t offset = part.offset;
    for (const TeamPart::Range &range : part.ranges) {
      walkRange(range, offset, isRange ? own[range.team] : -1);
      offset += range.end - range.begin;
    }
    done = offset;
  }
}

template <typename Visit> void BlockMap::walk(const Place &place, int64_t position, Visit visit) {
  int64_t segment = place.segment, group = at(thePlan.segments, segment).group, number = 0;
  int64_t perParameter = at(blocksPerParameter, group);
  if (place.from.isSummed())
    return walkSums(place, position,
                    [&](int64_t slot, int64_t b, const geometry::Rect &rect, int64_t offset,
                        int64_t, int64_t) { visit(slot, b, rect, offset); });
  if (isBetweenShards(place)) {
    const SharedRects &shared = sharedOf(place, position);
    std::vector<int64_t> next = meet(place, position).starts;
    for (int64_t index : held(segment, shared)) {
      int64_t b = block(segment, index);
      for (const geometry::Rect &rect : shared.of(b % perParameter)) {
        int64_t &start = next[static_cast<size_t>(shared.with[&rect - shared.rects.data()])];
        visit(number, b, rect, start);
        start += start < 0 ? 0 : rect.rows * rect.cols;
      }
      ++number;
    }
    return;
  }
  if (!isLower(place))
    return walkUpper(place, position, visit);
  int64_t level = place.standsIn().level(groupOf(segment));
  const ShardRects &pieces = this->pieces(group, formOf(place), level, position);
  LowerParts parts = lowerOffsets(place, position);
  for (int64_t index : standing(segment, formOf(place), level, position)) {
    int64_t b = block(segment, index), offset = at(parts.offsets, number);
    for (const geometry::Rect &rect : pieces.of(b % perParameter)) {
      visit(number, b, rect, offset);
      offset += offset < 0 ? 0 : rect.rows * rect.cols;
    }
    ++number;
  }
}

} // namespace stepc::plan

#endif
