//===- Pieces.h - Exact arithmetic on rectangles of blocks ------*- C++ -*-===//
//
// A proof about elements without a loop over elements: what a buffer holds is a
// list of pieces, and tiling, disjointness and equality are questions about
// rectangles. Depends on nothing of the planner.
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

/// rows × cols elements of block `block` of a group whose first is (row, col). In a packed
/// buffer they stand row by row, without gaps, from `start` on.
struct Piece {
  int64_t start, block, row, col, rows, cols;
  int64_t size() const { return rows * cols; }
};

/// Pieces as they are read. Those that several ranks share have numbers in `blocks` for blocks, and
/// rows and columns beyond (row, col).
struct PieceView {
  std::span<const Piece> pieces;
  const int64_t *blocks = nullptr; // none: they say themselves what they are
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

/// A packed buffer, by start.
struct Packed {
  std::shared_ptr<const std::vector<Piece>> pieces; // none: it is not known
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
  /// Whether it is known to be the same; no may be wrong.
  bool isSame(const Packed &other) const {
    return pieces == other.pieces && row == other.row && col == other.col &&
           (blocks == other.blocks || (blocks && other.blocks && *blocks == *other.blocks));
  }
};

/// Orders by start; free where that order holds already.
void sortByStart(std::vector<Piece> &pieces);

/// Where pieces (ordered by start) first fail to stand one after the other from 0 on, or nothing.
struct Break {
  int64_t position; ///< the element of the buffer
  bool doubled;     ///< held twice, otherwise not at all
};
std::optional<Break> findBreak(std::span<const Piece> pieces);

/// Appends what stands in `count` elements of a buffer that pieces tile, from `at` on, as pieces that
/// stand from `to` on; less where the buffer ends before.
void appendRange(PieceView pieces, int64_t at, int64_t count, int64_t to, std::vector<Piece> &out);

/// Two pieces of one block that share an element, or nothing. Reorders the pieces.
std::optional<std::pair<Piece, Piece>> findOverlap(std::span<Piece> pieces);

/// The first element at which two buffers, each tiled by its pieces, differ over `count`
/// elements from `sentAt` and from `receivedAt` on.
struct Difference {
  int64_t position;     ///< counted from the beginnings
  Piece sent, received; ///< what stands there: single elements
};
/// The pieces at which the last comparison ended: the next one mostly begins there.
struct Near {
  size_t sent = 0, received = 0;
};
std::optional<Difference> findDifference(PieceView sent, int64_t sentAt, PieceView received,
                                         int64_t receivedAt, int64_t count, Near &near);

} // namespace stepc::verify

#endif
