//===- Pieces.h - Exact arithmetic on rectangles of blocks ------*- C++ -*-===//
//
// A proof about elements without a loop over elements. What a buffer holds is a list of pieces. Tiling,
// disjointness and equality are questions about rectangles. This file includes nothing of the planner.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_PIECES_H
#define STEPC_PASSES_VERIFY_PIECES_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace stepc::verify {

/// A rectangle of rows × cols elements of one block of a group, from (row, col) on. In a packed buffer its
/// elements stand row by row, without gaps, from element `start` on.
struct Piece {
  int64_t start, block, row, col, rows, cols;
  int64_t size() const { return rows * cols; }
};

/// The pieces of one rank. If several ranks share `pieces`, Piece::block is an index into this rank's
/// `blocks`. This rank's (row, col) is added to each piece's row and column.
struct PieceView {
  std::span<const Piece> pieces;
  const int64_t *blocks = nullptr; // null: Piece::block is the block itself
  int64_t row = 0, col = 0;

  PieceView(std::span<const Piece> pieces) : pieces(pieces) {}
  PieceView(const std::vector<Piece> &pieces) : pieces(pieces) {}
  Piece at(size_t i) const {
    Piece piece = pieces[i];
    piece.block = blocks ? blocks[piece.block] : piece.block;
    piece.row += row;
    piece.col += col;
    return piece;
  }
};

/// The pieces of one packed buffer, sorted by start. The other members are those of PieceView.
struct Packed {
  std::shared_ptr<const std::vector<Piece>> pieces; // null: not known
  std::shared_ptr<const std::vector<int64_t>> blocks;
  int64_t row = 0, col = 0;

  PieceView view() const {
    PieceView view(*pieces);
    view.blocks = blocks ? blocks->data() : nullptr;
    view.row = row;
    view.col = col;
    return view;
  }
  int64_t end() const { return pieces->empty() ? 0 : pieces->back().start + pieces->back().size(); }
  /// Whether both are known to hold the same. False does not mean that they differ.
  bool isSame(const Packed &other) const {
    return pieces == other.pieces && row == other.row && col == other.col &&
           (blocks == other.blocks || (blocks && other.blocks && *blocks == *other.blocks));
  }
};

/// Sorts by start. It is fast if pieces are sorted already.
void sortByStart(std::vector<Piece> &pieces);

/// The first element at which pieces, sorted by start, do not follow each other from element 0 on.
struct Break {
  int64_t position; ///< the element of the buffer
  bool doubled;     ///< true: two pieces hold it; false: none does
};
std::optional<Break> findBreak(std::span<const Piece> pieces);

/// Appends elements [at, at + count) of the buffer that `pieces` tile to `out`, as pieces that start at
/// element `to`. Appends fewer elements if the buffer ends before.
void appendRange(PieceView pieces, int64_t at, int64_t count, int64_t to, std::vector<Piece> &out);

/// Returns two pieces that share an element, or nullopt. All pieces must be of one block. Reorders the
/// pieces.
std::optional<std::pair<Piece, Piece>> findOverlap(std::span<Piece> pieces);

/// The first difference of two buffers that their pieces tile. Compared are `count` elements from `sentAt`
/// and from `receivedAt` on.
struct Difference {
  int64_t position;     ///< counted from `sentAt` and `receivedAt`
  Piece sent, received; ///< the two elements, as pieces of one element
};
/// Indices of the pieces at which the last comparison ended. The next comparison mostly begins there.
struct Near {
  size_t sent = 0, received = 0;
};
std::optional<Difference> findDifference(PieceView sent, int64_t sentAt, PieceView received,
                                         int64_t receivedAt, int64_t count, Near &near);

} // namespace stepc::verify

#endif
