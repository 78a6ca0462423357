//===- Tables.cpp - One rank's tables, expanded from the plan ------------===//

#include "runtime/plan/Tables.h"
#include "runtime/plan/Parcels.h"
#include "runtime/plan/TableBuilder.h"

#include <functional>
#include <limits>

namespace stepc::plan {

void CommonTable::resolve(const Group &group, RankTable &own) const {
  own = *rows;
  if (!blocks)
    return;
  int64_t perParameter = group.blocksPerParameter();
  ElementOrder order(group, value);
  std::vector<int64_t> parameters, before; // by block number, because each block has many rows
  parameters.reserve(blocks->size());
  for (int64_t block : *blocks) {
    parameters.push_back(group.parameters[static_cast<size_t>(block / perParameter)]);
    if (blockCols > 0)
      before.push_back(order.before(block % perParameter));
  }
  auto parameterOf = [&](int64_t number) { return parameters[static_cast<size_t>(number)]; };
  for (Chunk &chunk : own.chunks) {
    chunk.parameter = parameterOf(chunk.block);
    chunk.row += row;
    chunk.col += col;
    if (blockCols > 0) {
      chunk.element = before[static_cast<size_t>(chunk.block)] + chunk.row * blockCols + chunk.col;
      chunk.elementStride = blockCols;
    }
    chunk.block = (*blocks)[static_cast<size_t>(chunk.block)];
  }
  for (CopyRow &copy : own.copies)
    copy.parameter = parameterOf(copy.parameter);
  for (SumRow &sum : own.sums)
    sum.parameter = parameterOf(sum.parameter);
}

RankTable CommonTable::resolve(const Group &group) const {
  RankTable own;
  resolve(group, own);
  return own;
}

namespace {

RankTable merge(const std::vector<PeerPart> &sends, const std::vector<PeerPart> &receives) {
  constexpr int64_t kNoPeer = std::numeric_limits<int64_t>::max();
  RankTable result;
  for (size_t s = 0, r = 0; s < sends.size() || r < receives.size();) {
    int64_t peer = std::min(s < sends.size() ? sends[s].peer : kNoPeer,
                            r < receives.size() ? receives[r].peer : kNoPeer);
    Message message{peer, 0, 0, 0, 0};
    if (s < sends.size() && sends[s].peer == peer) {
      message.sendOffset = sends[s].offset;
      message.sendCount = sends[s++].count;
    }
    if (r < receives.size() && receives[r].peer == peer) {
      message.receiveOffset = receives[r].offset;
      message.receiveCount = receives[r++].count;
    }
    result.messages.push_back(message);
  }
  return result;
}

using Peers = std::shared_ptr<const std::vector<PeerPart>>;
using Messages = std::shared_ptr<const RankTable>;

size_t countRows(const RankTable &table) {
  return table.chunks.size() + table.copies.size() + table.sums.size() + table.messages.size();
}

} // namespace

/// Keys own the lists that they name, so that no new list gets the address of a forgotten one.
struct Expander::Known {
  explicit Known(const Plan &plan) : map(plan) {}

  /// The messages of a table on up to `count` ranks from rank `first` on, as long as there are ranks.
  std::vector<Messages> messagesOf(const Table &table, int64_t first, size_t count);

