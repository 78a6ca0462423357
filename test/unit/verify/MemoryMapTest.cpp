//===- MemoryMapTest.cpp - Which element stands where, element by element --===//

#include "passes/verify/MemoryMap.h"
#include "RandomGroups.h"
#include "runtime/geometry/Geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>

using namespace stepc;
using namespace stepc::verify;

namespace {

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

TEST(MemoryMap, HasJoinedAxesAsOneMatrix) {
  plan::Mesh mesh{"m", {"a", "b"}, {2, 2}, {0, 1, 2, 3}};
  plan::Group group;
  group.shape = {3, 2, 4, 5};
  group.batchAxes = 2;
  group.parameters = {0};
  group.joined = 2;
  group.placements = {{plan::PlacementKind::Shard, 1}, {plan::PlacementKind::StridedShard, 3, 2}};
  for (int64_t position = 0; position < 4; ++position) {
    MemoryMap map = MemoryMap::ofShard(group, mesh, position, plan::ValueKind::Full,
                                       plan::ShardsKind::Parameter);
    EXPECT_EQ(map.blockElements(0), map.elements());
    EXPECT_EQ(cut(map, 0, map.elements()),
              placesOf(group, mesh, position, plan::ValueKind::Full, map.elements()));
  }
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
          plan::ValueKind value = plan::kNamedKinds[size_t(kind)].second;
          plan::View view = viewOf(each.group, value), other = plan::view(each.group, value);
          ASSERT_EQ(std::tie(view.blocks, view.rows, view.cols),
                    std::tie(other.blocks, other.rows, other.cols));
          MemoryMap map =
              MemoryMap::ofShard(each.group, mesh, position, value, plan::ShardsKind::Parameter);
          Places places = placesOf(each.group, mesh, position, value, map.elements());
          if (std::find(places.begin(), places.end(), kOther) == places.end())
            ASSERT_EQ(cut(map, 0, map.elements()).value_or(Places()), places);
          std::vector<int64_t> counts(size_t(each.group.blocksPerParameter()), 0);
          for (int64_t at = 0; at < map.elements(); ++at) {
            std::array<int64_t, 3> found = kOther;
            auto visit = [&](const Cut &cut) { found = {cut.block, cut.row, cut.col}; };
            bool isInside = map.cut({at, 0, 0, 0, 1, 1}, visit);
            std::optional<Cut> same = map.at(at);
            // Of millions of elements: an assertion takes longer than what it compares.
            if (found != places[at] || isInside != (found != kOther) ||
                same.has_value() != isInside ||
                (same && std::array{same->block, same->row, same->col} != found))
              FAIL() << toString(each.group.placements) << ", position " << position << ", element "
                     << at;
            if (isInside)
              ++counts[size_t(found[0])];
          }
          ASSERT_FALSE(map.at(-1) || map.at(map.elements()));
          for (int64_t block = 0; block < each.group.blocksPerParameter(); ++block)
            ASSERT_EQ(map.blockElements(block), counts[size_t(block)]);
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
