//===- Tables.cpp - One rank's tables, expanded from the plan ------------===//

#include "runtime/plan/Tables.h"
#include "runtime/plan/Parcels.h"
#include "runtime/plan/Routes.h"
#include "runtime/plan/Rows.h"

#include <array>
#include <map>

namespace stepc::plan {

using geometry::Rect;

namespace {

/// Where the parts of peers begin in a packed place: no row reaches from one into the next.
class Borders {
public:
  /// None where a place is at rest.
  Borders(Routes &routes, const Place &place, int64_t position) {
    if (!place.isMoving())
      return;
    for (const PeerPart &part : routes.peers(place, position))
      starts.push_back(part.offset);
    // Several peers may share a part; mostly peers are in the order of their parts.
    if (!std::is_sorted(starts.begin(), starts.end()))
      std::sort(starts.begin(), starts.end());
  }
  bool at(int64_t offset) const { return std::binary_search(starts.begin(), starts.end(), offset); }

private:
  std::vector<int64_t> starts;
};

/// Expands one table at a time; holds what its parts share.
class TableBuilder {
public:
  TableBuilder(Routes &routes, const Table &table, int64_t position)
      : routes(routes), table(table), position(position),
        groupIndex(routes.plan().segments[static_cast<size_t>(table.from.segment)].group),
        group(routes.groupOf(table.from.segment)), view(routes.kind(groupIndex, table.from.value)),
        own(table.from.isOfShards() ? table.from : table.to),
        perParameter(group.blocksPerParameter()) {}

  void shardChunks(std::vector<Chunk> &chunks) {
    // Without staged operands `staged` is not read, 0. Else -1: this replica does not send.
    int64_t absent = table.to == table.from ? 0 : -1;
    RowMerger rows(routes.plan().chunkElements, [&](const Piece &p) {
      chunks.push_back({p.parameter, p.block, -1, p.row, p.col, p.rows, p.cols, p.first,
                        rowStride(p, p.firstStride), p.hasSecond ? p.second : absent,
                        p.hasSecond ? rowStride(p, p.secondStride) : 0, 0});
    });
    Borders borders(routes, table.to, position);
    auto add = [&](int64_t block, const Rect &rect, int64_t staged, int64_t stride) {
      Piece piece = shardPiece(block, rect, 0);
      if (staged >= 0) {
        setSecond(piece, staged, stride);
        if (borders.at(staged))
          rows.flush();
      }
      rows.add(piece);
    };
    if (table.to.isMoving()) {
      routes.walk(table.to, position,
                  [&](int64_t, int64_t block, const Rect &rect, int64_t offset) {
                    add(block, rect, offset, rect.cols);
                  });
    } else if (table.to.isResting(Distribution::Blocks)) {
      std::vector<int64_t> slots = computedSlots();
      forOwnRects([&](size_t k, int64_t block, const Rect &rect) {
        add(block, rect, slots[k] < 0 ? -1 : inBlocks(slots[k], rect), view.cols);
      });
    } else { // a copy of the shards, or nothing
      std::vector<int64_t> shifts = routes.shifts(table.to, position);
      forOwnRects([&](size_t k, int64_t block, const Rect &rect) {
        add(block, rect, table.to == table.from ? -1 : shifts[k] + rect.offset, rect.stride);
      });
    }
    rows.flush();
  }

  void blockChunks(RankTable &out) {
    std::vector<int64_t> mine = routes.computed(table.from.segment, position);
    out.blocks = static_cast<int64_t>(mine.size());
    if (view.rows == 0 || view.cols == 0)
      return;
    int64_t step = std::max<int64_t>(1, routes.plan().chunkElements / view.cols);
    out.chunks.reserve(mine.size() * static_cast<size_t>((view.rows + step - 1) / step));
    for (size_t slot = 0; slot < mine.size(); ++slot) {
      int64_t block = routes.block(table.from.segment, mine[slot]);
      int64_t base = static_cast<int64_t>(slot) * view.rows * view.cols;
      for (int64_t row = 0; row < view.rows; row += step)
        out.chunks.push_back({parameterOf(block), block, static_cast<int64_t>(slot), row, 0,
                              std::min(step, view.rows - row), view.cols, 0, 0,
                              base + row * view.cols, view.cols, 0});
    }
  }

