//===- Memo.h - What was computed for one rank and holds for others -*- C++ -*-===//
//
// Internal to the plan.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_MEMO_H
#define STEPC_RUNTIME_PLAN_MEMO_H

#include <cstddef>
#include <map>
#include <memory>

namespace stepc::plan {

/// Values by what tells them apart. When they have too many rows together, all are forgotten: where
/// little is equal, memory stays bounded.
template <typename Key, typename Value> class Memo {
public:
  /// The value of a key: the one that make() once gave, which has rows(value).
  template <typename Make, typename Rows>
  std::shared_ptr<const Value> of(const Key &key, Make make, Rows rows) {
    if (auto found = known.find(key); found != known.end())
      return found->second;
    auto value = std::make_shared<const Value>(make());
    held += rows(*value) + 1;
    if (held > kMostRows) {
      known.clear();
      held = rows(*value) + 1;
    }
    known.emplace(key, value);
    return value;
  }

private:
  static constexpr size_t kMostRows = 1 << 19;
  std::map<Key, std::shared_ptr<const Value>> known;
  size_t held = 0;
};

} // namespace stepc::plan

#endif
