//===- LinkFit.cpp - A link's figures from measured times ------------------===//

#include "passes/cost/LinkFit.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stepc::cost {
namespace {

/// The three terms of the fit: latency − gap, the gap, and seconds per byte. None may be below 0, so the gap
/// is at most the latency.
constexpr size_t kTerms = 3;

/// The factors of the terms in a sample, divided by its seconds: errors are relative.
std::array<double, kTerms> row(const LinkSample &sample) {
  return {1 / sample.seconds, sample.messages / sample.seconds,
          sample.messages * sample.bytes / sample.seconds};
}

/// Least squares over the terms whose bits are set in `terms`; the other terms are 0. Returns nullopt if the
/// samples do not determine the terms.
std::optional<std::array<double, kTerms>> solve(const std::vector<LinkSample> &samples,
                                                unsigned terms) {
  std::array<std::array<double, kTerms + 1>, kTerms> matrix{};
  std::array<double, kTerms> scale{};
  for (const LinkSample &sample : samples)
    for (size_t i = 0; i < kTerms; ++i)
      scale[i] = std::max(scale[i], row(sample)[i]);
  for (size_t i = 0; i < kTerms; ++i) {
    if (!(terms >> i & 1)) {
      matrix[i][i] = 1;
      continue;
    }
    if (scale[i] == 0)
      return std::nullopt;
    for (const LinkSample &sample : samples) {
      std::array<double, kTerms> values = row(sample);
      for (size_t j = 0; j < kTerms; ++j)
        if (terms >> j & 1)
          matrix[i][j] += values[i] / scale[i] * values[j] / scale[j];
      matrix[i][kTerms] += values[i] / scale[i];
    }
  }
  for (size_t column = 0; column < kTerms; ++column) {
    size_t pivot = column;
    for (size_t i = column; i < kTerms; ++i)
      if (std::abs(matrix[i][column]) > std::abs(matrix[pivot][column]))
        pivot = i;
    std::swap(matrix[pivot], matrix[column]);
    if (std::abs(matrix[column][column]) < 1e-12)
      return std::nullopt;
    for (size_t i = 0; i < kTerms; ++i) {
      double factor = i == column ? 0 : matrix[i][column] / matrix[column][column];
      for (size_t j = column; j <= kTerms; ++j)
        matrix[i][j] -= factor * matrix[column][j];
    }
  }
  std::array<double, kTerms> result{};
  for (size_t i = 0; i < kTerms; ++i)
    if (terms >> i & 1)
      result[i] = matrix[i][kTerms] / matrix[i][i] / scale[i];
  return result;
}

double errorOf(const std::vector<LinkSample> &samples, const std::array<double, kTerms> &terms) {
  double error = 0;
  for (const LinkSample &sample : samples) {
    std::array<double, kTerms> values = row(sample);
    double rest = values[0] * terms[0] + values[1] * terms[1] + values[2] * terms[2] - 1;
    error += rest * rest;
  }
  return error;
}

} // namespace

std::optional<Link> fitLink(const std::vector<LinkSample> &samples) {
  std::optional<std::array<double, kTerms>> best;
  // No term may be negative, so this tries every set of terms that are not 0. Each set has seconds per byte.
  for (unsigned terms : {4u, 5u, 6u, 7u})
    if (auto found = solve(samples, terms);
        found && (*found)[0] >= 0 && (*found)[1] >= 0 && (*found)[2] > 0 &&
        (!best || errorOf(samples, *found) < errorOf(samples, *best)))
      best = found;
  if (!best)
    return std::nullopt;
  auto [delay, gap, perByte] = *best;
  bool isAlone = std::all_of(samples.begin(), samples.end(),
                             [](const LinkSample &sample) { return sample.messages <= 1; });
  return Link{delay + gap, isAlone ? delay + gap : gap, 1 / perByte};
}

} // namespace stepc::cost
