//===- Jit.h - Kernels of one operation as functions in memory --*- C++ -*-===//
//
// Builds a module with one operation on memrefs, emits its kernels for a chip, lowers them with
// upstream conversions and compiles them into this process.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_UNIT_PRODUCTS_JIT_H
#define STEPC_TEST_UNIT_PRODUCTS_JIT_H

#include "passes/kernels/TargetShape.h"
#include "stepc/kernel_abi.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepc::test {

using KernelFunction = void (*)(void *const *, int64_t, int64_t);

struct CompiledLaunch {
  KernelFunction kernel;
  std::vector<int> buffers; ///< indices of the operation's operands, in order; -1: the scratch
  int64_t itemsPerBlock;
  std::optional<stepc_factors> factors = {}; ///< of a product
  float shift = 0;

  /// What the kernel is given, of the operation's operands and the scratch.
  template <typename Address> std::vector<void *> arguments(Address address) const {
    std::vector<void *> all;
    for (int buffer : buffers)
      all.push_back(address(buffer));
    if (factors)
      std::memcpy(&all.emplace_back(), &*factors, sizeof(*factors));
    if (shift != 0) {
      stepc_shift word = {shift, 0};
      std::memcpy(&all.emplace_back(), &word, sizeof(word));
    }
    return all;
  }
};

/// Keeps the code alive.
struct Code {
  std::shared_ptr<void> jit;
  std::vector<CompiledLaunch> launches;
  int64_t scratchBytesPerBlock = 0;
  std::string error; ///< set when nothing was compiled
};

/// `operation` stands in a function whose arguments %0, %1, … have the given types; it ends with
/// the operation alone, e.g. "optim.product %0, %1 outs(…) …". With `assembly` the text goes to
/// stdout.
Code compile(const std::string &operation, const std::vector<std::string> &argumentTypes,
             const TargetShape &target, bool assembly = false);

/// Mistakes that tests plant in kernels of a GPU.
enum class Fault {
  None,
  NoBarriers, ///< no thread waits
  OneMore,    ///< of what is below an extent, one more is
  NoWaits,    ///< no thread waits for its copies
  EarlyWaits, ///< one group more may be under way
  SameBlocks, ///< every second block does what the one before it does
};
/// The same by the kernels of a GPU, which this machine runs (runtime/emulated); on tensor cores, where
/// they take the operands. With `races` they say what they touch.
Code compileEmulated(const std::string &operation, const std::vector<std::string> &argumentTypes,
                     Fault fault = Fault::None, bool tensorCores = false, bool races = false);

/// Kernels of a module as text, each of `buffers` buffers: their numerics are spelled out and they
/// are compiled. What a kernel takes: its arguments' bases, the first item, the last.
Code compileKernels(const std::string &text, const std::vector<std::string> &names, int buffers,
                    const TargetShape &target);

/// The x86-64 level of a shape, for messages; empty when this machine cannot run it.
std::string chipName(const TargetShape &target);

} // namespace stepc::test

#endif
