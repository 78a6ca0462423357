//===- ProductForms.h - Products of blocks, as costs are asked --*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_PRODUCTFORMS_H
#define STEPC_PASSES_PLAN_PRODUCTFORMS_H

#include "dialects/optim/Optim.h"
#include "passes/cost/ProductRates.h"
#include "passes/cost/SideBySide.h"

namespace stepc {

/// The product of one block of an operation on batches.
cost::BlockProduct blockProductOf(optim::ProductOp product);
/// Why a kernel on warpgroups does not take an operation on batches; empty if it does.
std::string checkWarpgroups(optim::ProductOp product);
/// The form of an operation on batches. It decides which products may share a launch.
cost::LaunchForm formOf(optim::ProductOp product);

} // namespace stepc

#endif
