//===- DamageTest.cpp - Compiled libraries whose bytes were damaged ---------===//
//
// Each damage is tried in a process of its own, which opens the library and steps it on all ranks. It may be
// refused, by the library or by its trainer, or give the bits that it gave before; never a signal.
//
//   STEPC_DAMAGES  how many of each; STEPC_SEED: what they begin with
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/Fnv1a.h"
#include "test/support/Tier.h"
#include "test/unit/library/Compiled.h"
#include "test/unit/library/World.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <random>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stepc::test {
namespace {

int64_t fromEnvironment(const char *name, int64_t otherwise) {
  const char *given = std::getenv(name);
  return given ? std::atoll(given) : otherwise;
}

enum Outcome : int { Equal, Refused, Other, Signal };
constexpr int64_t kSteps = 2;

/// A compiled library as a file that a test writes to.
class DamagedLibrary {
public:
  DamagedLibrary(const std::string &manifest, const std::string &name)
      : library(compiled(kMuon, manifest)), path(testing::TempDir() + "stepc-damaged-" +
                                                 std::to_string(getpid()) + "-" + name + ".so") {
    const auto *plan = static_cast<const uint8_t *>(library->plan);
    std::string error;
    hash = train(library, {}, kSteps, error);
    EXPECT_EQ(error, "");
    bytes = compiledBytes(kMuon, manifest);
    auto at = std::search(bytes.begin(), bytes.end(), plan, plan + library->plan_bytes);
    EXPECT_NE(at, bytes.end());
    planBegin = at - bytes.begin();
    // The plan's hash and that of the numbers stand one behind the other, behind the plan's length.
    uint64_t numbers[] = {uint64_t(library->plan_bytes), library->plan_hash,
                          plan::fnv1a({uint64_t(library->plan_bytes), library->plan_hash})};
    const auto *words = reinterpret_cast<const uint8_t *>(numbers);
    auto program = std::search(bytes.begin(), bytes.end(), words, words + sizeof(numbers));
    EXPECT_NE(program, bytes.end());
    lengthBegin = program - bytes.begin();
  }
  ~DamagedLibrary() { unlink(path.c_str()); }

  /// Tries the file with what `damage` changes in it.
  Outcome tryWith(const std::function<void(std::vector<uint8_t> &)> &damage) {
    std::vector<uint8_t> damaged = bytes;
    damage(damaged);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(damaged.data()), std::streamsize(damaged.size()));
    pid_t child = fork();
    if (child == 0)
      _exit(step());
    int status = 0;
    waitpid(child, &status, 0);
    signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return signal ? Signal : Outcome(WEXITSTATUS(status));
  }

  const stepc_library *library;
  int64_t planBegin = 0, lengthBegin = 0; // in the file
  int signal = 0;                         // that ended the last process

private:
  /// In the process of one damage.
  int step() const {
    // A plan may ask for more than there is, and then the trainer finds no memory for its shards.
    rlimit memory = {rlim_t(2) << 30, rlim_t(2) << 30}, core = {0, 0};
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &core);
    std::set_terminate([] { _exit(Refused); });
    alarm(60);
    void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void *entry = handle ? dlsym(handle, "stepc_library_table") : nullptr;
    if (!entry)
      return Other;
    const stepc_library *damaged = reinterpret_cast<const stepc_library *(*)()>(entry)();
    if (damaged->status)
      return damaged->plan || damaged->parameter_count() ? Other : Refused;
    Options options;
    options.timeout = 5;
    std::string error;
    uint64_t found = train(damaged, options, kSteps, error);
    return !error.empty() ? Refused : found == hash ? Equal : Other;
  }

  std::string path;
  std::vector<uint8_t> bytes;
  uint64_t hash = 0;
};

/// Damages of a plan, as disks, networks and editors make them.
struct Damages {
  const DamagedLibrary &library;
  std::mt19937_64 random;

  int64_t below(int64_t count) { return int64_t(random() % uint64_t(count)); }

  /// Says what it did.
  std::string make(std::vector<uint8_t> &bytes) {
    uint8_t *plan = bytes.data() + library.planBegin;
    int64_t size = library.library->plan_bytes, at = below(size);
    auto text = [&](const char *what, int64_t count) {
      return what + std::to_string(count) + " from byte " + std::to_string(at);
    };
    switch (below(6)) {
    case 0: { // a bit
      auto bit = below(8);
      plan[at] ^= uint8_t(1 << bit);
      return text("bit ", bit);
    }
    case 1: // a byte
    case 2: {
      uint8_t change = uint8_t(1 + below(255));
      plan[at] ^= change;
      return text("byte changed by ", change);
    }
    case 3: { // some bytes
      int64_t count = std::min(2 + below(30), size - at);
      for (int64_t i = 0; i < count; ++i)
        plan[at + i] = uint8_t(random());
      return text("bytes drawn: ", count);
    }
    case 4: { // a number, small, or at the edge of its type
      at = at / 8 * 8;
      const int64_t values[] = {0, 1, 2, -1, 7, 1 << 20, int64_t(1) << 40, INT64_MAX, INT64_MIN};
      int64_t value = values[below(std::size(values))];
      if (at + 8 <= size)
        std::memcpy(plan + at, &value, 8);
      return text("number ", value);
    }
    default: // the rest is missing, or was never written
      std::fill(plan + at, plan + size, uint8_t(below(2) ? 0 : 0xff));
      return text("cut, ", size - at);
    }
  }
};

void tryMany(DamagedLibrary &library, int64_t count, uint64_t seed) {
  std::map<Outcome, int64_t> seen;
  Damages damages{library, std::mt19937_64(seed)};
  for (int64_t i = 0; i < count; ++i) {
    std::string what;
    Outcome outcome =
        library.tryWith([&](std::vector<uint8_t> &bytes) { what = damages.make(bytes); });
    ++seen[outcome];
    if (outcome == Signal)
      std::printf("damage %lld (%s): signal %d\n", (long long)i, what.c_str(), library.signal);
    EXPECT_NE(outcome, Other) << "damage " << i << " (" << what << ") gives other bits";
  }
  std::printf(
      "of %lld damages %lld were refused, %lld gave equal bits, %lld other bits, %lld a signal\n",
      (long long)count, (long long)seen[Refused], (long long)seen[Equal], (long long)seen[Other],
      (long long)seen[Signal]);
  EXPECT_EQ(seen[Signal], 0);
}

class Damage : public testing::TestWithParam<const char *> {
public:
  DamagedLibrary library{inputFile(GetParam()), GetParam()};
  int64_t count = fromEnvironment("STEPC_DAMAGES", draws(400));
  uint64_t seed = uint64_t(fromEnvironment("STEPC_SEED", 1));
};
INSTANTIATE_TEST_SUITE_P(Libraries, Damage, testing::Values("two_ranks", "experts"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(Damage, OfAPlanIsRefused) { tryMany(library, count / 2, seed); }

TEST_P(Damage, OfThePlansNumbersIsRefused) {
  for (int64_t at = 0; at < 24; ++at)
    for (uint8_t change : {0x01, 0x80, 0xff})
      EXPECT_EQ(
          library.tryWith([&](auto &bytes) { bytes[size_t(library.lengthBegin + at)] ^= change; }),
          Refused)
          << at;
}

TEST(DamagedLibrary, SaysWhatIsWrong) {
  const stepc_library *whole = compiled(kMuon, inputFile("two_ranks"));
  EXPECT_EQ(whole->status, STEPC_OK);
  EXPECT_EQ(whole->problem, nullptr);
}

} // namespace
} // namespace stepc::test
