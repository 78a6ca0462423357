//===- Inputs.cpp - What the trainer gives for each step -------------------===//
//
// Kernels read an input as they read a state. If it is not given, they read its default from memory of the
// library.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace stepc::runtime {
namespace {

/// A finite number that f16 can hold, rounded to it, ties to even. A library has no functions of libm.
uint16_t toHalf(double value) {
  auto bits = std::bit_cast<uint64_t>(value);
  auto sign = uint16_t(bits >> 48 & 0x8000);
  int64_t exponent = int64_t(bits >> 52 & 0x7ff) - 1023;
  uint64_t digits = (bits & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
  constexpr int64_t kLeast = -14; // of a normal f16, which has 10 digits behind the first
  int64_t dropped = 42 + std::max<int64_t>(kLeast - exponent, 0);
  if (dropped > 60)
    return sign;
  uint64_t kept = digits >> dropped, rest = digits & ((uint64_t(1) << dropped) - 1),
           half = uint64_t(1) << (dropped - 1);
  kept += rest > half || (rest == half && (kept & 1));
  // A carry into the exponent is right.
  return uint16_t(sign | (kept + (uint64_t(std::max(exponent, kLeast) - kLeast) << 10)));
}

uint16_t toBrain(double value) {
  auto bits = std::bit_cast<uint32_t>(float(value));
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

InputDefault *find(stepc_instance &instance, const StateText &input) {
  for (InputDefault &each : instance.prepared.inputDefaults)
    if (each.value == input.init && each.dtype == input.dtype)
      return &each;
  return nullptr;
}

void fill(InputDefault &made, size_t bytes) {
  if (made.dtype == plan::name(plan::DType::F32)) {
    auto number = float(made.value);
    for (made.elements.resize(bytes); bytes >= sizeof(number); bytes -= sizeof(number))
      std::memcpy(made.elements.data() + bytes - sizeof(number), &number, sizeof(number));
    return;
  }
  uint16_t word =
      made.dtype == plan::name(plan::DType::F16) ? toHalf(made.value) : toBrain(made.value);
  for (made.elements.resize(bytes); bytes >= sizeof(word); bytes -= sizeof(word))
    std::memcpy(made.elements.data() + bytes - sizeof(word), &word, sizeof(word));
}

} // namespace

void makeDefaults(stepc_instance &instance) {
  const Library &lib = instance.library;
  for (size_t g = 0; g < lib.plan.groups.size(); ++g)
    for (size_t i = 0; i < lib.groups[g].inputs.size(); ++i) {
      const StateText &input = lib.groups[g].inputs[i];
      auto bytes = size_t(instance.prepared.groups[g].inputs[i].bytes);
      if (std::isnan(input.init) || !bytes)
        continue;
      InputDefault *made = find(instance, input);
      if (!made)
        made = &instance.prepared.inputDefaults.emplace_back(
            InputDefault{input.init, input.dtype, {}});
      if (made->elements.size() < bytes)
        fill(*made, bytes);
    }
}

void placeInputs(stepc_instance &instance, const AddressOf &addressOf) {
  const Library &lib = instance.library;
  for (size_t g = 0; g < lib.plan.groups.size(); ++g)
    for (size_t i = 0; i < lib.groups[g].inputs.size(); ++i) {
      InputDefault *made = find(instance, lib.groups[g].inputs[i]);
      instance.prepared.groups[g].defaultAddresses[i] =
          made ? addressOf(made->elements.data()) : nullptr;
    }
  for (size_t p = 0; p < lib.plan.parameters.size(); ++p) {
    int64_t g = lib.plan.parameters[p].group;
    for (size_t i = 0; i < lib.groups[g].inputs.size(); ++i)
      instance.bound.states[lib.groups[g].inputs[i].index][p] =
          const_cast<void *>(instance.prepared.groups[g].defaultAddresses[i]);
  }
}

int64_t inputCount(const Library &lib, int64_t parameter) {
  return parameter < 0 || parameter >= int64_t(lib.plan.parameters.size())
             ? 0
             : int64_t(lib.groups[lib.parameter(parameter).group].inputs.size());
}

} // namespace stepc::runtime
