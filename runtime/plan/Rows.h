//===- Rows.h - Merging and splitting the rows of tables --------*- C++ -*-===//
//
// Internal to the plan. A rectangle is contiguous if its rows touch each other. Contiguous pieces that
// follow each other in both of their memories become one long row, which is cut at the plan's
// chunkElements. So the number of rows of a table depends on the bytes to move, not on the shape of the
// matrices.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_ROWS_H
#define STEPC_RUNTIME_PLAN_ROWS_H

#include "runtime/plan/Tables.h"

#include <algorithm>

namespace stepc::plan {

/// rows × cols elements in one or two memories.
struct RowPiece {
  int64_t parameter, block, row, col, rows, cols;
  int64_t first, firstStride;   // in the first memory
  int64_t second, secondStride; // in the second memory, if there is one
  bool hasSecond;
};

/// Takes pieces in order, merges and splits them, and calls emit(piece) for each row that results.
template <typename Emit> class RowMerger {
public:
  /// With `keepsRows`, what results is a rectangle of the piece, or a part of one of its rows.
  RowMerger(int64_t longest, Emit emit, bool keepsRows = false)
      : longest(longest), emit(std::move(emit)), keepsRows(keepsRows) {}

  void add(const RowPiece &piece) {
    if (piece.rows <= 0 || piece.cols <= 0)
      return;
    bool contiguous = piece.rows == 1 || (!keepsRows && piece.firstStride == piece.cols &&
                                          (!piece.hasSecond || piece.secondStride == piece.cols));
    if (contiguous)
      return addRun(piece, piece.rows * piece.cols);
    if (piece.cols > longest) {
      for (int64_t row = 0; row < piece.rows; ++row)
        addRun(below(piece, row, 1), piece.cols);
      return;
    }
    flush();
    int64_t step = longest / piece.cols;
    for (int64_t row = 0; row < piece.rows; row += step)
      emit(below(piece, row, std::min(step, piece.rows - row)));
  }

  void flush() {
    if (open.cols > 0)
      emit(open);
    open.cols = 0;
  }

private:
  /// Returns `count` rows of a piece, from row `row` on.
  static RowPiece below(const RowPiece &piece, int64_t row, int64_t count) {
    RowPiece part = piece;
    part.row += row;
    part.rows = count;
    part.first += row * piece.firstStride;
    part.second += row * piece.secondStride;
    return part;
  }

  /// Adds a contiguous piece of `length` elements.
  void addRun(const RowPiece &piece, int64_t length) {
    int64_t done = 0;
    if (follows(piece)) {
      done = std::min(length, longest - open.cols);
      open.cols += done;
    }
    if (done == length)
      return;
    flush();
    open = piece;
    open.rows = 1;
    int64_t row = done / piece.cols, col = done % piece.cols;
    // The next row of the table begins `below` rows down and `aside` columns to the right.
    int64_t below = longest / piece.cols, aside = longest % piece.cols;
    for (;;) {
      open.row = piece.row + row;
      open.col = piece.col + col;
      open.first = piece.first + done;
      open.second = piece.second + done;
      open.cols = std::min(length - done, longest);
      done += open.cols;
      if (done == length)
        return;
      flush();
      row += below;
      col += aside;
      if (col >= piece.cols) {
        ++row;
        col -= piece.cols;
      }
    }
  }

  bool follows(const RowPiece &piece) const {
    bool inRow =
        piece.block == open.block && piece.row == open.row && piece.col == open.col + open.cols;
    return open.cols > 0 && (!keepsRows || inRow) && open.parameter == piece.parameter &&
           open.first + open.cols == piece.first && open.hasSecond == piece.hasSecond &&
           (!piece.hasSecond || open.second + open.cols == piece.second);
  }

  int64_t longest; // elements of a row
  Emit emit;
  bool keepsRows;
  RowPiece open{};
};

} // namespace stepc::plan

#endif
