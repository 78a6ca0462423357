//===- TableCopies.cpp - The rows of a copy, and of a relay, on one rank ---===//

#include "passes/verify/TableCheck.h"

#include <algorithm>

namespace stepc::verify {

using plan::CopyRow;
using plan::Distribution;
using plan::Place;

static bool isRange(const Place &place) {
  return place.from == Distribution::Ranges && !place.isMoving();
}

bool TableCheck::decode(const Place &place, const Strip &strip, int64_t parameter, Pieces &out) {
  int64_t index = truth.plan().parameters[parameter].indexInGroup;
  bool fine = true;
  auto visit = [&](const Cut &cut) {
    int64_t block = place.isBound() ? index * perParameter + cut.block : cut.block;
    if (fine && segment.has(block) && block / perParameter == index)
      return pack(place.isOfShards() && meetsSlabs() ? inSlab(cut) : cut, block, out);
    if (fine)
      fail("expected blocks of parameter '" + truth.plan().parameters[parameter].name +
           "' in segment @" + truth.plan().segments[table.from.segment].name + ", found " +
           truth.describeBlock(groupIndex, block));
    fine = false;
  };
  bool inside = place.isBound()      ? boundOf(place, index).cut(strip, visit)
                : place.isOfShards() ? copyOf(place).cut(strip, visit)
                : isRange(place)     ? ranges.cut(strip, visit)
                                     : blocks.cut(strip, visit);
  if (fine && !inside)
    fail("expected rows inside of what the rank holds of parameter '" +
         truth.plan().parameters[parameter].name + "', found " + std::to_string(strip.rows) +
         " x " + std::to_string(strip.cols) + " elements from element " +
         std::to_string(strip.first));
  return fine && inside;
}

bool TableCheck::areEqual(Pieces &read, Pieces &written, int64_t elements) {
  sortByStart(read);
  sortByStart(written);
  Near start;
  auto difference = findDifference(read, 0, written, 0, elements, start);
  return !difference || fail("expected " + truth.describeElement(groupIndex, difference->received) +
                             " to be copied to its place, found " +
                             truth.describeElement(groupIndex, difference->sent));
}

/// Whether `next` goes on where `run` ends, in both memories. Rows that are empty, or larger than any tensor,
/// are not merged, so that sums do not overflow. Each of them is checked alone.
static bool continues(const CopyRow &run, const CopyRow &next) {
  constexpr int64_t kMost = int64_t(1) << 40;
  for (const CopyRow *row : {&run, &next})
    if (row->rows < 1 || row->cols < 1 || row->rows > kMost || row->cols > kMost)
      return false;
  if (next.parameter != run.parameter)
    return false;
  if (run.rows == 1 && next.rows == 1)
    return next.source == run.source + run.cols && next.target == run.target + run.cols;
  return next.cols == run.cols && next.sourceStride == run.sourceStride &&
         next.targetStride == run.targetStride &&
         next.source == run.source + run.rows * run.sourceStride &&
         next.target == run.target + run.rows * run.targetStride;
}

bool TableCheck::copyRows(const std::vector<CopyRow> &rows) {
  // If one side is packed for a move, the other side says which elements it holds.
  bool knowsFrom = !table.from.isMoving(), knowsTo = !table.to.isMoving();
  if (table.from.isBatch() || table.to.isBatch() || isRange(table.from))
    findBlocks();
  for (size_t i = 0; i < rows.size();) {
    CopyRow row = rows[i];
    if (!isParameter(row.parameter))
      return fail("expected parameters of group @" + group.name + ", found parameter " +
                  std::to_string(row.parameter));
    // A long range is cut into many rows. Rows that continue each other are merged and checked once.
    for (++i; i < rows.size() && continues(row, rows[i]); ++i)
      if (row.rows == 1 && rows[i].rows == 1)
        row.cols += rows[i].cols;
      else
        row.rows += rows[i].rows;
    fromEnd = std::max(fromEnd, row.source + (row.rows - 1) * row.sourceStride + row.cols);
    toEnd = std::max(toEnd, row.target + (row.rows - 1) * row.targetStride + row.cols);
    Strip source{row.source, row.sourceStride, 0, row.cols, row.rows, row.cols};
    Strip target{row.target, row.targetStride, 0, row.cols, row.rows, row.cols};
    if (!knowsTo)
      source.second = row.target, source.secondStride = row.targetStride;
    if (!knowsFrom)
      target.second = row.source, target.secondStride = row.sourceStride;
    Pieces read, written;
    if ((knowsFrom && !decode(table.from, source, row.parameter, read)) ||
        (knowsTo && !decode(table.to, target, row.parameter, written)) ||
        (knowsFrom && knowsTo && !areEqual(read, written, row.rows * row.cols)))
      return false;
    if (!knowsFrom || !knowsTo)
      packed.insert(packed.end(), (knowsTo ? written : read).begin(),
                    (knowsTo ? written : read).end());
    covered.insert(covered.end(), written.begin(), written.end());
  }
  // Each element of the target is filled once. An element of the source may be read for several receivers.
  bool isShard = table.to.isOfShards() && table.to.from != Distribution::StateBlocks;
  if (knowsTo && !(isShard ? coversShards(shardOf(table.to)) : coversBlocks()))
    return false;
  // If all ranks received the blocks and the next hop chose owners, each owner reads only its own blocks.
  bool chooses = table.from.isMoving() && table.to.isResting(Distribution::Blocks) &&
                 table.from.to != table.to.from;
  if (!chooses)
    return unbroken();
  sortByStart(packed);
  return true;
}

void TableCheck::findBlocks() {
  findSlots();
  blocks = MemoryMap::ofBlocks(view.rows, view.cols, computed);
  if (isRange(table.from) || isRange(table.to))
    ranges = truth.rangesOf(table.from.segment, position, view);
}

bool TableCheck::fillsRange(Pieces &filled) {
  sortByStart(filled);
  int64_t end = filled.empty() ? 0 : filled.back().start + filled.back().size();
  std::optional<Break> found = findBreak(filled);
  if (!found && end == ranges.elements())
    return true;
  return fail("expected the " + std::to_string(ranges.elements()) +
              " sums of the rank's range once each, found " +
              (found ? "element " + std::to_string(found->position) +
                           (found->doubled ? " twice" : " missing")
                     : std::to_string(end)));
}

bool TableCheck::sumRows(const plan::RankTable &rows) {
  bool ofParts = table.from.from == Distribution::Parts;
  int64_t count = table.from.from == Distribution::LineParts
                      ? truth.lineParts(groupIndex, table.from.value)
                      : truth.contributions(groupIndex);
  Pieces filled;
  if (ofParts)
    findBlocks();
  for (const plan::SumRow &row : rows.sums) {
    if (!isParameter(row.parameter))
      return fail("expected parameters of group @" + group.name + ", found parameter " +
                  std::to_string(row.parameter));
    toEnd = std::max(toEnd, row.target + (row.rows - 1) * row.targetStride + row.cols);
    Pieces written;
    if (!decode(table.to,
                {row.target, row.targetStride, row.source, row.sourceStride, row.rows, row.cols},
                row.parameter, written))
      return false;
    bool isFull = true; // whether the row adds up all contributions
    for (const Piece &piece : written) {
      count = ofParts ? truth.partsOf(groupIndex, position, piece.block) : count;
      isFull = isFull && row.count == count;
    }
    if (!isFull || row.list < 0 || row.list + count > int64_t(rows.lists.size()))
      return fail("expected the " + std::to_string(count) + " contributions to a sum, found " +
                  std::to_string(row.count) + " from place " + std::to_string(row.list) + " of " +
                  std::to_string(rows.lists.size()));
    if (!ofParts)
      covered.insert(covered.end(), written.begin(), written.end());
    for (int64_t i = 0; ofParts && i < row.rows; ++i)
      filled.push_back({row.target + i * row.targetStride, 0, 0, 0, 1, row.cols});
    // All contributions to each element are read, at the places that the list gives.
    for (int64_t i = 0; i < count; ++i)
      for (Piece piece : written) {
        piece.start += rows.lists[row.list + i];
        packed.push_back(piece);
      }
  }
  return (ofParts ? fillsRange(filled) : coversShards(shardOf(table.to))) && unbroken();
}

bool TableCheck::runRelay(const plan::RankTable &rows, std::span<const Piece> arrived) {
  for (const CopyRow &row : rows.copies) {
    if (position < 0 || !isParameter(row.parameter))
      return fail("expected parameters of group @" + group.name + " that the rank has part in, " +
                  "found parameter " + std::to_string(row.parameter));
    size_t first = packed.size();
    for (int64_t i = 0; i < row.rows; ++i)
      appendRange(arrived, row.source + i * row.sourceStride, row.cols,
                  row.target + i * row.targetStride, packed);
    for (; first < packed.size(); ++first)
      if (int64_t block = packed[first].block;
          !segment.has(block) || group.parameters[block / perParameter] != row.parameter)
        return fail("expected blocks of parameter '" + truth.plan().parameters[row.parameter].name +
                    "' in segment @" + truth.plan().segments[table.from.segment].name + ", found " +
                    truth.describeBlock(groupIndex, block));
  }
  return unbroken();
}

} // namespace stepc::verify
