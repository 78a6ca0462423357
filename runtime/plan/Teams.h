//===- Teams.h - Who adds up what slabs add to their blocks -------*- C++ -*-===//
//
// Internal to the plan. The ranks that have slabs of a block are a team. All of them add up what they add to
// a value of the block: each adds up one range of the elements of all blocks of the team, in the order of
// slots, and gives the sums to the others.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_TEAMS_H
#define STEPC_RUNTIME_PLAN_TEAMS_H

#include <cstdint>
#include <vector>

namespace stepc::plan {

/// The teams among positions that differ along the factors of a group's slabs, by their first blocks.
struct Teams {
  std::vector<int64_t> of;                     // per block within a parameter, -1: nobody has any
  std::vector<std::vector<int64_t>> positions; // of each team, by ascending world rank
};

/// One team as it stands at one of its positions, for values of one kind.
struct Team {
  const std::vector<int64_t> *positions = nullptr;
  std::vector<int64_t> slots; // of its blocks, ascending
  int64_t elements = 0;       // of all of them
  int64_t self = 0;           // the number of the position among those of the team

  int64_t begin(int64_t number) const {
    auto count = static_cast<int64_t>(positions->size());
    return elements / count * number + elements % count * number / count;
  }
  int64_t size(int64_t number) const { return begin(number + 1) - begin(number); }
  int64_t own() const { return size(self); }
};

/// What goes to a peer or came from it: a range of elements of each team that both belong to, one after the
/// other.
struct TeamPart {
  struct Range {
    size_t team;
    int64_t begin, end;
  };
  int64_t position = 0, offset = 0, count = 0;
  std::vector<Range> ranges;
};

} // namespace stepc::plan

#endif
