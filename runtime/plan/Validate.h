//===- Validate.h - Which group a plan's error is of -------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_VALIDATE_H
#define STEPC_RUNTIME_PLAN_VALIDATE_H

#include "runtime/plan/Plan.h"

namespace stepc::plan {

/// Like validate in Tables.h. Sets `wrongGroup` to the index of the group that is wrong, if one is.
std::string validate(const Plan &plan, int64_t &wrongGroup);

} // namespace stepc::plan

#endif
