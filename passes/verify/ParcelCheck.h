//===- ParcelCheck.h - What one start sends on one rank ---------*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_PARCELCHECK_H
#define STEPC_PASSES_VERIFY_PARCELCHECK_H

#include "runtime/plan/Tables.h"

#include <optional>
#include <set>
#include <string>

namespace stepc::verify {

/// Checks the buffers of one start on one rank. All that a value sends to a peer must stand in the peer's
/// message, packed there or copied from another peer's message. Each part (a run of a value's elements) must
/// be aligned to the size of an element. Values must stand in the order that both ends use: by falling size
/// of their elements, then as listed. TableProof shows that both ends count the same elements of each value.
/// So what leaves at a byte of a message arrives at the same byte of it.
class ParcelCheck {
public:
  struct Value {
    const std::vector<plan::Message> *messages; ///< the rank's rows of the value's Message table
    int64_t elementBytes;
  };

  ParcelCheck(std::vector<Value> values, int64_t rank, int64_t ranks);

  /// Returns nullopt if nothing is wrong, otherwise the index of the value to blame, and the error.
  std::optional<std::pair<size_t, std::string>> run(const plan::RankStart &start);

private:
  using Field = int64_t plan::Message::*;
  bool check(const plan::RankStart &start, const plan::Parcel &parcel, Field offset, Field count,
             const char *does);
  bool checkParts(size_t value, const plan::Parcel &parcel, Field offset, Field count,
                  const char *does);
  bool checkRanges(const plan::RankStart &start, const plan::Parcel &parcel, Field offset,
                   Field count, const char *does);
  bool fail(size_t value, std::string message);

  std::vector<Value> values;
  std::vector<size_t> order;
  int64_t rank;
  std::vector<int64_t> next;       // per peer, the next byte of its message; -1: no message
  std::set<plan::PartCopy> copies; // of the buffer that is checked
  std::optional<std::pair<size_t, std::string>> fault;
};

} // namespace stepc::verify

#endif
