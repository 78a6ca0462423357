//===- LinkFit.h - A link's figures from measured times ---------*- C++ -*-===//
#ifndef STEPC_PASSES_COST_LINKFIT_H
#define STEPC_PASSES_COST_LINKFIT_H

#include "passes/cost/Cluster.h"

#include <optional>

namespace stepc::cost {

/// So long took ranks that each sent `messages` of `bytes` each at a time, and received as many.
struct LinkSample {
  double messages, bytes, seconds;
};

/// The link by which `Link::seconds` is nearest to the samples, in relative terms: least squares, with a gap from 0
/// to the latency. Nothing where no sample has bytes. Where none has several messages the gap is the latency.
std::optional<Link> fitLink(const std::vector<LinkSample> &samples);

} // namespace stepc::cost

#endif
