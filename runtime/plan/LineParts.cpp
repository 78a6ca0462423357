//===- LineParts.cpp - The rows that add up what a rank has of lines ------===//

#include "runtime/plan/TableBuilder.h"

#include <algorithm>
#include <array>
#include <map>

namespace stepc::plan {

using geometry::Rect;

namespace {

/// Calls visit(rectangle) for elements [first, last) of a rectangle, row by row: the end of a row, whole
/// rows, and the begin of a row.
template <typename Visit>
void eachOf(const StagedRect &of, int64_t first, int64_t last, Visit visit) {
  int64_t cols = of.rect.cols;
  while (first < last) {
    int64_t row = first / cols, col = first % cols;
    bool isWhole = col == 0 && last - first >= cols;
    int64_t rows = isWhole ? (last - first) / cols : 1;
    int64_t taken = isWhole ? cols : std::min(cols - col, last - first);
    visit(of.part(of.rect.row + row, of.rect.col + col, rows, taken));
    first += rows * taken;
  }
}

/// Cuts a line, which is rows or columns of a block, where rectangles begin or end. Calls visit(begin, end,
/// rectangles) for each part of it, with the rectangles that have elements of it.
template <typename Visit>
void eachPartOf(const Rect &line, bool isRows, const std::vector<StagedRect> &rects, Visit visit) {
  auto beginOf = [&](const Rect &rect) { return isRows ? rect.row : rect.col; };
  auto endOf = [&](const Rect &rect) { return beginOf(rect) + (isRows ? rect.rows : rect.cols); };
  std::vector<int64_t> cuts{beginOf(line), endOf(line)};
  for (const StagedRect &each : rects)
    for (int64_t cut : {beginOf(each.rect), endOf(each.rect)})
      if (beginOf(line) < cut && cut < endOf(line))
        cuts.push_back(cut);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (size_t i = 1; i < cuts.size(); ++i) {
    std::vector<StagedRect> covering;
    for (const StagedRect &each : rects)
      if (beginOf(each.rect) <= cuts[i - 1] && cuts[i] <= endOf(each.rect))
        covering.push_back(each);
    visit(cuts[i - 1], cuts[i], covering);
  }
}

} // namespace

void TableBuilder::addSums(std::vector<Chunk> &chunks, int64_t number, int64_t part,
                           const std::vector<StagedRect> &of) {
  int64_t absent = table.to == table.from ? 0 : -1;
  size_t first = chunks.size();
  for (const StagedRect &each : of) {
    RowPiece piece = pieceOf(number, 0, each.rect, each.rect.offset, each.rect.stride);
    bool isStaged = each.staged >= 0;
    Chunk &chunk = chunks.emplace_back();
    chunk = {0,
             piece.block,
             piece.row,
             piece.col,
             piece.rows,
             piece.cols,
             piece.first,
             rowStride(piece, piece.firstStride),
             isStaged ? each.staged : absent,
             isStaged ? rowStride(piece, each.stride) : 0};
    chunk.part = chunks.size() - 1 == first ? part : -1;
  }
  chunks[first].more = static_cast<int64_t>(chunks.size() - first) - 1;
}

void TableBuilder::partLines(std::vector<Chunk> &chunks) {
  std::vector<int64_t> blocks = this->blocks();
  std::map<int64_t, std::vector<StagedRect>> rects; // by block in the group
  forStaged([&](int64_t, int64_t block, const Rect &rect, int64_t staged, int64_t stride) {
    if (rect.rows > 0 && rect.cols > 0)
      rects[block].push_back({rect, staged, stride});
  });
  if (table.kind == TableKind::PartModel)
    return partsOfModel(chunks, rects);
  for (size_t number = 0; number < blocks.size(); ++number) {
    auto index = static_cast<int64_t>(number);
    const std::vector<StagedRect> &of = rects[blocks[number]];
    if (table.reducesTo() == ValueKind::One)
      partsOfBlock(chunks, index, of);
    else
      for (const Rect &line : shardOf(table.reduced()).of(blocks[number] % perParameter))
        partsOfLine(chunks, index, line, of);
  }
}

bool TableBuilder::countsHere() {
  const Mesh &mesh = map.plan().meshes[static_cast<size_t>(group.mesh)];
  std::vector<bool> copies =
      geometry::replicatedAxes(group, ValueKind::Full, shardsOfModel().from.whose());
  std::vector<int64_t> coordinates = geometry::coordinates(mesh, position);
  for (size_t axis = 0; axis < copies.size(); ++axis)
    if (copies[axis] && coordinates[axis] != 0)
      return false;
  return true;
}

Place TableBuilder::shardsOfModel() const {
  const Plan &plan = map.plan();
  return Place::resting(table.from.segment, ValueKind::Full,
                        modelShards(group, plan.rules[static_cast<size_t>(group.rule)],
                                    plan.meshes[static_cast<size_t>(group.mesh)]));
}

void TableBuilder::partsOfModel(std::vector<Chunk> &chunks,
                                std::map<int64_t, std::vector<StagedRect>> &rects) {
  int64_t share = 0;
  forShares([&](int64_t number, int64_t block, int64_t shares) {
    size_t first = chunks.size();
    shareOut(chunks, number, shares, rects[block]);
    for (; first < chunks.size(); ++first) {
      Chunk &chunk = chunks[first];
      chunk.perBlock = share + std::max<int64_t>(chunk.part, 0);
      for (int64_t more = chunk.more; more > 0; --more)
        chunks[++first].perBlock = chunk.perBlock;
      chunk.part = 0;
    }
    share += shares;
  });
}

void TableBuilder::collects(std::vector<CopyRow> &out) {
  forShares([&](int64_t number, int64_t, int64_t shares) {
    for (; shares > 0; --shares)
      out.push_back({number, 1, 1, static_cast<int64_t>(out.size()), 1, 0, 1});
  });
}

void TableBuilder::partsOfBlock(std::vector<Chunk> &chunks, int64_t number,
                                const std::vector<StagedRect> &rects) {
  const Mesh &mesh = map.plan().meshes[static_cast<size_t>(group.mesh)];
  shareOut(chunks, number, geometry::sumsPerValue(group, mesh, ValueKind::One), rects);
}

void TableBuilder::shareOut(std::vector<Chunk> &chunks, int64_t number, int64_t sums,
                            const std::vector<StagedRect> &rects) {
  int64_t elements = 0;
  for (const StagedRect &each : rects)
    elements += each.size();
  for (int64_t part = 0; part < sums; ++part) {
    int64_t begin = elements * part / sums, end = elements * (part + 1) / sums, before = 0;
    std::vector<StagedRect> share;
    for (const StagedRect &each : rects) {
      eachOf(each, std::max<int64_t>(begin - before, 0), std::min(end - before, each.size()),
             [&](const StagedRect &some) { share.push_back(some); });
      before += each.size();
    }
    if (share.empty())
      share.push_back({{0, row, col, 0, 0, 0, 0}, -1, 0});
    addSums(chunks, number, part, share);
  }
}

void TableBuilder::partsOfLine(std::vector<Chunk> &chunks, int64_t number, const Rect &line,
                               const std::vector<StagedRect> &rects) {
  bool isRows = table.reducesTo() == ValueKind::Rows;
  eachPartOf(line, isRows, rects,
             [&](int64_t begin, int64_t end, const std::vector<StagedRect> &covering) {
               int64_t across = 0; // elements of each row (column)
               for (const StagedRect &each : covering)
                 across += isRows ? each.rect.cols : each.rect.rows;
               int64_t most = map.plan().chunkElements / std::max<int64_t>(across, 1);
               int64_t step = isRows ? std::max(kWholeRows, most)
                                     : std::max<int64_t>(1, most / kWholeColumns) * kWholeColumns;
               for (int64_t at = begin; at < end; at += step) {
                 int64_t length = std::min(step, end - at);
                 std::vector<StagedRect> strip;
                 for (const StagedRect &each : covering)
                   strip.push_back(isRows ? each.part(at, each.rect.col, length, each.rect.cols)
                                          : each.part(each.rect.row, at, each.rect.rows, length));
                 if (strip.empty())
                   strip.push_back({{0, isRows ? at : row, isRows ? col : at, isRows ? length : 0,
                                     isRows ? 0 : length, 0, 0},
                                    -1,
                                    0});
                 addSums(chunks, number, 0, strip);
               }
             });
}

} // namespace stepc::plan
