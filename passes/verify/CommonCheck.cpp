//===- CommonCheck.cpp - One table on ranks that have it in common ---------===//

#include "passes/verify/CommonCheck.h"

namespace stepc::verify {

using plan::CommonTable;
using plan::Distribution;
using plan::Place;

bool CommonCheck::canResolve(int64_t index, int64_t rank, const CommonTable &rows) {
  if (!rows.blocks)
    return true;
  int64_t of = truth.groupOf(truth.plan().tables[index].from.segment);
  int64_t blocks = blockCountOf(truth.plan().groups[of]);
  auto isBlock = [&](int64_t block) { return block >= 0 && block < blocks; };
  auto isNumber = [&](int64_t number) {
    return number >= 0 && number < int64_t(rows.blocks->size());
  };
  if (std::ranges::all_of(*rows.blocks, isBlock) &&
      std::ranges::all_of(rows.rows->chunks, isNumber, &plan::Chunk::block) &&
      std::ranges::all_of(rows.rows->copies, isNumber, &plan::CopyRow::parameter) &&
      std::ranges::all_of(rows.rows->sums, isNumber, &plan::SumRow::parameter))
    return true;
  error = "expected rows about blocks of group @" + truth.plan().groups[of].name +
          ", found one about another on rank " + std::to_string(rank);
  return false;
}

bool CommonCheck::haveParametersAlike(const std::vector<int64_t> &a,
                                      const std::vector<int64_t> &b) const {
  int64_t each = truth.blocksPerParameter(group);
  if (a.size() != b.size())
    return false;
  for (size_t i = 1; i < a.size(); ++i) {
    int64_t one = a[i] / each - a[i - 1] / each, other = b[i] / each - b[i - 1] / each;
    if (one < 0 || other < 0 || (one == 0) != (other == 0))
      return false;
  }
  return true;
}

bool CommonCheck::isCommon(const CommonTable &rows, int64_t position) {
  bool ofBlocks =
      table->from.isResting(Distribution::Blocks) || table->to.isResting(Distribution::Blocks);
  if (!rows.blocks || position < 0 || isOfShards() == ofBlocks)
    return false;
  return !ofBlocks || *rows.blocks == truth.computed(table->from.segment, position);
}

bool CommonCheck::isAlike(const Shown &one, const CommonTable &rows, int64_t position) {
  int64_t row = rows.row - one.table.row, col = rows.col - one.table.col;
  if (rows.value != one.table.value || rows.blockCols != one.table.blockCols)
    return false;
  if (!isOfShards())
    return row == 0 && col == 0 && haveParametersAlike(*one.table.blocks, *rows.blocks);
  auto isMovedBy = [&](const Place &place, int64_t row, int64_t col) {
    auto at = [&](int64_t where) -> const MemoryMap & {
      return truth.shard(group, place.value, where, place.from.whose());
    };
    return !place.isOfShards() || at(one.position).isMoved(at(position), row, col);
  };
  // What a chunk's row, column and block have must be moved as the chunk is.
  auto haveLinesMoved = [&] {
    return isMovedBy(table->line(plan::ValueKind::Rows), row, 0) &&
           isMovedBy(table->line(plan::ValueKind::Cols), 0, col) &&
           isMovedBy(table->line(plan::ValueKind::One), 0, 0);
  };
  return (rows.blocks == one.table.blocks || *rows.blocks == *one.table.blocks) &&
         isMovedBy(table->from, row, col) && isMovedBy(table->to, row, col) &&
         (!table->leadsToLines() || haveLinesMoved());
}

std::shared_ptr<const std::vector<Piece>> CommonCheck::numbered(const std::vector<Piece> &pieces,
                                                                const CommonTable &rows) {
  const SegmentView &segment = truth.segment(table->from.segment);
  std::vector<int64_t> numbers(segment.blocks.size(), -1);
  for (size_t i = 0; i < rows.blocks->size(); ++i)
    if (int64_t index = segment.indexOf((*rows.blocks)[i]); index >= 0)
      numbers[index] = int64_t(i);
  auto result = std::make_shared<std::vector<Piece>>(pieces);
  for (Piece &piece : *result) {
    int64_t index = segment.indexOf(piece.block);
    if (index < 0 || numbers[index] < 0)
      return nullptr;
    piece.block = numbers[index];
    piece.row -= rows.row;
    piece.col -= rows.col;
  }
  return result;
}

std::optional<Packed> CommonCheck::run(const TableUse &use, int64_t rank, const CommonTable &rows) {
  if (const plan::Table *now = &truth.plan().tables[use.table]; now != table) {
    table = now;
    group = truth.groupOf(table->from.segment);
    shown.clear();
    shownRows = 0;
  }
  int64_t position = truth.position(group, rank);
  bool common = isCommon(rows, position);
  auto found = common ? shown.find(rows.rows.get()) : shown.end();
  if (found == shown.end() || !isAlike(found->second, rows, position)) {
    TableCheck check(truth, use, rank);
    if (!canResolve(use.table, rank, rows))
      return std::nullopt;
    rows.resolve(truth.plan().groups[group], resolved);
    if (!check.run(resolved)) {
      error = check.error;
      return std::nullopt;
    }
    fromEnd = check.fromEnd;
    toEnd = check.toEnd;
    auto packed = common ? numbered(check.packed, rows) : nullptr;
    if (!packed)
      return Packed{std::make_shared<const std::vector<Piece>>(std::move(check.packed)), nullptr};
    // When many rows were kept, ranks share few of them. Then it is not worth keeping them.
    constexpr size_t kMostRows = 1 << 19;
    size_t size = rows.rows->chunks.size() + rows.rows->copies.size() + rows.rows->sums.size();
    shownRows += size;
    if (shownRows > kMostRows) {
      shown.clear();
      shownRows = size;
    }
    found = shown.insert_or_assign(rows.rows.get(), Shown{rows, position, packed, fromEnd, toEnd})
                .first;
  }
  fromEnd = found->second.fromEnd;
  toEnd = found->second.toEnd;
  return Packed{found->second.packed, rows.blocks, rows.row, rows.col};
}

} // namespace stepc::verify
