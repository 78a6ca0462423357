//===- MatrixStack.cpp - Stacks of matrices that tensor loads take ----------===//
#include "runtime/devices/Device.h"
#include "runtime/text/Text.h"

#include <algorithm>

namespace stepc::runtime {

std::string checkStack(const MatrixStack &stack) {
  constexpr int64_t kBytes = 16;
  int64_t rowBytes = stack.columns * byteSize(stack.type);
  if (reinterpret_cast<uintptr_t>(stack.address) % kBytes || rowBytes % kBytes)
    return format("expected matrices at a multiple of 16 bytes with rows of whole 16 bytes, found "
                  "address %p and rows of %lld bytes",
                  stack.address, (long long)rowBytes);
  if (std::min({stack.matrices, stack.rows, stack.columns}) < 1)
    return format("expected matrices with elements, found %lld of %lld x %lld",
                  (long long)stack.matrices, (long long)stack.rows, (long long)stack.columns);
  return {};
}

} // namespace stepc::runtime