  void copies(std::vector<CopyRow> &out) {
    bool fromFirst = true; // whether the first memory of a piece is the source
    RowMerger rows(routes.plan().chunkElements, [&](const Piece &p) {
      CopyRow row{p.parameter,
                  p.rows,
                  p.cols,
                  p.first,
                  rowStride(p, p.firstStride),
                  p.second,
                  rowStride(p, p.secondStride),
                  0};
      if (!fromFirst) {
        std::swap(row.source, row.target);
        std::swap(row.sourceStride, row.targetStride);
      }
      out.push_back(row);
    });
    const Place &packed = table.to.isMoving() ? table.to : table.from;
    const Place &other = table.to.isMoving() ? table.from : table.to;
    Borders borders(routes, packed, position), otherBorders(routes, other, position);
    auto add = [&](Piece piece, int64_t offset, int64_t stride) {
      setSecond(piece, offset, stride);
      rows.add(piece);
    };
    fromFirst = !table.to.isMoving();
    if (other.isMoving()) { // what a hop received is sent on
      std::map<std::array<int64_t, 3>, int64_t> places;
      routes.walk(other, position, [&](int64_t, int64_t block, const Rect &rect, int64_t offset) {
        places[{block, rect.row, rect.col}] = offset;
      });
      routes.walk(packed, position, [&](int64_t, int64_t block, const Rect &rect, int64_t offset) {
        if (offset < 0)
          return;
        int64_t from = places.at({block, rect.row, rect.col});
        if (borders.at(offset) || otherBorders.at(from))
          rows.flush();
        add(packedPiece(block, rect, offset), from, rect.cols);
      });
    } else if (packed.isMoving() && other.isResting(Distribution::Blocks)) {
      routes.walk(packed, position,
                  [&](int64_t slot, int64_t block, const Rect &rect, int64_t offset) {
                    if (borders.at(offset))
                      rows.flush();
                    add(packedPiece(block, rect, offset), inBlocks(slot, rect), view.cols);
                  });
    } else if (packed.isMoving()) {
      fromFirst = table.to.isMoving();
      std::vector<int64_t> shifts = routes.shifts(other, position);
      routes.walk(packed, position,
                  [&](int64_t k, int64_t block, const Rect &rect, int64_t offset) {
                    if (offset < 0)
                      return;
                    if (borders.at(offset))
                      rows.flush();
                    add(shardPiece(block, rect, shifts[static_cast<size_t>(k)]), offset, rect.cols);
                  });
    } else if (packed.isResting(Distribution::Blocks) || other.isResting(Distribution::Blocks)) {
      fromFirst = table.from.isOfShards();
      std::vector<int64_t> slots = computedSlots(), shifts = routes.shifts(own, position);
      forOwnRects([&](size_t k, int64_t block, const Rect &rect) {
        if (slots[k] >= 0)
          add(shardPiece(block, rect, shifts[k]), inBlocks(slots[k], rect), view.cols);
      });
    } else {
      fromFirst = true;
      const Form target{table.to.value, table.to.whose()};
      const ShardRects &targets = routes.shard(groupIndex, target, position);
      const SharedRects &shared =
          routes.shared(groupIndex, {table.from.value, table.from.whose()}, target.whose, position);
      int64_t here = routes.holders(groupIndex, target).of[static_cast<size_t>(position)];
      std::vector<int64_t> shifts = routes.shifts(table.from, position),
                           targetShifts = routes.shifts(table.to, position),
                           held = routes.held(table.to.segment, targets);
      size_t k = 0, t = 0;
      for (int64_t index : routes.held(table.from.segment, shared)) {
        int64_t block = routes.block(table.from.segment, index), shift = shifts[k++];
        while (t < held.size() && held[t] < index)
          ++t;
        if (t == held.size() || held[t] != index)
          continue;
        for (const Rect &rect : shared.of(block % perParameter)) {
          if (shared.with[static_cast<size_t>(&rect - shared.rects.data())] != here)
            continue;
          for (const Rect &in : targets.of(block % perParameter))
            if (in.row <= rect.row && rect.row < in.row + in.rows && in.col <= rect.col &&
                rect.col < in.col + in.cols)
              add(shardPiece(block, rect, shift),
                  targetShifts[t] + in.offset + (rect.row - in.row) * in.stride + rect.col - in.col,
                  in.stride);
        }
      }
    }
    rows.flush();
  }

private:
  /// A single row's stride is its length: its neighbour does not exist.
  static int64_t rowStride(const Piece &piece, int64_t stride) {
    return piece.rows == 1 ? piece.cols : stride;
  }
  static void setSecond(Piece &piece, int64_t offset, int64_t stride) {
    piece.second = offset;
    piece.secondStride = stride;
    piece.hasSecond = true;
  }
  int64_t parameterOf(int64_t block) const {
    return group.parameters[static_cast<size_t>(block / perParameter)];
  }
  Piece shardPiece(int64_t block, const Rect &rect, int64_t shift) const {
    return {parameterOf(block),  block,       rect.row, rect.col, rect.rows, rect.cols,
            shift + rect.offset, rect.stride, 0,        0,        false};
  }
  Piece packedPiece(int64_t block, const Rect &rect, int64_t offset) const {
    return {parameterOf(block), block, rect.row, rect.col, rect.rows, rect.cols, offset,
            rect.cols,          0,     0,        false};
  }
  int64_t inBlocks(int64_t slot, const Rect &rect) const {
    return (slot * view.rows + rect.row) * view.cols + rect.col;
  }

  const ShardRects &shard() { return routes.shard(groupIndex, {own.value, own.whose()}, position); }

  /// Per held block, its slot if it is computed here or -1.
  std::vector<int64_t> computedSlots() {
    std::vector<int64_t> slots;
    std::vector<int64_t> computed = routes.computed(table.from.segment, position);
    size_t slot = 0;
    for (int64_t index : routes.held(table.from.segment, shard())) {
      while (slot < computed.size() && computed[slot] < index)
        ++slot;
      bool found = slot < computed.size() && computed[slot] == index;
      slots.push_back(found ? static_cast<int64_t>(slot) : -1);
    }
    return slots;
  }

