//===- World.h - Compiled libraries on in-process ranks ---------*- C++ -*-===//
//
// A trainer in a few lines, for tests that compile with the stepc binary. Without GoogleTest,
// so that scripts build it under sanitizers.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_UNIT_LIBRARY_WORLD_H
#define STEPC_TEST_UNIT_LIBRARY_WORLD_H

#include "stepc/sized.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stepc::test {

/// The table of the library at `path`, which stays loaded. Ends the program where it cannot be
/// loaded.
const stepc_library *open(const std::string &path);

/// Memory of exactly its size, so that a sanitizer sees the first byte behind it.
struct Buffer {
  explicit Buffer(int64_t bytes = 0)
      : bytes(bytes), data(bytes > 0 ? new char[bytes]() : nullptr) {}
  void *get() const { return data.get(); }
  int64_t bytes;
  std::shared_ptr<char[]> data; ///< shared only where a test plants a race
};

/// One rank's instance and what it borrows.
class Rank {
public:
  Rank(const stepc_library *library, stepc_instance *instance);

  /// Binds everything; the first bad status.
  int32_t bind();
  /// Fills gradients for a step: numbers that only the rank, parameter and step decide.
  void fillGradients(int rank, int64_t step);
  std::string error() const { return library->last_error(instance); }

  const stepc_library *library;
  stepc_instance *instance;
  std::vector<Buffer> parameters, gradients;
  std::vector<std::vector<Buffer>> states;
  /// What bind_* is told of a shard, whatever the buffer holds.
  std::vector<int64_t> claimed;
  std::vector<int64_t> steps;
};

struct Options {
  int32_t threads = 1;
  double timeout = 60;
  /// Number of transports; 0: the library's world.
  int32_t size = 0;
  /// Changes the options of a rank before it creates.
  std::function<void(int rank, stepc_options &)> change;
};

/// What create said.
struct Created {
  int32_t status;
  std::string message;
};

/// Runs `body` on every rank of an in-process world, in threads of their own, where create
/// succeeds. Rank r holds libraries[r % count].
std::vector<Created> runWorld(const std::vector<const stepc_library *> &libraries,
                              const Options &options, const std::function<void(Rank &, int)> &body);

/// Makes `steps` steps on all ranks. FNV-1a of all parameters, states and step counts; in `error`
/// the first failure.
uint64_t train(const stepc_library *library, const Options &options, int64_t steps,
               std::string &error);

} // namespace stepc::test

#endif
