//===- Harness.h - Worlds of ranks for the runtime's tests -------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_RUNTIME_HARNESS_H
#define STEPC_TEST_UNIT_RUNTIME_HARNESS_H

#include "stepc/sized.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace stepc::test {

using stepc::sized;

/// Parameters of Program.cpp, in the plan's order.
enum Parameter : int64_t { A, B, Short, Whole, Zero, Ask, W0, W1, W2, kParameters };
enum Route : int64_t { Decay, DecayZero, Double, DecayAsk };

/// The hand-written program for a world, with a fault planted ("" for none). Each pair is a
/// library of its own, loaded once.
const stepc_library *load(int32_t world, const std::string &fault = "");

/// One rank's instance and the memory that it borrows. Values are those of the whole tensors, so
/// that every world can be compared with one rank.
class Trainer {
public:
  Trainer(const stepc_library *library, stepc_instance *instance);

  /// Binds parameters, states, step counts and gradients, and sets the missing rate.
  void bindAll();
  void bindGradients();
  /// New gradients, as function of the step.
  void fillGradients(int64_t step);
  /// Where the rank's shards stand in the whole tensors; fills in the first values.
  void place(int rank, int size);
  /// Copies the shards into whole tensors.
  void collect(std::vector<std::vector<float>> &whole) const;
  std::string error() const { return library->last_error(instance); }
  int32_t step() { return library->step(instance); }
  std::vector<uint8_t> halfStepped() const;
  stepc_counters executed() const, planned() const;

  const stepc_library *library;
  stepc_instance *instance;
  std::vector<std::vector<float>> parameters, gradients, moments;
  std::vector<int64_t> steps;

private:
  std::vector<int64_t> firstElement; // of the shard in the whole tensor
};

/// `size` in-process transports.
std::vector<stepc_transport> transportsOf(const stepc_library *library, int32_t size);

/// Options of a test world.
struct Options {
  std::string fault;
  int32_t threads = 1;
  double timeout = 20;
  stepc_parallel_for parallelFor = nullptr;
  void *parallelContext = nullptr;
  stepc_allocate allocate = nullptr;
  stepc_deallocate deallocate = nullptr;
  void *allocatorContext = nullptr;
  /// A create that fails is no failure of the test; the body then does not run.
  bool createMayFail = false;
  /// Fills in the transports; in-process ranks without it.
  std::function<void(std::vector<stepc_transport> &)> connect;
};

/// Runs `body` on every rank of an in-process world, each in a thread, with an instance that is
/// destroyed after it. Fails the test where create does.
void runWorld(int32_t size, const Options &options,
              const std::function<void(Trainer &, int)> &body);

/// Creates on every rank and destroys again: the statuses and messages.
struct Created {
  int32_t status;
  std::string message;
};
std::vector<Created> createWorld(const std::vector<const stepc_library *> &libraries,
                                 const stepc_options &options);

stepc_options defaultOptions();

/// Whole parameters, zero.
std::vector<std::vector<float>> wholeParameters();
/// What `steps` steps make of the parameters, whole, without any library.
std::vector<std::vector<float>> expectedParameters(int64_t steps);

} // namespace stepc::test

#endif
