//===- PiecesTest.cpp - Rectangles against elements -----------------------===//

#include "passes/verify/Pieces.h"
#include "RandomGroups.h"
#include "passes/verify/MemoryMap.h"
#include "runtime/geometry/Geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
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

/// Which element of which block stands at each place of a shard; {-1, …}: another part's.
using Places = std::vector<std::array<int64_t, 3>>;
constexpr std::array<int64_t, 3> kOther{-1, -1, -1};

/// By the runtime's geometry.
Places placesOf(const plan::Group &group, const plan::Mesh &mesh, int64_t position,
                plan::ValueKind kind, int64_t elements) {
  Places places(elements, kOther);
  for (const geometry::Rect &rect : geometry::rectangles(group, mesh, position, kind))
    for (int64_t r = 0; r < rect.rows; ++r)
      for (int64_t c = 0; c < rect.cols; ++c)
        places.at(rect.offset + r * rect.stride + c) = {rect.block, rect.row + r, rect.col + c};
  return places;
}

/// What a map says of elements [first, first + count); nothing where it refuses.
std::optional<Places> cut(const MemoryMap &map, int64_t first, int64_t count) {
  Places found(count, kOther);
  bool inside = map.cut({first, 0, 100, 0, 1, count}, [&](const Cut &cut) {
    for (int64_t r = 0; r < cut.rows; ++r)
      for (int64_t c = 0; c < cut.cols; ++c)
        found[cut.second - 100 + r * cut.secondStride + c] = {cut.block, cut.row + r, cut.col + c};
  });
  return inside ? std::optional(found) : std::nullopt;
}

TEST(MemoryMap, CutsRunsAndRectanglesOfAShard) {
  // Columns in two runs: 8 columns over 2 ranks in two strips, of which the other axis may take a range.
  plan::Mesh mesh{"m", {"a", "b"}, {2, 2}, {0, 1, 2, 3}};
  plan::Group group;
  group.shape = {3, 8};
  group.parameters = {0};
  group.division = {plan::Division::Columns, {{{0, 2}, {5, 7}}, {{2, 5}, {7, 8}}}};
  for (bool isFlat : {false, true})
    for (std::vector<int64_t> parts : {std::vector<int64_t>{}, {0}, {1}}) {
      group.parts = parts;
      for (int64_t position = 0; position < 4; ++position) {
        plan::Placement other;
        if (isFlat)
          other = {plan::PlacementKind::Flat, 0, 1, 0, {0, 7, 12}};
        group.placements = {{plan::PlacementKind::StridedShard, 1, 2}, other};
        MemoryMap map = MemoryMap::ofShard(group, mesh, position, plan::ValueKind::Full,
                                           plan::ShardsKind::Parameter);
        EXPECT_EQ(map.elements(), isFlat ? (position % 2 ? 5 : 7) : 12);
        Places places = placesOf(group, mesh, position, plan::ValueKind::Full, map.elements());
        int64_t others = std::count(places.begin(), places.end(), kOther);
        EXPECT_EQ(others > 0, !parts.empty());
        EXPECT_EQ(map.blockElements(0), map.elements() - others);
        for (int64_t first = 0; first < map.elements(); ++first)
          for (int64_t count = 1; first + count <= map.elements(); ++count) {
            std::optional<Places> found = cut(map, first, count);
            // What is of another part is no place of this one.
            Places expected(places.begin() + first, places.begin() + first + count);
            bool isInside = std::find(expected.begin(), expected.end(), kOther) == expected.end();
            ASSERT_EQ(found.has_value(), isInside);
            if (isInside)
              ASSERT_EQ(*found, expected);
          }
        ASSERT_FALSE(map.cut({map.elements(), 0, 0, 0, 1, 1}, [](const Cut &) {}));
      }
    }
}

// The verifier reads placements backwards, the runtime forwards: they agree on every element.
TEST(MemoryMap, AgreesWithTheRuntimesGeometry) {
  std::mt19937_64 random(5);
  std::map<std::string, int> histogram;
  int64_t shards = 0;
  std::map<std::string, int> kinds;
  for (int round = 0; round < 400; ++round)
    for (test::DrawnGroups drawn = test::drawGroups(random, histogram);
         const test::DrawnGroup &each : drawn.groups) {
      const plan::Mesh &mesh = drawn.meshes[each.meshIndex];
      for (int64_t position = 0; position < int64_t(mesh.ranks.size()); ++position)
        for (int64_t kind = 0; kind < 4; ++kind) {
          auto value = plan::ValueKind(kind);
          plan::View view = viewOf(each.group, value), other = plan::view(each.group, value);
          ASSERT_EQ(std::tie(view.blocks, view.rows, view.cols),
                    std::tie(other.blocks, other.rows, other.cols));
          MemoryMap map =
              MemoryMap::ofShard(each.group, mesh, position, value, plan::ShardsKind::Parameter);
          Places places = placesOf(each.group, mesh, position, value, map.elements());
          if (std::find(places.begin(), places.end(), kOther) == places.end())
            ASSERT_EQ(cut(map, 0, map.elements()).value_or(Places()), places);
          std::map<int64_t, int64_t> counts;
          for (int64_t at = 0; at < map.elements(); ++at) {
            std::optional<Places> found = cut(map, at, 1);
            ASSERT_EQ(found.value_or(Places{kOther}), Places{places[at]})
                << toString(each.group.placements) << ", position " << position;
            counts[places[at][0]] += places[at] != kOther;
          }
          for (int64_t block = 0; block < each.group.blocksPerParameter(); ++block)
            ASSERT_EQ(map.blockElements(block), counts[block]);
          ++shards;
        }
      for (const plan::Placement &placement : each.group.placements) {
        std::string kind = toString(placement);
        ++kinds[kind.substr(0, kind.find('('))];
      }
    }
  EXPECT_GT(shards, 5000);
  for (const char *kind : {"R", "S", "_S", "IS", "owned", "flat"})
    EXPECT_GT(kinds[kind], 50) << kind;
}

} // namespace
