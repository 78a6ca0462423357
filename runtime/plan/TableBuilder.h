//===- TableBuilder.h - The rows of one table on one rank -------*- C++ -*-===//
//
// Internal to the plan.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_TABLEBUILDER_H
#define STEPC_RUNTIME_PLAN_TABLEBUILDER_H

#include "runtime/plan/BlockWalks.h"
#include "runtime/plan/Rows.h"

#include <map>

namespace stepc::plan {

/// A rectangle of the rank's shard, and where it stands in the staged operand.
struct StagedRect {
  geometry::Rect rect;
  int64_t staged, stride; // -1: it has no place there

  /// The part of it from row `row` and column `col` of the block on.
  StagedRect part(int64_t row, int64_t col, int64_t rows, int64_t cols) const {
    StagedRect result = *this;
    int64_t below = row - rect.row, aside = col - rect.col;
    result.rect.row = row;
    result.rect.col = col;
    result.rect.rows = rows;
    result.rect.cols = cols;
    result.rect.offset += below * rect.stride + aside;
    result.staged += staged < 0 ? 0 : below * stride + aside;
    return result;
  }
  int64_t size() const { return rect.rows * rect.cols; }
};

/// Expands a table that has no messages, in the form that ranks have in common (CommonTable).
class TableBuilder {
public:
  TableBuilder(BlockMap &map, const Table &table, int64_t position);

  /// A key that is equal for positions with equal rows. Returns nothing if rows are the position's own.
  std::optional<std::vector<int64_t>> key();
  /// The blocks to which block numbers in the rows refer, as indices in the group.
  std::vector<int64_t> blocks();
  /// If `blocks()` are all blocks that a shard holds: the shard's place, and a position whose shard is
  /// alike. Otherwise nothing.
  std::optional<std::pair<Place, int64_t>> holder();
  /// Builds the rows. Reserves memory for `expected` rows.
  RankTable rows(size_t expected);
  /// The row and the column of a block from which the rows of the table count.
  int64_t row = 0, col = 0;

private:
  void shardChunks(std::vector<Chunk> &chunks);
  /// The rows of WholeRows or WholeColumns, without where their lines are.
  void wholeLines(std::vector<Chunk> &chunks);
  /// The rows of PartRows, PartColumns or PartBlocks, without where their lines are: for all blocks, for a
  /// block, and for some rows (columns) of a block.
  void partLines(std::vector<Chunk> &chunks);
  void partsOfBlock(std::vector<Chunk> &chunks, int64_t number,
                    const std::vector<StagedRect> &rects);
  /// The rows of PartModel, which add up each block's elements that count here.
  void partsOfModel(std::vector<Chunk> &chunks, std::map<int64_t, std::vector<StagedRect>> &rects);
  /// Whether the elements of this position count in numbers of the whole model. Of positions with the same
  /// elements one alone counts them.
  bool countsHere();
  /// Calls visit(number of the held block, block in the group, shares) for each block of which elements count
  /// here. Its elements are added up in so many shares.
  template <typename Visit> void forShares(Visit visit);
  /// The shards of which a table of a number of the whole model adds up elements.
  Place shardsOfModel() const;
  void collects(std::vector<CopyRow> &out);
  void partsOfLine(std::vector<Chunk> &chunks, int64_t number, const geometry::Rect &line,
                   const std::vector<StagedRect> &rects);
  /// Adds the rows that add up a block in `sums` shares. The rank has these rectangles of the block.
  void shareOut(std::vector<Chunk> &chunks, int64_t number, int64_t sums,
                const std::vector<StagedRect> &rects);
  /// Adds the rows of some sums. Their part has this number.
  void addSums(std::vector<Chunk> &chunks, int64_t number, int64_t part,
               const std::vector<StagedRect> &of);
  /// Calls visit(number, block, rectangle, staged element or -1, staged stride) for what a stage over shards
  /// visits. A staged element of a moving value may begin a peer's part.
  template <typename Visit> void forStaged(Visit visit);
  /// Sets where the values per row, column and block are to which rows lead. Chunks refer to blocks by
  /// number.
  void findLines(std::vector<Chunk> &chunks);
  void blockChunks(RankTable &out);
  void copies(std::vector<CopyRow> &out);
  void sums(RankTable &out);
  void sumsOfParts(RankTable &out);

