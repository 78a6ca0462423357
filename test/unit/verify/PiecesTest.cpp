//===- PiecesTest.cpp - Rectangles against elements -----------------------===//

#include "passes/verify/Pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

using namespace stepc;
using namespace stepc::verify;

namespace {

std::mt19937_64 source(7);
int64_t draw(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(source);
}

TEST(Pieces, OverlapAgreesWithElements) {
  int overlapping = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Piece> pieces;
    std::set<std::pair<int64_t, int64_t>> seen;
    bool expected = false;
    for (int64_t count = draw(1, 6); count > 0; --count) {
      Piece piece{0, 0, draw(0, 6), draw(0, 6), draw(1, 3), draw(1, 3)};
      pieces.push_back(piece);
      for (int64_t r = 0; r < piece.rows; ++r)
        for (int64_t c = 0; c < piece.cols; ++c)
          expected |= !seen.insert({piece.row + r, piece.col + c}).second;
    }
    ASSERT_EQ(findOverlap(pieces).has_value(), expected);
    overlapping += expected;
  }
  EXPECT_GT(overlapping, 2000);
  EXPECT_LT(overlapping, 18000);
}

TEST(Pieces, TilingFindsTheFirstBreak) {
  std::vector<Piece> pieces = {{0, 0, 0, 0, 2, 3}, {6, 0, 2, 0, 1, 3}};
  EXPECT_FALSE(findBreak(pieces));
  pieces[1].start = 7;
  EXPECT_EQ(findBreak(pieces)->position, 6);
  EXPECT_FALSE(findBreak(pieces)->doubled);
  pieces[1].start = 5;
  EXPECT_EQ(findBreak(pieces)->position, 5);
  EXPECT_TRUE(findBreak(pieces)->doubled);
}

/// The elements of a packed buffer, one by one.
std::vector<std::array<int64_t, 3>> elements(const std::vector<Piece> &pieces) {
  std::vector<std::array<int64_t, 3>> result;
  for (const Piece &piece : pieces)
    for (int64_t r = 0; r < piece.rows; ++r)
      for (int64_t c = 0; c < piece.cols; ++c)
        result.push_back({piece.block, piece.row + r, piece.col + c});
  return result;
}

/// The same buffer, its pieces cut somewhere.
std::vector<Piece> cutUp(const std::vector<Piece> &pieces) {
  std::vector<Piece> result;
  for (Piece piece : pieces) {
    if (piece.rows > 1 && draw(0, 1)) {
      int64_t rows = draw(1, piece.rows - 1);
      result.push_back({piece.start, piece.block, piece.row, piece.col, rows, piece.cols});
      piece = {piece.start + rows * piece.cols,
               piece.block,
               piece.row + rows,
               piece.col,
               piece.rows - rows,
               piece.cols};
    } else if (piece.rows == 1 && piece.cols > 1 && draw(0, 1)) {
      int64_t cols = draw(1, piece.cols - 1);
      result.push_back({piece.start, piece.block, piece.row, piece.col, 1, cols});
      piece = {piece.start + cols, piece.block, piece.row, piece.col + cols, 1, piece.cols - cols};
    }
    result.push_back(piece);
  }
  return result;
}

TEST(Pieces, DifferenceAgreesWithElements) {
  int different = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Piece> sent;
    int64_t start = 0;
    for (int64_t count = draw(1, 4); count > 0; --count) {
      sent.push_back({start, draw(0, 1), draw(0, 3), draw(0, 3), draw(1, 3), draw(1, 3)});
      start += sent.back().size();
    }
    std::vector<Piece> received = cutUp(sent);
    if (draw(0, 1))
      received[draw(0, int64_t(received.size()) - 1)].row += draw(0, 1);
    auto a = elements(sent), b = elements(received);
    int64_t from = draw(0, start - 1), count = draw(1, start - from), first = -1;
    for (int64_t i = 0; i < count && first < 0; ++i)
      if (a[from + i] != b[from + i])
        first = i;
    Near near{size_t(draw(0, 5)), size_t(draw(0, 5))}; // wherever it points
    auto found = findDifference(sent, from, received, from, count, near);
    ASSERT_EQ(found.has_value(), first >= 0);
    if (found) {
      ++different;
      ASSERT_EQ(found->position, first);
    }
  }
  EXPECT_GT(different, 1000);
}

TEST(Pieces, RangesAreTheElementsThatStandThere) {
  std::vector<Piece> pieces{{0, 4, 0, 0, 3, 5}, {15, 7, 2, 1, 1, 4}, {19, 4, 3, 0, 2, 2}};
  using Elements =
      std::vector<std::array<int64_t, 4>>; // where it stands, its block, row and column
  auto elements = [](const std::vector<Piece> &pieces) {
    Elements result;
    for (const Piece &piece : pieces)
      for (int64_t i = 0; i < piece.size(); ++i)
        result.push_back(
            {piece.start + i, piece.block, piece.row + i / piece.cols, piece.col + i % piece.cols});
    return result;
  };
  Elements all = elements(pieces);
  ASSERT_EQ(all.size(), 23u);
  for (int64_t at = 0; at <= 23; ++at)
    for (int64_t count = 0; count <= 25 - at; ++count) {
      std::vector<Piece> range;
      appendRange(pieces, at, count, 100, range);
      Elements expected(all.begin() + at, all.begin() + std::min<int64_t>(23, at + count));
      for (auto &element : expected)
        element[0] += 100 - at;
      ASSERT_EQ(elements(range), expected) << at << " " << count;
    }
}

} // namespace
