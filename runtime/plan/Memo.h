//===- Memo.h - What was computed for one rank and holds for others -*- C++ -*-===//
//
// Internal to the plan.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_MEMO_H
#define STEPC_RUNTIME_PLAN_MEMO_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stepc::plan {

/// Hashes the keys of memos: numbers, addresses, and pairs and lists of them.
struct MemoHash {
  size_t operator()(int64_t number) const {
    auto word = static_cast<uint64_t>(number) * 0x9e3779b97f4a7c15U;
    return static_cast<size_t>(word ^ (word >> 32));
  }
  template <typename T> size_t operator()(const T *address) const {
    return (*this)(static_cast<int64_t>(reinterpret_cast<uintptr_t>(address)));
  }
  template <typename T> size_t operator()(const std::shared_ptr<T> &owner) const {
    return (*this)(owner.get());
  }
  template <typename A, typename B> size_t operator()(const std::pair<A, B> &pair) const {
    return mix((*this)(pair.first), (*this)(pair.second));
  }
  template <typename T> size_t operator()(const std::vector<T> &list) const {
    size_t hash = list.size();
    for (const T &item : list)
      hash = mix(hash, (*this)(item));
    return hash;
  }

private:
  static size_t mix(size_t hash, size_t next) {
    return (hash ^ next) * 0x100000001b3U + (hash >> 29);
  }
};

/// Keeps values by their keys. When the values have more than `mostRows` rows together, all are forgotten,
/// so that memory stays bounded even if few keys repeat.
template <typename Key, typename Value> class Memo {
public:
  explicit Memo(size_t mostRows = 1 << 17) : mostRows(mostRows) {}

  /// Returns the value of a key. If it is not known, make() computes it. rows(value) is the number of rows
  /// that a value counts for.
  template <typename Make, typename Rows>
  std::shared_ptr<const Value> of(const Key &key, Make make, Rows rows) {
    if (auto found = known.find(key); found != known.end())
      return found->second;
    auto value = std::make_shared<const Value>(make());
    held += rows(*value) + 1;
    if (held > mostRows) {
      known.clear();
      held = rows(*value) + 1;
    }
    known.emplace(key, value);
    return value;
  }

private:
  size_t mostRows;
  std::unordered_map<Key, std::shared_ptr<const Value>, MemoHash> known;
  size_t held = 0;
};

} // namespace stepc::plan

#endif
