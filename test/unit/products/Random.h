//===- Random.h - Operands that are drawn -----------------------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_PRODUCTS_RANDOM_H
#define STEPC_TEST_UNIT_PRODUCTS_RANDOM_H

#include "test/unit/products/Jit.h"
#include "test/unit/products/Reference.h"

#include <cstdlib>
#include <random>

namespace stepc::test {

/// STEPC_TEST_SEED repeats a run.
inline uint32_t testSeed() {
  const char *given = std::getenv("STEPC_TEST_SEED");
  return given ? uint32_t(std::strtoul(given, nullptr, 10)) : std::random_device()();
}

using Engine = std::mt19937;

inline int64_t draw(Engine &engine, int64_t first, int64_t last) {
  return std::uniform_int_distribution<int64_t>(first, last)(engine);
}

/// Numbers in storage behind a guard of its own on both sides, at an odd multiple of its alignment, or
/// at one of 16 bytes.
class Buffer {
public:
  Buffer(Storage storage, int64_t elements, bool isAligned = false)
      : storage(storage), elements(elements), guard(isAligned ? 64 : 68),
        bytes(guard * 2 + elements * bytesOf(storage), kFill) {}
  void *data() { return bytes.data() + guard; }
  const void *data() const { return bytes.data() + guard; }

  void fill(Engine &engine, bool special) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < elements; ++i) {
      float x = normal(engine);
      if (special) {
        int64_t choice = draw(engine, 0, 99);
        x = choice < 10    ? x * 1e-41f
            : choice < 14  ? 0.0f
            : choice < 18  ? -0.0f
            : choice == 18 ? std::numeric_limits<float>::infinity()
            : choice == 19 ? std::numeric_limits<float>::quiet_NaN()
            : choice == 20 ? x * 1e38f
                           : x;
      }
      writeNumber(data(), storage, i, x);
    }
  }
  bool guardsIntact() const {
    for (int64_t i = 0; i < guard; ++i)
      if (bytes[i] != kFill || bytes[bytes.size() - 1 - i] != kFill)
        return false;
    return true;
  }
  /// Index of the first element that differs in bits (NaN equals NaN); -1 when none does.
  int64_t firstDifference(const Buffer &other) const {
    for (int64_t i = 0; i < elements; ++i) {
      float a = readNumber(data(), storage, i), b = readNumber(other.data(), storage, i);
      if (std::bit_cast<uint32_t>(a) != std::bit_cast<uint32_t>(b) &&
          !(std::isnan(a) && std::isnan(b)))
        return i;
    }
    return -1;
  }

  Storage storage;
  int64_t elements;

private:
  static constexpr uint8_t kFill = 0xa5;
  int64_t guard;
  std::vector<uint8_t> bytes;
};

/// Runs every launch over all slots, cut into pieces at random, in random order.
inline void runInPieces(const Code &code, const std::vector<void *> &operands, void *scratch,
                        int64_t slots, Engine &engine) {
  for (const CompiledLaunch &launch : code.launches) {
    std::vector<void *> arguments =
        launch.arguments([&](int buffer) { return buffer < 0 ? scratch : operands[buffer]; });
    std::vector<std::pair<int64_t, int64_t>> pieces;
    int64_t items = slots * launch.itemsPerBlock;
    for (int64_t first = 0; first < items;) {
      int64_t last = std::min(items, first + draw(engine, 1, 1 + items / 2));
      pieces.emplace_back(first, last);
      first = last;
    }
    std::shuffle(pieces.begin(), pieces.end(), engine);
    for (auto [first, last] : pieces)
      launch.kernel(arguments.data(), first, last);
  }
}

inline std::vector<TargetShape> targetsOfThisMachine() {
  std::vector<TargetShape> targets;
  // Without half, f16 is calls that another pass takes out of the way.
  for (TargetShape target : {TargetShape{512, true, true}, TargetShape{256, true, true},
                             TargetShape{256, false, true}, TargetShape{128, false, false}})
    if (!chipName(target).empty())
      targets.push_back(target);
  return targets;
}

/// In which order the threads of a GPU's blocks run, while this stands (runtime/emulated).
class ThreadOrder {
public:
  explicit ThreadOrder(Engine &engine) : seed(std::to_string(draw(engine, 0, 1 << 30))) {
    setenv("STEPC_EMULATED_SEED", seed.c_str(), 1);
  }
  ~ThreadOrder() { unsetenv("STEPC_EMULATED_SEED"); }
  std::string text() const { return "STEPC_EMULATED_SEED=" + seed; }

private:
  std::string seed;
};

inline std::string memref(Storage storage, int64_t rows, int64_t cols) {
  return "memref<?x" + std::to_string(rows) + "x" + std::to_string(cols) + "x" + nameOf(storage) +
         ">";
}

} // namespace stepc::test

#endif
