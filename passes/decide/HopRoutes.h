//===- HopRoutes.h - What ranks pass on, hop by hop -------------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_HOPROUTES_H
#define STEPC_PASSES_DECIDE_HOPROUTES_H

#include "passes/decide/GroupGeometry.h"

namespace stepc::decide {

/// Elements that each position of a group's mesh sends and receives in each of several hops. Even if owners
/// are balanced, the way to them may not be: all that goes to one place of each node passes one rank there.
class HopRoutes {
public:
  struct Load {
    double sentThere = 0, receivedThere = 0, sentBack = 0, receivedBack = 0;
    double there() const { return std::max(sentThere, receivedThere); }
    double back() const { return std::max(sentBack, receivedBack); }
  };
  using Loads = std::vector<std::vector<Load>>; // [hop][position]

  explicit HopRoutes(const GroupGeometry &geometry);
  /// Whether there are several hops that all lead to one owner. Otherwise nothing is followed.
  bool areFollowed() const { return !coordinates.empty(); }
  Loads none() const;
  /// Adds the ways of `count` blocks at one place of their parameters, to the owner at `base` and back.
  void add(int64_t place, int64_t base, int64_t count, Loads &loads) const;

private:
  struct Holder {
    int64_t position, area;
  };
  std::vector<std::vector<Holder>> holders; // per block of a parameter
  // Per hop and position: the position that has only its coordinates along the hop's factors; and only those
  // along factors of axes that replicate what is sent.
  std::vector<std::vector<int64_t>> coordinates, copies;
};

} // namespace stepc::decide

#endif
