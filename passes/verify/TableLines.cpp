//===- TableLines.cpp - Sums of what a rank has of lines ------------------===//

#include "passes/verify/TableCheck.h"

#include "runtime/geometry/Geometry.h"

namespace stepc::verify {

using plan::Chunk;
using plan::Place;
using plan::ValueKind;

bool TableCheck::leadsToSums(std::span<const Chunk> item, const CopyMap &lines, Piece &values) {
  ValueKind kind = table.reducesTo();
  bool ofRows = kind == ValueKind::Rows, ofCols = kind == ValueKind::Cols;
  const Chunk &first = item.front();
  values = {0,
            first.block,
            ofRows ? first.row : 0,
            ofCols ? first.col : 0,
            ofRows ? first.rows : 1,
            ofCols ? first.cols : 1};
  if (!isParameter(first.parameter) || !segment.has(first.block) ||
      first.block / perParameter != truth.plan().parameters[first.parameter].indexInGroup)
    return fail("expected sums of blocks of segment @" +
                truth.plan().segments[table.from.segment].name + ", found some of " +
                truth.describeBlock(groupIndex, first.block));
  for (const Chunk &next : item.subspan(1))
    if (next.part != -1 || next.more != 0 || next.parameter != first.parameter ||
        next.block != first.block ||
        (ofRows && (next.row != first.row || next.rows != first.rows)) ||
        (ofCols && (next.col != first.col || next.cols != first.cols)))
      return fail(
          "expected rows behind the first row of sums that lead to the same sums, found one of " +
          truth.describe(groupIndex, {0, next.block, next.row, next.col, next.rows, next.cols}));
  int64_t at = ofRows ? first.perRow : ofCols ? first.perColumn : first.perBlock;
  int64_t stride = ofRows ? first.perRowStride : 0;
  bool leads = at >= 0;
  auto check = [&](const Cut &cut) {
    leads &= cut.block == values.block && cut.row == values.row + (ofRows ? cut.second : 0) &&
             cut.col == values.col + (ofCols ? cut.second : 0);
  };
  leads = leads && lines.cut({at, stride, 0, 1, values.rows, values.cols}, check) && leads;
  toEnd = std::max(toEnd, at + (values.rows - 1) * stride + values.cols);
  return leads || fail("expected a way to the sums of " + truth.describe(groupIndex, values) +
                       ", found element " + std::to_string(at) + " of these values");
}

bool TableCheck::partLines(const std::vector<Chunk> &chunks) {
  bool ofRows = table.reducesTo() == ValueKind::Rows, ofCols = table.reducesTo() == ValueKind::Cols;
  std::vector<Chunk> visited;
  for (const Chunk &chunk : chunks) {
    bool isEmpty =
        (ofRows ? chunk.rows > 0 : chunk.rows == 0) && (ofCols ? chunk.cols > 0 : chunk.cols == 0);
    if (!isEmpty)
      visited.push_back(chunk);
    else if (chunk.part < 0 || chunk.more != 0)
      return fail("expected a row without elements to be the only row of its sums, found part " +
                  std::to_string(chunk.part) + " and " + std::to_string(chunk.more) + " more rows");
  }
  if (!shardChunks(visited))
    return false;
  Place line = table.reduced();
  const plan::Mesh &mesh = truth.plan().meshes[group.mesh];
  int64_t sums = geometry::sumsPerValue(group, mesh, line.value);
  std::unique_ptr<CopyMap> lines = makeCopy(line);
  std::vector<Pieces> written(sums); // by number of the sum among those of a value
  for (size_t i = 0; i < chunks.size();) {
    const Chunk &first = chunks[i];
    auto behind = int64_t(chunks.size() - i) - 1;
    if (first.part < 0 || first.part >= sums || first.more < 0 || first.more > behind)
      return fail("expected a part below " + std::to_string(sums) + " and at most " +
                  std::to_string(behind) + " rows behind the first row of sums, found part " +
                  std::to_string(first.part) + " and " + std::to_string(first.more) + " rows");
    auto count = size_t(first.more) + 1;
    Piece values;
    if (!leadsToSums(std::span(chunks).subspan(i, count), *lines, values))
      return false;
    written[first.part].push_back(values);
    i += count;
  }
  Pieces staged = std::move(covered);
  for (Pieces &of : written) {
    covered = std::move(of);
    const MemoryMap &map = shardOf(line);
    if (!coversOnce(truth.held(line.segment, map), &map, "the sums of the rank's lines"))
      return false;
  }
  covered = std::move(staged);
  return true;
}

bool TableCheck::partsOfModel(const std::vector<Chunk> &chunks) {
  // Of ranks with copies of the same elements one alone has rows. TableProof::checkModel compares all ranks.
  if (chunks.empty())
    return true;
  if (!shardChunks(chunks))
    return false;
  for (size_t i = 0; i < chunks.size(); ++toEnd) {
    const Chunk &first = chunks[i];
    auto behind = int64_t(chunks.size() - i) - 1;
    bool isFirst = first.part == 0 && first.more >= 0 && first.more <= behind;
    auto count = isFirst ? size_t(first.more) + 1 : 1;
    bool follows = isFirst && first.perBlock == toEnd;
    for (const Chunk &next : std::span(chunks).subspan(i + 1, count - 1))
      follows &= next.part == -1 && next.more == 0 && next.parameter == first.parameter;
    if (!follows)
      return fail("expected rows that lead to sum " + std::to_string(toEnd) +
                  " of the model, found part " + std::to_string(first.part) + " and " +
                  std::to_string(first.more) + " more rows of sum " +
                  std::to_string(first.perBlock));
    i += count;
  }
  return true;
}

bool TableCheck::collects(const std::vector<plan::CopyRow> &rows) {
  for (const plan::CopyRow &row : rows)
    if (row.source != fromEnd++ || row.rows != 1 || row.cols != 1 || !isParameter(row.parameter))
      return fail("expected sum " + std::to_string(fromEnd - 1) + " of the model, found sum " +
                  std::to_string(row.source));
  return true;
}

} // namespace stepc::verify
