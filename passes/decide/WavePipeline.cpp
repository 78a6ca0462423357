//===- WavePipeline.cpp - When ranks are done with waves -------------------===//

#include "passes/decide/WavePipeline.h"

#include <algorithm>

using namespace stepc;
using namespace stepc::decide;

WaveLoads::WaveLoads(const cost::Cluster &cluster, size_t ranks, size_t rounds)
    : cluster(cluster), rounds(rounds), works(ranks),
      traffics(ranks * rounds * 2 * cluster.levels.size()) {}

void WaveLoads::clear() {
  std::fill(works.begin(), works.end(), Work());
  std::fill(traffics.begin(), traffics.end(), Traffic());
}

size_t WaveLoads::indexOf(size_t rank, size_t round, bool back, size_t level) const {
  return ((rank * rounds + round) * 2 + size_t(back)) * cluster.levels.size() + level;
}

void WaveLoads::travel(size_t rank, size_t round, bool back, const std::vector<double> &meeting,
                       double messages, double bytes) {
  if (bytes <= 0)
    return;
  for (size_t level = 0; level < meeting.size(); ++level) {
    Traffic &here = traffics[indexOf(rank, round, back, level)];
    here.messages = std::max(here.messages, messages * meeting[level]);
    here.bytes += bytes * meeting[level];
  }
}

double WaveLoads::seconds(size_t rank, bool back) const {
  double sum = 0;
  for (size_t round = 0; round < rounds; ++round) {
    double longest = 0; // the links of all levels work at a time
    for (size_t level = 0; level < cluster.levels.size(); ++level) {
      const Traffic &here = traffics[indexOf(rank, round, back, level)];
      longest = std::max(longest, cluster.levels[level].link.seconds(here.messages, here.bytes));
    }
    sum += longest;
  }
  return sum;
}

WavePipeline::WavePipeline(const cost::Cluster &cluster, std::vector<double> fill)
    : cluster(cluster), beside(cluster.device.overlaps), fill(std::move(fill)) {}

/// An exchange is under way when the last rank has begun it and is done with the one before.
WavePipeline::Ends WavePipeline::begin(const Wave &wave, double Part::*travel) {
  double meet = 0;
  for (size_t rank = 0; rank < wave.size(); ++rank)
    if (wave[rank].*travel > 0)
      meet = std::max(meet, beside ? std::max(clock[rank], stream[rank]) : clock[rank]);
  Ends ends(wave.size(), 0);
  for (size_t rank = 0; rank < wave.size(); ++rank)
    if (wave[rank].*travel > 0)
      ends[rank] = stream[rank] = meet + (beside ? wave[rank].*travel : 0);
  return ends;
}

/// Where nothing travels beside, who receives takes in what has come, and until then who has sent it
/// waits, too. There only ranks receive that compute.
void WavePipeline::wait(const Ends &ends, const Wave &wave, double Part::*travel) {
  bool isThere = travel == &Part::there;
  double meet = 0;
  if (!beside && isThere)
    for (size_t rank = 0; rank < wave.size(); ++rank)
      if (wave[rank].*travel > 0 && wave[rank].compute > 0)
        meet = std::max(meet, clock[rank]);
  for (size_t rank = 0; rank < wave.size(); ++rank) {
    double end = wave[rank].*travel > 0 ? std::max(ends[rank], meet) : 0;
    bool receives = !isThere || wave[rank].compute > 0;
    clock[rank] = std::max(clock[rank], end) + (!beside && receives ? wave[rank].*travel : 0);
  }
}

/// Where nothing travels beside, who has sent results waits until all have taken them in: while they waited for
/// what comes there, if it was on its way by then, else when they have computed their next blocks.
void WavePipeline::waitForTakers(const Wave &wave) {
  std::vector<std::pair<double, double>> takers; // when each left its last wait, and is at the next one
  for (size_t rank = 0; rank < wave.size(); ++rank)
    if (wave[rank].back > 0)
      takers.emplace_back(left[rank], clock[rank]);
  std::sort(takers.begin(), takers.end());
  for (size_t i = 1; i < takers.size(); ++i)
    takers[i].second = std::max(takers[i].second, takers[i - 1].second);
  for (size_t rank = 0; rank < wave.size(); ++rank) {
    if (wave[rank].back <= 0 || wave[rank].compute <= 0)
      continue;
    auto later = std::lower_bound(takers.begin(), takers.end(), std::pair(sentBack[rank], 0.0));
    if (later != takers.begin())
      clock[rank] = std::max(clock[rank], std::prev(later)->second);
  }
}

/// What is in matrix space. Of two waves that take turns one is computed while the other's sums travel.
void WavePipeline::compute(const Wave &wave) {
  for (size_t rank = 0; rank < wave.size(); ++rank) {
    const Part &now = wave[rank];
    clock[rank] += now.compute + now.sums;
    if (beside && computed % 2 == 1 && now.sums > 0) {
      const Part &before = waves[1][rank];
      double products = now.local + now.compute + before.local + before.compute;
      clock[rank] -= std::min(now.sums + before.sums, products);
    }
  }
  ++computed;
}

void WavePipeline::step(const Wave *next) {
  if (added == 0) {
    clock.assign(next->size(), 0);
    stream = sentBack = clock;
    fill.resize(next->size(), 0);
  }
  Ends begun;
  if (next) {
    for (size_t rank = 0; rank < next->size(); ++rank)
      clock[rank] += (*next)[rank].in;
    begun = begin(*next, &Part::there);
  }
  if (added == 0)
    for (size_t rank = 0; rank < clock.size(); ++rank)
      clock[rank] += fill[rank];
  Ends returning;
  std::vector<double> sent;
  left.assign(clock.size(), -1);
  if (const Wave &wave = waves[0]; !wave.empty()) {
    for (size_t rank = 0; rank < wave.size(); ++rank)
      clock[rank] += wave[rank].local;
    wait(there, wave, &Part::there);
    left = clock;
    compute(wave);
    sent = clock;
    returning = begin(wave, &Part::back);
  }
  if (const Wave &wave = waves[1]; !wave.empty()) {
    if (!beside)
      waitForTakers(wave);
    wait(back, wave, &Part::back);
    for (size_t rank = 0; rank < wave.size(); ++rank)
      clock[rank] += wave[rank].out;
  }
  waves[1] = std::move(waves[0]);
  back = std::move(returning);
  sentBack = std::move(sent);
  waves[0] = next ? *next : Wave();
  there = std::move(begun);
  ++added;
}

void WavePipeline::add(const WaveLoads &loads) {
  Wave wave(loads.ranks());
  double launch = cluster.device.launch;
  for (size_t rank = 0; rank < wave.size(); ++rank) {
    const WaveLoads::Work &work = loads.work(rank);
    auto launched = [&](double seconds) { return seconds > 0 ? seconds + launch : 0; };
    wave[rank] = {launched(work.in),  launched(work.local),       launched(work.compute),
                  work.sums,          launched(work.out),       loads.seconds(rank, false),
                  loads.seconds(rank, true)};
  }
  step(&wave);
}

double WavePipeline::finish() {
  step(nullptr);
  step(nullptr);
  return clock.empty() ? 0 : *std::max_element(clock.begin(), clock.end());
}
