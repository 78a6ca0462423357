//===- HopRoutes.h - What ranks pass on, hop by hop -------------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_HOPROUTES_H
#define STEPC_PASSES_DECIDE_HOPROUTES_H

#include "passes/decide/GroupGeometry.h"

namespace stepc::decide {

/// Elements that each position of a group's mesh sends and receives in each of several hops. Even if owners
/// are balanced, the ways to them may not be: one rank of a node passes on all that its node sends to ranks
/// with the same coordinate within other nodes.
class HopRoutes {
public:
  struct Load {
    double sentThere = 0, receivedThere = 0, sentBack = 0, receivedBack = 0;
    double there() const { return std::max(sentThere, receivedThere); }
    double back() const { return std::max(sentBack, receivedBack); }
  };
  using Loads = std::vector<std::vector<Load>>; // [hop][position]

  explicit HopRoutes(const GroupGeometry &geometry);
  /// Whether the group has several hops with owned factors alone. Otherwise this object counts nothing.
  bool areFollowed() const { return !coordinates.empty(); }
  Loads none() const;
  /// Adds to `loads` the elements of `count` blocks on the way to the owner at `base` and back. All have the
  /// number `place` within their parameters.
  void add(int64_t place, int64_t base, int64_t count, Loads &loads) const;

private:
  struct Holder {
    int64_t position, area;
  };
  std::vector<std::vector<Holder>> holders; // per block of a parameter
  // Per hop and position: the position with the same coordinates along the hop's factors and 0 along all
  // else; for `copies` only along those factors whose axes replicate the shards.
  std::vector<std::vector<int64_t>> coordinates, copies;
};

} // namespace stepc::decide

#endif