  BlockMap map;
  // The key is a table and TableBuilder::key. The limit is high, because many ranks have many rows.
  Memo<std::pair<std::vector<int64_t>, std::vector<int64_t>>, RankTable> rows{1 << 18};
  Memo<std::vector<int64_t>, std::vector<int64_t>> blocks; // by place and ShardRects::like
  Memo<std::pair<Peers, Peers>, RankTable> messages;
  Memo<std::pair<const Start *, std::vector<Messages>>, RankStart> starts;
  std::shared_ptr<const RankTable> noRows = std::make_shared<const RankTable>();
  /// Messages of a table on consecutive ranks. If a caller asks about one rank after the other, more and
  /// more ranks are computed at once. So a start looks at each of its tables once for many ranks.
  struct Ahead {
    int64_t first = 0;
    std::vector<Messages> of;
  };
  std::vector<Ahead> ahead; // per table of the plan
  // The table that was made last, and its number of rows: the next rank has about as many.
  const Table *last = nullptr;
  size_t lastRows = 0;
};

std::vector<Messages> Expander::Known::messagesOf(const Table &table, int64_t first, size_t count) {
  map.trim();
  BlockMap::PeersOfPlace from(map, table.from), to(map, table.to);
  std::vector<Messages> result;
  std::pair<Peers, Peers> sides, last;
  for (int64_t rank = first; result.size() < count && (rank == first || rank < map.worldSize());
       ++rank) {
    auto side = [&](const Place &place, BlockMap::PeersOfPlace &peers) {
      int64_t position = map.position(place.segment, rank);
      return position < 0 ? map.noPeers : peers.at(position);
    };
    sides = {side(table.from, from), side(table.to, to)};
    if (!result.empty() && sides == last)
      result.push_back(result.back());
    else
      result.push_back(
          messages.of(sides, [&] { return merge(*sides.first, *sides.second); }, countRows));
    last = sides;
  }
  return result;
}

Expander::Expander(const Plan &plan) : known(new Known(plan)) {}
Expander::~Expander() = default;
Expander::Expander(Expander &&) noexcept = default;

Messages Expander::messages(const Table &table, int64_t rank) {
  const std::vector<Table> &tables = known->map.plan().tables;
  std::less<const Table *> before;
  bool isOfPlan = !before(&table, tables.data()) && before(&table, tables.data() + tables.size());
  if (!isOfPlan)
    return known->messagesOf(table, rank, 1).front();
  constexpr size_t kMostAhead = 128;
  known->ahead.resize(tables.size());
  Known::Ahead &ahead = known->ahead[static_cast<size_t>(&table - tables.data())];
  int64_t number = rank - ahead.first, count = static_cast<int64_t>(ahead.of.size());
  if (number >= 0 && number < count)
    return ahead.of[static_cast<size_t>(number)];
  size_t next = number == count && count > 0 ? std::min(2 * ahead.of.size(), kMostAhead) : 1;
  ahead = {rank, known->messagesOf(table, rank, next)};
  return ahead.of.front();
}

CommonTable Expander::common(const Table &table, int64_t rank) {
  known->map.trim();
  CommonTable result;
  result.rows = known->noRows;
  int64_t position = known->map.position(table.from.segment, rank);
  if (table.kind == TableKind::Message)
    result.rows = messages(table, rank);
  if (table.kind == TableKind::Message || position < 0)
    return result;
  TableBuilder builder(known->map, table, position);
  result.row = builder.row;
  result.col = builder.col;
  const Group &group = known->map.groupOf(table.from.segment);
  bool ofSlabs = table.kind == TableKind::BlockChunks && !group.slabs.factors.empty();
  result.value = table.from.value;
  if (!result.value.isLine() && !ofSlabs)
    result.blockCols = view(group, result.value).cols;
  auto make = [&] {
    RankTable rows = builder.rows(known->last == &table ? known->lastRows : 0);
    known->last = &table;
    known->lastRows = countRows(rows);
    return rows;
  };
  auto key = builder.key();
  auto ofTable = [&] {
    std::vector<int64_t> numbers = numbersOf(table.from), to = numbersOf(table.to);
    numbers.insert(numbers.end(), to.begin(), to.end());
    numbers.insert(numbers.end(), {static_cast<int64_t>(table.kind), table.elementBytes});
    return numbers;
  };
  result.rows = key ? known->rows.of({ofTable(), std::move(*key)}, make, countRows)
                    : std::make_shared<const RankTable>(make());
  auto blocks = [&] { return builder.blocks(); };
  auto holder = builder.holder();
  auto ofHolder = [&] {
    std::vector<int64_t> numbers = numbersOf(holder->first);
    numbers.push_back(holder->second);
    return numbers;
  };
  result.blocks = holder
                      ? known->blocks.of(ofHolder(), blocks, [](auto &list) { return list.size(); })
                      : std::make_shared<const std::vector<int64_t>>(blocks());
  return result;
}

RankTable Expander::table(const Table &table, int64_t rank) {
  return common(table, rank).resolve(known->map.groupOf(table.from.segment));
}

RankTables Expander::tables(int64_t rank) {
  RankTables result;
  const Plan &plan = known->map.plan();
  result.tables.reserve(plan.tables.size());
  for (const Table &each : plan.tables)
    result.tables.push_back(table(each, rank));
  for (const Start *each : plan.starts())
    result.starts.push_back(*start(*each, rank));
  for (const Pool &each : plan.pools)
    result.pools.push_back(pool(each, rank));
  for (size_t group = 0; group < plan.groups.size(); ++group)
    result.computed.push_back(plan.groups[group].blockStates.empty()
                                  ? std::vector<int64_t>()
                                  : computedOf(static_cast<int64_t>(group), rank));
  return result;
}

std::shared_ptr<const RankStart> Expander::start(const Start &start, int64_t rank) {
  std::pair<const Start *, std::vector<Messages>> key{&start, {}};
  std::vector<Traveller> values;
  for (int64_t index : start.tables) {
    const Table &table = known->map.plan().tables[static_cast<size_t>(index)];
    key.second.push_back(messages(table, rank));
    values.push_back({&key.second.back()->messages, table.elementBytes});
  }
  return known->starts.of(
      key, [&] { return layOut(start.collective, values, known->map.worldSize()); },
      [&](const RankStart &made) { return made.messages.size() + values.size(); });
}

int64_t Expander::elements(const Place &place, int64_t rank) {
  BlockMap &map = known->map;
  map.trim();
  int64_t position = map.position(place.segment, rank);
  if (position < 0)
    return 0;
  if (place.isMoving()) {
    int64_t end = 0;
    for (const PeerPart &part : *map.peers(place, position))
      end = std::max(end, part.offset + part.count);
    return end;
  }
  if (int64_t total = 0; place.from.isShards()) {
    map.shifts(place, position, &total);
    return total;
  }
  if (place.from == Distribution::Ranges)
    return map.rangeElements(place, position);
  if (place.from == Distribution::ModelParts) {
    Table table{TableKind::Collect, place, place, 0};
    return static_cast<int64_t>(TableBuilder(map, table, position).rows(0).copies.size());
  }
  int64_t group = map.plan().segments[static_cast<size_t>(place.segment)].group;
  const KindView &view = map.kind(group, place.value);
  return map.computedCount(place.segment, position) * view.rows * view.cols;
}

std::vector<int64_t> Expander::computedOf(int64_t group, int64_t rank) {
  BlockMap &map = known->map;
  map.trim();
  int64_t position = map.positionIn(group, rank);
  return position < 0 ? std::vector<int64_t>() : map.computedOf(group, position);
}

int64_t Expander::computedBlocks(int64_t segment, int64_t rank) {
  BlockMap &map = known->map;
  map.trim();
  int64_t position = map.position(segment, rank);
  return position < 0 ? 0 : map.computedCount(segment, position);
}

RankTables expand(const Plan &plan, int64_t rank) { return Expander(plan).tables(rank); }

} // namespace stepc::plan
