//===- Pieces.cpp - Exact arithmetic on rectangles of blocks --------------===//

#include "passes/verify/Pieces.h"

#include <algorithm>
#include <map>

namespace stepc::verify {

namespace {

/// Sorts pieces of one size that follow each other without gaps, as in most packed buffers: the start of each
/// gives its index. Returns false, and changes nothing, if the pieces are not of this form.
bool placeByStart(std::vector<Piece> &pieces) {
  int64_t size = pieces[0].size();
  std::vector<Piece> placed(pieces.size(), Piece{-1, 0, 0, 0, 0, 0});
  for (const Piece &piece : pieces) {
    if (size < 1 || piece.size() != size || piece.start < 0 || piece.start % size)
      return false;
    auto place = size_t(piece.start / size);
    if (place >= placed.size() || placed[place].start >= 0)
      return false;
    placed[place] = piece;
  }
  pieces = std::move(placed);
  return true;
}

} // namespace

void sortByStart(std::vector<Piece> &pieces) {
  auto before = [](const Piece &a, const Piece &b) { return a.start < b.start; };
  if (!std::is_sorted(pieces.begin(), pieces.end(), before) && !placeByStart(pieces))
    std::sort(pieces.begin(), pieces.end(), before);
}

std::optional<Break> findBreak(std::span<const Piece> pieces) {
  int64_t next = 0;
  for (const Piece &piece : pieces) {
    if (piece.start != next)
      return Break{std::min(piece.start, next), piece.start < next};
    next += piece.size();
  }
  return std::nullopt;
}

namespace {

/// Whether pieces, sorted by row and column, form bands of equal rows with disjoint columns. Placements
/// mostly give such pieces, and they do not overlap. False does not mean that pieces overlap.
bool inBands(std::span<const Piece> pieces) {
  int64_t top = 0, bottom = 0, right = 0;
  for (const Piece &piece : pieces) {
    if (piece.row >= bottom) {
      top = piece.row;
      bottom = piece.row + piece.rows;
    } else if (piece.row != top || piece.rows != bottom - top || piece.col < right) {
      return false;
    }
    right = piece.col + piece.cols;
  }
  return true;
}

} // namespace

void appendRange(PieceView view, int64_t at, int64_t count, int64_t to, std::vector<Piece> &out) {
  std::span<const Piece> pieces = view.pieces;
  auto next = std::upper_bound(pieces.begin(), pieces.end(), at,
                               [](int64_t a, const Piece &piece) { return a < piece.start; });
  if (next == pieces.begin())
    return;
  for (--next; count > 0 && next != pieces.end(); ++next) {
    Piece piece = view.at(size_t(next - pieces.begin()));
    int64_t end = std::min(at + count, piece.start + piece.size());
    while (at < end) {
      int64_t row = (at - piece.start) / piece.cols, col = (at - piece.start) % piece.cols;
      bool whole = col == 0 && end - at >= piece.cols;
      int64_t rows = whole ? (end - at) / piece.cols : 1;
      int64_t cols = whole ? piece.cols : std::min(end - at, piece.cols - col);
      out.push_back({to, piece.block, piece.row + row, piece.col + col, rows, cols});
      at += rows * cols;
      to += rows * cols;
      count -= rows * cols;
    }
  }
}

std::optional<std::pair<Piece, Piece>> findOverlap(std::span<Piece> pieces) {
  auto before = [](const Piece &a, const Piece &b) {
    return a.row != b.row ? a.row < b.row : a.col < b.col;
  };
  if (!std::is_sorted(pieces.begin(), pieces.end(), before))
    std::sort(pieces.begin(), pieces.end(), before);
  if (inBands(pieces))
    return std::nullopt;
  // A sweep down the rows: `active` holds, by column, the pieces that the current row meets. These are
  // disjoint. So a new piece overlaps at most its neighbours by column, or pieces that have ended.
  std::map<int64_t, Piece> active;
  for (const Piece &piece : pieces) {
    auto next = active.upper_bound(piece.col);
    if (next != active.begin())
      --next;
    while (next != active.end() && next->first < piece.col + piece.cols) {
      const Piece &other = next->second;
      if (other.col + other.cols <= piece.col) {
        ++next;
      } else if (other.row + other.rows <= piece.row) {
        next = active.erase(next);
      } else {
        return std::pair(other, piece);
      }
    }
    active[piece.col] = piece;
  }
  return std::nullopt;
}

namespace {

/// Reads a packed buffer from an element on.
class PieceReader {
public:
  /// `near`: the piece at which the last reader ended. The destructor sets it to the piece at which this
  /// reader ended.
  PieceReader(PieceView view, int64_t at, size_t &near)
      : view(view), pieces(view.pieces), index(near), end(near) {
    auto isAt = [&](size_t i) {
      return i < pieces.size() && pieces[i].start <= at && at < pieces[i].start + pieces[i].size();
    };
    if (!isAt(index) && !isAt(++index)) {
      auto found = std::upper_bound(pieces.begin(), pieces.end(), at,
                                    [](int64_t x, const Piece &piece) { return x < piece.start; });
      index = found - pieces.begin() - 1;
    }
    if (int64_t inside = at - pieces[index].start) {
      row = inside / pieces[index].cols;
      col = inside % pieces[index].cols;
    }
  }
  ~PieceReader() { end = index; }
  /// The current piece as this rank has it (PieceView::at).
  Piece resolved() const { return view.at(index); }
  /// The current piece as it is stored. Its start and extents hold for all ranks.
  const Piece &piece() const { return pieces[index]; }
  bool isAtStart() const { return row == 0 && col == 0; }
  void advancePiece() { ++index; }
  Piece element() const {
    Piece piece = resolved();
    return {
        piece.start + row * piece.cols + col, piece.block, piece.row + row, piece.col + col, 1, 1};
  }
  /// The number of elements up to the end of the row, and of whole rows up to the end of the piece.
  int64_t inRow() const { return piece().cols - col; }
  int64_t wholeRows() const { return col == 0 ? piece().rows - row : 0; }
  /// Skips `count` elements, which must lie within the row or be whole rows of the piece.
  void advance(int64_t count) {
    if (count < inRow()) {
      col += count;
      return;
    }
    row += (col + count) / piece().cols;
    col = 0;
    if (row == piece().rows) {
      ++index;
      row = 0;
    }
  }

private:
  PieceView view;
  std::span<const Piece> pieces;
  size_t index;
  int64_t row = 0, col = 0;
  size_t &end;
};

bool areAlike(const Piece &a, const Piece &b) {
  return a.block == b.block && a.row == b.row && a.col == b.col && a.rows == b.rows &&
         a.cols == b.cols;
}

} // namespace

std::optional<Difference> findDifference(PieceView sent, int64_t sentAt, PieceView received,
                                         int64_t receivedAt, int64_t count, Near &near) {
  if (count <= 0)
    return std::nullopt;
  PieceReader a(sent, sentAt, near.sent), b(received, receivedAt, near.received);
  for (int64_t done = 0; done < count;) {
    // Mostly both buffers have the same pieces.
    if (a.isAtStart() && b.isAtStart() && done + a.piece().size() < count &&
        areAlike(a.resolved(), b.resolved())) {
      done += a.piece().size();
      a.advancePiece();
      b.advancePiece();
      continue;
    }
    Piece x = a.element(), y = b.element();
    if (x.block != y.block || x.row != y.row || x.col != y.col)
      return Difference{done, x, y};
    int64_t step = std::min(a.inRow(), b.inRow());
    if (a.piece().cols == b.piece().cols)
      step = std::max(step, std::min(a.wholeRows(), b.wholeRows()) * a.piece().cols);
    done += step;
    // The last step may go past the last element to compare. There may be no piece behind it.
    if (done < count) {
      a.advance(step);
      b.advance(step);
    }
  }
  return std::nullopt;
}

} // namespace stepc::verify
