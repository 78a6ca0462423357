//===- LibraryTest.cpp - Compiled libraries in the wrong hands --------------===//
//
// What the runtime's tests show on a program written by hand, on libraries that the stepc binary
// compiled.
//
//===----------------------------------------------------------------------===//

#include "test/unit/library/Compiled.h"
#include "test/unit/library/World.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace stepc::test {
namespace {

using testing::HasSubstr;

const stepc_library *muon() { return compiled(kMuon, inputFile("two_ranks")); }

/// The specification with another factor: the same parameters, another rule.
const stepc_library *otherMuon() {
  std::string path = testing::TempDir() + "other" + std::to_string(getpid()) + ".optim";
  std::ifstream from(kMuon);
  std::string text(std::istreambuf_iterator<char>(from), {});
  size_t at = text.find("0.2 * sqrt");
  EXPECT_NE(at, std::string::npos);
  std::ofstream(path) << text.replace(at, 3, "0.3");
  const stepc_library *library = compiled(path, inputFile("two_ranks"));
  unlink(path.c_str());
  return library;
}

/// Runs one step on all ranks after `change`; each rank's status and message.
std::vector<Created> stepAfter(const std::function<void(Rank &, int)> &change) {
  std::vector<Created> stepped(2);
  Options options;
  options.timeout = 2;
  runWorld({muon()}, options, [&](Rank &self, int rank) {
    stepped[rank].status = self.bind();
    self.fillGradients(rank, 0);
    change(self, rank);
    if (!stepped[rank].status)
      stepped[rank].status = self.library->step(self.instance);
    stepped[rank].message = self.error();
  });
  return stepped;
}

/// Parameter and gradient come to where the states are in one exchange.
TEST(CompiledLibrary, AnExchangeNamesEachGroupOnce) {
  std::string base = testing::TempDir() + "twice" + std::to_string(getpid());
  std::ofstream(base + ".optim") << "optimizer A(lr) {\n  state m : f32\n  m = m + grad * param\n"
                                    "  param = param - lr * m\n}\n"
                                    "route {\n  A(lr = 1) for rest\n}\n";
  std::ofstream(base + ".json")
      << R"json({"version": 1, "meshes": [{"name": "m", "axes": [{"name": "m", "size": 2}]}],
                 "parameters": [{"name": "w", "shape": [4, 4], "dtype": "f32", "mesh": "m",
                                 "placements": ["S(0)"], "state_placements": ["S(1)"]}]})json";
  const stepc_library *library = compiled(base + ".optim", base + ".json");
  Options options;
  options.timeout = 0.5;
  runWorld({library}, options, [](Rank &self, int rank) {
    ASSERT_EQ(self.bind(), STEPC_OK);
    ASSERT_EQ(self.library->step(self.instance), STEPC_OK) << self.error();
    if (rank == 1)
      return; // it leaves
    EXPECT_NE(self.library->step(self.instance), STEPC_OK);
    EXPECT_THAT(self.error(), HasSubstr("exchange 0 of group 'group.0' ('w')"));
    EXPECT_THAT(self.error(), testing::Not(HasSubstr("('w'), group")));
  });
  unlink((base + ".optim").c_str());
  unlink((base + ".json").c_str());
}

TEST(CompiledLibrary, RefusesAnotherNumberOfRanks) {
  Options options;
  options.size = 4;
  for (const Created &rank : runWorld({muon()}, options, [](Rank &, int) { ADD_FAILURE(); })) {
    EXPECT_EQ(rank.status, STEPC_ERROR_WORLD);
    EXPECT_THAT(rank.message, HasSubstr("2 ranks"));
  }
}

TEST(CompiledLibrary, RefusesAnotherAbi) {
  Options options;
  options.change = [](int, stepc_options &own) { own.abi_version = STEPC_ABI_VERSION + 1; };
  for (const Created &rank : runWorld({muon()}, options, [](Rank &, int) { ADD_FAILURE(); }))
    EXPECT_EQ(rank.status, STEPC_ERROR_ABI) << rank.message;
}

TEST(CompiledLibrary, RefusesRanksWithAnotherRule) {
  for (const Created &rank :
       runWorld({muon(), otherMuon()}, {}, [](Rank &, int) { ADD_FAILURE(); }))
    EXPECT_EQ(rank.status, STEPC_ERROR_PLAN) << rank.message;
}

TEST(CompiledLibrary, RefusesRanksWithOtherParameters) {
  std::string path = testing::TempDir() + "other-" + std::to_string(getpid()) + ".json";
  std::ifstream from(inputFile("two_ranks"));
  std::string text(std::istreambuf_iterator<char>(from), {});
  size_t at = text.find("\"w2\"");
  ASSERT_NE(at, std::string::npos);
  std::ofstream(path) << text.replace(at, 4, "\"w3\"");
  const stepc_library *other = compiled(kMuon, path);
  unlink(path.c_str());
  for (const Created &rank : runWorld({muon(), other}, {}, [](Rank &, int) { ADD_FAILURE(); }))
    EXPECT_EQ(rank.status, STEPC_ERROR_PLAN) << rank.message;
}

