//===- Fault.h - A fault that the sanitizer must see ------------*- C++ -*-===//
#ifndef STEPC_TEST_FUZZ_FAULT_H
#define STEPC_TEST_FUZZ_FAULT_H

#include <cstdint>
#include <cstdlib>
#include <memory>

/// With STEPC_FUZZ_FAULT in the environment: reads the byte behind a copy of the input, once it is
/// long enough, to show that the fuzzer would find such a fault.
inline void plantedFault(const uint8_t *data, size_t size) {
  static const bool planted = std::getenv("STEPC_FUZZ_FAULT") != nullptr;
  if (!planted || size < 16)
    return;
  auto copy = std::make_unique<uint8_t[]>(size);
  std::copy(data, data + size, copy.get());
  volatile uint8_t sink = copy.get()[size];
  (void)sink;
}

#endif
