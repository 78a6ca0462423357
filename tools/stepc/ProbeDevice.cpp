//===- ProbeDevice.cpp - What a rank's CPU does ----------------------------===//

#include "tools/stepc/Probe.h"

#include "llvm/ADT/STLExtras.h"

#include <barrier>
#include <chrono>
#include <thread>
#include <unistd.h>

using namespace stepc;
using namespace stepc::driver;

namespace {

using Clock = std::chrono::steady_clock;

/// The least seconds of a launch: what a library's walk takes for a command itself. A single thread meets no
/// other thread, so that nothing would be measured.
constexpr double kLeastLaunch = 0.5e-6;
constexpr int kEdge = 192, kTimes = 5, kMeetings = 201;
constexpr int64_t kCopied = 32 << 20; // bytes of each thread's copy

#if defined(__x86_64__)
#define STEPC_FOR_EACH_CHIP                                                                        \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define STEPC_FOR_EACH_CHIP
#endif

/// c += a · b, of square matrices; rows of c stay in registers for four steps of k.
STEPC_FOR_EACH_CHIP void multiply(const float *__restrict a, const float *__restrict b,
                                  float *__restrict c) {
#pragma clang fp contract(fast)
  for (int i = 0; i < kEdge; ++i)
    for (int k = 0; k < kEdge; k += 4)
      for (int j = 0; j < kEdge; ++j)
        c[i * kEdge + j] += a[i * kEdge + k] * b[k * kEdge + j] +
                            a[i * kEdge + k + 1] * b[(k + 1) * kEdge + j] +
                            a[i * kEdge + k + 2] * b[(k + 2) * kEdge + j] +
                            a[i * kEdge + k + 3] * b[(k + 3) * kEdge + j];
}

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The median of some durations of `work`, which all threads do at once.
template <typename Work> double medianOf(std::barrier<> &meeting, int times, Work work) {
  std::vector<double> seconds;
  for (int turn = 0; turn < times; ++turn) {
    meeting.arrive_and_wait();
    auto begin = Clock::now();
    work();
    meeting.arrive_and_wait();
    seconds.push_back(secondsSince(begin));
  }
  llvm::sort(seconds);
  return seconds[seconds.size() / 2];
}

/// What one thread measures. All threads measure about the same.
struct Found {
  double product, copy, launch; // seconds
};

Found measureThread(std::barrier<> &meeting) {
  std::vector<float> a(kEdge * kEdge, 1e-3f), b = a, c = a;
  std::vector<char> from(kCopied, 1), to(kCopied);
  constexpr int kProducts = 20;
  double product = medianOf(meeting, kTimes, [&] {
    for (int i = 0; i < kProducts; ++i)
      multiply(a.data(), b.data(), c.data());
  });
  double copy = medianOf(meeting, kTimes, [&] {
    std::copy(from.begin(), from.end(), to.begin());
    // Read both results, so that the compiler does not leave them out.
    from[0] = to[kCopied - 1] + (c[0] > 0 ? 1 : 0);
  });
  double launch = medianOf(meeting, kMeetings, [] {});
  return {product / kProducts, copy, launch};
}

} // namespace

llvm::Error driver::measureDevice(ProbeRanks &ranks, int64_t threads, int64_t ranksOfHost,
                                  manifest::Cluster &cluster) {
  if (llvm::Expected<double> together = ranks.largest(0); !together)
    return together.takeError();
  std::barrier meeting{std::ptrdiff_t(threads)};
  Found found{};
  std::vector<std::thread> others;
  for (int64_t i = 1; i < threads; ++i)
    others.emplace_back([&] { measureThread(meeting); });
  found = measureThread(meeting);
  for (std::thread &other : others)
    other.join();
  // Take the figures of the slowest rank.
  for (double *figure : {&found.product, &found.copy, &found.launch}) {
    llvm::Expected<double> slowest = ranks.largest(*figure);
    if (!slowest)
      return slowest.takeError();
    *figure = *slowest;
  }
  auto count = double(threads);
  cluster.tflops = 2.0 * kEdge * kEdge * kEdge * count / found.product / 1e12;
  cluster.memory = 2.0 * double(kCopied) * count / found.copy / 1e9; // read and written
  cluster.launch = std::max(found.launch, kLeastLaunch) * 1e6;
  cluster.threads = threads;
  double memory = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  if (memory > 0)
    cluster.capacity = memory / double(ranksOfHost) / 1e9;
  return llvm::Error::success();
}
