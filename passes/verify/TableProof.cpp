//===- TableProof.cpp - What the tables of all ranks do together -----------===//

#include "passes/verify/TableProof.h"
#include "passes/verify/ParcelCheck.h"

#include <iterator>
#include <numeric>
#include <set>

namespace stepc::verify {

using plan::Message;
using plan::TableKind;

TableProof::TableProof(const plan::Plan &plan, MakeExpand makeExpand)
    : plan(plan), makeExpand(std::move(makeExpand)), expand(this->makeExpand(plan)), truth(plan),
      useOf(plan.tables.size()), reaches(plan.tables.size()), startReaches(plan.starts().size()),
      common(truth), messages(truth.rankCount()), lastMessage(truth.rankCount()),
      lastSent(truth.rankCount()) {
  for (size_t i = 0; i < useOf.size(); ++i)
    useOf[i].table = int64_t(i);
}

bool TableProof::fail(int64_t table, std::string message, int64_t other) {
  faults[task].push_back({table, other, std::move(message)});
  return false;
}

Reach TableProof::mostComputed(int64_t segment) {
  truth.trim();
  Reach most;
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank)
    if (int64_t position = truth.position(truth.groupOf(segment), rank); position >= 0)
      most.include(int64_t(truth.computed(segment, position).size()), rank);
  return most;
}

void TableProof::begin(const ProgramUse &program) {
  std::vector<bool> onWay(plan.tables.size(), false);
  auto groupOf = [&](int64_t table) { return truth.groupOf(plan.tables[table].from.segment); };
  for (const TableUse &use : program.uses)
    useOf[use.table] = use;
  ways = program.ways;
  for (const Way &way : ways)
    onWay[way.producer] = onWay[way.consumer] = true;
  // Tables on a way are checked with the way, so that each is expanded once. A way that begins with a relay
  // is checked after the way that brings its values.
  for (const TableUse &use : program.uses)
    if (!onWay[use.table])
      tasks.push_back({groupOf(use.table), [this, use] { checkAlone(use); }});
  std::set<int64_t> known; // groups
  for (const TableUse &use : program.uses)
    if (plan.tables[use.table].from.from == plan::Distribution::StateBlocks &&
        known.insert(groupOf(use.table)).second)
      tasks.push_back({groupOf(use.table), [this, use] { checkBlockStates(use.table); }});
  for (const TableUse &use : program.uses)
    if (plan.tables[use.table].kind == TableKind::PartModel)
      tasks.push_back({groupOf(use.table), [this, use] { checkModel(use); }});
  for (const Way &way : ways)
    if (!isRelay(way.producer))
      tasks.push_back({groupOf(way.message), [this, &way] { checkWay(way); }});
  int64_t index = 0;
  for (const plan::Start *start : plan.starts())
    tasks.push_back({int64_t(plan.groups.size()), [this, start, at = index++] {
                       if (start->collective == plan::CollectiveKind::AllGather)
                         for (int64_t table : start->tables)
                           checkGathers(table);
                       checkStart(at, *start);
                     }});
}

void TableProof::doTasks(std::atomic<size_t> &next) {
  faults.resize(tasks.size());
  // The tasks run group by group, so that what is cached of a group is used before it is forgotten.
  std::vector<size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {},
                    [&](size_t number) { return std::pair(tasks[number].group, number); });
  for (size_t i = next++; i < order.size(); i = next++) {
    task = order[i];
    truth.trim();
    tasks[task].run();
  }
}

void TableProof::include(TableProof &other) {
  for (size_t i = 0; i < reaches.size(); ++i) {
    reaches[i].from.include(other.reaches[i].from);
    reaches[i].to.include(other.reaches[i].to);
  }
  for (size_t i = 0; i < startReaches.size(); ++i) {
    startReaches[i].sent.include(other.startReaches[i].sent);
    startReaches[i].received.include(other.startReaches[i].received);
  }
  result.messages += other.result.messages;
  result.bytes += other.result.bytes;
  result.routedElements += other.result.routedElements;
  for (size_t i = 0; i < faults.size(); ++i)
    std::ranges::move(other.faults[i], std::back_inserter(faults[i]));
}

