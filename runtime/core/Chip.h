//===- Chip.h - Whether this CPU can run the library -------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_CORE_CHIP_H
#define STEPC_RUNTIME_CORE_CHIP_H

#include <string>
#include <string_view>

namespace stepc::runtime {

/// Returns the first feature of a chip ("znver5;+avx512f,+avx2,-sse4a") that this CPU or its system lacks;
/// empty if none is missing. Ignores features that change no instruction of a kernel ("+prfchw"). A vector
/// extension that is unknown here counts as missing.
std::string missingFeature(std::string_view chip);

/// The name of a plan's chip without its features: "cuda:sm_90a", "emulated:sm_80 on znver5", "znver5".
inline std::string shortChip(const std::string &chip) { return chip.substr(0, chip.find(';')); }

} // namespace stepc::runtime

#endif
