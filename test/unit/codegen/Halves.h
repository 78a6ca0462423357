//===- Halves.h - Strategies of a test's dialect ----------------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_CODEGEN_HALVES_H
#define STEPC_TEST_UNIT_CODEGEN_HALVES_H

#include "dialects/optim/Optim.h"

#include "test/unit/codegen/HalvesDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "test/unit/codegen/HalvesAttrs.h.inc"

namespace stepc::test {

/// Two hops: first neighbours along the last axis of a mesh come together, then all others. Each either
/// owns its factors or replicates along them.
std::vector<plan::Hop> byHalves(const plan::Mesh &mesh, bool ownsFirst, bool ownsSecond);

} // namespace stepc::test

#endif