std::vector<Fault> TableProof::prove(const ProgramUse &program, size_t workers,
                                     const RunBeside &runBeside) {
  for (auto check : {&GroundTruth::checkSlabs, &GroundTruth::checkCounts})
    if (auto wrong = (truth.*check)())
      for (const TableUse &use : program.uses)
        if (truth.groupOf(plan.tables[use.table].from.segment) == wrong->first)
          return {{use.table, -1, wrong->second}};
  std::vector<std::unique_ptr<TableProof>> helpers;
  for (size_t i = 1; i < workers; ++i)
    helpers.push_back(std::make_unique<TableProof>(plan, makeExpand));
  std::atomic<size_t> next = 0;
  auto work = [&](size_t worker) {
    TableProof &proof = worker == 0 ? *this : *helpers[worker - 1];
    proof.begin(program);
    proof.doTasks(next);
  };
  if (!runBeside)
    for (size_t worker = 0; worker < workers; ++worker)
      work(worker);
  else
    runBeside(workers, work);
  result.ranks = truth.rankCount();
  for (const plan::Group &group : plan.groups)
    result.blocks += blockCountOf(group);
  for (const std::unique_ptr<TableProof> &helper : helpers)
    include(*helper);
  std::vector<Fault> found;
  for (std::vector<Fault> &ofTask : faults)
    std::ranges::move(ofTask, std::back_inserter(found));
  return found;
}

bool TableProof::staysInParts(int64_t table, const Rows &rows, int64_t rank, Side side) {
  if (stayed.rows == rows && stayed.messages == messages[rank])
    return true;
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (const Message &m : messagesOf(rank))
    if (side == Side::Sent)
      parts.push_back({m.sendOffset, m.sendOffset + m.sendCount});
    else
      parts.push_back({m.receiveOffset, m.receiveOffset + m.receiveCount});
  if (!std::is_sorted(parts.begin(), parts.end())) // mostly peers are in the order of their parts
    std::sort(parts.begin(), parts.end());
  auto part = parts.begin(); // rows also mostly come in that order
  auto stays = [&](int64_t first, int64_t stride, int64_t count, int64_t cols) {
    int64_t end = first + (count - 1) * stride + cols;
    auto holds = [&] { return part != parts.end() && part->first <= first && end <= part->second; };
    if (holds())
      return true;
    part = std::upper_bound(parts.begin(), parts.end(), std::pair(first, INT64_MAX));
    part -= part != parts.begin();
    return holds();
  };
  bool packed = plan.tables[table].isOverShards(), sent = side == Side::Sent;
  bool all = true;
  for (const plan::Chunk &c : rows->chunks)
    all = all && (!packed || c.staged < 0 || stays(c.staged, c.stagedStride, c.rows, c.cols));
  for (const plan::CopyRow &c : rows->copies)
    all = all &&
          stays(sent ? c.target : c.source, sent ? c.targetStride : c.sourceStride, c.rows, c.cols);
  if (!all)
    return fail(table, "expected rows that each lead to the part of one peer in what is packed, "
                       "found one that leads elsewhere on rank " +
                           std::to_string(rank));
  stayed = {rows, messages[rank]};
  return true;
}

