//===- Parcels.cpp - One message per peer and start ----------------------===//

#include "runtime/plan/Parcels.h"
#include "runtime/geometry/Geometry.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace stepc::plan {

namespace {

/// Lays out one side of a start.
class ParcelBuilder {
public:
  ParcelBuilder(std::span<const Traveller> values, std::vector<Message> &messages,
                const std::vector<int64_t> &indexOf, int64_t Message::*offset,
                int64_t Message::*count)
      : values(values), messages(messages), indexOf(indexOf), offset(offset), count(count) {}

  Parcel run(const std::vector<size_t> &order, int64_t alignment) {
    Parcel parcel;
    parcel.values.resize(values.size());
    // Per message: the number of each value in it, and the first element of that value.
    std::vector<std::vector<int64_t>> made(messages.size());
    eachPart(order, [&](size_t value, const Message &part, size_t message) {
      messages[message].*count += part.*count * values[value].elementBytes;
      made[message].insert(made[message].end(), {static_cast<int64_t>(value), part.*offset});
    });
    // Peers to which the same elements go share a message.
    std::map<std::vector<int64_t>, int64_t> known;
    std::vector<int64_t> next(messages.size(), -1); // per message that is packed, its next byte
    for (size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].*count == 0)
        continue;
      messages[i].*count += kSealBytes;
      int64_t free = aligned(parcel.bytes, alignment);
      auto [found, isNew] = known.try_emplace(std::move(made[i]), free);
      messages[i].*offset = found->second;
      if (isNew)
        parcel.bytes = (next[i] = free) + messages[i].*count;
    }
    // The messages that are first to have a run come in the order of the run's elements, as `find` needs.
    eachPart(order, [&](size_t value, const Message &part, size_t message) {
      if (next[message] < 0)
        return;
      int64_t bytes = part.*count * values[value].elementBytes;
      if (const PackedRun *packed = parcel.find(static_cast<int64_t>(value), part.*offset))
        parcel.copies.push_back({packed->byte, next[message], bytes});
      else
        parcel.values[value].push_back({part.*offset, part.*count, next[message]});
      next[message] += bytes;
    });
    return parcel;
  }

private:
  /// Calls visit(value, a peer's part of the value, the number of the peer's message).
  template <typename Visit> void eachPart(const std::vector<size_t> &order, Visit visit) {
    for (size_t value : order)
      for (const Message &part : *values[value].messages)
        if (part.*count > 0)
          visit(value, part, static_cast<size_t>(indexOf[static_cast<size_t>(part.peer)]));
  }

  std::span<const Traveller> values;
  std::vector<Message> &messages;
  const std::vector<int64_t> &indexOf;
  int64_t Message::*offset, Message::*count;
};

/// The mesh, and the factors along which ranks share copies of what is sent; mesh -1 if there are none. The
/// value is not replicated along these factors before it is sent. The hops replicate along them or, between
/// shards, the target's placements do.
std::pair<int64_t, std::vector<Factor>> sharing(const Plan &plan, const Place &place) {
  const Segment &segment = plan.segments[static_cast<size_t>(place.segment)];
  const Group &group = plan.groups[static_cast<size_t>(segment.group)];
  if (place.from == Distribution::Ranges) // all ranks get each range
    return {group.mesh, group.slabs.factors};
  std::vector<bool> before = geometry::replicatedAxes(group, place.value, whose(plan, place));
  std::vector<Factor> factors, shared;
  for (int64_t hop = place.from.level(group); hop < place.to.level(group); ++hop)
    for (const Factor &factor : group.hops[static_cast<size_t>(hop)].replicated)
      factors.push_back(factor);
  if (place.from.isShards() && place.to.isShards()) {
    std::vector<bool> after = geometry::replicatedAxes(group, place.value, place.to.whose());
    for (const Factor &factor : wholeAxes(plan.meshes[static_cast<size_t>(group.mesh)]))
      if (after[static_cast<size_t>(factor.axis)])
        factors.push_back(factor);
  }
  for (const Factor &factor : factors)
    if (factor.size > 1 && !before[static_cast<size_t>(factor.axis)])
      shared.push_back(factor);
  return {shared.empty() ? -1 : group.mesh, std::move(shared)};
}

} // namespace

RankStart layOut(CollectiveKind kind, std::span<const Traveller> values, int64_t worldSize) {
  RankStart start;
  std::vector<int64_t> indexOf(static_cast<size_t>(worldSize), -1);
  for (const Traveller &value : values)
    for (const Message &part : *value.messages)
      indexOf[static_cast<size_t>(part.peer)] = 0;
  for (size_t peer = 0; peer < indexOf.size(); ++peer)
    if (indexOf[peer] == 0) {
      indexOf[peer] = static_cast<int64_t>(start.messages.size());
      start.messages.push_back({static_cast<int64_t>(peer), 0, 0, 0, 0});
    }
  // Values go by falling size of their words, so that each is aligned where the value before it ends.
  auto word = [&](size_t i) { return wordOf(values[i].elementBytes); };
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::less(), [&](size_t i) { return std::pair(-word(i), i); });
  // Transports gather parts without gaps. So parts of an all-gather are aligned for the largest word
  // only.
  int64_t alignment = kAlignment;
  if (kind == CollectiveKind::AllGather && !values.empty())
    alignment = word(order[0]);
  start.sent =
      ParcelBuilder(values, start.messages, indexOf, &Message::sendOffset, &Message::sendCount)
          .run(order, alignment);
  start.received = ParcelBuilder(values, start.messages, indexOf, &Message::receiveOffset,
                                 &Message::receiveCount)
                       .run(order, alignment);
  return start;
}

const PackedRun *Parcel::find(int64_t value, int64_t element) const {
  const std::vector<PackedRun> &parts = values[static_cast<size_t>(value)];
  auto next = std::upper_bound(parts.begin(), parts.end(), element,
                               [](int64_t e, const PackedRun &part) { return e < part.first; });
  if (next == parts.begin() || element >= std::prev(next)->first + std::prev(next)->count)
    return nullptr;
  return &*std::prev(next);
}

bool gatherTogether(const Plan &plan, const Place &one, const Place &other) {
  return sharing(plan, one) == sharing(plan, other);
}

bool isShared(const Plan &plan, const Place &place) { return sharing(plan, place).first >= 0; }

} // namespace stepc::plan
