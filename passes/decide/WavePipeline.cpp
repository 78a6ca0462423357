//===- WavePipeline.cpp - When ranks are done with waves -------------------===//

#include "passes/decide/WavePipeline.h"

#include <algorithm>
#include <utility>

using namespace stepc;
using namespace stepc::decide;

WaveLoads::WaveLoads(const cost::Cluster &cluster, size_t ranks, size_t rounds)
    : cluster(cluster), rounds(rounds), works(ranks), inRounds(ranks * rounds), relays(rounds),
      traffics(ranks * rounds * 2 * cluster.levels.size()) {}

void WaveLoads::clear() {
  std::fill(works.begin(), works.end(), Work());
  std::fill(inRounds.begin(), inRounds.end(), Round());
  std::fill(relays.begin(), relays.end(), false);
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

double WaveLoads::seconds(size_t rank, size_t round, bool back) const {
  double longest = 0; // the links of all levels work at a time
  for (size_t level = 0; level < cluster.levels.size(); ++level) {
    const Traffic &here = traffics[indexOf(rank, round, back, level)];
    longest = std::max(longest, cluster.levels[level].link.seconds(here.messages, here.bytes));
  }
  return longest;
}

WavePipeline::WavePipeline(const cost::Cluster &cluster, std::vector<double> fill, bool joins)
    : cluster(cluster), beside(cluster.device.overlaps), joins(joins), fill(std::move(fill)) {}

static bool hasAny(const std::vector<double> &seconds) {
  return std::any_of(seconds.begin(), seconds.end(), [](double each) { return each > 0; });
}

/// Begins an exchange on all ranks. It travels from the time when its last rank has begun it and, if messages
/// travel beside computation, is done with the exchange before.
void WavePipeline::begin(Exchange &exchange) {
  const Seconds &travel = exchange.travel;
  double meet = 0;
  for (size_t rank = 0; rank < travel.size(); ++rank)
    if (travel[rank] > 0)
      meet = std::max(meet, beside ? std::max(clock[rank], stream[rank]) : clock[rank]);
  exchange.sent = clock;
  exchange.ends.assign(travel.size(), 0);
  for (size_t rank = 0; rank < travel.size(); ++rank)
    if (travel[rank] > 0)
      exchange.ends[rank] = stream[rank] = meet + (beside ? travel[rank] : 0);
}

/// If messages do not travel beside computation, a receiver takes its messages in while it waits. Senders
/// wait until the receivers wait.
void WavePipeline::wait(Exchange &exchange, bool isThere, const std::vector<bool> &receives) {
  if (exchange.ends.empty())
    return;
  const Seconds &travel = exchange.travel;
  double meet = 0;
  if (!beside && isThere)
    for (size_t rank = 0; rank < travel.size(); ++rank)
      if (travel[rank] > 0 && receives[rank])
        meet = std::max(meet, clock[rank]);
  for (size_t rank = 0; rank < travel.size(); ++rank) {
    double end = travel[rank] > 0 ? std::max(exchange.ends[rank], meet) : 0;
    clock[rank] = std::max(clock[rank], end) + (!beside && receives[rank] ? travel[rank] : 0);
  }
  exchange.ends.clear();
}

/// If messages do not travel beside computation, a rank that has sent results waits until all receivers have
/// taken them in. A receiver takes results in while it waits for blocks on the way there, if the results were
/// sent by then. Otherwise it takes them in after it has computed its next blocks.
void WavePipeline::waitForTakers(const Wave &wave, size_t round) {
  const Round &sent = wave.rounds[round];
  // When each receiver left its last wait, and when it is at the next wait.
  std::vector<std::pair<double, double>> takers;
  for (size_t rank = 0; rank < clock.size(); ++rank)
    if (sent.back.travel[rank] > 0)
      takers.emplace_back(left[rank], clock[rank]);
  std::sort(takers.begin(), takers.end());
  for (size_t i = 1; i < takers.size(); ++i)
    takers[i].second = std::max(takers[i].second, takers[i - 1].second);
  for (size_t rank = 0; rank < clock.size(); ++rank) {
    bool sends =
        sent.compute[rank] > 0 || (round > 0 && wave.rounds[round - 1].back.travel[rank] > 0);
    if (sent.back.travel[rank] <= 0 || !sends)
      continue;
    auto later =
        std::lower_bound(takers.begin(), takers.end(), std::pair(sent.back.sent[rank], 0.0));
    if (later != takers.begin())
      clock[rank] = std::max(clock[rank], std::prev(later)->second);
  }
}

/// Adds the time of matrix space in a round. If two waves of slabs take turns, one wave is computed while the
/// sums of the other wave travel.
void WavePipeline::compute(const Wave &wave, const Wave *before, size_t round) {
  const Round &now = wave.rounds[round];
  bool takesTurns = beside && before && wave.number % 2 == 1;
  for (size_t rank = 0; rank < clock.size(); ++rank) {
    clock[rank] += now.compute[rank] + now.sums[rank];
    if (!takesTurns || now.sums[rank] <= 0)
      continue;
    const Round &then = before->rounds[round];
    double products =
        wave.local[rank] + now.compute[rank] + before->local[rank] + then.compute[rank];
    clock[rank] -= std::min(now.sums[rank] + then.sums[rank], products);
  }
}

/// Walks the commands of one round of a wave. `before` is the wave before it, or null if that is not under
/// way.
void WavePipeline::layOut(Wave &wave, const Wave *before, size_t round) {
  auto addAll = [&](const Seconds &seconds) {
    for (size_t rank = 0; rank < clock.size(); ++rank)
      clock[rank] += seconds[rank];
  };
  if (round == 1)
    addAll(wave.local);
  Round &now = wave.rounds[round];
  Round *last = round > 0 ? &wave.rounds[round - 1] : nullptr;
  bool goesOn = hasAny(now.there.travel), computes = hasAny(now.compute);
  bool arrived = !last;
  auto arrive = [&] {
    if (std::exchange(arrived, true))
      return;
    std::vector<bool> receives(clock.size());
    for (size_t rank = 0; rank < clock.size(); ++rank)
      receives[rank] = now.compute[rank] > 0 || now.there.travel[rank] > 0;
    wait(last->there, /*isThere=*/true, receives);
    if (goesOn || computes)
      left = clock;
  };
  auto comeBack = [&] {
    if (!last || last->back.ends.empty())
      return;
    if (!beside)
      waitForTakers(wave, round - 1);
    wait(last->back, /*isThere=*/false, std::vector<bool>(clock.size(), true));
  };
  if (goesOn || hasAny(now.in)) {
    arrive();
    addAll(now.in);
  }
  if (goesOn)
    begin(now.there);
  if (computes) {
    arrive();
    compute(wave, before, round);
  }
  if (now.hasRelays)
    comeBack();
  if (hasAny(now.back.travel))
    begin(now.back);
  arrive();
  comeBack();
  addAll(now.out);
}

/// Walks the first round of the newest wave, the second round of the wave before it, and so on.
void WavePipeline::step(Wave next) {
  waves.push_front(std::move(next));
  if (waves.size() > rounds + 1)
    waves.pop_back();
  left.assign(clock.size(), -1);
  for (size_t round = 0; round < std::min(waves.size(), rounds); ++round)
    if (!waves[round].rounds.empty()) {
      const Wave *before = round + 1 < waves.size() ? &waves[round + 1] : nullptr;
      layOut(waves[round], before, round);
    }
  if (added++ == 0)
    for (size_t rank = 0; rank < clock.size(); ++rank)
      clock[rank] += fill[rank];
}

void WavePipeline::add(const WaveLoads &loads) {
  size_t ranks = loads.ranks();
  if (added == 0) {
    clock.assign(ranks, 0);
    stream = clock;
    fill.resize(ranks, 0);
    rounds = loads.roundCount();
  }
  double launch = cluster.device.launch;
  auto launched = [&](double seconds) { return seconds > 0 ? seconds + launch : 0; };
  auto of = [&](const WaveLoads::Launches &launches) {
    return joins ? launches.joined : launches.apart;
  };
  Seconds none(ranks, 0);
  Wave wave{added, none, {}};
  for (size_t rank = 0; rank < ranks; ++rank)
    wave.local[rank] = launched(loads.work(rank).local + of(loads.work(rank).launches));
  for (size_t round = 0; round < rounds; ++round) {
    Round &here = wave.rounds.emplace_back(
        Round{none, none, none, none, {none, {}, {}}, {none, {}, {}}, loads.hasRelays(round)});
    for (size_t rank = 0; rank < ranks; ++rank) {
      const WaveLoads::Round &load = loads.round(rank, round);
      here.in[rank] = launched(load.in);
      here.compute[rank] = launched(load.compute + of(load.launches));
      here.sums[rank] = load.sums;
      here.out[rank] = launched(load.out);
      here.there.travel[rank] = loads.seconds(rank, round, /*back=*/false);
      here.back.travel[rank] = loads.seconds(rank, round, /*back=*/true);
    }
  }
  step(std::move(wave));
}

double WavePipeline::finish() {
  for (size_t round = 1; round < rounds; ++round)
    step({}); // a wave that does nothing
  return clock.empty() ? 0 : *std::max_element(clock.begin(), clock.end());
}
