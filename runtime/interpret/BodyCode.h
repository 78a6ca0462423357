//===- BodyCode.h - A body, ready to run ---------------------------*- C++ -*-===//
//
// Each instruction is one loop over a strip of elements, so that looking up an instruction costs little per
// element.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_INTERPRET_BODYCODE_H
#define STEPC_RUNTIME_INTERPRET_BODYCODE_H

#include "runtime/interpret/Kernels.h"

#include <cstddef>

namespace stepc::interpret {

/// One instruction: a function, and the offsets of its registers in Registers, in bytes.
struct Step {
  void (*apply)(const Step &, std::byte *registers, int64_t lanes);
  int64_t result, first, second, third;
  int64_t predicate;
};

/// The registers of one thread. They lie on the thread's stack, because a step allocates nothing.
struct Registers {
  static constexpr int64_t kBytes = 128 << 10;
  alignas(64) std::byte bytes[kBytes];
};

class BodyCode {
public:
  BodyCode() = default;
  /// The caller passes a body that `check` accepts.
  explicit BodyCode(const Body &body);

  /// The most elements of a strip.
  int64_t lanes() const { return mostLanes; }
  std::byte *at(Registers &registers, int64_t place) const {
    return registers.bytes + place * mostLanes * 8;
  }
  /// Writes the constants to the first `lanes` elements of their registers.
  void begin(Registers &registers, int64_t lanes) const;
  void runUniform(Registers &registers, int64_t lanes) const { run(uniform, registers, lanes); }
  /// Runs the instructions of Body::each on a strip of `lanes` elements.
  void run(Registers &registers, int64_t lanes) const { run(each, registers, lanes); }

private:
  std::vector<Step> stepsOf(const std::vector<Instruction> &list) const;
  static void run(const std::vector<Step> &steps, Registers &registers, int64_t lanes) {
    for (const Step &step : steps)
      step.apply(step, registers.bytes, lanes);
  }

  int64_t mostLanes = 0;
  std::vector<Constant> constants;
  std::vector<Step> uniform, each;
};

} // namespace stepc::interpret

#endif
