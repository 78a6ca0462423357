//===- Simulation.h - Runs a plan's tables on element identities -*- C++
//-*-===//
//
// Every element of every block has an identity. Shards are filled with them by
// an oracle that knows nothing of runs and rectangles, all ranks' tables are
// carried out, and each buffer is checked: written once, read once, right
// identities.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_UNIT_PLAN_SIMULATION_H
#define STEPC_TEST_UNIT_PLAN_SIMULATION_H

#include "runtime/plan/Tables.h"

#include <string>

namespace stepc::test {

/// The identities in a shard's local order: ((block in parameter · R + row) · C
/// + col), with the R and C of the kind; -1 of elements of another part. Element by element, with torch.chunk
/// on lists of indices.
std::vector<int64_t> shardIdentities(const plan::Group &group, const plan::Mesh &mesh,
                                     int64_t position, plan::ValueKind kind);

/// How a group's blocks come together, in what tests ask for.
enum class Strategy { Elementwise, Local, Owner, Gather };

/// The rows and columns of a block's value of a kind.
struct Extent {
  int64_t rows, cols;
};
Extent blockExtent(const plan::Group &group, plan::ValueKind kind);

/// Those of `blocks` that a rank computes, by the rule at the head of Tables.h.
std::vector<int64_t> computedBlocks(const plan::Group &group, const plan::Mesh &mesh,
                                    int64_t position, const std::vector<int64_t> &blocks);

/// All tables that a value of a segment could need, appended to plan.tables.
/// Indices, -1 where the strategy has none.
struct ValueTables {
  int64_t segment = 0;
  plan::ValueKind kind = plan::ValueKind::Full;
  int64_t untouched = -1; // ShardChunks without staging
  int64_t lines = -1;     // LineChunks without staging, of full values
  int64_t pack = -1, packCopy = -1, gather = -1,
          place = -1;   // to matrix, through buffers
  int64_t compute = -1; // BlockChunks
  int64_t unplace = -1, scatter = -1, unpack = -1,
          unpackCopy = -1;                              // to shards, through buffers
  int64_t in = -1, inCopy = -1, out = -1, outCopy = -1; // without buffers

  plan::Place shards() const {
    return plan::Place::resting(segment, kind, plan::Distribution::Shards);
  }
  plan::Place blocks() const {
    return plan::Place::resting(segment, kind, plan::Distribution::Blocks);
  }
  /// At an end of the move from one of the two to the other.
  plan::Place packed(plan::Distribution from, plan::End end) const {
    plan::Distribution to = from == plan::Distribution::Shards ? plan::Distribution::Blocks
                                                               : plan::Distribution::Shards;
    return {segment, kind, from, to, end};
  }
};
ValueTables addTables(plan::Plan &plan, int64_t segment, plan::ValueKind kind);

/// The tables of all ranks.
std::vector<plan::RankTables> expandAll(const plan::Plan &plan);

/// An empty string, or the first thing that is wrong.
std::string simulate(const plan::Plan &plan, const std::vector<plan::RankTables> &ranks,
                     const ValueTables &tables);

} // namespace stepc::test

#endif
