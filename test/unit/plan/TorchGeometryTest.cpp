//===- TorchGeometryTest.cpp - Shards against torch's own -----------------===//

#include "runtime/geometry/Geometry.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace stepc::test {

using namespace plan;

namespace {

std::vector<int64_t> numbers(const std::string &text) {
  std::istringstream in(text);
  std::vector<int64_t> result;
  for (int64_t value; in >> value;)
    result.push_back(value);
  return result;
}

std::vector<Placement> placements(const std::string &text) {
  std::istringstream in(text);
  std::vector<Placement> result;
  for (std::string word; in >> word;) {
    Placement p;
    if (word[0] == 'S')
      p = {PlacementKind::Shard, std::stoll(word.substr(2)), 1};
    else if (word[0] == '_')
      p = {PlacementKind::StridedShard, std::stoll(word.substr(3)),
           std::stoll(word.substr(word.find(',') + 1))};
    result.push_back(p);
  }
  return result;
}

/// The global flat indices in local order, put together from rectangles.
std::vector<int64_t> shardOf(const Group &group, const Mesh &mesh, int64_t position) {
  auto local = geometry::localShape(group.shape, group.placements, mesh,
                                    geometry::coordinates(mesh, position));
  std::vector<int64_t> result(static_cast<size_t>(geometry::elements(local)), -1);
  for (const geometry::Rect &rect : geometry::rectangles(group, mesh, position, ValueKind::Full))
    for (int64_t i = 0; i < rect.rows; ++i)
      for (int64_t j = 0; j < rect.cols; ++j)
        result.at(static_cast<size_t>(rect.offset + i * rect.stride + j)) =
            (rect.block * group.rows() + rect.row + i) * group.cols() + rect.col + j;
  return result;
}

TEST(TorchGeometry, EveryElementOfEveryShard) {
  std::ifstream in(STEPC_TORCH_CASES);
  ASSERT_TRUE(in) << STEPC_TORCH_CASES;
  std::string line;
  int cases = 0, shards = 0;
  Mesh mesh;
  Group group;
  int64_t position = 0;
  std::string title;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#')
      continue;
    if (line.starts_with("case ")) {
      title = line;
      size_t first = line.find('|'), second = line.find('|', first + 1);
      mesh.sizes = numbers(line.substr(5, first - 5));
      mesh.ranks.resize(static_cast<size_t>(geometry::elements(mesh.sizes)));
      group.shape = numbers(line.substr(first + 1, second - first - 1));
      group.placements = placements(line.substr(second + 1));
      position = 0;
      ++cases;
      continue;
    }
    size_t colon = line.find(':');
    std::vector<int64_t> expected;
    std::istringstream runs(line.substr(colon + 1));
    for (std::string run; runs >> run;)
      for (int64_t i = 0, start = std::stoll(run); i < std::stoll(run.substr(run.find('+') + 1));
           ++i)
        expected.push_back(start + i);
    EXPECT_EQ(geometry::localShape(group.shape, group.placements, mesh,
                                   geometry::coordinates(mesh, position)),
              numbers(line.substr(0, colon)))
        << title << ", position " << position;
    // How many axes are called batch axes changes the view, not the shard.
    for (int64_t batch = 0; batch <= static_cast<int64_t>(group.shape.size()); ++batch) {
      group.batchAxes = batch;
      EXPECT_EQ(shardOf(group, mesh, position), expected)
          << title << ", position " << position << ", batch axes " << batch;
    }
    ++position;
    ++shards;
  }
  printf("%d cases, %d shards\n", cases, shards);
  EXPECT_GE(cases, 250);
}

} // namespace
} // namespace stepc::test
