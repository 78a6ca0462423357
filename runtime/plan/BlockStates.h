//===- BlockStates.h - States that stay with blocks -------------*- C++ -*-===//
//
// A state that stays with blocks (Group::blockStates) lies, whole, on the ranks that compute its blocks. For
// each parameter such a rank has one piece of memory: the state's values of those blocks of the parameter
// that the rank computes, ascending and one after another. Other ranks have nothing of the parameter's state.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_BLOCKSTATES_H
#define STEPC_RUNTIME_PLAN_BLOCKSTATES_H

#include "runtime/geometry/Geometry.h"

namespace stepc::plan {

/// The numbers, within parameter `indexInGroup`, of the blocks that a rank computes. `computed` are the
/// group's blocks that the rank computes, ascending.
std::vector<int64_t> blocksWithin(const Group &group, const std::vector<int64_t> &computed,
                                  int64_t indexInGroup);

/// Where a state of a kind of these blocks of a parameter lies in the rank's memory: one rectangle per block.
std::vector<geometry::Rect> blockStateRects(const Group &group, ValueKind kind,
                                            const std::vector<int64_t> &within);

/// The shape of that memory: the state's global shape if these are all blocks of the parameter. Otherwise the
/// number of elements.
std::vector<int64_t> blockStateShape(const Group &group, ValueKind kind,
                                     const std::vector<int64_t> &within);

/// The bytes of the states of one block that stay with it.
int64_t blockStateBytes(const Group &group, const Rule &rule);
/// The bytes of one parameter's other states on a rank: those that lie by placements.
int64_t shardStateBytes(const Group &group, const Rule &rule, const Mesh &mesh, int64_t position);

/// What is wrong with Group::blockStates, for the states of its rule; empty if nothing is.
std::string checkBlockStates(const Group &group, const std::vector<State> &states);

} // namespace stepc::plan

#endif
