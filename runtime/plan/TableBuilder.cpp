//===- TableBuilder.cpp - The rows of one table on one rank --------------===//

#include "runtime/plan/TableBuilder.h"
#include "runtime/plan/Rows.h"

#include <array>
#include <map>

namespace stepc::plan {

using geometry::Rect;

namespace {

/// Where the parts of peers begin in a packed place. No row may reach from one part into the next.
class Borders {
public:
  /// A place at rest has no borders.
  Borders(BlockMap &map, const Place &place, int64_t position) {
    if (!place.isMoving())
      return;
    for (const PeerPart &part : *map.peers(place, position))
      starts.push_back(part.offset);
    // Several peers may share a part; mostly peers are in the order of their parts.
    if (!std::is_sorted(starts.begin(), starts.end()))
      std::sort(starts.begin(), starts.end());
  }
  bool at(int64_t offset) const { return std::binary_search(starts.begin(), starts.end(), offset); }

private:
  std::vector<int64_t> starts;
};

} // namespace

TableBuilder::TableBuilder(BlockMap &map, const Table &table, int64_t position)
    : map(map), table(table), position(position),
      groupIndex(map.plan().segments[static_cast<size_t>(table.from.segment)].group),
      group(map.groupOf(table.from.segment)), view(map.kind(groupIndex, table.from.value)),
      own(table.from.isOfShards() ? table.from : table.to),
      packed(table.to.isMoving() ? table.to : table.from),
      other(table.to.isMoving() ? table.from : table.to), perParameter(group.blocksPerParameter()) {
  if (own.isOfShards()) {
    row = shardOf(own).row;
    col = shardOf(own).col;
  }
}

/// The kinds of values to which rows lead beside full ones (Table::leadsToLines).
static constexpr ValueKind kLines[] = {ValueKind::Rows, ValueKind::Cols, ValueKind::One};

std::optional<std::vector<int64_t>> TableBuilder::key() {
  if (table.kind == TableKind::BlockChunks)
    return std::vector{map.computedCount(table.from.segment, position)};
  if (table.kind == TableKind::PartModel) {
    std::vector<int64_t> held = map.held(own, position);
    held.insert(held.end(), {shardOf(table.from).like, shardOf(table.to).like, countsHere()});
    return held;
  }
  bool blocks = other.isResting(Distribution::Blocks);
  std::optional<std::vector<int64_t>> key;
  if (!packed.isMoving()) {
    if (!table.isOverShards() || blocks)
      return std::nullopt;
    key = {shardOf(table.from).like, shardOf(table.to).like};
  } else {
    bool sameShards =
        packed.value == own.value && whose(map.plan(), packed) == whose(map.plan(), own);
    if (other.isMoving() || (table.isOverShards() && !sameShards) ||
        (blocks && table.kind == TableKind::Copy && packed.standsIn() != other.from))
      return std::nullopt;
    key = map.walkKey(packed, position);
    if (key && !blocks)
      key->insert(key->end(), {shardOf(packed).like, shardOf(other).like});
  }
  if (key && table.leadsToLines())
    for (ValueKind kind : kLines) {
      const ShardRects &lines = shardOf(table.line(kind));
      key->insert(key->end(), {lines.like, kind.rows == 1 ? 0 : row - lines.row,
                               kind.cols == 1 ? 0 : col - lines.col});
    }
  return key;
}

std::optional<std::pair<Place, int64_t>> TableBuilder::holder() {
  if (table.kind == TableKind::Collect)
    return std::nullopt;
  if (table.reducesParts() && table.kind != TableKind::PartModel)
    return std::pair(table.reduced(), shardOf(table.reduced()).like);
  const Place &place = packed.isMoving() ? packed : own;
  if (!own.isOfShards() || own.from == Distribution::StateBlocks ||
      (packed.from.isShards() && packed.to.isShards() && packed.isMoving()))
    return std::nullopt;
  return std::pair(place, shardOf(place).like);
}

std::vector<int64_t> TableBuilder::blocks() {
  int64_t segment = table.from.segment;
  std::vector<int64_t> result;
  if (table.kind == TableKind::BlockChunks)
    result = map.computed(segment, position);
  else if (table.kind == TableKind::Collect || table.kind == TableKind::PartModel)
    result = map.held(shardsOfModel(), position);
  else if (table.reducesParts()) // a rank may have no elements of a line
    result = map.held(segment, shardOf(table.reduced()));
  else if (packed.isMoving())
    result = map.standing(packed, position);
  else
    result = map.held(own, position);
  for (int64_t &index : result)
    index = map.block(segment, index);
  return result;
}

RankTable TableBuilder::rows(size_t expected) {
  RankTable result;
  if (table.isOverShards()) {
    result.chunks.reserve(expected);
    if (table.reducesParts())
      partLines(result.chunks);
    else if (table.reduces())
      wholeLines(result.chunks);
    else
      shardChunks(result.chunks);
    if (table.leadsToLines())
      findLines(result.chunks);
  } else if (table.kind == TableKind::BlockChunks) {
    blockChunks(result);
  } else if (table.kind == TableKind::Copy) {
    result.copies.reserve(expected);
    copies(result.copies);
  } else if (table.kind == TableKind::Sum) {
    sums(result);
  } else if (table.kind == TableKind::Collect) {
    collects(result.copies);
  }
  // Memos count the rows of the tables that they keep, so memory without rows is given back.
  if (result.chunks.capacity() / 2 > result.chunks.size())
    result.chunks.shrink_to_fit();
  if (result.copies.capacity() / 2 > result.copies.size())
    result.copies.shrink_to_fit();
  return result;
}

void TableBuilder::shardChunks(std::vector<Chunk> &chunks) {
  // Without staged operands `staged` is not read and 0. Otherwise -1 means that this replica does not send.
  int64_t absent = table.to == table.from ? 0 : -1;
  RowMerger rows(
      map.plan().chunkElements,
      [&](const RowPiece &p) {
        chunks.push_back({0, p.block, p.row, p.col, p.rows, p.cols, p.first,
                          rowStride(p, p.firstStride), p.hasSecond ? p.second : absent,
                          p.hasSecond ? rowStride(p, p.secondStride) : 0});
      },
      table.hasRectangles());
  Borders borders(map, table.to, position);
  forStaged([&](int64_t number, int64_t block, const Rect &rect, int64_t staged, int64_t stride) {
    RowPiece piece = pieceOf(number, block, rect, rect.offset, rect.stride);
    if (staged >= 0) {
      setSecond(piece, staged, stride);
      if (borders.at(staged))
        rows.flush();
    }
    rows.add(piece);
  });
  rows.flush();
}

void TableBuilder::wholeLines(std::vector<Chunk> &chunks) {
  bool ofRows = table.kind == TableKind::WholeRows;
  int64_t absent = table.to == table.from ? 0 : -1, longest = map.plan().chunkElements;
  forStaged([&](int64_t number, int64_t block, const Rect &rect, int64_t staged, int64_t stride) {
    if (rect.rows <= 0 || rect.cols <= 0)
      return;
    int64_t lines = ofRows ? rect.rows : rect.cols;
    int64_t step = ofRows
                       ? std::max(kWholeRows, longest / rect.cols)
                       : std::max<int64_t>(1, longest / rect.rows / kWholeColumns) * kWholeColumns;
    for (int64_t first = 0; first < lines; first += step) {
      Rect part = rect;
      (ofRows ? part.row : part.col) += first;
      (ofRows ? part.rows : part.cols) = std::min(step, lines - first);
      part.offset += first * (ofRows ? rect.stride : 1);
      RowPiece piece = pieceOf(number, block, part, part.offset, part.stride);
      bool isStaged = staged >= 0;
      chunks.push_back({0, piece.block, piece.row, piece.col, piece.rows, piece.cols, piece.first,
                        rowStride(piece, piece.firstStride),
                        isStaged ? staged + first * (ofRows ? stride : 1) : absent,
                        isStaged ? rowStride(piece, stride) : 0});
    }
  });
}

void TableBuilder::findLines(std::vector<Chunk> &chunks) {
  std::vector<int64_t> blocks = this->blocks();
  for (ValueKind kind : kLines) {
    Place place = table.line(kind);
    const ShardRects &lines = shardOf(place);
    std::vector<int64_t> shifts = map.shifts(place, position),
                         held = map.held(place.segment, lines);
    std::map<int64_t, int64_t> shiftOf; // by block in the group
    for (size_t i = 0; i < held.size(); ++i)
      shiftOf.emplace(map.block(place.segment, held[i]), shifts[i]);
    for (Chunk &chunk : chunks) {
      int64_t block = blocks[static_cast<size_t>(chunk.block)];
      int64_t atRow = kind.rows == 1 ? 0 : row + chunk.row;
      int64_t atCol = kind.cols == 1 ? 0 : col + chunk.col;
      auto shift = shiftOf.find(block);
      if (shift == shiftOf.end())
        continue;
      for (const Rect &rect : lines.of(block % perParameter)) {
        if (atRow < rect.row || rect.row + rect.rows <= atRow || atCol < rect.col ||
            rect.col + rect.cols <= atCol)
          continue;
        int64_t first =
            shift->second + rect.offset + (atRow - rect.row) * rect.stride + atCol - rect.col;
        if (kind == ValueKind::Rows) {
          chunk.perRow = first;
          chunk.perRowStride = rect.stride;
        } else {
          (kind == ValueKind::Cols ? chunk.perColumn : chunk.perBlock) = first;
        }
      }
    }
  }
}

void TableBuilder::blockChunks(RankTable &out) {
  out.blocks = map.computedCount(table.from.segment, position);
  if (view.rows == 0 || view.cols == 0)
    return;
  int64_t step = std::max<int64_t>(1, map.plan().chunkElements / view.cols);
  out.chunks.reserve(static_cast<size_t>(out.blocks * ((view.rows + step - 1) / step)));
  for (int64_t slot = 0; slot < out.blocks; ++slot)
    for (int64_t first = 0; first < view.rows; first += step)
      out.chunks.push_back({0, slot, first, 0, std::min(step, view.rows - first), view.cols, 0, 0,
                            (slot * view.rows + first) * view.cols, view.cols,
                            slot * view.rows + first, 1, slot * view.cols, slot});
}

void TableBuilder::copies(std::vector<CopyRow> &out) {
  bool fromFirst = true; // whether the first memory of a piece is the source
  RowMerger rows(map.plan().chunkElements, [&](const RowPiece &p) {
    CopyRow row{p.block,
                p.rows,
                p.cols,
                p.first,
                rowStride(p, p.firstStride),
                p.second,
                rowStride(p, p.secondStride)};
    if (!fromFirst) {
      std::swap(row.source, row.target);
      std::swap(row.sourceStride, row.targetStride);
    }
    out.push_back(row);
  });
  Borders borders(map, packed, position), otherBorders(map, other, position);
  auto add = [&](RowPiece piece, int64_t offset, int64_t stride) {
    setSecond(piece, offset, stride);
    rows.add(piece);
  };
  fromFirst = !table.to.isMoving();
  if (other.isMoving()) { // what a hop received is sent on
    std::map<std::array<int64_t, 3>, int64_t> places;
    map.walk(other, position, [&](int64_t, int64_t block, const Rect &rect, int64_t offset) {
      places[{block, rect.row, rect.col}] = offset;
    });
    map.walk(packed, position,
             [&](int64_t number, int64_t block, const Rect &rect, int64_t offset) {
               if (offset < 0)
                 return;
               int64_t from = places.at({block, rect.row, rect.col});
               if (borders.at(offset) || otherBorders.at(from))
                 rows.flush();
               add(pieceOf(number, block, rect, offset, rect.cols), from, rect.cols);
             });
  } else if (packed.isMoving() && other.isBatch()) {
    // If a hop chooses, some of the blocks that stand there are computed on other ranks.
    std::vector<int64_t> slots = slotsOf(map.standing(packed, position));
    map.walk(packed, position, [&](int64_t k, int64_t block, const Rect &rect, int64_t offset) {
      int64_t slot = slots[static_cast<size_t>(k)];
      if (slot < 0)
        return;
      if (borders.at(offset))
        rows.flush();
      add(pieceOf(k, block, rect, offset, rect.cols), inBlocks(slot, rect), view.cols);
    });
  } else if (packed.isMoving() && other.from == Distribution::Ranges) {
    map.walkSums(
        packed, position,
        [&](int64_t k, int64_t block, const Rect &rect, int64_t offset, int64_t, int64_t own) {
          if (borders.at(offset))
            rows.flush();
          add(pieceOf(k, block, rect, offset, rect.cols), own, rect.cols);
        });
  } else if (packed.isMoving()) {
    fromFirst = table.to.isMoving();
    std::vector<int64_t> shifts = map.shifts(other, position);
    map.walk(packed, position, [&](int64_t k, int64_t block, const Rect &rect, int64_t offset) {
      if (offset < 0)
        return;
      if (borders.at(offset))
        rows.flush();
      add(pieceOf(k, block, rect, shifts[static_cast<size_t>(k)] + rect.offset, rect.stride),
          offset, rect.cols);
    });
  } else if (packed.isResting(Distribution::Blocks) || other.isResting(Distribution::Blocks)) {
    fromFirst = table.from.isOfShards();
    std::vector<int64_t> slots = slotsOf(map.held(own, position)),
                         shifts = map.shifts(own, position);
    forOwnRects([&](int64_t k, int64_t block, const Rect &rect) {
      auto held = static_cast<size_t>(k);
      if (slots[held] >= 0)
        add(pieceOf(k, block, rect, shifts[held] + rect.offset, rect.stride),
            inBlocks(slots[held], rect), view.cols);
    });
  } else {
    fromFirst = true;
    const ShardForm target{table.to.value, table.to.from.whose()};
    const ShardRects &targets = map.shard(groupIndex, target, position);
    const SharedRects &shared =
        map.shared(groupIndex, {table.from.value, table.from.from.whose()}, target.whose, position);
    int64_t here = map.holders(groupIndex, target).of[static_cast<size_t>(position)];
    std::vector<int64_t> shifts = map.shifts(table.from, position),
                         targetShifts = map.shifts(table.to, position),
                         held = map.held(table.to.segment, targets);
    size_t t = 0;
    int64_t number = -1;
    for (int64_t index : map.held(table.from.segment, shared)) {
      int64_t block = map.block(table.from.segment, index);
      int64_t shift = shifts[static_cast<size_t>(++number)];
      while (t < held.size() && held[t] < index)
        ++t;
      if (t == held.size() || held[t] != index)
        continue;
      for (const Rect &rect : shared.of(block % perParameter)) {
        if (shared.classOf(rect) != here)
          continue;
        for (const Rect &in : targets.of(block % perParameter))
          if (in.row <= rect.row && rect.row < in.row + in.rows && in.col <= rect.col &&
              rect.col < in.col + in.cols)
            add(pieceOf(number, block, rect, shift + rect.offset, rect.stride),
                targetShifts[t] + in.offset + (rect.row - in.row) * in.stride + rect.col - in.col,
                in.stride);
      }
    }
  }
  rows.flush();
}

const ShardRects &TableBuilder::shardOf(const Place &place) {
  return map.shard(groupIndex, {place.value, whose(map.plan(), place)}, position);
}

std::vector<int64_t> TableBuilder::slotsOf(const std::vector<int64_t> &indices) {
  std::vector<int64_t> slots;
  std::vector<int64_t> computed = map.computed(table.from.segment, position);
  size_t slot = 0;
  for (int64_t index : indices) {
    while (slot < computed.size() && computed[slot] < index)
      ++slot;
    bool found = slot < computed.size() && computed[slot] == index;
    slots.push_back(found ? static_cast<int64_t>(slot) : -1);
  }
  return slots;
}

} // namespace stepc::plan
