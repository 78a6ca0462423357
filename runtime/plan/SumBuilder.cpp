//===- SumBuilder.cpp - The rows that add up contributions on one rank ----===//

#include "runtime/plan/Rows.h"
#include "runtime/plan/TableBuilder.h"

namespace stepc::plan {

using geometry::Rect;

/// The most parts of lines in a row of a sum: a number takes longer than an element of a gradient.
static constexpr int64_t kSumsOfLines = 128;

// What arrived has one part after another, one per peer. Peers whose gradients differ only along partial
// axes sent the same elements in the same order. So one list says for all rows where the parts of these
// peers begin.
void TableBuilder::sums(RankTable &out) {
  if (table.from.from == Distribution::Parts)
    return sumsOfParts(out);
  const Mesh &mesh = map.plan().meshes[static_cast<size_t>(group.mesh)];
  ValueKind kind = table.from.value;
  bool ofLines = table.from.from == Distribution::LineParts;
  int64_t count =
      ofLines ? geometry::linePartCount(group, mesh, kind) : contributions(group, mesh).count;
  std::vector<int64_t> begins = map.begins(table.from, position), done(begins.size(), 0);
  std::map<int64_t, int64_t> lists; // by the peer with the first contribution
  int64_t list = -1;
  int64_t longest = map.plan().chunkElements;
  RowMerger rows(ofLines ? std::min(longest, kSumsOfLines) : longest, [&](const RowPiece &p) {
    out.sums.push_back({p.block, p.rows, p.cols, p.second, rowStride(p, p.secondStride), p.first,
                        rowStride(p, p.firstStride), list, count});
  });
  const SharedRects &shared = map.sharedOf(table.from, position);
  std::vector<int64_t> numbers; // of contributions, by class
  std::vector<Factor> factors =
      ofLines ? geometry::lineFactors(group, mesh, kind) : std::vector<Factor>();
  for (int64_t which : shared.classes)
    numbers.push_back(ofLines ? geometry::numberAlong(mesh, factors, which)
                              : contributionOf(group, mesh, which));
  std::vector<int64_t> shifts = map.shifts(table.to, position);
  int64_t number = 0;
  for (int64_t index : map.held(table.from.segment, shared)) {
    int64_t block = map.block(table.from.segment, index);
    std::span<const Rect> rects = shared.of(block % perParameter);
    // Rectangles of the same elements stand side by side, one of each contribution.
    for (size_t first = 0; first < rects.size(); first += static_cast<size_t>(count)) {
      std::vector<int64_t> peers(static_cast<size_t>(count)); // as indices in shared.classes
      for (const Rect &rect : rects.subspan(first, static_cast<size_t>(count))) {
        auto with =
            static_cast<size_t>(shared.with[static_cast<size_t>(&rect - shared.rects.data())]);
        peers[static_cast<size_t>(numbers[with])] = static_cast<int64_t>(with);
      }
      auto [known, isNew] = lists.try_emplace(peers[0], static_cast<int64_t>(out.lists.size()));
      for (size_t i = 0; isNew && i < peers.size(); ++i)
        out.lists.push_back(begins[static_cast<size_t>(peers[i])]);
      if (known->second != list)
        rows.flush();
      list = known->second;
      const Rect &rect = rects[first];
      RowPiece piece = pieceOf(number, block, rect,
                               shifts[static_cast<size_t>(number)] + rect.offset, rect.stride);
      int64_t &before = done[static_cast<size_t>(peers[0])];
      setSecond(piece, before, rect.cols);
      before += rect.rows * rect.cols;
      rows.add(piece);
    }
    ++number;
  }
  rows.flush();
}

void TableBuilder::sumsOfParts(RankTable &out) {
  std::vector<std::vector<int64_t>> begins = map.beginsOfParts(table.from, position);
  std::vector<int64_t> lists; // per team, where its list begins in out.lists
  for (const std::vector<int64_t> &list : begins) {
    lists.push_back(static_cast<int64_t>(out.lists.size()));
    out.lists.insert(out.lists.end(), list.begin(), list.end());
  }
  int64_t last = 0, first = 0; // the team of the rows so far, and where its sums begin
  RowMerger rows(map.plan().chunkElements, [&](const RowPiece &p) {
    auto team = static_cast<size_t>(last);
    out.sums.push_back({p.block, p.rows, p.cols, p.second, rowStride(p, p.secondStride), p.first,
                        rowStride(p, p.firstStride), lists[team],
                        static_cast<int64_t>(begins[team].size())});
  });
  map.walkSums(
      table.from, position,
      [&](int64_t number, int64_t block, const Rect &rect, int64_t offset, int64_t team, int64_t) {
        if (team != last) {
          rows.flush();
          first = offset;
        }
        last = team;
        RowPiece piece = pieceOf(number, block, rect, offset, rect.cols);
        setSecond(piece, offset - first, rect.cols);
        rows.add(piece);
      });
  rows.flush();
}

} // namespace stepc::plan
