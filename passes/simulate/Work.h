//===- Work.h - What a rank's commands take by themselves -------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_WORK_H
#define STEPC_PASSES_SIMULATE_WORK_H

#include "passes/cost/ProductLaunches.h"
#include "runtime/plan/Tables.h"

#include <map>
#include <memory>
#include <optional>

namespace stepc::simulate {

/// Sums over rows of tables.
struct Sums {
  int64_t items = 0, elements = 0, staged = 0, blocks = 0;

  Sums &operator+=(const Sums &other) {
    items += other.items;
    elements += other.elements;
    staged += other.staged;
    blocks += other.blocks;
    return *this;
  }
};

/// What a command does on one rank.
struct Effort {
  double seconds = 0, flops = 0, fullFlops = 0, bytes = 0;
  double productSeconds = 0;   ///< as seconds, of products alone
  int64_t productLaunches = 0; ///< launches of products

  Effort &operator+=(const Effort &other);
};

/// What every command takes on every rank, if each has a device of its own. Rows that ranks have in common
/// are summed up once.
class Work {
public:
  Work(const plan::Plan &plan, plan::Expander &expander, const cost::Device &device);

  double seconds(size_t command, size_t rank) const { return times[command * ranks + rank]; }
  /// All commands of one rank together.
  const Effort &total(size_t rank) const { return totals[rank]; }
  /// Seconds that a rank takes to copy `bytes` bytes, which it reads and writes.
  double copySeconds(int64_t bytes) const;
  /// Bytes of a rank's parameters, gradients and states.
  int64_t shardBytes(size_t rank) const { return shards[rank]; }

private:
  const std::vector<Sums> &sumsOf(int64_t table);
  Sums sum(const plan::RankTable &rows) const;
  std::vector<Effort> efforts(size_t number);
  /// The seconds of a launch beside its products' work, if the product with this number begins it on a rank.
  /// An earlier product of the launch may begin it, or the rank may have no blocks.
  std::optional<double> launchSeconds(size_t number, size_t rank);
  // The launches (seconds) and operations of a command beside the bytes that it moves, from the sums of its
  // tables on a rank.
  struct Extra {
    Extra(double launch, double operations = 0)
        : Extra(launch, operations, operations, operations) {}
    Extra(double launch, double operations, double flops, double fullFlops)
        : launch(launch), operations(operations), flops(flops), fullFlops(fullFlops) {}
    double launch, operations, flops, fullFlops;
  };
  Extra extra(const plan::Product &,
              const Sums &) const; // without its time, which `launches` knows
  Extra extra(const plan::Apply &, const Sums &) const;
  Extra extra(const plan::Sum &, const Sums &) const;
  Extra extra(const plan::AdvanceSteps &, const Sums &) const;
  Extra extra(const plan::Skip &, const Sums &) const;
  template <typename Command> Extra extra(const Command &, const Sums &) const {
    return {device.launch};
  }
  /// Bytes that an effect moves: per element of the rows, per element that rows stage, and per block.
  struct Rate {
    double element = 0, staged = 0, block = 0;
  };
  Rate rate(const plan::Effect &effect);
  double shardRate(const plan::Operand &operand, const plan::Table &table) const;
  Rate workspaceRate(const plan::Effect &effect, const plan::Table &table);
  void countShards();

  const plan::Plan &plan;
  plan::Expander &expander;
  const cost::Device &device;
  cost::ProductLaunches launches;
  std::map<size_t, cost::PlannedLaunch> launchOf; // by product's number
  size_t ranks;
  std::vector<double> times;
  std::vector<Effort> totals;
  std::vector<int64_t> shards;
  std::vector<const plan::Start *> starts;
  std::map<int64_t, std::vector<Sums>> known; // per table
};

} // namespace stepc::simulate

#endif
