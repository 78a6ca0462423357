//===- BlockStates.cpp - States that stay with blocks ---------------------===//

#include "runtime/plan/BlockStates.h"

#include <algorithm>

namespace stepc::plan {

std::vector<int64_t> blocksWithin(const Group &group, const std::vector<int64_t> &computed,
                                  int64_t indexInGroup) {
  int64_t perParameter = group.blocksPerParameter(), base = indexInGroup * perParameter;
  auto begin = std::lower_bound(computed.begin(), computed.end(), base);
  auto end = std::lower_bound(begin, computed.end(), base + perParameter);
  std::vector<int64_t> result(begin, end);
  for (int64_t &block : result)
    block -= base;
  return result;
}

std::vector<geometry::Rect> blockStateRects(const Group &group, ValueKind kind,
                                            const std::vector<int64_t> &within) {
  View each = view(group, kind);
  std::vector<geometry::Rect> rects;
  for (int64_t block : within) {
    auto before = static_cast<int64_t>(rects.size());
    rects.push_back({block, 0, 0, each.rows, each.cols, before * each.rows * each.cols, each.cols});
  }
  return rects;
}

std::vector<int64_t> blockStateShape(const Group &group, ValueKind kind,
                                     const std::vector<int64_t> &within) {
  auto count = static_cast<int64_t>(within.size());
  if (count == group.blocksPerParameter())
    return geometry::stateShape(group, kind);
  View each = view(group, kind);
  return {count * each.rows * each.cols};
}

int64_t blockStateBytes(const Group &group, const Rule &rule) {
  int64_t bytes = 0;
  for (int64_t number : group.blockStates) {
    const State &state = rule.states[static_cast<size_t>(number)];
    View block = view(group, state.kind);
    bytes += block.rows * block.cols * byteSize(state.dtype);
  }
  return bytes;
}

int64_t shardStateBytes(const Group &group, const Rule &rule, const Mesh &mesh, int64_t position) {
  int64_t bytes = 0;
  for (size_t number = 0; number < rule.states.size(); ++number) {
    const State &state = rule.states[number];
    if (state.isKept() && stateExists(group, state) &&
        !group.staysWithBlocks(static_cast<int64_t>(number)))
      bytes += geometry::elements(geometry::localStateShape(group, mesh, position, state.kind)) *
               byteSize(state.dtype);
  }
  return bytes;
}

std::string checkBlockStates(const Group &group, const std::vector<State> &states) {
  for (size_t i = 0; i < states.size(); ++i)
    if (!states[i].kind.isStored() && !group.staysWithBlocks(static_cast<int64_t>(i)))
      return "expected state " + states[i].name + " of " + name(states[i].kind) +
             " values to stay with blocks in group " + group.name + ", found that it does not";
  if (group.blockStates.empty())
    return {};
  bool areWhole = group.computes && group.slabs.factors.empty();
  bool haveAll = group.parts.size() == group.division.parts.size();
  if (!areWhole || !haveAll)
    return "expected states to stay with blocks only where whole blocks, and all of each "
           "parameter, are computed, found some of group " +
           group.name;
  int64_t last = -1;
  for (int64_t state : group.blockStates) {
    if (state <= last || state >= static_cast<int64_t>(states.size()))
      return "expected ascending numbers of the " + std::to_string(states.size()) +
             " states of the rule, found " + std::to_string(state);
    last = state;
    if (states[static_cast<size_t>(state)].master)
      return "expected a master where its parameter is, found that it stays with blocks";
    if (states[static_cast<size_t>(state)].kind.isStored() && !group.division.parts.empty())
      return "expected states of the parameter's sizes to stay with undivided blocks alone, found "
             "one of group " +
             group.name;
    if (!states[static_cast<size_t>(state)].isKept())
      return "expected metrics and inputs where their parameter is, found that one stays with "
             "blocks";
  }
  return {};
}

} // namespace stepc::plan
