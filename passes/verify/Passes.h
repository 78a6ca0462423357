//===- Passes.h - Passes that prove ------------------------------*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_PASSES_H
#define STEPC_PASSES_VERIFY_PASSES_H

#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace stepc::verify {

#define GEN_PASS_DECL
#include "passes/verify/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/verify/Passes.h.inc"

} // namespace stepc::verify

#endif
