//===- TableProof.cpp - What the tables of all ranks do together -----------===//

#include "passes/verify/TableProof.h"
#include "passes/verify/ParcelCheck.h"

namespace stepc::verify {

using plan::Message;
using plan::TableKind;

TableProof::TableProof(const plan::Plan &plan, Expand expand)
    : plan(plan), expand(std::move(expand)), truth(plan), useOf(plan.tables.size()),
      reaches(plan.tables.size()), startReaches(plan.starts().size()), messages(truth.rankCount()),
      lastMessage(truth.rankCount()), sentAt(truth.rankCount()), lastSent(truth.rankCount()) {
  for (size_t i = 0; i < useOf.size(); ++i)
    useOf[i].table = int64_t(i);
}

bool TableProof::fail(int64_t table, std::string message, int64_t other) {
  faults.push_back({table, other, std::move(message)});
  return false;
}

Reach TableProof::mostComputed(int64_t segment) {
  Reach most;
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank)
    if (int64_t position = truth.position(truth.groupOf(segment), rank); position >= 0)
      most.include(int64_t(truth.computed(segment, position).size()), rank);
  return most;
}

std::vector<Fault> TableProof::prove(const ProgramUse &program) {
  result.ranks = truth.rankCount();
  for (const plan::Group &group : plan.groups)
    result.blocks += group.blockCount();
  std::vector<bool> onWay(plan.tables.size(), false);
  for (const TableUse &use : program.uses)
    useOf[use.table] = use;
  for (const Way &way : program.ways)
    onWay[way.producer] = onWay[way.consumer] = true;
  // Tables on a way are checked with it, so that each is expanded once. What is relayed goes on from
  // the way that brought it.
  for (const TableUse &use : program.uses)
    if (!onWay[use.table])
      checkAlone(use);
  ways = program.ways;
  for (const Way &way : ways)
    if (!isRelay(way.producer))
      checkWay(way);
  int64_t index = 0;
  for (const plan::Command *start : plan.starts()) {
    if (start->collective == plan::CollectiveKind::AllGather)
      for (int64_t table : start->tables)
        checkGathers(table);
    checkStart(index++, *start);
  }
  return std::move(faults);
}

bool TableProof::staysInParts(int64_t table, const plan::RankTable &rows, int64_t rank, Side side) {
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (const Message &m : messages[rank])
    if (side == Side::Sent)
      parts.push_back({m.sendOffset, m.sendOffset + m.sendCount});
    else
      parts.push_back({m.receiveOffset, m.receiveOffset + m.receiveCount});
  if (!std::is_sorted(parts.begin(), parts.end())) // mostly peers are in the order of their parts
    std::sort(parts.begin(), parts.end());
  auto part = parts.begin(); // so are rows
  auto stays = [&](int64_t first, int64_t stride, int64_t count, int64_t cols) {
    int64_t end = first + (count - 1) * stride + cols;
    auto holds = [&] { return part != parts.end() && part->first <= first && end <= part->second; };
    if (holds())
      return true;
    part = std::upper_bound(parts.begin(), parts.end(), std::pair(first, INT64_MAX));
    part -= part != parts.begin();
    return holds();
  };
  bool packed = plan.tables[table].kind == TableKind::ShardChunks, sent = side == Side::Sent;
  bool all = true;
  for (const plan::Chunk &c : rows.chunks)
    all = all && (!packed || c.staged < 0 || stays(c.staged, c.stagedStride, c.rows, c.cols));
  for (const plan::CopyRow &c : rows.copies)
    all = all &&
          stays(sent ? c.target : c.source, sent ? c.targetStride : c.sourceStride, c.rows, c.cols);
  return all ||
         fail(table,
              "expected rows that each lead to the part of one peer in what is packed, found "
              "one that leads elsewhere on rank " +
                  std::to_string(rank));
}

