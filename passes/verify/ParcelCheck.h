//===- ParcelCheck.h - What one start sends on one rank ---------*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_PARCELCHECK_H
#define STEPC_PASSES_VERIFY_PARCELCHECK_H

#include "runtime/plan/Tables.h"

#include <optional>
#include <set>
#include <string>

namespace stepc::verify {

/// Shows for one start on one rank that all that its values send to a peer stands in that peer's message. It
/// may also stand there as a copy of bytes of another peer's message. It is aligned, and values are in the
/// order that both ends have: by falling size of their elements, then as listed. TableProof shows for all
/// ranks that both ends count the same elements of each value. So what leaves at a byte of a message is what
/// arrives there.
class ParcelCheck {
public:
  struct Value {
    const std::vector<plan::Message> *messages; ///< of its Message table
    int64_t elementBytes;
  };

  ParcelCheck(std::vector<Value> values, int64_t rank, int64_t ranks);

  /// Nothing, or what is wrong, and the number of the value to blame.
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
  std::vector<int64_t> next; // per peer, the byte of its message that comes next; -1: it has none
  std::set<plan::PartCopy> copies; // of the side at hand
  std::optional<std::pair<size_t, std::string>> fault;
};

} // namespace stepc::verify

#endif
