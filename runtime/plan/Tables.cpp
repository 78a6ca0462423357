//===- Tables.cpp - One rank's tables, expanded from the plan ------------===//

#include "runtime/plan/Tables.h"
#include "runtime/plan/Routes.h"
#include "runtime/plan/Rows.h"

namespace stepc::plan {

using geometry::Rect;

namespace {

/// Expands one table at a time; holds what its parts share.
class TableBuilder {
public:
  TableBuilder(Routes &routes, const Table &table, int64_t position)
      : routes(routes), table(table), position(position),
        groupIndex(routes.plan().segments[static_cast<size_t>(table.segment)].group),
        group(routes.groupOf(table.segment)), view(routes.kind(groupIndex, table.value)),
        perParameter(group.blocksPerParameter()) {}

  void shardChunks(std::vector<Chunk> &chunks) {
    // None: `staged` is not read, 0. Else -1: this replica does not send.
    int64_t absent = table.from == Layout::None ? 0 : -1;
    RowMerger rows([&](const Piece &p) {
      chunks.push_back({p.parameter, p.block, -1, p.row, p.col, p.rows, p.cols, p.first,
                        rowStride(p, p.firstStride), p.hasSecond ? p.second : absent,
                        p.hasSecond ? rowStride(p, p.secondStride) : 0, 0});
    });
    std::vector<int64_t> slots = slotsIf(table.from == Layout::Blocks);
    OwnParts own;
    bool packed = table.from == Layout::Send || table.from == Layout::Receive;
    if (packed)
      own = routes.own(table.segment, table.direction, table.value, position);
    forOwnRects([&](size_t k, int64_t block, const Rect &rect, int64_t before) {
      Piece piece = shardPiece(block, rect);
      if (packed && own.offsets[k] >= 0)
        setSecond(piece, own.offsets[k] + before, rect.cols);
      else if (!slots.empty() && slots[k] >= 0)
        setSecond(piece, inBlocks(slots[k], rect), view.cols);
      rows.add(piece);
    });
    rows.flush();
  }

  void blockChunks(RankTable &out) {
    std::vector<int64_t> mine = routes.computed(table.segment, position);
    out.blocks = static_cast<int64_t>(mine.size());
    if (view.rows == 0 || view.cols == 0)
      return;
    int64_t step = std::max<int64_t>(1, kChunkElements / view.cols);
    out.chunks.reserve(mine.size() * static_cast<size_t>((view.rows + step - 1) / step));
    for (size_t slot = 0; slot < mine.size(); ++slot) {
      int64_t block = routes.block(table.segment, mine[slot]);
      int64_t base = static_cast<int64_t>(slot) * view.rows * view.cols;
      for (int64_t row = 0; row < view.rows; row += step)
        out.chunks.push_back({parameterOf(block), block, static_cast<int64_t>(slot), row, 0,
                              std::min(step, view.rows - row), view.cols, 0, 0,
                              base + row * view.cols, view.cols, 0});
    }
  }