bool TableProof::addsInOrder(int64_t table, const plan::RankTable &rows, int64_t rank) {
  int64_t group = truth.groupOf(plan.tables[table].from.segment);
  int64_t here = truth.position(group, rank);
  const std::vector<Message> &messages = messagesOf(rank);
  const plan::Place &from = plan.tables[table].from;
  bool ofParts = from.from == plan::Distribution::Parts;
  bool ofLines = from.from == plan::Distribution::LineParts;
  size_t next = 0; // contributions mostly arrive in the order of the mesh
  for (const plan::SumRow &row : rows.sums)
    for (int64_t i = 0, last = -1; i < row.count; ++i) {
      if (row.list < 0 || row.list + i >= int64_t(rows.lists.size()))
        break; // sumRows refuses these rows
      int64_t first = rows.lists[row.list + i] + row.source;
      int64_t end = first + (row.rows - 1) * row.sourceStride + row.cols;
      auto holds = [&](const Message &m) {
        return m.receiveOffset <= first && end <= m.receiveOffset + m.receiveCount;
      };
      auto part = messages.begin() + int64_t(next);
      if (part == messages.end() || !holds(*part))
        part = std::ranges::find_if(messages, holds);
      bool isFound = part != messages.end();
      next = isFound ? part + 1 - messages.begin() : 0;
      int64_t position = isFound ? truth.position(group, part->peer) : -1;
      // TableCheck::sumRows compares the number of parts, so ascending positions mean that none is missing.
      bool isNext =
          position >= 0 && (ofParts ? position > last && truth.differBySlabs(group, here, position)
                            : ofLines ? i == truth.linePartOf(group, from.value, position)
                                      : i == truth.contributionOf(group, position));
      last = position;
      if (!isNext)
        return fail(table, "expected contribution " + std::to_string(i) +
                               " of the mesh in its place of a sum, found " +
                               (position < 0 ? "no part of one peer"
                                             : "that of rank " + std::to_string(part->peer)) +
                               " on rank " + std::to_string(rank));
    }
  return true;
}

std::optional<Packed> TableProof::check(const TableUse &use, int64_t rank, Side side) {
  plan::CommonTable table = expand.table(use.table, rank);
  if (side != Side::None && (!staysInParts(use.table, table.rows, rank, side) ||
                             !addsInOrder(use.table, *table.rows, rank)))
    return std::nullopt;
  std::optional<Packed> packed = common.run(use, rank, table);
  if (!packed) {
    fail(use.table, common.error);
    return std::nullopt;
  }
  reaches[use.table].from.include(common.fromEnd, rank);
  reaches[use.table].to.include(common.toEnd, rank);
  return packed;
}

bool TableProof::checkBlockStates(int64_t table) {
  int64_t index = truth.groupOf(plan.tables[table].from.segment);
  const plan::Group &group = plan.groups[index];
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank) {
    std::vector<int64_t> expected;
    int64_t position = truth.position(index, rank);
    for (size_t number = 0; position >= 0 && number < group.parameters.size(); ++number)
      for (int64_t within : truth.computedOf(index, position, int64_t(number)))
        expected.push_back(int64_t(number) * truth.blocksPerParameter(index) + within);
    if (std::vector<int64_t> found = expand.computed(index, rank); found != expected)
      return fail(table,
                  "expected states of the " + std::to_string(expected.size()) +
                      " blocks of group @" + group.name + " that rank " + std::to_string(rank) +
                      " computes, found those of " +
                      (found.size() == expected.size() ? "others" : std::to_string(found.size())));
  }
  return true;
}

std::array<int64_t, 3> TableProof::firstElement(const plan::Place &place, int64_t rank) {
  int64_t group = truth.groupOf(place.segment);
  const MemoryMap &shard =
      truth.shard(group, place.value, truth.position(group, rank), place.from.whose());
  std::array<int64_t, 3> first = {-1, 0, 0};
  shard.forBlocks([&](int64_t block) {
    if (std::optional<Cut> at = first[0] < 0 ? shard.at(shard.spanOf(block).first) : std::nullopt)
      first = {at->block, at->row, at->col};
  });
  return first;
}

