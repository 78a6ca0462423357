//===- TableMessages.cpp - What ranks send each other of one value ---------===//

#include "passes/verify/TableProof.h"

namespace stepc::verify {

using plan::Message;

/// The error for two ranks that disagree about a message, told from the side that sends or receives bytes.
static std::string unequal(int64_t sender, int64_t sent, int64_t receiver, int64_t received) {
  auto text = [](int64_t number) { return std::to_string(number); };
  if (sent > 0)
    return "expected rank " + text(receiver) + " to receive the " + text(sent) +
           " bytes that rank " + text(sender) + " sends it, found " + text(received) + " bytes";
  return "expected rank " + text(sender) + " to send the " + text(received) + " bytes that rank " +
         text(receiver) + " receives of it, found none";
}

bool TableProof::checkMessages(int64_t table) {
  int64_t ranks = truth.rankCount(), bytes = plan.tables[table].elementBytes;
  auto text = [](int64_t number) { return std::to_string(number); };
  for (int64_t rank = 0; rank < ranks; ++rank) {
    messages[rank] = expand.table(table, rank).rows;
    int64_t previous = -1;
    if (rank > 0 && messages[rank] == messages[rank - 1])
      continue;
    for (const Message &m : messagesOf(rank)) {
      if (m.peer <= previous || m.peer >= ranks)
        return fail(table, "expected ascending peers below " + text(ranks) + ", found rank " +
                               text(m.peer) + " after " + text(previous) + " on rank " +
                               text(rank));
      previous = m.peer;
      if (m.sendOffset < 0 || m.sendCount < 0 || m.receiveOffset < 0 || m.receiveCount < 0)
        return fail(table, "expected offsets and counts of 0 or more in the message of rank " +
                               text(rank) + " and rank " + text(m.peer));
    }
  }
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const Message &m : messagesOf(rank)) {
      Message other = message(m.peer, rank);
      if (m.sendCount != other.receiveCount)
        return fail(table, unequal(rank, m.sendCount * bytes, m.peer, other.receiveCount * bytes));
      if (m.receiveCount != other.sendCount)
        return fail(table, unequal(m.peer, other.sendCount * bytes, rank, m.receiveCount * bytes));
    }
  return true;
}

Message TableProof::message(int64_t rank, int64_t peer) {
  const std::vector<Message> &all = messagesOf(rank);
  size_t &last = lastMessage[rank];
  for (size_t next = last; next < std::min(last + 2, all.size()); ++next)
    if (all[next].peer == peer)
      return all[last = next];
  auto found = std::lower_bound(all.begin(), all.end(), peer,
                                [](const Message &m, int64_t p) { return m.peer < p; });
  if (found == all.end() || found->peer != peer)
    return {peer, 0, 0, 0, 0};
  last = size_t(found - all.begin());
  return *found;
}

bool TableProof::checkSent(const Way &way, int64_t rank, const Packed &sent) {
  int64_t end = sent.end();
  std::vector<std::pair<int64_t, int64_t>> leaving;
  for (const Message &m : messagesOf(rank))
    if (m.sendCount > 0)
      leaving.push_back({m.sendOffset, m.sendOffset + m.sendCount});
  std::sort(leaving.begin(), leaving.end());
  // Several receivers may share a part. No element may be left out, and no part may begin beyond the end.
  int64_t next = 0;
  for (auto [from, to] : leaving) {
    if (from > next)
      break;
    next = std::max(next, to);
  }
  if (next == end && (leaving.empty() || leaving.back().first <= end))
    return true;
  return fail(way.message,
              "expected messages of the " + std::to_string(end) + " elements that rank " +
                  std::to_string(rank) + " packs, found none beyond element " +
                  std::to_string(std::min(next, end)),
              way.producer);
}

std::optional<std::vector<const Message *>> TableProof::arriving(const Way &way, int64_t rank) {
  std::vector<const Message *> result;
  for (const Message &m : messagesOf(rank))
    if (m.receiveCount > 0)
      result.push_back(&m);
  std::sort(result.begin(), result.end(),
            [](const Message *a, const Message *b) { return a->receiveOffset < b->receiveOffset; });
  int64_t next = 0;
  for (const Message *m : result) {
    if (m->receiveOffset != next) {
      fail(way.message,
           "expected every element of the receive buffer of rank " + std::to_string(rank) +
               " to arrive once, found element " +
               std::to_string(std::min(m->receiveOffset, next)) +
               (m->receiveOffset < next ? " twice" : " missing"),
           way.consumer);
      return std::nullopt;
    }
    next += m->receiveCount;
  }
  return result;
}

bool TableProof::checkReceived(const Way &way, int64_t rank, const Packed &received,
                               const std::vector<Packed> &sent) {
  auto text = [](int64_t number) { return std::to_string(number); };
  int64_t group = truth.groupOf(plan.tables[way.consumer].from.segment);
  auto messages = arriving(way, rank);
  if (!messages)
    return false;
  int64_t next =
      messages->empty() ? 0 : messages->back()->receiveOffset + messages->back()->receiveCount;
  if (next != received.end()) {
    // If elements have no message, the error names the first of them.
    std::string which;
    for (size_t i = 0; i < received.pieces->size(); ++i)
      if (Piece piece = received.view().at(i);
          next >= piece.start && next < piece.start + piece.size())
        which = ", starting with " + truth.describe(group, piece);
    return fail(way.message,
                "expected " + text(received.end()) + " elements for rank " + text(rank) +
                    ", found messages of " + text(next) + which,
                way.consumer);
  }
  result.routedElements += next;
  Compared now{received, {}};
  for (const Message *m : *messages)
    now.arriving.push_back(
        {m->peer, message(m->peer, rank).sendOffset, m->receiveOffset, m->receiveCount});
  if (compared.received.isSame(received) && now.arriving == compared.arriving)
    return true;
  size_t lastReceived = 0;
  for (auto [peer, from, to, count] : now.arriving) {
    Near near{lastSent[peer], lastReceived};
    auto difference = findDifference(sent[peer].view(), from, received.view(), to, count, near);
    lastSent[peer] = near.sent;
    lastReceived = near.received;
    if (difference)
      return fail(way.message,
                  "expected " + truth.describeElement(group, difference->received) +
                      " as element " + text(difference->position) + " of the message from rank " +
                      text(peer) + " to rank " + text(rank) + ", found " +
                      truth.describeElement(group, difference->sent),
                  way.consumer);
  }
  compared = std::move(now);
  return true;
}

} // namespace stepc::verify
