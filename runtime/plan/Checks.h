//===- Checks.h - Whether an index is one of a list's ------------*- C++ -*-===//
//
// Internal to the plan: what Plan.cpp, Validate.cpp and ValidateProgram.cpp ask of numbers.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_CHECKS_H
#define STEPC_RUNTIME_PLAN_CHECKS_H

#include "runtime/plan/Plan.h"

namespace stepc::plan {

template <typename List> bool inside(int64_t index, const List &list) {
  return index >= 0 && index < static_cast<int64_t>(list.size());
}

/// What is said of one that is not.
inline std::string outside(const char *what, int64_t index) {
  return std::string(what) + " " + std::to_string(index) + " does not exist";
}

/// What is wrong with a pool, so that it cannot be expanded.
std::string checkPool(const Plan &plan, const Pool &pool);

} // namespace stepc::plan

#endif