TEST(CompiledLibrary, NamesAnUnboundParameter) {
  std::vector<int32_t> statuses(2);
  Options options;
  runWorld({muon()}, options, [&](Rank &self, int rank) {
    ASSERT_EQ(self.library->bind_steps(self.instance, self.steps.data(), STEPC_MEMORY_HOST), 0);
    statuses[rank] = self.library->step(self.instance);
    EXPECT_THAT(self.error(), HasSubstr("w1"));
    EXPECT_THAT(self.error(), HasSubstr("rank " + std::to_string(rank)));
  });
  EXPECT_THAT(statuses, testing::Each(STEPC_ERROR_UNBOUND));
}

TEST(CompiledLibrary, RefusesAShardOfAnotherDtype) {
  runWorld({muon()}, {}, [](Rank &self, int) {
    EXPECT_EQ(self.library->bind_parameter(self.instance, 1, self.parameters[1].get(),
                                           self.claimed[1] / 2),
              STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(self.error(), HasSubstr("w2"));
  });
}

TEST(CompiledLibrary, NamesAnAbsentGradientAndStepsOnceItIsThere) {
  std::vector<Created> stepped = stepAfter([](Rank &self, int rank) {
    if (rank != 1)
      return;
    std::vector<char> before(self.parameters[1].data.get(),
                             self.parameters[1].data.get() + self.claimed[1]);
    ASSERT_EQ(self.library->bind_gradient(self.instance, 1, nullptr, 0), 0);
    EXPECT_EQ(self.library->step(self.instance), STEPC_ERROR_GRADIENT);
    EXPECT_THAT(self.error(), HasSubstr("w2"));
    EXPECT_EQ(std::vector<char>(self.parameters[1].data.get(),
                                self.parameters[1].data.get() + self.claimed[1]),
              before);
    // Nothing was sent, so the other rank still waits for this one.
    ASSERT_EQ(self.library->bind_gradient(self.instance, 1, self.gradients[1].get(),
                                          self.gradients[1].bytes),
              0);
  });
  for (const Created &rank : stepped)
    EXPECT_EQ(rank.status, 0) << rank.message;
}

TEST(CompiledLibrary, SeveralStepInOneProcessAtOnce) {
  std::string error;
  const stepc_library *libraries[] = {muon(), otherMuon(), compiled(kMuon, inputFile("hsdp"))};
  uint64_t alone[3], together[3];
  for (int i = 0; i < 3; ++i)
    alone[i] = train(libraries[i], {}, 3, error);
  EXPECT_EQ(error, "");
  EXPECT_NE(alone[0], alone[1]);
  std::vector<std::thread> worlds;
  std::string errors[3];
  for (int i = 0; i < 3; ++i)
    worlds.emplace_back([&, i] { together[i] = train(libraries[i], {}, 3, errors[i]); });
  for (std::thread &world : worlds)
    world.join();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(errors[i], "");
    EXPECT_EQ(together[i], alone[i]);
  }
}

/// What all ranks asked of their transports in exchanges, whose tags come behind those of what ranks tell each other.
struct Asked {
  static inline std::atomic<int64_t> gathers, opened, closed;
  static inline stepc_transport original; // whose functions are alike on all ranks

  static int32_t start(void *context, const stepc_operations *group, void **handle, char *error,
                       int64_t size) {
    for (int64_t i = 0; i < group->count; ++i)
      gathers += group->operations[i].kind == STEPC_ALL_GATHER && group->operations[i].tag > 1;
    return original.start(context, group, handle, error, size);
  }
  static int32_t open(void *context, const int32_t *members, int32_t count, void **communicator,
                      void **handle, char *error, int64_t size) {
    ++opened;
    return original.open_communicator(context, members, count, communicator, handle, error, size);
  }
  static void close(void *context, void *communicator) {
    ++closed;
    original.close_communicator(context, communicator);
  }
};

/// Trains where everything is gathered; `kinds` says what rank r's transport has.
uint64_t gathered(const std::string &manifest, const std::function<int64_t(int)> &kinds,
                  std::string &error) {
  const stepc_library *library = compiled(kMuon, inputFile(manifest) + " --strategy='*=gather'");
  std::vector<stepc_transport> changed(library->world_size());
  std::mutex mutex;
  Options options;
  options.change = [&](int rank, stepc_options &own) {
    std::lock_guard<std::mutex> lock(mutex);
    stepc_transport &mine = changed[rank] = Asked::original = *own.transport;
    mine.start = Asked::start;
    mine.open_communicator = Asked::open;
    mine.close_communicator = Asked::close;
    mine.kinds = kinds(rank);
    own.transport = &mine;
  };
  Asked::gathers = Asked::opened = Asked::closed = 0;
  return train(library, options, 3, error);
}

