//===- LinkFit.h - A link's figures from measured times ---------*- C++ -*-===//
#ifndef STEPC_PASSES_COST_LINKFIT_H
#define STEPC_PASSES_COST_LINKFIT_H

#include "passes/cost/Cluster.h"

#include <optional>

namespace stepc::cost {

/// A measurement: each rank sent `messages` messages of `bytes` bytes at the same time and received as many.
/// This took `seconds`.
struct LinkSample {
  double messages, bytes, seconds;
};

/// The link whose `Link::seconds` is nearest to the samples: least squares of the relative errors, with a gap
/// from 0 to the latency. Returns nullopt if no such link fits, for example if no sample has bytes. If no
/// sample has several messages, the gap is the latency.
std::optional<Link> fitLink(const std::vector<LinkSample> &samples);

} // namespace stepc::cost

#endif