bool TableProof::checkModel(const TableUse &use) {
  const plan::Place &from = plan.tables[use.table].from;
  const plan::Group &group = plan.groups[truth.groupOf(from.segment)];
  plan::View view = viewOf(group, plan::ValueKind::Full);
  int64_t expected = int64_t(truth.segment(from.segment).blocks.size()) * view.rows * view.cols;
  int64_t elements = 0;
  std::vector<int64_t> collecting; // tables
  for (size_t other = 0; other < plan.tables.size(); ++other)
    if (plan.tables[other].kind == TableKind::Collect &&
        plan.tables[other].from.segment == from.segment)
      collecting.push_back(int64_t(other));
  std::set<std::array<int64_t, 3>> counted; // the first element of each shard that a rank counts
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank) {
    plan::RankTable parts = expand.table(use.table, rank).resolve(group);
    if (!parts.chunks.empty() && !counted.insert(firstElement(from, rank)).second)
      return fail(use.table, "expected each element of segment @" +
                                 plan.segments[from.segment].name +
                                 " in the sums of one rank, found those of rank " +
                                 std::to_string(rank) + " in the sums of another rank, too");
    std::vector<int64_t> parameters; // of the sums, in order
    for (const plan::Chunk &chunk : parts.chunks) {
      elements += chunk.rows * chunk.cols;
      if (chunk.part >= 0)
        parameters.push_back(chunk.parameter);
    }
    for (int64_t other : collecting) {
      std::vector<int64_t> named;
      for (const plan::CopyRow &row : expand.table(other, rank).resolve(group).copies)
        named.push_back(row.parameter);
      if (named != parameters)
        return fail(
            other,
            "expected the " + std::to_string(parameters.size()) + " sums of rank " +
                std::to_string(rank) + " with their parameters, found " +
                (named.size() == parameters.size() ? "others" : std::to_string(named.size())),
            use.table);
    }
  }
  return elements == expected ||
         fail(use.table, "expected each of the " + std::to_string(expected) +
                             " elements of segment @" + plan.segments[from.segment].name +
                             " in the sums of one rank, found " + std::to_string(elements));
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
  if (place.from == plan::Distribution::Ranges)
    return truth.haveSameSlabs(truth.groupOf(place.segment)) ||
           fail(table, "expected an all-gather of sums that all ranks get, found some over slabs "
                       "that not all have in segment @" +
                           plan.segments[place.segment].name);
  bool gathers = hop < end;
  for (; hop < end; ++hop)
    for (const plan::Factor &factor : group.hops[hop].owned)
      gathers = gathers && factor.size == 1;
  return gathers || fail(table, "expected an all-gather by hops that own nothing, found segment @" +
                                    plan.segments[place.segment].name + " to move from " +
                                    plan::name(place.from) + " to " + plan::name(place.to));
}

//===----------------------------------------------------------------------===//
// Ways
//===----------------------------------------------------------------------===//

std::optional<std::vector<Piece>> TableProof::arrived(const Way &way, int64_t rank,
                                                      const std::vector<Packed> &sent) {
  auto arrivals = arriving(way, rank);
  if (!arrivals)
    return std::nullopt;
  std::vector<Piece> arrived;
  for (const Message *m : *arrivals) {
    appendRange(sent[m->peer].view(), message(m->peer, rank).sendOffset, m->receiveCount,
                m->receiveOffset, arrived);
    result.routedElements += m->receiveCount;
  }
  return arrived;
}

bool TableProof::checkChosen(const Way &way, int64_t rank, const Packed &read,
                             const std::vector<Packed> &sent) {
  auto there = arrived(way, rank, sent);
  if (!there)
    return false;
  int64_t group = truth.groupOf(plan.tables[way.consumer].from.segment);
  int64_t end = there->empty() ? 0 : there->back().start + there->back().size();
  Near near;
  for (size_t i = 0; i < read.pieces->size(); ++i) {
    Piece piece = read.view().at(i);
    if (piece.start < 0 || piece.start + piece.size() > end)
      return fail(way.message,
                  "expected " + truth.describe(group, piece) + " on rank " + std::to_string(rank) +
                      ", found messages of " + std::to_string(end) + " elements",
                  way.consumer);
    if (auto difference =
            findDifference(*there, piece.start, read.view(), piece.start, piece.size(), near))
      return fail(way.message,
                  "expected " + truth.describeElement(group, difference->received) +
                      " as element " + std::to_string(piece.start + difference->position) +
                      " of what arrives on rank " + std::to_string(rank) + ", found " +
                      truth.describeElement(group, difference->sent),
                  way.consumer);
  }
  return true;
}

