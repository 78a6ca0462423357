//===- Teams.h - Who adds up what slabs add to their blocks -------*- C++ -*-===//
//
// Internal to the plan. The ranks that have slabs of a block are a team. Each rank of a team has a part of
// each value of the team's blocks, and the value is the sum of the parts. The elements of all blocks of a
// team form one list, in the order of slots. Each rank adds up one range of this list and sends the sums to
// the others.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_TEAMS_H
#define STEPC_RUNTIME_PLAN_TEAMS_H

#include <cstdint>
#include <vector>

namespace stepc::plan {

/// The teams among positions that differ along the factors of a group's slabs. Teams are ordered by their
/// first blocks.
struct Teams {
  std::vector<int64_t> of;                     // per block within a parameter; -1: no rank has any
  std::vector<std::vector<int64_t>> positions; // per team, by ascending world rank
};

/// One team, seen from one of its positions, for values of one kind.
struct Team {
  const std::vector<int64_t> *positions = nullptr;
  std::vector<int64_t> slots; // of the team's blocks, ascending
  int64_t elements = 0;       // of all these blocks
  int64_t self = 0;           // the position's index in `positions`

  int64_t begin(int64_t number) const {
    auto count = static_cast<int64_t>(positions->size());
    return elements / count * number + elements % count * number / count;
  }
  int64_t size(int64_t number) const { return begin(number + 1) - begin(number); }
  int64_t own() const { return size(self); }
};

/// What is sent to a peer or was received from it: a range of elements for each team that both ranks belong
/// to, one range after the other.
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
