//===- OwnerPatterns.cpp - Which blocks ranks can have together ------------===//
//
// Gilmore and Gomory's linear program of cutting stock: as few patterns as possible, which together have all blocks. Its
// dual gives each block a worth such that no pattern is worth more than 1; if the blocks are worth more than there are
// ranks, they do not fit. Patterns are made as they are needed, each the one that is worth most. The program is solved
// with floating-point numbers, and what it finds is proven with integers.
//
//===----------------------------------------------------------------------===//

#include "passes/cost/OwnerPatterns.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stepc::cost {
namespace {

/// How many patterns are looked at, and how many are tried for one room.
constexpr int64_t kMostPatterns = 1000000;
constexpr int kMostTurns = 200;
/// A worth of 1, as an integer.
constexpr double kOne = 1 << 30;

/// Patterns of which all blocks are made, and how many of each: a basis of the linear program, inverted.
class Basis {
public:
  explicit Basis(size_t size) : inverse(size, std::vector<double>(size)), counts(size) {}

  /// Worths by which each pattern of the basis is worth 1.
  std::vector<double> worths() const {
    std::vector<double> sums(inverse.size());
    for (const std::vector<double> &row : inverse)
      for (size_t i = 0; i < sums.size(); ++i)
        sums[i] += row[i];
    return sums;
  }
  double total() const { return std::accumulate(counts.begin(), counts.end(), 0.0); }

  /// Takes a pattern in the place of the one that is used up first; false where none is.
  bool enter(const std::vector<int64_t> &pattern) {
    size_t size = inverse.size(), leaving = size;
    std::vector<double> column(size);
    double least = 0;
    for (size_t row = 0; row < size; ++row) {
      for (size_t i = 0; i < size; ++i)
        column[row] += inverse[row][i] * static_cast<double>(pattern[i]);
      if (column[row] > 1e-9 && (leaving == size || counts[row] / column[row] < least)) {
        leaving = row;
        least = counts[row] / column[row];
      }
    }
    if (leaving == size)
      return false;
    for (double &value : inverse[leaving])
      value /= column[leaving];
    for (size_t row = 0; row < size; ++row) {
      if (row == leaving)
        continue;
      for (size_t i = 0; i < size; ++i)
        inverse[row][i] -= column[row] * inverse[leaving][i];
      counts[row] -= column[row] * least;
    }
    counts[leaving] = least;
    return true;
  }

  std::vector<std::vector<double>> inverse; // [pattern][size]
  std::vector<double> counts;               // [pattern]
};

} // namespace

int64_t Patterns::mostWorth(int64_t room, const std::vector<int64_t> &worth,
                            std::vector<int64_t> &pattern) {
  // Those that are worth most for their size first, so that what is left is bounded by the next one's.
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  auto density = [&](size_t i) {
    return static_cast<double>(worth[i]) / static_cast<double>(sizes[i].first);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return density(a) != density(b) ? density(a) > density(b) : a < b;
  });
  int64_t best = -1;
  std::vector<int64_t> taken(sizes.size());
  auto search = [&](auto &&self, size_t turn, int64_t left, int64_t sum) -> bool {
    if (++work > kMostPatterns)
      return false;
    if (sum > best) {
      best = sum;
      pattern = taken;
    }
    if (turn == order.size())
      return true;
    size_t size = order[turn];
    // One more than is left by this bound is lost to rounding at most.
    if (static_cast<double>(sum) + static_cast<double>(left) * density(size) <
        static_cast<double>(best) + 0.5)
      return true;
    for (int64_t count = std::min(left / sizes[size].first, sizes[size].second); count >= 0;
         --count) {
      taken[size] = count;
      if (!self(self, turn + 1, left - count * sizes[size].first, sum + count * worth[size]))
        return false;
    }
    taken[size] = 0;
    return true;
  };
  return search(search, 0, room, 0) ? best : -1;
}

bool Patterns::cannotFit(int64_t room) {
  if (sizes.empty() || sizes.front().first > room)
    return !sizes.empty();
  // At first each pattern has one size alone.
  Basis basis(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    auto [size, blocks] = sizes[i];
    auto fit = static_cast<double>(std::min(room / size, blocks));
    basis.inverse[i][i] = 1 / fit;
    basis.counts[i] = static_cast<double>(blocks) / fit;
  }
  std::vector<int64_t> pattern;
  for (int turn = 0; turn < kMostTurns; ++turn) {
    if (basis.total() <= static_cast<double>(ranks))
      return false;
    std::vector<int64_t> worth;
    double all = 0;
    for (double each : basis.worths())
      worth.push_back(static_cast<int64_t>(std::max(0.0, each) * kOne));
    for (size_t i = 0; i < sizes.size(); ++i)
      all += static_cast<double>(worth[i]) * static_cast<double>(sizes[i].second);
    int64_t most = mostWorth(room, worth, pattern);
    if (most < 0)
      return false;
    // No rank has more than `most`. The products of integers here are rounded by less than the margin.
    if (all > static_cast<double>(most) * static_cast<double>(ranks) * (1 + 1e-12))
      return true;
    if (static_cast<double>(most) <= kOne * (1 + 1e-7) || !basis.enter(pattern))
      return false;
  }
  return false;
}

} // namespace stepc::cost
