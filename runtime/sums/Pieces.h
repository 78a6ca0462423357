//===- Pieces.h - Reductions of lines, piece by piece -----------*- C++ -*-===//
//
// A kernel over shards computes the terms of a row, or of some columns side by side, a few thousand at a
// time.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_SUMS_PIECES_H
#define STEPC_RUNTIME_SUMS_PIECES_H

#include "runtime/sums/Columns.h"
#include "runtime/sums/Sweep.h"

namespace stepc::sums {

/// The most terms of a piece, and how far apart the rows of columns are in it.
inline constexpr int64_t kPieceTerms = kSweepTerms, kPieceStride = kColumns;

/// A piece of the lines that are reduced.
struct Piece {
  bool ofColumns = false; ///< columns side by side, at most kColumns; otherwise one row
  int64_t count = 0;      ///< terms of each line
  int64_t done = 0;       ///< terms of each line that came before
  int64_t rows = 0, cols = 0;
  const float *terms = nullptr; ///< rows × cols, with rows kPieceStride apart
  const char *ahead = nullptr;  ///< memory to prefetch, as in Line
  int64_t aheadBytes = 0;

  /// The terms of each line in this piece.
  int64_t size() const { return ofColumns ? rows : cols; }
  int64_t lines() const { return ofColumns ? cols : 1; }
  bool isFirst() const { return done == 0; }
  bool isLast() const { return done + size() == count; }
};

/// Adds a piece to the state, which the first piece begins. With the last piece, writes the result of each
/// line to `out`.
void reduce(plan::Reduction kind, const Piece &piece, void *state, float *out);

} // namespace stepc::sums

#endif