TableProof::SharedPieces TableProof::check(const TableUse &use, int64_t rank, Side side) {
  const plan::Table &table = plan.tables[use.table];
  plan::RankTable rows = expand.table(use.table, rank);
  if (side != Side::None && !staysInParts(use.table, rows, rank, side))
    return nullptr;
  int64_t position = truth.position(truth.groupOf(table.from.segment), rank);
  bool alike = table.kind == TableKind::Copy && position >= 0 && !table.from.isOfShards() &&
               !table.to.isOfShards();
  std::vector<int64_t> computed;
  if (alike)
    computed = truth.computed(table.from.segment, position);
  if (!alike || last.table != use.table || last.computed != computed || last.rows != rows.copies) {
    TableCheck check(truth, use, rank);
    if (!check.run(rows)) {
      fail(use.table, check.error);
      return nullptr;
    }
    last = {alike ? use.table : -1, std::move(computed),
            std::move(rows.copies), std::make_shared<const Pieces>(std::move(check.packed)),
            {check.fromEnd, rank},  {check.toEnd, rank}};
  }
  reaches[use.table].from.include(last.from.most, last.from.rank);
  reaches[use.table].to.include(last.to.most, last.to.rank);
  return last.packed;
}

bool TableProof::checkAlone(const TableUse &use) {
  const plan::Table &table = plan.tables[use.table];
  if (table.from.isMoving() || table.to.isMoving())
    return fail(use.table, "expected what is packed to travel, found no message that it is for");
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank)
    if (!check(use, rank, Side::None))
      return false;
  return true;
}