  /// The stride of a piece. For a single row it is the row's length, because there is no next row.
  static int64_t rowStride(const RowPiece &piece, int64_t stride) {
    return piece.rows == 1 ? piece.cols : stride;
  }
  static void setSecond(RowPiece &piece, int64_t offset, int64_t stride) {
    piece.second = offset;
    piece.secondStride = stride;
    piece.hasSecond = true;
  }
  /// A rectangle as it stands in one memory. `number` is the block's index in `blocks()`.
  RowPiece pieceOf(int64_t number, int64_t block, const geometry::Rect &rect, int64_t first,
                   int64_t stride) const {
    return {block / perParameter,
            number,
            rect.row - row,
            rect.col - col,
            rect.rows,
            rect.cols,
            first,
            stride,
            0,
            0,
            false};
  }
  /// The element among computed blocks where a rectangle of the rank's own shard begins: in the slab of its
  /// block, or in the whole block.
  int64_t inBlocks(int64_t slot, const geometry::Rect &rect) {
    int64_t top = rect.row, left = rect.col;
    if (!group.slabs.factors.empty() && own.isOfShards() && own.value == ValueKind::Full) {
      const ShardRects &shard = shardOf(own);
      (group.slabs.axis == Division::Rows ? top : left) =
          shard.inSlab[static_cast<size_t>(&rect - shard.rects.data())];
    }
    return (slot * view.rows + top) * view.cols + left;
  }

  const ShardRects &shardOf(const Place &place);
  /// The slot of each block that is computed here, or -1. `indices` are indices in the segment, ascending.
  std::vector<int64_t> slotsOf(const std::vector<int64_t> &indices);
  /// Calls visit(number of the held block, block in the group, rectangle) in segment order.
  template <typename Visit> void forOwnRects(Visit visit) {
    const ShardRects &shard = shardOf(own);
    int64_t k = 0;
    for (int64_t index : map.held(own, position)) {
      int64_t block = map.block(table.from.segment, index);
      for (const geometry::Rect &rect : shard.of(block % perParameter))
        visit(k, block, rect);
      ++k;
    }
  }

  BlockMap &map;
  const Table &table;
  int64_t position;
  int64_t groupIndex;
  const Group &group;
  const KindView &view;
  const Place &own;            // the side of the table that is shards
  const Place &packed, &other; // the moving side of the table, and the other side
  int64_t perParameter;
};

template <typename Visit> void TableBuilder::forShares(Visit visit) {
  if (!countsHere())
    return;
  Place shards = shardsOfModel();
  const ShardRects &shard = shardOf(shards);
  int64_t number = 0;
  for (int64_t index : map.held(shards, position)) {
    int64_t block = map.block(table.from.segment, index), elements = 0;
    for (const geometry::Rect &rect : shard.of(block % perParameter))
      elements += rect.rows * rect.cols;
    if (elements > 0)
      visit(number, block, geometry::sumsFor(elements));
    ++number;
  }
}

template <typename Visit> void TableBuilder::forStaged(Visit visit) {
  if (table.to.isMoving()) {
    map.walk(table.to, position,
             [&](int64_t number, int64_t block, const geometry::Rect &rect, int64_t offset) {
               visit(number, block, rect, offset, rect.cols);
             });
  } else if (table.to.isResting(Distribution::Blocks)) {
    std::vector<int64_t> slots = slotsOf(map.held(own, position));
    forOwnRects([&](int64_t k, int64_t block, const geometry::Rect &rect) {
      int64_t slot = slots[static_cast<size_t>(k)];
      visit(k, block, rect, slot < 0 ? -1 : inBlocks(slot, rect), view.cols);
    });
  } else { // `to` is a copy of the shards, or nothing is staged
    std::vector<int64_t> shifts = map.shifts(table.to, position);
    forOwnRects([&](int64_t k, int64_t block, const geometry::Rect &rect) {
      int64_t shift = shifts[static_cast<size_t>(k)];
      visit(k, block, rect, table.to == table.from ? -1 : shift + rect.offset, rect.stride);
    });
  }
}

} // namespace stepc::plan

#endif
