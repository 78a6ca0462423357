//===- Buffer.h - A buffer that knows what was written and read -*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_PLAN_BUFFER_H
#define STEPC_TEST_UNIT_PLAN_BUFFER_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stepc::test {

using Ids = std::vector<int64_t>;

/// Identities, -1 where nothing was written yet. Reads outside give -1, writes
/// outside false.
struct Buffer {
  explicit Buffer(int64_t size = 0) : ids(static_cast<size_t>(size), -1), reads(ids.size(), 0) {}
  static Buffer of(Ids list) {
    Buffer buffer;
    buffer.ids = std::move(list);
    buffer.reads.assign(buffer.ids.size(), 0);
    return buffer;
  }
  bool has(int64_t offset) const {
    return offset >= 0 && offset < static_cast<int64_t>(ids.size());
  }
  bool write(int64_t offset, int64_t id) {
    if (!has(offset) || ids[static_cast<size_t>(offset)] != -1)
      return false;
    ids[static_cast<size_t>(offset)] = id;
    return true;
  }
  int64_t read(int64_t offset) {
    if (!has(offset))
      return -1;
    ++reads[static_cast<size_t>(offset)];
    return ids[static_cast<size_t>(offset)];
  }
  bool full() const { return std::find(ids.begin(), ids.end(), -1) == ids.end(); }
  bool readOnce() const {
    return std::all_of(reads.begin(), reads.end(), [](int count) { return count == 1; });
  }
  Ids ids;
  std::vector<int> reads;
};

} // namespace stepc::test

#endif