bool TableProof::checkGathers(int64_t table) {
  const plan::Place &place = plan.tables[table].from;
  const plan::Group &group = plan.groups[truth.groupOf(place.segment)];
  int64_t hop = place.from.level(group), end = place.to.level(group);
  bool gathers = hop < end;
  for (; hop < end; ++hop)
    for (const plan::Factor &factor : group.hops[hop].owned)
      gathers = gathers && factor.size == 1;
  return gathers || fail(table, "expected an all-gather by hops that own nothing, found segment @" +
                                    plan.segments[place.segment].name + " to move from " +
                                    plan::name(place.from) + " to " + plan::name(place.to));
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Says what two ranks do not agree on, from the side of the one that does something.
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
    messages[rank] = expand.table(table, rank).messages;
    sentAt[rank].clear();
    int64_t previous = -1;
    for (const Message &m : messages[rank]) {
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
    for (const Message &m : messages[rank]) {
      Message other = message(m.peer, rank);
      sentAt[rank].push_back(other.sendOffset);
      if (m.sendCount != other.receiveCount)
        return fail(table, unequal(rank, m.sendCount * bytes, m.peer, other.receiveCount * bytes));
      if (m.receiveCount != other.sendCount)
        return fail(table, unequal(m.peer, other.sendCount * bytes, rank, m.receiveCount * bytes));
    }
  return true;
}

Message TableProof::message(int64_t rank, int64_t peer) {
  const std::vector<Message> &all = messages[rank];
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

bool TableProof::checkSent(const Way &way, int64_t rank, const Pieces &sent) {
  int64_t end = sent.empty() ? 0 : sent.back().start + sent.back().size();
  std::vector<std::pair<int64_t, int64_t>> leaving;
  for (const Message &m : messages[rank])
    if (m.sendCount > 0)
      leaving.push_back({m.sendOffset, m.sendOffset + m.sendCount});
  std::sort(leaving.begin(), leaving.end());
  // Several receivers may share a part; none may be beyond the end or left out.
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
  for (const Message &m : messages[rank])
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

bool TableProof::checkReceived(const Way &way, int64_t rank, const SharedPieces &pieces,
                               const std::vector<SharedPieces> &sent) {
  const Pieces &received = *pieces;
  auto text = [](int64_t number) { return std::to_string(number); };
  auto end = [](const Pieces &pieces) {
    return pieces.empty() ? 0 : pieces.back().start + pieces.back().size();
  };
  int64_t group = truth.groupOf(plan.tables[way.consumer].from.segment);
  auto messages = arriving(way, rank);
  if (!messages)
    return false;
  int64_t next =
      messages->empty() ? 0 : messages->back()->receiveOffset + messages->back()->receiveCount;
  if (next != end(received)) {
    // The first element without a message, if that is what is wrong, has a name.
    std::string which;
    for (const Piece &piece : received)
      if (next >= piece.start && next < piece.start + piece.size())
        which = ", starting with " + truth.describe(group, piece);
    return fail(way.message,
                "expected " + text(end(received)) + " elements for rank " + text(rank) +
                    ", found messages of " + text(next) + which,
                way.consumer);
  }
  result.routedElements += next;
  Compared now{pieces, {}};
  for (const Message *m : *messages)
    now.arriving.push_back({m->peer, sentAt[rank][m - this->messages[rank].data()],
                            m->receiveOffset, m->receiveCount});
  if (now == compared)
    return true;
  size_t lastReceived = 0;
  for (auto [peer, from, to, count] : now.arriving) {
    Near near{lastSent[peer], lastReceived};
    auto difference = findDifference(*sent[peer], from, received, to, count, near);
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

TableProof::SharedPieces TableProof::relay(const Way &way, int64_t rank,
                                           const std::vector<SharedPieces> &sent) {
  auto arrivals = arriving(way, rank);
  if (!arrivals)
    return nullptr;
  Pieces arrived;
  for (const Message *m : *arrivals) {
    appendRange(*sent[m->peer], sentAt[rank][m - messages[rank].data()], m->receiveCount,
                m->receiveOffset, arrived);
    result.routedElements += m->receiveCount;
  }
  plan::RankTable rows = expand.table(way.consumer, rank);
  if (!staysInParts(way.consumer, rows, rank, Side::Received))
    return nullptr;
  TableCheck check(truth, useOf[way.consumer], rank);
  if (check.runRelay(rows, arrived))
    return std::make_shared<const Pieces>(std::move(check.packed));
  fail(way.consumer, check.error, way.message);
  return nullptr;
}

void TableProof::checkWay(const Way &way, const std::vector<SharedPieces> *relayed) {
  int64_t from = truth.groupOf(plan.tables[way.producer].from.segment);
  int64_t to = truth.groupOf(plan.tables[way.consumer].from.segment);
  if (from != to) {
    fail(way.message, "expected values of group @" + plan.groups[to].name +
                          " to arrive, found group @" + plan.groups[from].name);
    return;
  }
  std::vector<SharedPieces> sent(truth.rankCount()), next(truth.rankCount());
  compared = {};
  if (!checkMessages(way.message))
    return;
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank)
    if (relayed) {
      sent[rank] = (*relayed)[rank];
      if (!staysInParts(way.producer, expand.table(way.producer, rank), rank, Side::Sent))
        return;
    } else if (!(sent[rank] = check(useOf[way.producer], rank, Side::Sent))) {
      return;
    }
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank)
    if (!checkSent(way, rank, *sent[rank]))
      return;
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank) {
    bool goesOn = isRelay(way.consumer);
    next[rank] = goesOn ? relay(way, rank, sent) : check(useOf[way.consumer], rank, Side::Received);
    if (!next[rank] || (!goesOn && !checkReceived(way, rank, next[rank], sent)))
      return;
  }
  for (const Way &other : ways)
    if (isRelay(way.consumer) && other.producer == way.consumer)
      checkWay(other, &next);
}

bool TableProof::checkStart(int64_t index, const plan::Command &start) {
  std::vector<int64_t> meetings = truth.meetings(start.communicator);
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank) {
    std::vector<ParcelCheck::Value> values;
    for (int64_t table : start.tables)
      values.push_back({expand.table(table, rank).messages, plan.tables[table].elementBytes});
    plan::RankStart made = expand.start(index, rank);
    if (auto fault = ParcelCheck(std::move(values), rank, truth.rankCount()).run(made))
      return fail(start.tables[fault->first], std::move(fault->second));
    startReaches[index].sent.include(made.sent.bytes, rank);
    startReaches[index].received.include(made.received.bytes, rank);
    for (const Message &m : made.messages) {
      bool travels = m.sendCount > 0 || m.receiveCount > 0;
      if (travels && (meetings[rank] < 0 || meetings[rank] != meetings[m.peer]))
        return fail(start.tables[0],
                    "expected messages between ranks of the communicator, found one "
                    "between rank " +
                        std::to_string(rank) + " and rank " + std::to_string(m.peer) +
                        ", which do not meet in it");
      result.messages += m.sendCount > 0 && m.peer != rank;
      result.bytes += m.peer != rank ? m.sendCount : 0;
    }
  }
  return true;
}

} // namespace stepc::verify
