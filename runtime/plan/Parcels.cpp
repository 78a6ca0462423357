//===- Parcels.cpp - One message per peer and start ----------------------===//

#include "runtime/plan/Parcels.h"
#include "runtime/geometry/Geometry.h"

#include <algorithm>
#include <numeric>

namespace stepc::plan {

namespace {

constexpr int64_t kPartAlignment = 64;

/// Lays out one side of a start.
class ParcelBuilder {
public:
  ParcelBuilder(std::span<const Traveller> values, std::vector<Message> &messages,
                const std::vector<int64_t> &indexOf, int64_t Message::*offset,
                int64_t Message::*count)
      : values(values), messages(messages), indexOf(indexOf), offset(offset), count(count) {}

  Parcel run(const std::vector<size_t> &order, int64_t alignment) {
    Parcel parcel;
    // Peers that share a part of any value share the message: a copy for all who receive it.
    std::vector<size_t> sharedWith(messages.size());
    std::iota(sharedWith.begin(), sharedWith.end(), 0);
    for (const Traveller &value : values)
      eachPart(value, [&](const Message &part, const Message *sharing) {
        message(part).*count += part.*count * value.elementBytes;
        if (sharing)
          sharedWith[at(part)] = sharedWith[at(*sharing)];
      });
    for (size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].*count == 0)
        continue;
      if (sharedWith[i] != i) {
        messages[i].*offset = messages[sharedWith[i]].*offset;
        continue;
      }
      messages[i].*offset = (parcel.bytes + alignment - 1) / alignment * alignment;
      parcel.bytes = messages[i].*offset + messages[i].*count;
    }
    std::vector<int64_t> next;
    for (const Message &each : messages)
      next.push_back(each.*offset);
    parcel.values.resize(values.size());
    for (size_t index : order)
      eachPart(values[index], [&](const Message &part, const Message *sharing) {
        int64_t &byte = next[at(part)];
        if (!sharing)
          parcel.values[index].push_back({part.*offset, part.*count, byte});
        byte += part.*count * values[index].elementBytes;
      });
    return parcel;
  }

private:
  size_t at(const Message &part) const {
    return static_cast<size_t>(indexOf[static_cast<size_t>(part.peer)]);
  }
  Message &message(const Message &part) { return messages[at(part)]; }

  /// visit(a peer's part of a value, that of an earlier peer where it is the same elements)
  template <typename Visit> void eachPart(const Traveller &value, Visit visit) {
    firsts.clear();
    for (const Message &part : *value.messages) {
      if (part.*count == 0)
        continue;
      const Message *sharing = nullptr;
      if (!firsts.empty() && part.*offset <= firsts.back()->*offset) {
        auto found = std::lower_bound(
            firsts.begin(), firsts.end(), part.*offset,
            [&](const Message *one, int64_t other) { return one->*offset < other; });
        sharing = *found;
      } else {
        firsts.push_back(&part);
      }
      visit(part, sharing);
    }
  }

  std::span<const Traveller> values;
  std::vector<Message> &messages;
  const std::vector<int64_t> &indexOf;
  int64_t Message::*offset, Message::*count;
  std::vector<const Message *> firsts; // of a value's parts: the first peer with each, ascending
};

/// The mesh and its factors along which ranks share copies of what is sent: those along which hops
/// replicate and the value is not yet, or between shards, along which it is replicated there alone.
std::pair<int64_t, std::vector<Factor>> sharing(const Plan &plan, const Place &place) {
  const Segment &segment = plan.segments[static_cast<size_t>(place.segment)];
  const Group &group = plan.groups[static_cast<size_t>(segment.group)];
  std::vector<bool> before = geometry::replicatedAxes(group, place.value, place.whose());
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
  // By falling size each value is aligned where those before it end.
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-values[a].elementBytes, a) < std::pair(-values[b].elementBytes, b);
  });
  // What is gathered stands without gaps where that is aligned: transports gather so.
  int64_t alignment = kPartAlignment;
  if (kind == CollectiveKind::AllGather && !values.empty())
    alignment = values[order[0]].elementBytes;
  start.sent =
      ParcelBuilder(values, start.messages, indexOf, &Message::sendOffset, &Message::sendCount)
          .run(order, alignment);
  start.received = ParcelBuilder(values, start.messages, indexOf, &Message::receiveOffset,
                                 &Message::receiveCount)
                       .run(order, alignment);
  return start;
}

const Part *Parcel::find(int64_t value, int64_t element) const {
  const std::vector<Part> &parts = values[static_cast<size_t>(value)];
  auto next = std::upper_bound(parts.begin(), parts.end(), element,
                               [](int64_t e, const Part &part) { return e < part.first; });
  if (next == parts.begin() || element >= std::prev(next)->first + std::prev(next)->count)
    return nullptr;
  return &*std::prev(next);
}

bool travelTogether(const Plan &plan, const Place &one, const Place &other) {
  return sharing(plan, one) == sharing(plan, other);
}

} // namespace stepc::plan
