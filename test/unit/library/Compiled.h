//===- Compiled.h - Libraries that the stepc binary compiles ----*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_LIBRARY_COMPILED_H
#define STEPC_TEST_UNIT_LIBRARY_COMPILED_H

#include "stepc/stepc.h"

#include <cstdint>
#include <string>
#include <vector>

namespace stepc::test {

inline constexpr const char *kMuon = STEPC_TEST_ROOT "/examples/muon.optim";

std::string inputFile(const std::string &name);

/// The library of a specification and a manifest, which options may follow; compiled once and loaded.
const stepc_library *compiled(const std::string &spec, const std::string &manifest);
/// The bytes of its file.
const std::vector<uint8_t> &compiledBytes(const std::string &spec, const std::string &manifest);

} // namespace stepc::test

#endif