std::optional<Packed> TableProof::relay(const Way &way, int64_t rank,
                                        const std::vector<Packed> &sent) {
  auto arrived = this->arrived(way, rank, sent);
  if (!arrived)
    return std::nullopt;
  plan::CommonTable rows = expand.table(way.consumer, rank);
  if (!staysInParts(way.consumer, rows.rows, rank, Side::Received))
    return std::nullopt;
  if (!common.canResolve(way.consumer, rank, rows)) {
    fail(way.consumer, common.error);
    return std::nullopt;
  }
  TableCheck check(truth, useOf[way.consumer], rank);
  const plan::Place &place = plan.tables[way.consumer].from;
  if (check.runRelay(rows.resolve(plan.groups[truth.groupOf(place.segment)]), *arrived))
    return Packed{std::make_shared<const std::vector<Piece>>(std::move(check.packed)), nullptr};
  fail(way.consumer, check.error, way.message);
  return std::nullopt;
}

void TableProof::checkWay(const Way &way, const std::vector<Packed> *relayed) {
  int64_t from = truth.groupOf(plan.tables[way.producer].from.segment);
  int64_t to = truth.groupOf(plan.tables[way.consumer].from.segment);
  if (from != to) {
    fail(way.message, "expected values of group @" + plan.groups[to].name +
                          " to arrive, found group @" + plan.groups[from].name);
    return;
  }
  std::vector<Packed> sent(truth.rankCount()), next(truth.rankCount());
  compared = {};
  stayed = {};
  if (!checkMessages(way.message))
    return;
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank)
    if (relayed) {
      sent[rank] = (*relayed)[rank];
      if (!staysInParts(way.producer, expand.table(way.producer, rank).rows, rank, Side::Sent))
        return;
    } else if (auto packed = check(useOf[way.producer], rank, Side::Sent)) {
      sent[rank] = std::move(*packed);
    } else {
      return;
    }
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank)
    if (!checkSent(way, rank, sent[rank]))
      return;
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank) {
    bool goesOn = isRelay(way.consumer);
    auto packed =
        goesOn ? relay(way, rank, sent) : check(useOf[way.consumer], rank, Side::Received);
    auto agrees = [&] {
      return isChoice(way.consumer) ? checkChosen(way, rank, *packed, sent)
                                    : checkReceived(way, rank, *packed, sent);
    };
    if (!packed || (!goesOn && !agrees()))
      return;
    if (goesOn)
      next[rank] = std::move(*packed);
  }
  for (const Way &other : ways)
    if (isRelay(way.consumer) && other.producer == way.consumer)
      checkWay(other, &next);
}

bool TableProof::checkStart(int64_t index, const plan::Start &start) {
  std::vector<int64_t> meetings = truth.meetings(start.communicator);
  // The messages and the start that were checked last. Equal ones are not checked again.
  std::vector<Rows> lastMessages;
  std::shared_ptr<const plan::RankStart> last;
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank) {
    std::vector<Rows> messages;
    for (int64_t table : start.tables)
      messages.push_back(expand.table(table, rank).rows);
    auto made = expand.start(index, rank);
    if (made != last || messages != lastMessages) {
      std::vector<ParcelCheck::Value> values;
      for (size_t i = 0; i < messages.size(); ++i)
        values.push_back({&messages[i]->messages, plan.tables[start.tables[i]].elementBytes});
      if (auto fault = ParcelCheck(std::move(values), rank, truth.rankCount()).run(*made))
        return fail(start.tables[fault->first], std::move(fault->second));
    }
    last = made;
    lastMessages = std::move(messages);
    startReaches[index].sent.include(made->sent.bytes, rank);
    startReaches[index].received.include(made->received.bytes, rank);
    for (const Message &m : made->messages) {
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
