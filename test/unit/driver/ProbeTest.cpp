//===- ProbeTest.cpp - What a probe makes of times that are known ----------===//

#include "tools/stepc/Probe.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace stepc::driver {
namespace {

/// Each rank and its transport, with a clock of its own that only messages move.
class Ranks {
public:
  Ranks(cost::Cluster cluster, int size, int slow) : cluster(std::move(cluster)), slow(slow) {
    for (int rank = 0; rank < size; ++rank)
      ranks.push_back({this, rank});
  }

  /// Calls `measure` on all ranks at once.
  template <typename Measure> void run(Measure measure) {
    std::vector<std::thread> threads;
    for (Rank &rank : ranks) {
      stepc_transport transport{};
      transport.rank = rank.number;
      transport.size = int32_t(ranks.size());
      transport.context = &rank;
      transport.start = start;
      transport.test = test;
      transport.abort = [](void *, const char *) {};
      threads.emplace_back([transport, &rank, measure] {
        measure(ProbeRanks(transport, [&rank] { return rank.now; }));
      });
    }
    for (std::thread &thread : threads)
      thread.join();
  }

private:
  struct Rank {
    Ranks *all;
    int number;
    double now = 0;
    std::map<std::vector<int64_t>, int> times = {}; // that a group was begun, by its shape
  };
  using Handle = std::vector<stepc_operation>; // receives that are left

  /// Meetings take no time. Two warm-ups take long, and of the seven times behind them three do; one rank takes a quarter
  /// more.
  static double seconds(Rank &rank, const stepc_operations &group) {
    std::vector<int64_t> shape;
    double bytes = 0;
    for (int64_t i = 0; i < group.count; ++i) {
      const stepc_operation &one = group.operations[i];
      if (one.kind != STEPC_SEND || one.bytes < 1024)
        continue;
      shape.push_back(int64_t(rank.all->cluster.levelOf(rank.number, one.peer)));
      bytes += double(one.bytes);
    }
    if (shape.empty())
      return 0;
    if (shape.front() != shape.back())
      return 1000; // peers of two levels
    const cost::Link &link = rank.all->cluster.levels[size_t(shape[0])].link;
    double taken = link.seconds(double(shape.size()), bytes);
    shape.push_back(int64_t(bytes));
    int before = rank.times[shape]++;
    double late = before < 2 || before == 4 || before == 6 || before == 8 ? 10 : 0;
    return late + (rank.number == rank.all->slow ? 1.25 : 1) * taken;
  }

  static int32_t start(void *context, const stepc_operations *group, void **handle, char *,
                       int64_t) {
    Rank &rank = *static_cast<Rank *>(context);
    auto *left = new Handle;
    std::lock_guard lock(rank.all->mutex);
    for (int64_t i = 0; i < group->count; ++i) {
      const stepc_operation &one = group->operations[i];
      if (one.kind == STEPC_RECEIVE) {
        left->push_back(one);
        continue;
      }
      const char *from = static_cast<const char *>(one.send);
      const char *to = from + std::min<int64_t>(one.bytes, 512);
      rank.all->mail[{rank.number, one.peer}].emplace_back(from, to);
    }
    rank.now += seconds(rank, *group);
    *handle = left;
    return 0;
  }

  static int32_t test(void *context, void *handle, char *, int64_t) {
    Rank &rank = *static_cast<Rank *>(context);
    auto *left = static_cast<Handle *>(handle);
    std::lock_guard lock(rank.all->mutex);
    while (!left->empty()) {
      auto &mail = rank.all->mail[{left->back().peer, rank.number}];
      if (mail.empty())
        return 0;
      std::memcpy(left->back().receive, mail.front().data(), mail.front().size());
      mail.pop_front();
      left->pop_back();
    }
    delete left;
    return 1;
  }