  void copies(std::vector<CopyRow> &out) {
    bool fromFirst = true; // whether the first memory of a piece is the source
    RowMerger rows([&](const Piece &p) {
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
    auto between = [&](Layout a, Layout b) {
      return (table.from == a && table.to == b) || (table.from == b && table.to == a);
    };
    if (between(Layout::Receive, Layout::Blocks) || between(Layout::Send, Layout::Blocks)) {
      fromFirst = table.from != Layout::Blocks;
      routes.foreign(
          table.segment, table.direction, table.value, position,
          [&](int64_t slot, int64_t block, const Rect &rect, int64_t offset) {
            Piece piece{parameterOf(block), block, rect.row, rect.col, rect.rows, rect.cols, offset,
                        rect.cols,          0,     0,        false};
            setSecond(piece, inBlocks(slot, rect), view.cols);
            rows.add(piece);
          });
    } else if (between(Layout::Shard, Layout::Send) || between(Layout::Shard, Layout::Receive)) {
      fromFirst = table.from == Layout::Shard;
      OwnParts own = routes.own(table.segment, table.direction, table.value, position);
      forOwnRects([&](size_t k, int64_t block, const Rect &rect, int64_t before) {
        int64_t offset = own.offsets[k];
        if (offset < 0)
          return;
        Piece piece = shardPiece(block, rect);
        setSecond(piece, offset + before, rect.cols);
        rows.add(piece);
      });
    } else if (between(Layout::Shard, Layout::Blocks)) {
      fromFirst = table.from == Layout::Shard;
      std::vector<int64_t> slots = slotsIf(true);
      forOwnRects([&](size_t k, int64_t block, const Rect &rect, int64_t) {
        if (slots[k] < 0)
          return;
        Piece piece = shardPiece(block, rect);
        setSecond(piece, inBlocks(slots[k], rect), view.cols);
        rows.add(piece);
      });
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
  Piece shardPiece(int64_t block, const Rect &rect) const {
    return {parameterOf(block), block,       rect.row, rect.col, rect.rows, rect.cols,
            rect.offset,        rect.stride, 0,        0,        false};
  }
  int64_t inBlocks(int64_t slot, const Rect &rect) const {
    return (slot * view.rows + rect.row) * view.cols + rect.col;
  }

  const ShardRects &shard() { return routes.shard(groupIndex, table.value, position); }

  /// Per held block, its slot if it is computed here or -1.
  std::vector<int64_t> slotsIf(bool wanted) {
    std::vector<int64_t> slots;
    if (!wanted)
      return slots;
    std::vector<int64_t> computed = routes.computed(table.segment, position);
    size_t slot = 0;
    for (int64_t index : routes.held(table.segment, shard())) {
      while (slot < computed.size() && computed[slot] < index)
        ++slot;
      bool found = slot < computed.size() && computed[slot] == index;
      slots.push_back(found ? static_cast<int64_t>(slot) : -1);
    }
    return slots;
  }

  /// visit(number of the held block, block in the group, rectangle, elements of the block's
  /// rectangles before it), in segment order.
  template <typename Visit> void forOwnRects(Visit visit) {
    const ShardRects &own = shard();
    size_t k = 0;
    for (int64_t index : routes.held(table.segment, own)) {
      int64_t block = routes.block(table.segment, index), before = 0;
      for (const Rect &rect : own.of(block % perParameter)) {
        visit(k, block, rect, before);
        before += rect.rows * rect.cols;
      }
      ++k;
    }
  }

  Routes &routes;
  const Table &table;
  int64_t position;
  int64_t groupIndex;
  const Group &group;
  const KindView &view;
  int64_t perParameter;
};

int64_t totalOf(const std::vector<PeerPart> &parts) {
  return parts.empty() ? 0 : parts.back().offset + parts.back().count;
}

/// The parts of a layout that travels: Send or Receive.
std::vector<PeerPart> parts(Routes &routes, int64_t segment, Direction direction, ValueKind value,
                            Layout layout, int64_t position) {
  bool own = (layout == Layout::Send) == (direction == Direction::ToMatrix);
  return own ? routes.ownPeers(segment, direction, value, position)
             : routes.foreignPeers(segment, direction, value, position);
}

std::vector<Message> messages(Routes &routes, const Table &table, int64_t rank) {
  auto side = [&](int64_t segment, Layout layout) {
    int64_t position = routes.position(segment, rank);
    return position < 0 ? std::vector<PeerPart>{}
                        : parts(routes, segment, table.direction, table.value, layout, position);
  };
  std::vector<PeerPart> sends = side(table.segment, Layout::Send);
  std::vector<PeerPart> receives =
      side(table.receiveSegment < 0 ? table.segment : table.receiveSegment, Layout::Receive);
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
  int64_t position = routes->position(table.segment, rank);
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
  return result;
}

int64_t Expander::layoutElements(int64_t segment, Direction direction, ValueKind value,
                                 Layout layout, int64_t rank) {
  int64_t position = routes->position(segment, rank);
  if (position < 0)
    return 0;
  int64_t group = routes->plan().segments[static_cast<size_t>(segment)].group;
  switch (layout) {
  case Layout::None:
    return 0;
  case Layout::Send:
  case Layout::Receive:
    return totalOf(parts(*routes, segment, direction, value, layout, position));
  case Layout::Blocks: {
    const KindView &view = routes->kind(group, value);
    return routes->computedCount(segment, position) * view.rows * view.cols;
  }
  case Layout::Shard:
    return routes->heldElements(segment, routes->shard(group, value, position));
  }
  return 0;
}

int64_t Expander::computedBlocks(int64_t segment, int64_t rank) {
  int64_t position = routes->position(segment, rank);
  return position < 0 ? 0 : routes->computedCount(segment, position);
}

int64_t layoutElements(const Plan &plan, int64_t segment, Direction direction, ValueKind value,
                       Layout layout, int64_t rank) {
  return Expander(plan).layoutElements(segment, direction, value, layout, rank);
}

RankTables expand(const Plan &plan, int64_t rank) { return Expander(plan).tables(rank); }

RankTable expandTable(const Plan &plan, const Table &table, int64_t rank) {
  return Expander(plan).table(table, rank);
}

} // namespace stepc::plan
