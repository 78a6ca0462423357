//===- Code.h - A kernel, ready to run ------------------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_INTERPRET_CODE_H
#define STEPC_RUNTIME_INTERPRET_CODE_H

#include "runtime/interpret/Kernels.h"

#include <memory>

namespace stepc::interpret {

/// A kernel of the kernel ABI (stepc/kernel_abi.h). Several threads may use it at once.
class Code {
public:
  virtual ~Code() = default;
  /// How many arguments `run` takes.
  virtual int64_t arguments() const = 0;
  virtual void run(void *const *arguments, int64_t first, int64_t last) const = 0;
};

/// The caller passes a kernel that `check` accepts.
inline std::unique_ptr<Code> makeCode(const Kernel &kernel) {
  return std::visit([](const auto &each) { return each.code(); }, kernel);
}

} // namespace stepc::interpret

#endif
