//===- Processor.cpp - Devices that ranks share ----------------------------===//

#include "passes/simulate/Processor.h"

#include <algorithm>
#include <limits>

using namespace stepc::simulate;

double Processor::speed() const { return std::min(1.0, devices / double(jobs.size())); }

void Processor::advance(double now) {
  if (!jobs.empty())
    served += (now - since) * speed();
  since = now;
}

void Processor::submit(double now, int64_t rank, double seconds) {
  advance(now);
  jobs.push({served + seconds, changes++, rank});
}

double Processor::next() const {
  if (jobs.empty())
    return std::numeric_limits<double>::infinity();
  return since + std::max(0.0, jobs.top().served - served) / speed();
}

int64_t Processor::finish(double now) {
  advance(now);
  Job done = jobs.top();
  jobs.pop();
  // Rounding errors must not add up over jobs.
  served = std::max(served, done.served);
  ++changes;
  return done.rank;
}
