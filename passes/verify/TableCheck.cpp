//===- TableCheck.cpp - One table on one rank ------------------------------===//

#include "passes/verify/TableCheck.h"

#include <algorithm>

namespace stepc::verify {

using plan::Chunk;
using plan::CopyRow;
using plan::Distribution;
using plan::Place;
using plan::TableKind;
using plan::ValueKind;

TableCheck::TableCheck(GroundTruth &truth, const TableUse &use, int64_t rank)
    : truth(truth), use(use), table(truth.plan().tables[use.table]), rank(rank),
      groupIndex(truth.groupOf(table.from.segment)), position(truth.position(groupIndex, rank)),
      group(truth.plan().groups[groupIndex]), segment(truth.segment(table.from.segment)),
      perParameter(truth.blocksPerParameter(groupIndex)),
      view(computedOf(group, table.from.value)) {}

bool TableCheck::fail(std::string message) {
  error = std::move(message) + " on rank " + std::to_string(rank);
  return false;
}

bool TableCheck::run(const plan::RankTable &rows) {
  if (position < 0) {
    if (rows.chunks.empty() && rows.copies.empty() && rows.blocks == 0)
      return true;
    return fail("expected no rows outside of the group's mesh, found some");
  }
  switch (table.kind) {
  case TableKind::ShardChunks:
  case TableKind::LineChunks:
  case TableKind::RectangleChunks:
    return shardChunks(rows.chunks);
  case TableKind::WholeRows:
  case TableKind::WholeColumns:
    return shardChunks(rows.chunks) && wholeLines(rows.chunks);
  case TableKind::PartRows:
  case TableKind::PartColumns:
  case TableKind::PartBlocks:
    return partLines(rows.chunks);
  case TableKind::PartModel:
    return partsOfModel(rows.chunks);
  case TableKind::Collect:
    return collects(rows.copies);
  case TableKind::BlockChunks:
    return blockChunks(rows);
  case TableKind::Copy:
    return copyRows(rows.copies);
  case TableKind::Sum:
    return sumRows(rows);
  case TableKind::Message:
    break;
  }
  return fail("expected a table of a stage or copy, found messages");
}

bool TableCheck::isParameter(int64_t parameter) const {
  const auto &all = truth.plan().parameters;
  if (parameter < 0 || parameter >= int64_t(all.size()))
    return false;
  auto index = size_t(all[parameter].indexInGroup);
  return index < group.parameters.size() && group.parameters[index] == parameter;
}

void TableCheck::findSlots() {
  computed = truth.computed(table.from.segment, position);
  for (int64_t block : computed)
    slots.push_back(segment.indexOf(block));
}

/// The index of `value` in a list of ascending numbers, or -1. `hint` is the index of the last value found.
static int64_t find(const std::vector<int64_t> &ascending, int64_t value, size_t &hint) {
  for (size_t next = hint; next < std::min(hint + 2, ascending.size()); ++next)
    if (ascending[next] == value)
      return int64_t(hint = next);
  auto found = std::lower_bound(ascending.begin(), ascending.end(), value);
  if (found == ascending.end() || *found != value)
    return -1;
  return int64_t(hint = size_t(found - ascending.begin()));
}

int64_t TableCheck::slotOf(int64_t block) { return find(slots, segment.indexOf(block), lastSlot); }

Cut TableCheck::inSlab(Cut cut) const {
  int64_t &begin = group.slabs.axis == plan::Division::Rows ? cut.row : cut.col;
  const std::vector<Span> &runs = truth.slabOf(groupIndex, position, cut.block % perParameter);
  auto run = std::ranges::find_if(runs, [&](const Span &span) {
    return span.global <= begin && begin < span.global + span.length;
  });
  begin = run == runs.end() ? -1 : run->local + begin - run->global; // not in the slab
  return cut;
}

bool TableCheck::standsInSlot(const Cut &cut, int64_t block) {
  Cut at = meetsSlabs() ? inSlab(cut) : cut;
  return standsAt(cut, block, at.row, at.col);
}

bool TableCheck::standsAt(const Cut &cut, int64_t block, int64_t row, int64_t col) {
  int64_t slot = slotOf(block);
  Piece piece{0, block, cut.row, cut.col, cut.rows, cut.cols};
  if (slot < 0)
    return fail("expected a computed block, found " + truth.describe(groupIndex, piece) +
                ", which another rank computes,");
  int64_t place = (slot * view.rows + row) * view.cols + col;
  if (row >= 0 && col >= 0 && cut.second == place &&
      (cut.rows == 1 || cut.secondStride == view.cols))
    return true;
  return fail("expected " + truth.describe(groupIndex, piece) + " at element " +
              std::to_string(place) + " of the computed blocks, found element " +
              std::to_string(cut.second));
}

void TableCheck::pack(const Cut &cut, int64_t block, Pieces &out) {
  if (cut.rows == 1 || cut.secondStride == cut.cols) {
    out.push_back({cut.second, block, cut.row, cut.col, cut.rows, cut.cols});
    return;
  }
  for (int64_t row = 0; row < cut.rows; ++row)
    out.push_back(
        {cut.second + row * cut.secondStride, block, cut.row + row, cut.col, 1, cut.cols});
}

bool TableCheck::unbroken() {
  sortByStart(packed);
  std::optional<Break> found = findBreak(packed);
  if (!found)
    return true;
  return fail("expected a packed buffer that holds every element once, found element " +
              std::to_string(found->position) + (found->doubled ? " twice" : " missing"));
}

bool TableCheck::coversOnce(const std::vector<int64_t> &expected, const MemoryMap *shard,
                            const char *what) {
  auto elementsOf = [&](size_t i) {
    return shard ? shard->blockElements(segment.blocks[expected[i]] % perParameter)
                 : view.rows * view.cols;
  };
  // Mostly every block is one piece, and pieces come in the order of the blocks.
  auto isWhole = [&](size_t i) {
    return covered[i].block == segment.blocks[expected[i]] && covered[i].size() == elementsOf(i);
  };
  size_t whole = 0;
  while (covered.size() == expected.size() && whole < covered.size() && isWhole(whole))
    ++whole;
  if (whole == covered.size() && whole == expected.size()) {
    covered.clear();
    return true;
  }
  // A counting sort by block. Pieces of a block tile it if they do not overlap and have as many elements as
  // the block.
  std::vector<int64_t> sums(expected.size(), 0), first(expected.size() + 1, 0), where;
  size_t hint = 0;
  where.reserve(covered.size());
  auto refuse = [&](int64_t block, int64_t found, int64_t of) {
    return fail(std::string("expected every element of ") + what + " once, found " +
                std::to_string(found) + " of " + std::to_string(of) + " elements of " +
                truth.describeBlock(groupIndex, block));
  };
  for (const Piece &piece : covered) {
    int64_t index = find(expected, segment.indexOf(piece.block), hint);
    if (index < 0)
      return refuse(piece.block, piece.size(), 0);
    where.push_back(index);
    sums[index] += piece.size();
    ++first[index + 1];
  }
  for (size_t i = 0; i < expected.size(); ++i)
    first[i + 1] += first[i];
  std::vector<Piece> byBlock(covered.size());
  std::vector<int64_t> next = first;
  for (size_t i = 0; i < covered.size(); ++i)
    byBlock[next[where[i]]++] = covered[i];
  covered.clear();
  for (size_t i = 0; i < expected.size(); ++i) {
    std::span<Piece> pieces(byBlock.data() + first[i], size_t(first[i + 1] - first[i]));
    if (auto overlap = findOverlap(pieces))
      return fail(std::string("expected every element of ") + what + " once, found " +
                  truth.describe(groupIndex, overlap->first) + " and again " +
                  truth.describe(groupIndex, overlap->second));
    if (int64_t elements = elementsOf(i); sums[i] != elements)
      return refuse(segment.blocks[expected[i]], sums[i], elements);
  }
  return true;
}

bool TableCheck::coversShards(const MemoryMap &map) {
  return coversOnce(truth.held(table.from.segment, map), &map, "the rank's shards");
}

const MemoryMap &TableCheck::shardOf(const Place &place) {
  return truth.shard(groupIndex, place.value, position, place.from.whose());
}

const MemoryMap &TableCheck::boundOf(const Place &place, int64_t indexInGroup) {
  if (place.from != Distribution::StateBlocks)
    return shardOf(place);
  if (blockState.first != indexInGroup) {
    plan::View block = viewOf(group, place.value);
    blockState = {indexInGroup,
                  MemoryMap::ofBlocks(block.rows, block.cols,
                                      truth.computedOf(groupIndex, position, indexInGroup))};
  }
  return blockState.second;
}

const CopyMap &TableCheck::copyOf(const Place &place) {
  std::unique_ptr<CopyMap> &map = &place == &table.from ? fromCopy : toCopy;
  if (!map)
    map = makeCopy(place);
  return *map;
}

std::unique_ptr<CopyMap> TableCheck::makeCopy(const Place &place) {
  std::vector<int64_t> held = truth.held(place.segment, shardOf(place));
  for (int64_t &index : held)
    index = segment.blocks[index];
  return std::make_unique<CopyMap>(shardOf(place), std::move(held), perParameter);
}

bool TableCheck::coversBlocks() {
  // Shards must not fill the elements after a shorter slab, because these elements must stay zero.
  bool isPadded = table.from.isOfShards() && endsInZeros(group);
  return coversOnce(slots, isPadded ? &truth.slabs(groupIndex, position) : nullptr,
                    "the rank's computed blocks");
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

bool TableCheck::chunkPiece(const Cut &cut, int64_t parameter, bool hasPlace) {
  int64_t block = truth.plan().parameters[parameter].indexInGroup * perParameter + cut.block;
  Piece piece{0, block, cut.row, cut.col, cut.rows, cut.cols};
  if (!segment.has(block))
    return fail("expected blocks of segment @" + truth.plan().segments[table.from.segment].name +
                ", found " + truth.describe(groupIndex, piece));
  cover(cut, block);
  if (table.to == table.from)
    return true; // nothing is staged
  if (table.to.isOfShards() && hasPlace)
    return true; // cutChunks compares it with its copy
  if (!hasPlace)
    return (!use.reads && !table.to.isOfShards()) ||
           fail("expected a place in the staged operand, found none for " +
                truth.describe(groupIndex, piece));
  if (table.to.isResting(Distribution::Blocks)) {
    filled.push_back(covered.back());
    return standsInSlot(cut, block);
  }
  pack(cut, block, packed);
  return true;
}

bool TableCheck::isNumbered(const Chunk &chunk) {
  bool ofSlabs = table.kind == TableKind::BlockChunks && !group.slabs.factors.empty();
  plan::ValueKind value = table.from.value;
  bool counts = !value.isLine() && !ofSlabs;
  int64_t cols = counts ? viewOf(group, value).cols : 0, first = 0;
  if (counts)
    first = truth.firstElement(groupIndex, chunk.block, value) + chunk.row * cols + chunk.col;
  return (chunk.element == first && chunk.elementStride == cols) ||
         fail("expected a chunk that begins at element " + std::to_string(first) +
              " of parameter '" + truth.plan().parameters[chunk.parameter].name + "', with rows " +
              std::to_string(cols) + " apart, found element " + std::to_string(chunk.element) +
              " and " + std::to_string(chunk.elementStride));
}

bool TableCheck::namesItsPlace(const Chunk &chunk, const MemoryMap &map) {
  if (!isParameter(chunk.parameter))
    return fail("expected parameters of group @" + group.name + ", found parameter " +
                std::to_string(chunk.parameter));
  if (chunk.staged < -1)
    return fail("expected a place in the staged operand or -1, found " +
                std::to_string(chunk.staged));
  const plan::Parameter &parameter = truth.plan().parameters[chunk.parameter];
  std::optional<Cut> at = map.at(chunk.local);
  if (at && chunk.block == parameter.indexInGroup * perParameter + at->block &&
      chunk.row == at->row && chunk.col == at->col)
    return isNumbered(chunk);
  return fail("expected the row that starts at local element " + std::to_string(chunk.local) +
              " of parameter '" + parameter.name + "' to name that element, found row " +
              std::to_string(chunk.row) + " and column " + std::to_string(chunk.col) + " of " +
              truth.describeBlock(groupIndex, chunk.block));
}

/// Whether `next` continues `run` in the shard and in the staged operand.
static bool continues(const Chunk &run, const Chunk &next, bool hasPlace) {
  return run.rows == 1 && next.rows == 1 && next.parameter == run.parameter &&
         next.local == run.local + run.cols &&
         next.staged == (hasPlace ? run.staged + run.cols : run.staged);
}

bool TableCheck::leadsToLines(const Chunk &chunk, const MemoryMap &map) {
  if (!table.hasRectangles())
    return true;
  Piece piece{0, chunk.block, chunk.row, chunk.col, chunk.rows, chunk.cols};
  int64_t within = chunk.block % perParameter;
  bool isRectangle = true;
  isRectangle &= map.cut(
      {chunk.local, chunk.localStride, 0, chunk.cols, chunk.rows, chunk.cols}, [&](const Cut &cut) {
        int64_t below = cut.row - chunk.row, aside = cut.col - chunk.col;
        isRectangle &= cut.block == within && aside >= 0 && aside + cut.cols <= chunk.cols &&
                       cut.second == below * chunk.cols + aside &&
                       (cut.rows == 1 || cut.secondStride == chunk.cols);
      });
  if (!isRectangle)
    return fail(
        "expected a rectangle of one block, because its rows and columns lead to values or are "
        "counted, found " +
        truth.describe(groupIndex, piece));
  for (ValueKind kind : {ValueKind::Rows, ValueKind::Cols, ValueKind::One}) {
    if (!table.leadsTo(kind))
      continue;
    bool ofRows = kind == ValueKind::Rows, ofCols = kind == ValueKind::Cols;
    int64_t first = ofRows ? chunk.perRow : ofCols ? chunk.perColumn : chunk.perBlock;
    std::unique_ptr<CopyMap> &copy = lineCopies[kind];
    if (!copy)
      copy = makeCopy(table.line(kind));
    bool leads = first >= 0;
    auto check = [&](const Cut &cut) {
      int64_t row = ofRows ? chunk.row + cut.second : 0, col = ofCols ? chunk.col + cut.second : 0;
      leads &= cut.block == chunk.block && cut.row == row && cut.col == col;
    };
    leads = leads &&
            copy->cut(ofRows ? Strip{first, chunk.perRowStride, 0, 1, chunk.rows, 1}
                             : Strip{first, 0, 0, 0, 1, ofCols ? chunk.cols : 1},
                      check) &&
            leads;
    if (!leads)
      return fail("expected a way from " + truth.describe(groupIndex, piece) +
                  " to its value per " +
                  (ofRows   ? "row"
                   : ofCols ? "column"
                            : "block") +
                  ", found element " + std::to_string(first) + " of these values");
  }
  return true;
}

bool TableCheck::cutChunks(const std::vector<Chunk> &chunks, const MemoryMap &map) {
  for (size_t i = 0; i < chunks.size();) {
    Chunk run = chunks[i];
    bool hasPlace = table.to != table.from && run.staged >= 0;
    if (!namesItsPlace(run, map) || !leadsToLines(run, map))
      return false;
    // A long shard has many rows. Rows that continue each other are merged and cut once.
    for (++i; i < chunks.size() && continues(run, chunks[i], hasPlace); ++i) {
      if (!namesItsPlace(chunks[i], map) || !leadsToLines(chunks[i], map))
        return false;
      run.cols += chunks[i].cols;
    }
    if (hasPlace)
      fromEnd = std::max(fromEnd, run.staged + (run.rows - 1) * run.stagedStride + run.cols);
    bool fine = true;
    bool inside =
        map.cut({run.local, run.localStride, run.staged, run.stagedStride, run.rows, run.cols},
                [&](const Cut &cut) { fine = fine && chunkPiece(cut, run.parameter, hasPlace); });
    if (!fine)
      return false;
    if (!inside)
      return fail("expected rows inside of the shard of parameter '" +
                  truth.plan().parameters[run.parameter].name + "', found " +
                  std::to_string(run.rows) + " x " + std::to_string(run.cols) +
                  " elements from local element " + std::to_string(run.local) + " of " +
                  std::to_string(map.elements()));
    if (!hasPlace || !table.to.isOfShards())
      continue;
    Pieces own, copy;
    if (!decode(table.from, {run.local, run.localStride, 0, run.cols, run.rows, run.cols},
                run.parameter, own) ||
        !decode(table.to, {run.staged, run.stagedStride, 0, run.cols, run.rows, run.cols},
                run.parameter, copy) ||
        !areEqual(own, copy, run.rows * run.cols))
      return false;
  }
  return true;
}

bool TableCheck::shardChunks(const std::vector<Chunk> &chunks) {
  const MemoryMap &map = shardOf(table.from);
  bool inBlocks = table.to.isResting(Distribution::Blocks);
  if (inBlocks)
    findSlots();
  if (!cutChunks(chunks, map))
    return false;
  if (!coversShards(map))
    return false;
  covered = std::move(filled); // a stage that writes blocks fills them
  if (inBlocks)
    return !use.writes || coversBlocks();
  return unbroken();
}

bool TableCheck::wholeLines(const std::vector<Chunk> &chunks) {
  bool ofRows = table.kind == TableKind::WholeRows;
  Place line = table.line(table.reducesTo());
  const MemoryMap &lines = shardOf(line);
  plan::View block = viewOf(group, ValueKind::Full);
  int64_t reduced = 0, values = 0;
  for (const Chunk &chunk : chunks) {
    if (ofRows ? chunk.cols != block.cols : chunk.rows != block.rows)
      return fail("expected whole " + std::string(ofRows ? "rows" : "columns") +
                  " to be reduced, found " +
                  truth.describe(groupIndex,
                                 {0, chunk.block, chunk.row, chunk.col, chunk.rows, chunk.cols}));
    reduced += ofRows ? chunk.rows : chunk.cols;
    toEnd = std::max(toEnd, ofRows ? chunk.perRow + (chunk.rows - 1) * chunk.perRowStride + 1
                                   : chunk.perColumn + chunk.cols);
  }
  // Rows (columns) of different chunks differ, because no element is in two chunks.
  for (int64_t index : truth.held(line.segment, lines))
    values += lines.blockElements(segment.blocks[index] % perParameter);
  return reduced == values ||
         fail("expected all " + std::to_string(values) + " values per " +
              (ofRows ? "row" : "column") + " to be written, found " + std::to_string(reduced));
}

bool TableCheck::blockChunks(const plan::RankTable &rows) {
  findSlots();
  if (rows.blocks != int64_t(computed.size()))
    return fail("expected " + std::to_string(computed.size()) + " computed blocks, found " +
                std::to_string(rows.blocks));
  for (const Chunk &chunk : rows.chunks) {
    Cut cut{chunk.block, chunk.row,    chunk.col,         chunk.rows,
            chunk.cols,  chunk.staged, chunk.stagedStride};
    Piece piece{0, chunk.block, chunk.row, chunk.col, chunk.rows, chunk.cols};
    bool known = segment.has(chunk.block) && chunk.row >= 0 && chunk.rows > 0 &&
                 chunk.row + chunk.rows <= view.rows && chunk.col == 0 && chunk.cols == view.cols &&
                 group.parameters[chunk.block / perParameter] == chunk.parameter &&
                 slotOf(chunk.block) == chunk.perBlock;
    if (!known)
      return fail("expected whole rows of a computed block of the segment, found slot " +
                  std::to_string(chunk.perBlock) + " with " + truth.describe(groupIndex, piece));
    if (chunk.perRow != chunk.perBlock * view.rows + chunk.row || chunk.perRowStride != 1 ||
        chunk.perColumn != chunk.perBlock * view.cols)
      return fail("expected values per row and column of slot " + std::to_string(chunk.perBlock) +
                  " at the elements that its blocks have, found elements " +
                  std::to_string(chunk.perRow) + " and " + std::to_string(chunk.perColumn));
    if (!isNumbered(chunk))
      return false;
    if (!standsAt(cut, chunk.block, cut.row, cut.col)) // the chunk's rows count in the slab
      return false;
    cover(cut, chunk.block);
  }
  fromEnd = int64_t(computed.size()) * view.rows * view.cols;
  return coversBlocks();
}

} // namespace stepc::verify