  cost::Cluster cluster;
  int slow;
  std::vector<Rank> ranks;
  std::mutex mutex;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> mail;
};

/// Nine ranks on nodes of two and racks of four: one is left over at each level.
TEST(Probe, MeasuresWhatMessagesOfEachLevelTake) {
  cost::Cluster cluster;
  cluster.levels = {{"node", 2, {1e-6, 1e-6, 1e11}},
                    {"rack", 4, {5e-6, 2e-6, 2e10}},
                    {"network", cost::Level::kAll, {20e-6, 3e-6, 1e9}}};
  Ranks ranks(cluster, 9, /*slow=*/3);
  std::vector<ProbedLevel> measured[9];
  std::atomic<int> failures = 0;
  ranks.run([&](ProbeRanks probe) {
    llvm::Expected<std::vector<std::string>> names =
        probe.exchangeNames("host" + std::to_string(probe.rank()));
    failures += !names || names->size() != 9 || names->back() != "host8";
    std::vector<ProbedLevel> levels = llvm::cantFail(levelsOf(*names, {{"node", 2}, {"rack", 4}}));
    failures += bool(probe.measure(levels));
    measured[probe.rank()] = levels;
  });
  ASSERT_EQ(failures, 0);
  for (const std::vector<ProbedLevel> &levels : measured) {
    ASSERT_EQ(levels.size(), 3u);
    for (size_t level = 0; level < 3; ++level) {
      EXPECT_EQ(levels[level].name, cluster.levels[level].name);
      EXPECT_EQ(levels[level].ranks, cluster.levels[level].ranks);
      // Up to all peers of the level at a time: 1, 2 or 4, of four sizes.
      const cost::Link &link = cluster.levels[level].link;
      ASSERT_EQ(levels[level].samples.size(), 4 * (level + 1));
      size_t at = 0;
      for (double messages = 1; messages <= double(1 << level); messages *= 2)
        for (double bytes : {1024., 16384., 262144., 4194304.}) {
          const cost::LinkSample &sample = levels[level].samples[at++];
          EXPECT_EQ(sample.messages, messages);
          EXPECT_EQ(sample.bytes, bytes);
          double expected = 1.25 * link.seconds(messages, messages * bytes);
          EXPECT_NEAR(sample.seconds, expected, 1e-6 * expected) << level << ", " << messages;
        }
    }
    std::optional<cost::Link> link = cost::fitLink(levels[2].samples);
    ASSERT_TRUE(link);
    EXPECT_NEAR(link->latency, 25e-6, 1e-9);
    EXPECT_NEAR(link->gap, 3.75e-6, 1e-9);
    EXPECT_NEAR(link->bandwidth, 0.8e9, 1e3);
  }
}

TEST(Probe, LevelsAreHostsOrWhatIsGiven) {
  auto spell = [](std::vector<std::string> hosts,
                  std::vector<std::pair<std::string, int64_t>> given = {}) {
    std::string text;
    llvm::Expected<std::vector<ProbedLevel>> levels = levelsOf(hosts, given);
    if (!levels)
      return llvm::toString(levels.takeError());
    for (const ProbedLevel &level : *levels) {
      bool isAll = level.ranks == cost::Level::kAll;
      text += level.name + (isAll ? "" : "=" + std::to_string(level.ranks)) + " ";
    }
    return text;
  };
  EXPECT_EQ(spell({"a", "a", "b", "b"}), "node=2 network ");
  EXPECT_EQ(spell({"a", "a"}), "node ");
  EXPECT_EQ(spell({"a", "b"}), "network ");
  EXPECT_EQ(spell({"a", "a", "a", "a"}, {{"pair", 2}}), "pair=2 network ");
  EXPECT_EQ(spell({"a", "a", "b"}),
            "expected as many ranks with consecutive numbers on each host, as on the first one (2), "
            "found another host at rank 0");
  EXPECT_EQ(spell({"a", "b", "a", "b"}, {{"pair", 2}, {"more", 3}}),
            "expected levels that grow by whole factors, found 3 ranks of 'more' after 2");
  EXPECT_EQ(spell({"a", "b"}, {{"rack", 4}}),
            "expected a level of at most the 2 ranks that are there, found 4 of 'rack'");
  EXPECT_EQ(spell({"a", "a", "a", "a"}, {{"three", 3}}),
            "expected a level of which several fit into the 4 ranks that are there, found 3 of 'three'");
  EXPECT_EQ(spell({"a", "b"}, {{"one", 1}}),
            "expected a level of 2 ranks or more, found 1 of 'one'");
  EXPECT_EQ(spell({"a", "b", "c", "d"}, {{"x", 2}, {"x", 4}}),
            "expected a name that no other level has, found 'x' twice");
}

} // namespace
} // namespace stepc::driver