constexpr int64_t kMessages = 1 << STEPC_SEND | 1 << STEPC_RECEIVE,
                  kAll = kMessages | 1 << STEPC_ALL_GATHER;

// Equal parts are gathered as such, on the ranks that share a matrix; without the kind, and where
// parts are uneven, the same bytes travel in messages.
TEST(AllGather, MovesWhatMessagesMove) {
  for (const char *manifest : {"four_ranks", "hsdp", "uneven"}) {
    SCOPED_TRACE(manifest);
    std::string error;
    uint64_t gathers = gathered(manifest, [](int) { return kAll; }, error);
    bool isUneven = manifest == std::string("uneven"),
         isReplicated = manifest == std::string("hsdp");
    EXPECT_EQ(Asked::gathers > 0, !isUneven);
    EXPECT_EQ(Asked::opened > 0, isReplicated);
    EXPECT_EQ(Asked::opened, Asked::closed);
    EXPECT_EQ(gathers, gathered(manifest, [](int) { return kMessages; }, error));
    EXPECT_EQ(Asked::gathers, 0);
    EXPECT_EQ(error, "");
  }
}

TEST(AllGather, NeedsItOnAllRanks) {
  std::string error;
  gathered("four_ranks", [](int rank) { return rank == 2 ? kMessages : kAll; }, error);
  EXPECT_THAT(error, HasSubstr("expected transports of equal kinds on all ranks, found 0x7 on rank "
                               "0 and 0x3 on rank 2"));
}

std::vector<stepc_run> runsOf(Rank &self, int64_t parameter, int32_t state) {
  int64_t count = 0;
  EXPECT_EQ(self.library->shard_runs(self.instance, parameter, state, nullptr, 0, &count), 0);
  std::vector<stepc_run> runs(count);
  EXPECT_EQ(self.library->shard_runs(self.instance, parameter, state, runs.data(), count, &count),
            0);
  return runs;
}

int64_t product(const int64_t *shape, int32_t axes) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < axes; ++axis)
    elements *= shape[axis];
  return elements;
}

// In the plan's words, so that a trainer can compare its own mesh with them.
TEST(MeshInfo, SaysWhereParametersLie) {
  const stepc_library *library = compiled(kMuon, inputFile("experts"));
  bool batch = false;
  for (int64_t p = 0; p < library->parameter_count(); ++p) {
    auto mesh = sized<stepc_mesh_info>();
    auto info = sized<stepc_parameter_info>();
    ASSERT_EQ(library->mesh_info(p, &mesh), 0);
    ASSERT_EQ(library->parameter_info(nullptr, p, &info), 0);
    EXPECT_STREQ(mesh.name, info.mesh);
    EXPECT_EQ(product(mesh.axis_sizes, mesh.axes), mesh.rank_count);
    for (int32_t axis = 0; axis < mesh.axes; ++axis)
      EXPECT_NE(std::string(mesh.axis_names[axis]), "");
    EXPECT_EQ(mesh.batch_axes, std::max(info.axes - 2, 0)) << info.name;
    batch |= mesh.batch_axes > 0;
  }
  EXPECT_TRUE(batch);
}

TEST(MeshInfo, KeepsTheOrderOfRanks) {
  std::string path = testing::TempDir() + "turned-" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << R"json({"version": 1, "meshes": [{"name": "grid", "axes":
    [{"name": "dp", "size": 1}, {"name": "tp", "size": 4}], "ranks": [6, 2, 7, 3]}], "parameters":
    [{"name": "w", "shape": [8, 12], "dtype": "f32", "mesh": "grid", "placements": ["R", "S(0)"]}]})json";
  const stepc_library *library = compiled(kMuon, path);
  unlink(path.c_str());
  auto mesh = sized<stepc_mesh_info>();
  ASSERT_EQ(library->mesh_info(0, &mesh), 0);
  EXPECT_STREQ(mesh.name, "grid");
  ASSERT_EQ(mesh.axes, 2);
  EXPECT_STREQ(mesh.axis_names[0], "dp");
  EXPECT_STREQ(mesh.axis_names[1], "tp");
  EXPECT_THAT(std::vector<int64_t>(mesh.axis_sizes, mesh.axis_sizes + 2),
              testing::ElementsAre(1, 4));
  EXPECT_THAT(std::vector<int64_t>(mesh.ranks, mesh.ranks + mesh.rank_count),
              testing::ElementsAre(6, 2, 7, 3));
  EXPECT_EQ(mesh.batch_axes, 0);
  EXPECT_EQ(library->mesh_info(0, nullptr), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->mesh_info(1, &mesh), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->mesh_info(-1, &mesh), STEPC_ERROR_ARGUMENT);
}

