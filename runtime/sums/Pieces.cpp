//===- Pieces.cpp - Reductions of lines, piece by piece ---------------------===//
#include "runtime/sums/Pieces.h"
#include "runtime/sums/Maximum.h"
#include "runtime/sums/Reduce.h"
#include "stepc/kernel_abi.h"

#include <algorithm>
#include <new>

namespace stepc::sums {

static_assert(kColumns * sizeof(Accumulator<Terms::Squares>) <= STEPC_PIECES_BYTES);

static Line lineOf(const Piece &piece) {
  return {piece.terms, piece.cols, plan::DType::F32, piece.ahead, piece.aheadBytes};
}
static Strip stripOf(const Piece &piece) {
  return {piece.terms, piece.rows, piece.cols, kPieceStride, plan::DType::F32};
}

template <Terms terms>
static void reduceSums(plan::Reduction kind, const Piece &piece, void *state, float *out) {
  double totals[kColumns];
  if (piece.isFirst() && piece.isLast()) { // quicker than by accumulators
    if (piece.ofColumns)
      total<terms>(totals, stripOf(piece));
    else
      totals[0] = total<terms>(lineOf(piece));
  } else {
    auto *sums = static_cast<Accumulator<terms> *>(state);
    if (piece.isFirst())
      for (int64_t i = 0; i < piece.lines(); ++i)
        new (sums + i) Accumulator<terms>();
    if (piece.ofColumns)
      add(sums, stripOf(piece));
    else
      add(*sums, lineOf(piece));
    if (!piece.isLast())
      return;
    for (int64_t i = 0; i < piece.lines(); ++i)
      totals[i] = sums[i].total();
  }
  for (int64_t i = 0; i < piece.lines(); ++i)
    out[i] = finish(kind, totals[i], piece.count, /*exponent=*/0);
}

static void reduceMaxima(const Piece &piece, void *state, float *out) {
  auto *most = static_cast<Maximum *>(state);
  if (piece.isFirst())
    std::fill_n(most, piece.lines(), Maximum());
  if (piece.ofColumns)
    add(most, stripOf(piece));
  else
    add(*most, lineOf(piece));
  for (int64_t i = 0; piece.isLast() && i < piece.lines(); ++i)
    out[i] = most[i].number();
}

void reduce(plan::Reduction kind, const Piece &piece, void *state, float *out) {
  if (kind == plan::Reduction::Max)
    reduceMaxima(piece, state, out);
  else if (termsOf(kind) == Terms::Squares)
    reduceSums<Terms::Squares>(kind, piece, state, out);
  else
    reduceSums<Terms::Values>(kind, piece, state, out);
}

} // namespace stepc::sums

extern "C" void stepc_rt_reduce_pieces(int64_t kind, int64_t columns, int64_t count, int64_t done,
                                       int64_t rows, int64_t cols, const float *terms, void *state,
                                       float *out, const void *ahead, int64_t aheadBytes) {
  using namespace stepc;
  sums::reduce(
      plan::Reduction(kind),
      {columns != 0, count, done, rows, cols, terms, static_cast<const char *>(ahead), aheadBytes},
      state, out);
}