  /// visit(number of the held block, block in the group, rectangle), in segment order.
  template <typename Visit> void forOwnRects(Visit visit) {
    const ShardRects &own = shard();
    size_t k = 0;
    for (int64_t index : routes.held(table.from.segment, own)) {
      int64_t block = routes.block(table.from.segment, index);
      for (const Rect &rect : own.of(block % perParameter))
        visit(k, block, rect);
      ++k;
    }
  }

  Routes &routes;
  const Table &table;
  int64_t position;
  int64_t groupIndex;
  const Group &group;
  const KindView &view;
  const Place &own; // the side of shards
  int64_t perParameter;
};

std::vector<Message> messages(Routes &routes, const Table &table, int64_t rank) {
  static const std::vector<PeerPart> kNone;
  auto side = [&](const Place &place) -> const std::vector<PeerPart> & {
    int64_t position = routes.position(place.segment, rank);
    return position < 0 ? kNone : routes.peers(place, position);
  };
  const std::vector<PeerPart> &sends = side(table.from), &receives = side(table.to);
  std::vector<Message> result;
  for (size_t s = 0, r = 0; s < sends.size() || r < receives.size();) {
    int64_t peer = std::min(s < sends.size() ? sends[s].peer : routes.worldSize(),
                            r < receives.size() ? receives[r].peer : routes.worldSize());
    Message message{peer, 0, 0, 0, 0};
    if (s < sends.size() && sends[s].peer == peer) {
      message.sendOffset = sends[s].offset;
      message.sendCount = sends[s++].count;
    }
    if (r < receives.size() && receives[r].peer == peer) {
      message.receiveOffset = receives[r].offset;
      message.receiveCount = receives[r++].count;
    }
    result.push_back(message);
  }
  return result;
}

} // namespace

Expander::Expander(const Plan &plan) : routes(std::make_unique<Routes>(plan)) {}
Expander::~Expander() = default;
Expander::Expander(Expander &&) noexcept = default;

RankTable Expander::table(const Table &table, int64_t rank) {
  RankTable result;
  if (table.kind == TableKind::Message) {
    result.messages = messages(*routes, table, rank);
    return result;
  }
  int64_t position = routes->position(table.from.segment, rank);
  if (position < 0)
    return result;
  TableBuilder builder(*routes, table, position);
  switch (table.kind) {
  case TableKind::ShardChunks:
    builder.shardChunks(result.chunks);
    break;
  case TableKind::BlockChunks:
    builder.blockChunks(result);
    break;
  case TableKind::Copy:
    builder.copies(result.copies);
    break;
  case TableKind::Message:
    break;
  }
  return result;
}

RankTables Expander::tables(int64_t rank) {
  RankTables result;
  result.tables.reserve(routes->plan().tables.size());
  for (const Table &each : routes->plan().tables)
    result.tables.push_back(table(each, rank));
  for (const Command *each : routes->plan().starts())
    result.starts.push_back(start(*each, rank));
  for (const Pool &each : routes->plan().pools)
    result.pools.push_back(pool(each, rank));
  return result;
}

RankStart Expander::start(const Command &start, int64_t rank) {
  std::vector<std::vector<Message>> lists;
  std::vector<Traveller> values;
  lists.reserve(start.tables.size());
  for (int64_t index : start.tables) {
    const Table &table = routes->plan().tables[static_cast<size_t>(index)];
    lists.push_back(messages(*routes, table, rank));
    values.push_back({&lists.back(), table.elementBytes});
  }
  return layOut(start.collective, values, routes->worldSize());
}

int64_t Expander::elements(const Place &place, int64_t rank) {
  int64_t position = routes->position(place.segment, rank);
  if (position < 0)
    return 0;
  if (place.isMoving()) {
    int64_t end = 0;
    for (const PeerPart &part : routes->peers(place, position))
      end = std::max(end, part.offset + part.count);
    return end;
  }
  if (int64_t total = 0; place.from.isShards()) {
    routes->shifts(place, position, &total);
    return total;
  }
  int64_t group = routes->plan().segments[static_cast<size_t>(place.segment)].group;
  const KindView &view = routes->kind(group, place.value);
  return routes->computedCount(place.segment, position) * view.rows * view.cols;
}

int64_t Expander::computedBlocks(int64_t segment, int64_t rank) {
  int64_t position = routes->position(segment, rank);
  return position < 0 ? 0 : routes->computedCount(segment, position);
}

int64_t elements(const Plan &plan, const Place &place, int64_t rank) {
  return Expander(plan).elements(place, rank);
}

RankTables expand(const Plan &plan, int64_t rank) { return Expander(plan).tables(rank); }

RankTable expandTable(const Plan &plan, const Table &table, int64_t rank) {
  return Expander(plan).table(table, rank);
}

RankStart expandStart(const Plan &plan, const Command &start, int64_t rank) {
  return Expander(plan).start(start, rank);
}

} // namespace stepc::plan
