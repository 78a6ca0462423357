//===- Races.h - What nothing orders, and what nobody declared ---*- C++ -*-===//
//
// Follows the accesses of one rank's steps on the device `emulated`: accesses of copies, of messages, and
// of kernels that were compiled to announce theirs. `takeProblem` returns the first problem. This is two
// accesses that conflict and that no stream, event or barrier orders, or an access that its command does
// not declare.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_EMULATED_RACES_H
#define STEPC_RUNTIME_EMULATED_RACES_H

#include "runtime/emulated/Shadow.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stepc::runtime {

/// Memory that a command may touch.
struct MemoryUse {
  const void *data = nullptr;
  int64_t bytes = 0;
  bool reads = true, writes = true;
  /// "operand 2, a part of the workspace", or, before a name, "operand 1, the shard of parameter"
  const char *what = "";
  int64_t operand = -1;
  const std::string *name = nullptr;
};

/// What a command of the plan declares to touch and, if a function of the host carries it out, what it does
/// touch.
struct MemoryUses {
  std::string command;
  std::vector<MemoryUse> declared, carriedOut;
};

class Races {
public:
  /// The object of the launch that this thread of the machine runs, or null.
  static thread_local Races *running;

  std::string takeProblem() { return std::exchange(problem, {}); }

  // --- order: streams are 0 and 1 ---
  const Clocks &clocksOf(size_t order) const { return clocks[order]; }
  void join(size_t order, const Clocks &behind) { clocks[order].join(behind); }
  /// `leave` orders the trainer's stream after both streams. `begin` orders both streams after the
  /// trainer's.
  void leave();
  void begin();
  /// Begins the next command of a stream, whose accesses follow. Without declared uses it may touch
  /// anything.
  void beginCommand(size_t stream, MemoryUses uses, const std::string &kernel = {});

  // --- accesses of a command as a whole ---
  void touch(const void *data, int64_t bytes, bool writes);

  // --- staging memory of the host, which copies read later ---
  /// `readStaging`: the command reads what the host wrote to staging memory. `writeStaging`: the host
  /// writes there, which is a problem if the last copy from there may still be reading.
  void readStaging(const void *staging, int64_t bytes);
  void writeStaging(const void *staging);
  void forgetStaging(const void *staging) { stagingReaders.erase(staging); }

  // --- accesses of a kernel ---
  /// Returns where to load or store: `address`, or other memory if the command does not declare the access.
  /// A load from the other memory gives zeros.
  void *access(void *address, int64_t bytes, bool writes, int64_t block, int64_t thread);
  void beginBlock(const void *memory, int64_t bytes);
  void passBarrier() { ++barriers; }
  /// Begins a copy to the GPU block's memory, and returns where to write. The copy is under way until its
  /// thread has waited for it (`endCopy`).
  void *beginCopy(void *to, int64_t bytes, int64_t block, int64_t thread);
  void endCopy(const void *to, int64_t bytes, int64_t block, int64_t thread);

private:
  void touch(const void *data, int64_t bytes, const Access &by, bool writes);
  Access accessOf(int64_t block, int64_t thread) const;
  const MemoryUse *find(const void *data, int64_t bytes, bool writes) const;
  bool isOfBlock(const void *data, int64_t bytes) const;
  std::string placeOf(uintptr_t address) const;
  std::string nameOf(CommandNumber number) const;
  std::string whoOf(const Access &access) const;
  void tell(const Conflict &conflict);
  void tellUndeclared(const void *data, int64_t bytes, const Access &by, bool writes);

  std::string problem;
  std::array<Clocks, kOrders> clocks; ///< clocks[n].known[n]: the last command of n
  Clocks trainer;
  CommandNumber command;
  MemoryUses uses;
  std::vector<uintptr_t> ends;           ///< per declared use, the largest end so far
  std::map<uint32_t, std::string> names; ///< of commands since `begin`
  struct StagingRead {
    int64_t bytes;
    Clocks clocks;
  };
  std::map<const void *, StagingRead> stagingReaders; ///< by begin: the last copy from there
  Shadow shadow;
  uint32_t barriers = 0;
  uintptr_t memory = 0, memoryBytes = 0; ///< of the GPU block that runs
};

} // namespace stepc::runtime

#endif
