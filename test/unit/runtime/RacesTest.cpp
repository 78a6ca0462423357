//===- RacesTest.cpp - What orders two accesses -----------------------------===//

// The device of `emulated` with its insides, of which one is left out.
#define stepc_device_emulated stepc_device_of_this_test
#define stepc_device_emulated_races stepc_device_of_this_test_races
#include "runtime/devices/gpu/Emulated.cpp"
#include "runtime/devices/gpu/WatchedGpu.cpp"
#undef stepc_device_emulated
#undef stepc_device_emulated_races

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepc::runtime {
namespace {

using namespace testing;

//===--- the shadow, beside a list of all accesses ---===//

struct Earlier {
  Access by;
  bool writes;
};

bool isOrdered(const Earlier &earlier, const Access &by, const Clocks &known) {
  const Access &other = earlier.by;
  if (other.command != by.command)
    return other.command.n() <= known.known[other.command.stream()];
  return other.block == by.block && (other.thread == by.thread || other.barriers < by.barriers);
}

/// Touches two bytes at random until there is a conflict; the number of accesses, or -1 where the two
/// disagree about one.
int touchAtRandom(unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  alignas(2) char bytes[2];
  Shadow shadow;
  Clocks clocks[2];
  std::vector<Earlier> all;
  int count = 0;
  auto touch = [&](size_t stream, const Access &by, bool writes) {
    bool expected = std::all_of(all.begin(), all.end(), [&](const Earlier &one) {
      return (!one.writes && !writes) || isOrdered(one, by, clocks[stream]);
    });
    Conflict found;
    auto address = reinterpret_cast<uintptr_t>(bytes) + uintptr_t(below(2));
    bool isFine = shadow.touch(address, 1, by, writes, clocks[stream], found);
    all.push_back({by, writes});
    ++count;
    if (isFine != expected)
      count = -1;
    return isFine && count > 0;
  };
  for (int step = 0; step < 12; ++step) {
    size_t stream = size_t(below(2));
    if (below(2))
      clocks[stream].join(clocks[1 - stream]);
    CommandNumber command(stream, ++clocks[stream].known[stream]);
    Access by;
    by.command = command;
    if (stream == 1) {
      if (!touch(stream, by, below(3) == 0))
        return count;
      continue;
    }
    bool mostlyReads = below(2);
    for (int block = 0, blocks = 1 + below(2); block < blocks; ++block) {
      by.block = block;
      for (int barriers = 0; barriers < 3; ++barriers)
        for (int i = below(3); i-- > 0;) {
          by.barriers = uint32_t(barriers);
          by.thread = uint32_t(below(3));
          if (!touch(stream, by, below(mostlyReads ? 12 : 3) == 0))
            return count;
        }
    }
  }
  return count;
}

TEST(Shadow, FindsWhatAListOfAllAccessesFinds) {
  int64_t accesses = 0;
  for (unsigned seed = 0; seed < 20000; ++seed) {
    int count = touchAtRandom(seed);
    ASSERT_GE(count, 0) << "seed " << seed;
    accesses += count;
  }
  EXPECT_GT(accesses, 60000); // they go on for a while
}

//===--- what the host stages ---===//

/// A GPU for whose copies the host does not wait once steps have begun. Before that it does, because staging
/// memory is released.
class Hasty : public WatchedGpu {
public:
  using WatchedGpu::WatchedGpu;
  void join(bool isCaptured) override {
    hasBegun = true;
    WatchedGpu::join(isCaptured);
  }
  void synchronize(Event *event) override {
    if (!hasBegun)
      WatchedGpu::synchronize(event);
  }

private:
  bool hasBegun = false;
};

/// What is said of so many steps that are enqueued one after another.
template <typename Kind> std::string enqueue(int steps, bool polls) {
  Parallel parallel;
  stepc_counters executed{};
  static const plan::Plan plan;
  static const stepc_program program{};
  std::vector<stepc_parameter_record> records;
  bool someInactive = false;
  DeviceContext context{parallel, executed, plan, program, records, someInactive};
  std::string problem = openGpuDevice(
      context, {}, [](const DeviceContext &opened, const stepc_options &, std::string &) {
        auto emulated = std::make_unique<Emulated>(opened.parallel, std::nullopt);
        return std::unique_ptr<Gpu>(std::make_unique<Kind>(std::move(emulated), opened.plan));
      });
  EXPECT_EQ(problem, "");
  stepc_device_table device = gpuDeviceTable("test", STEPC_DEVICE_CPU, false, nullptr);
  int64_t numbers[4] = {};
  std::vector<HostList> lists{{numbers, sizeof(numbers), /*changes=*/true, nullptr}};
  EXPECT_EQ(device.lend(context, lists), "");
  for (int step = 0; step < steps; ++step) {
    ++numbers[0];
    device.begin(context);
    device.finish(context);
    if (polls) {
      EXPECT_TRUE(device.poll(context));
    }
  }
  return context.failure;
}

TEST(Staging, IsWrittenAgainWhenItsCopyHasGone) {
  EXPECT_EQ(enqueue<WatchedGpu>(30, false), "");
  EXPECT_EQ(enqueue<Hasty>(8, false), ""); // none a second time
  EXPECT_EQ(enqueue<Hasty>(30, true), ""); // the trainer waits for all
}

TEST(Staging, RewrittenBeforeIsTold) {
  EXPECT_EQ(enqueue<Hasty>(9, false),
            "race: the host writes staging memory whose last copy may still read it, expected to "
            "wait for that, found nothing that does");
}

//===--- steps ---===//

/// A GPU that the trainer's stream does not wait for.
class Leaver : public WatchedGpu {
public:
  using WatchedGpu::WatchedGpu;
  void leave() override {}
};

/// What is said of two steps whose streams touch the same memory.
template <typename Kind> std::string stepTwice(Stream first, Stream second) {
  Parallel parallel;
  plan::Plan plan;
  Kind gpu(std::make_unique<Emulated>(parallel, std::nullopt), plan);
  char from[16] = {}, to[16] = {};
  for (Stream stream : {first, second}) {
    gpu.join(false);
    gpu.move(stream, to, from, sizeof(to));
    gpu.leave();
  }
  gpu.join(false);
  return gpu.takeProblem();
}

TEST(Steps, AreOrderedByTheTrainersStream) {
  EXPECT_EQ(stepTwice<WatchedGpu>(Stream::Communication, Stream::Compute), "");
  EXPECT_EQ(stepTwice<WatchedGpu>(Stream::Compute, Stream::Communication), "");
  EXPECT_EQ(stepTwice<Leaver>(Stream::Compute, Stream::Compute), ""); // one stream
}

TEST(Steps, WithoutThatOrderAreTold) {
  for (Stream first : {Stream::Compute, Stream::Communication}) {
    Stream second = first == Stream::Compute ? Stream::Communication : Stream::Compute;
    EXPECT_THAT(stepTwice<Leaver>(first, second),
                AllOf(HasSubstr("race in a command on the stream of "),
                      HasSubstr("expected an event between the streams, found none")));
  }
}

} // namespace
} // namespace stepc::runtime
