//===- Checks.h - What validators ask of numbers -----------------*- C++ -*-===//
//
// Internal to the plan. A check returns what is wrong as text, and an empty string if nothing is.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_CHECKS_H
#define STEPC_RUNTIME_PLAN_CHECKS_H

#include "runtime/plan/Plan.h"

namespace stepc::plan {

using Check = std::string;

template <typename List> bool inside(int64_t index, const List &list) {
  return index >= 0 && index < static_cast<int64_t>(list.size());
}

/// The message for an index that is not inside a list.
template <typename List> Check outside(const std::string &what, int64_t index, const List &list) {
  return "expected a " + what + " below " + std::to_string(list.size()) + ", found " +
         std::to_string(index);
}

template <typename T> const T &at(const std::vector<T> &list, int64_t index) {
  return list[static_cast<size_t>(index)];
}

/// The message for a value that is none of its enumeration's, or is above `most`.
template <typename Enum> Check unknown(const std::string &what, Enum value, Enum most) {
  return "expected " + what + " from 0 to " + std::to_string(static_cast<int64_t>(most)) +
         ", found " + std::to_string(static_cast<int64_t>(value));
}
template <Named Enum> Check unknown(const std::string &what, Enum value) {
  return unknown(what, value, last<Enum>());
}

/// The product a · b, or a number above `limit` if the product is larger.
inline int64_t product(int64_t a, int64_t b, int64_t limit) {
  return a != 0 && b > limit / a ? limit + 1 : a * b;
}

/// Names an item of a list for messages: a group by its name, which is known to be valid, others by their
/// index.
inline std::string label(const Group &group, size_t) { return group.name; }
template <typename Item> std::string label(const Item &, size_t index) {
  return std::to_string(index);
}

/// Checks the items of a list, unless `error` is set already: later checks rely on earlier ones. Sets
/// `error` and returns the index of the first item that is wrong. Returns -1 if none is.
template <typename Validator, typename Item>
int64_t each(Check &error, Validator &validator, const char *what, const std::vector<Item> &list,
             Check (Validator::*check)(const Item &, int64_t)) {
  for (size_t i = 0; i < list.size() && error.empty(); ++i)
    if (Check wrong = (validator.*check)(list[i], static_cast<int64_t>(i)); !wrong.empty()) {
      error = std::string(what) + " " + label(list[i], i) + ": " + wrong;
      return static_cast<int64_t>(i);
    }
  return -1;
}

// Far above any model, far below what would overflow or exhaust memory in `expand`.
inline constexpr int64_t kMaxElements = int64_t(1) << 42;   // of a group
inline constexpr int64_t kMaxRectangles = int64_t(1) << 24; // of one shard; also blocks of a group

/// The first thing that is wrong with meshes, rules, routes, groups and parameters. `wrongGroup` becomes
/// the index of the group that is wrong, if one is.
Check validateModel(const Plan &plan, int64_t &wrongGroup);
/// Whether a rank holds too many elements of a group, or computes too many of a block; empty if not. A
/// rank's tables have a row for every few thousand elements.
Check checkHeld(const Plan &plan, const Group &group);
/// Whether a value of this kind has too many elements in a block; empty if not.
Check checkValue(const Group &group, ValueKind kind);
/// What is wrong with the hops of a group whose mesh and placements are valid.
Check checkHops(const Plan &plan, const Group &group);
/// What is wrong with the communicator of a collective.
Check checkCommunicator(const Plan &plan, const Communicator &communicator);
/// What is wrong with the algorithms that are pinned for a product whose operands fit together.
Check checkPinned(const Plan &plan, const Product &product);

} // namespace stepc::plan

#endif
