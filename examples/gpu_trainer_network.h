// gpu_trainer_network.h - The network of gpu_trainer.cpp, forward and backward, on the host.
//
// It learns on which of four arms of a spiral a point of the plane lies.
#ifndef GPU_TRAINER_NETWORK_H
#define GPU_TRAINER_NETWORK_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

/// SplitMix64. Every rank draws the same numbers, so that nothing need be sent.
struct Random {
  uint64_t state;
  /// From -1 to 1.
  double operator()() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
  }
};

/// A matrix with a row per output, or a bias with an element in each; both [rows][cols].
struct Weights {
  int64_t rows, cols;
  float *values, *gradient;
};

/// Of one example: what a layer gives, or how the loss changes with it.
using Values = std::vector<float>;

class Network {
public:
  static constexpr int kInputs = 2, kWidth = 64, kArms = 4;

  /// A matrix and a bias per layer; the last has no bias.
  explicit Network(std::vector<Weights> all) : all(std::move(all)) {}

  /// The mean loss of a batch. With a scale its gradients, times that, are added to those that are there.
  double loss(uint64_t seed, int examples, float scale) {
    Random random{seed};
    double total = 0;
    for (int i = 0; i < examples; ++i) {
      int arm = i % kArms;
      double radius = 0.55 + 0.45 * random();
      double angle = 1.5708 * arm + 4 * radius + 0.1 * random();
      total += example({float(radius * std::cos(angle)), float(radius * std::sin(angle))}, arm,
                       scale / float(examples));
    }
    return total / examples;
  }

  /// FNV-1a of all weights.
  uint64_t checksum() const {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const Weights &w : all)
      for (int64_t i = 0; i < w.rows * w.cols * int64_t(sizeof(float)); ++i)
        hash = (hash ^ reinterpret_cast<const unsigned char *>(w.values)[i]) * 0x100000001b3u;
    return hash;
  }

private:
  double example(Values point, int arm, float scale) {
    std::vector<Values> values = {std::move(point)};
    for (size_t layer = 0; layer < all.size(); layer += 2)
      values.push_back(forward(layer, values.back()));
    Values d = values.back();
    float greatest = *std::max_element(d.begin(), d.end()), sum = 0;
    for (float &one : d)
      sum += one = std::exp(one - greatest);
    double loss = std::log(sum) + greatest - values.back()[size_t(arm)];
    for (int a = 0; a < kArms; ++a)
      d[size_t(a)] = scale * (d[size_t(a)] / sum - float(a == arm));
    for (size_t layer = values.size() - 1; scale != 0 && layer-- > 0;)
      d = backward(2 * layer, values[layer], d);
    return loss;
  }

  /// Rectified, but for the last layer.
  Values forward(size_t layer, const Values &x) const {
    const Weights &w = all[layer];
    bool isLast = layer + 1 == all.size();
    Values y(size_t(w.rows));
    for (int64_t r = 0; r < w.rows; ++r) {
      float sum = isLast ? 0 : all[layer + 1].values[r];
      for (int64_t c = 0; c < w.cols; ++c)
        sum += w.values[r * w.cols + c] * x[size_t(c)];
      y[size_t(r)] = isLast ? sum : std::max(sum, 0.0f);
    }
    return y;
  }

  /// Adds a layer's gradients; how the loss changes with what the layer got.
  Values backward(size_t layer, const Values &x, const Values &d) {
    const Weights &w = all[layer];
    Values dx(x.size());
    for (int64_t r = 0; r < w.rows; ++r) {
      if (layer + 1 < all.size())
        all[layer + 1].gradient[r] += d[size_t(r)];
      for (int64_t c = 0; c < w.cols; ++c) {
        w.gradient[r * w.cols + c] += d[size_t(r)] * x[size_t(c)];
        dx[size_t(c)] += d[size_t(r)] * w.values[r * w.cols + c];
      }
    }
    // What the rectifier below let not pass.
    for (size_t i = 0; i < dx.size(); ++i)
      dx[i] = x[i] > 0 ? dx[i] : 0;
    return dx;
  }

  std::vector<Weights> all;
};

#endif
