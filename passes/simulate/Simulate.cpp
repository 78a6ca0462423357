//===- Simulate.cpp - A step of all ranks, on paper ------------------------===//

#include "passes/simulate/Simulate.h"

#include "passes/simulate/Engine.h"

#include <algorithm>
#include <map>

using namespace stepc;
using namespace stepc::simulate;

/// Number of equal parts of a step over which bytes under way are averaged: as many as a screen has columns.
static constexpr int64_t kFlightParts = 1000;

/// Classes of ranks with equal work of every command and equal traffic, by their end, the latest first. Each
/// class is shown by its last rank to end.
static std::vector<Track> classify(const plan::Plan &plan, const Work &work, const Result &result) {
  // Splits classes by one number after the other.
  std::vector<int64_t> classOf(result.ranks.size());
  auto refine = [&](auto valueOf) {
    std::map<std::pair<int64_t, double>, int64_t> numbers;
    for (size_t rank = 0; rank < classOf.size(); ++rank)
      classOf[rank] = numbers.try_emplace({classOf[rank], valueOf(rank)}, int64_t(numbers.size()))
                          .first->second;
  };
  for (size_t command = 0; command < plan.commands.size(); ++command)
    refine([&](size_t rank) { return work.seconds(command, rank); });
  for (auto field : {&RankResult::sent, &RankResult::received})
    for (size_t level = 0; level < result.levels.size(); ++level) {
      refine([&](size_t rank) { return double((result.ranks[rank].*field)[level].messages); });
      refine([&](size_t rank) { return double((result.ranks[rank].*field)[level].bytes); });
    }
  std::map<int64_t, Track> classes;
  for (size_t rank = 0; rank < classOf.size(); ++rank) {
    Track &track = classes[classOf[rank]];
    if (track.ranks.empty() || result.ranks[rank].end > result.ranks[size_t(track.rank)].end)
      track.rank = int64_t(rank);
    track.ranks.push_back(int64_t(rank));
  }
  std::vector<Track> tracks;
  for (auto &[number, track] : classes)
    tracks.push_back(std::move(track));
  std::ranges::sort(tracks, [&](const Track &a, const Track &b) {
    double first = result.ranks[size_t(a.rank)].end, second = result.ranks[size_t(b.rank)].end;
    return first != second ? first > second : a.rank < b.rank;
  });
  return tracks;
}

std::string simulate::simulate(const plan::Plan &plan, const cost::Cluster &cluster,
                               const Options &options, int64_t kept, Result &result) {
  result = {};
  result.world = plan.world();
  Topology topology(cluster, result.world);
  plan::Expander expander(plan);
  Work work(plan, expander, cluster.device);
  Exchanges exchanges(plan, expander, topology);
  for (size_t level = 0; level < topology.levels(); ++level)
    result.levels.push_back(topology.level(level).name);
  result.groupBytes = exchanges.groupBytes();
  result.groupKinds = exchanges.groupKinds();
  for (size_t rank = 0; rank < topology.ranks(); ++rank) {
    RankResult &one = result.ranks.emplace_back();
    one.work = work.total(rank).seconds;
    one.products = work.total(rank).productSeconds;
    one.productLaunches = work.total(rank).productLaunches;
    one.flops = work.total(rank).flops;
    one.fullFlops = work.total(rank).fullFlops;
    one.touched = work.total(rank).bytes;
    one.shardBytes = work.shardBytes(rank);
    one.sent = exchanges.sent(int64_t(rank));
    one.received = exchanges.received(int64_t(rank));
  }
  auto run = [&](const Record &record) {
    for (RankResult &rank : result.ranks)
      rank.end = rank.compute = rank.exposed = 0;
    std::string wrong = Engine(plan, options, topology, work, exchanges, record).run(result.ranks);
    result.latency = 0;
    for (const RankResult &rank : result.ranks)
      result.latency = std::max(result.latency, rank.end);
    return wrong;
  };
  if (std::string wrong = run({}); !wrong.empty() || kept == 0)
    return wrong;

  // Walk the step a second time, because only now it is known which ranks get a track.
  std::vector<Track> classes = classify(plan, work, result);
  result.classes = int64_t(classes.size());
  size_t tracks = std::min(size_t(kept), classes.size());
  // Keep the first class, the last class, and others evenly between them.
  for (size_t i = 0; i < tracks; ++i)
    result.tracks.push_back(
        std::move(classes[tracks < 2 ? 0 : i * (classes.size() - 1) / (tracks - 1)]));
  Record record;
  record.trackOf.resize(topology.ranks());
  for (Track &track : result.tracks)
    record.trackOf[size_t(track.rank)] = &track;
  result.flight.part = result.latency / double(kFlightParts);
  result.flight.bytes.assign(topology.levels(), std::vector<double>(kFlightParts));
  if (result.latency > 0)
    record.flight = &result.flight;
  std::string wrong = run(record);
  for (Track &track : result.tracks)
    std::sort(track.slices.begin(), track.slices.end());
  return wrong;
}
