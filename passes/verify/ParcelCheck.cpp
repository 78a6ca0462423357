//===- ParcelCheck.cpp - What one start sends on one rank ------------------===//

#include "passes/verify/ParcelCheck.h"

#include <algorithm>
#include <numeric>

namespace stepc::verify {

using plan::Message;
using plan::PackedRun;

/// An element's address must be a multiple of this. A wide element is aligned as its words are.
static int64_t alignmentOf(int64_t elementBytes) {
  return std::min<int64_t>(elementBytes & -elementBytes, 8);
}

ParcelCheck::ParcelCheck(std::vector<Value> of, int64_t rank, int64_t ranks)
    : values(std::move(of)), rank(rank), next(ranks, -1) {
  order.resize(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(),
                           [&](size_t i) { return alignmentOf(values[i].elementBytes); });
}

bool ParcelCheck::fail(size_t value, std::string message) {
  fault = {value, std::move(message)};
  return false;
}

std::optional<std::pair<size_t, std::string>> ParcelCheck::run(const plan::RankStart &start) {
  int64_t previous = -1;
  for (const Message &m : start.messages) {
    if (m.peer <= previous || m.peer >= int64_t(next.size()) || m.sendOffset < 0 ||
        m.sendCount < 0 || m.receiveOffset < 0 || m.receiveCount < 0) {
      fail(0, "expected messages of rank " + std::to_string(rank) + " to ascending peers below " +
                  std::to_string(next.size()) +
                  ", none with an offset or size below 0, found rank " + std::to_string(m.peer) +
                  " after " + std::to_string(previous));
      return fault;
    }
    previous = m.peer;
  }
  // Each message arrives once, so a copy within the received buffer would write its bytes a second time.
  if (!start.received.copies.empty())
    fail(0, "expected no copies of parts in what rank " + std::to_string(rank) +
                " receives, found " + std::to_string(start.received.copies.size()));
  else if (check(start, start.sent, &Message::sendOffset, &Message::sendCount, "sends"))
    check(start, start.received, &Message::receiveOffset, &Message::receiveCount, "receives");
  return fault;
}

bool ParcelCheck::check(const plan::RankStart &start, const plan::Parcel &parcel, Field offset,
                        Field count, const char *does) {
  if (parcel.values.size() != values.size())
    return fail(0, "expected parts of " + std::to_string(values.size()) + " values, found " +
                       std::to_string(parcel.values.size()));
  copies = {parcel.copies.begin(), parcel.copies.end()};
  std::fill(next.begin(), next.end(), -1);
  for (const Message &m : start.messages)
    next[m.peer] = m.*offset;
  for (size_t value : order)
    if (!checkParts(value, parcel, offset, count, does))
      return false;
  // A seal follows the last part of a message. A message without parts has no bytes, and no seal.
  for (const Message &m : start.messages)
    if (next[m.peer] > m.*offset)
      next[m.peer] += plan::kSealBytes;
  for (const Message &m : start.messages)
    if (next[m.peer] != m.*offset + m.*count)
      return fail(0, "expected " + std::to_string(next[m.peer] - m.*offset) +
                         " bytes in the message that rank " + std::to_string(rank) + " " + does +
                         ", with rank " + std::to_string(m.peer) + ", found " +
                         std::to_string(m.*count));
  return checkRanges(start, parcel, offset, count, does);
}

bool ParcelCheck::checkParts(size_t value, const plan::Parcel &parcel, Field offset, Field count,
                             const char *does) {
  int64_t bytes = values[value].elementBytes;
  const std::vector<PackedRun> &parts = parcel.values[value];
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].first < parts[i - 1].first + parts[i - 1].count)
      return fail(value, "expected parts by ascending elements of what rank " +
                             std::to_string(rank) + " " + does + ", found element " +
                             std::to_string(parts[i].first) + " after " +
                             std::to_string(parts[i - 1].first));
  size_t used = 0; // peers may share a part; the first peer of each comes in its order
  for (const Message &row : *values[value].messages) {
    if (row.*count == 0)
      continue;
    if (row.peer < 0 || row.peer >= int64_t(next.size()))
      return fail(value, "expected parts of ranks below " + std::to_string(next.size()) +
                             " in what rank " + std::to_string(rank) + " " + does +
                             ", found one of rank " + std::to_string(row.peer));
    auto known =
        std::lower_bound(parts.begin(), parts.begin() + used, row.*offset,
                         [](const PackedRun &part, int64_t first) { return part.first < first; });
    const PackedRun *part = known != parts.begin() + used ? &*known
                            : used < parts.size()         ? &parts[used++]
                                                          : nullptr;
    if (!part || part->first != row.*offset || part->count != row.*count)
      return fail(value, "expected elements " + std::to_string(row.*offset) + " to " +
                             std::to_string(row.*offset + row.*count) +
                             " in one part of what rank " + std::to_string(rank) + " " + does +
                             ", found " +
                             (part ? std::to_string(part->first) + " to " +
                                         std::to_string(part->first + part->count)
                                   : std::string("none")));
    int64_t &byte = next[row.peer];
    plan::PartCopy copy{part->byte, byte, row.*count * bytes};
    bool stands = part->byte == byte || copies.contains(copy);
    if (byte < 0 || !stands || byte % alignmentOf(bytes) != 0)
      return fail(value, "expected the part of rank " + std::to_string(row.peer) + " at byte " +
                             std::to_string(byte) + " of what rank " + std::to_string(rank) + " " +
                             does + ", aligned for elements of " + std::to_string(bytes) +
                             " bytes, found byte " + std::to_string(part->byte));
    byte += row.*count * bytes;
  }
  if (used == parts.size())
    return true;
  return fail(value, "expected " + std::to_string(used) + " parts of what rank " +
                         std::to_string(rank) + " " + does + ", found " +
                         std::to_string(parts.size()));
}

/// Messages must not overlap, unless several peers get the same bytes. Parts and copies must have as many
/// bytes in all as the messages. Because they fill the messages, no two of them overlap then.
bool ParcelCheck::checkRanges(const plan::RankStart &start, const plan::Parcel &parcel,
                              Field offset, Field count, const char *does) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const Message &m : start.messages)
    if (m.*count > 0)
      ranges.push_back({m.*offset, m.*offset + m.*count});
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  int64_t inMessages = 0, inParts = 0, end = 0;
  bool apart = true;
  for (auto [from, to] : ranges) {
    apart &= from >= end;
    inMessages += to - from - plan::kSealBytes;
    end = to;
  }
  for (size_t value = 0; value < values.size(); ++value)
    for (const PackedRun &part : parcel.values[value])
      inParts += part.count * values[value].elementBytes;
  for (const plan::PartCopy &copy : parcel.copies) {
    apart &= copy.bytes > 0;
    inParts += copy.bytes;
  }
  if (apart && inParts == inMessages && end <= parcel.bytes)
    return true;
  return fail(0, "expected parts that share no byte of what rank " + std::to_string(rank) + " " +
                     does + ", found " + std::to_string(inParts) + " bytes in messages of " +
                     std::to_string(inMessages) + ", which end at byte " + std::to_string(end) +
                     " of " + std::to_string(parcel.bytes));
}

} // namespace stepc::verify