// Whatever the placements: a shard's elements come once each, and all ranks together hold every
// element of the tensor equally often.
TEST(ShardRuns, CoverEveryShardAndTheTensor) {
  for (const char *name :
       {"two_ranks", "four_ranks", "uneven", "hsdp", "experts", "three_axes", "empty_shards"}) {
    SCOPED_TRACE(name);
    std::mutex mutex;
    std::map<std::pair<int64_t, int32_t>, std::vector<int>> held;
    runWorld({compiled(kMuon, inputFile(name))}, {}, [&](Rank &self, int rank) {
      for (int64_t p = 0; p < self.library->parameter_count(); ++p) {
        auto info = sized<stepc_parameter_info>();
        ASSERT_EQ(self.library->parameter_info(self.instance, p, &info), 0);
        for (int32_t s = -1; s < info.states; ++s) {
          auto state = sized<stepc_state_info>();
          if (s >= 0)
            ASSERT_EQ(self.library->state_info(self.instance, p, s, &state), 0);
          int32_t axes = s < 0 ? info.axes : state.axes;
          const int64_t *global = s < 0 ? info.global_shape : state.global_shape;
          const int64_t *local = s < 0 ? info.local_shape : state.local_shape;
          std::vector<stepc_run> runs = runsOf(self, p, s);
          std::lock_guard<std::mutex> lock(mutex);
          std::vector<int> &count = held[{p, s}];
          count.resize(product(global, axes));
          int64_t next = 0, end = -1;
          for (const stepc_run &run : runs) {
            EXPECT_EQ(run.local, next) << info.name;
            EXPECT_NE(run.global, end) << info.name << ": two runs that are one";
            next += run.length;
            end = run.global + run.length;
            ASSERT_LE(end, int64_t(count.size())) << info.name;
            for (int64_t i = run.global; i < end; ++i)
              ++count[i];
          }
          EXPECT_EQ(next, info.member ? product(local, axes) : 0) << info.name << " rank " << rank;
        }
      }
    });
    EXPECT_FALSE(held.empty());
    for (const auto &[key, count] : held) {
      EXPECT_GT(count.front(), 0);
      EXPECT_EQ(count, std::vector<int>(count.size(), count.front())) << "parameter " << key.first;
    }
  }
}

// Columns of a 5 x 7 matrix over three ranks are 3, 3 and 1, a run for each row.
TEST(ShardRuns, CutColumnsRowByRow) {
  runWorld({compiled(kMuon, inputFile("uneven"))}, {}, [](Rank &self, int rank) {
    const int64_t first[] = {0, 3, 6}, length[] = {3, 3, 1};
    std::vector<stepc_run> runs = runsOf(self, 1, -1);
    ASSERT_EQ(runs.size(), 5u);
    for (int64_t row = 0; row < 5; ++row) {
      EXPECT_EQ(runs[row].global, 7 * row + first[rank]);
      EXPECT_EQ(runs[row].local, length[rank] * row);
      EXPECT_EQ(runs[row].length, length[rank]);
    }
    // With less room the first ones, and the number of all.
    stepc_run two[2];
    int64_t count = 0;
    ASSERT_EQ(self.library->shard_runs(self.instance, 1, 0, two, 2, &count), 0);
    EXPECT_EQ(count, 5);
    EXPECT_EQ(two[1].global, runs[1].global);
  });
}

TEST(ShardRuns, RefuseWhatDoesNotExist) {
  runWorld({muon()}, {}, [](Rank &self, int) {
    int64_t count = 0;
    auto refused = [&](int64_t parameter, int32_t state, int64_t capacity, const char *text) {
      EXPECT_EQ(
          self.library->shard_runs(self.instance, parameter, state, nullptr, capacity, &count),
          STEPC_ERROR_ARGUMENT);
      EXPECT_THAT(self.error(), HasSubstr(text));
    };
    refused(2, -1, 0, "expected a parameter from 0 to 1, found 2");
    refused(
        0, 1, 0,
        "expected the parameter (-1), its gradient (-2) or one of the 1 states of 'w1', found 1");
    refused(0, -3, 0, "found -3");
    refused(0, -1, 4, "expected a count, and runs for a capacity");
    EXPECT_EQ(self.library->shard_runs(nullptr, 0, -1, nullptr, 0, &count), STEPC_ERROR_ARGUMENT);
  });
}

} // namespace
} // namespace stepc::test
