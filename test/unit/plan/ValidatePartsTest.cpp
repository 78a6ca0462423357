//===- ValidatePartsTest.cpp - What parts and flattened axes of a plan can be -===//

#include "test/unit/plan/RandomPlan.h"

#include <gtest/gtest.h>

namespace stepc::test {

using namespace plan;

namespace {

TEST(Plan, ValidationNamesWhatIsWrongWithParts) {
  auto message = [](auto change) {
    Plan plan = richPlan();
    change(plan);
    return validate(plan);
  };
  using Parts = std::vector<std::vector<Span>>;
  auto divided = [&](Parts parts) {
    return message([&](Plan &p) { p.groups[0].division.parts = parts; });
  };
  EXPECT_EQ(divided({}),
            "group group: expected no part of matrices that are not divided, found part 0");
  std::string part = "group group: expected columns of part ";
  EXPECT_EQ(divided({{{0, 4}}, {}}), part + "1, found none");
  EXPECT_EQ(divided({{{1, 4}, {0, 1}}}), part + "0 in their order, found 0:1 behind 1:4");
  EXPECT_EQ(divided({{{0, 0}, {0, 4}}}), part + "0 in each run, found 0:0");
  EXPECT_EQ(divided({{{0, 5}}}), part + "0 between 0 and 4, found 0:5");
  EXPECT_EQ(divided({{{-1, 4}}}), part + "0 between 0 and 4, found -1:4");
  std::string once = "group group: expected each column in one part, found column ";
  EXPECT_EQ(divided({{{0, 3}}}), once + "3 in none");
  EXPECT_EQ(divided({{{0, 2}}, {{1, 4}}}), once + "1 in two");
  EXPECT_EQ(divided({{{0, 1}}, {{1, 4}}}), "group group: expected groups of all 2 parts, found 1");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].parts = {1}; }),
            "group group: expected a part below 1, found 1");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].shape = {4}; }),
            "group group: expected a division of the rows or the columns of matrices, found one of "
            "1 axes");
  auto several = [&](Parts parts, std::vector<int64_t> chosen) {
    return message([&](Plan &p) {
      p.groups[0].division.parts = parts;
      p.groups[0].parts = chosen;
    });
  };
  EXPECT_EQ(several({{{0, 2}}, {{2, 4}}}, {1, 0}),
            "group group: expected parts of a group in their order, found part 0 behind part 1");
  EXPECT_EQ(several({{{0, 1}}, {{1, 4}}}, {0, 1}),
            "group group: expected parts of equal size in a group, found 1 and 3 columns");
  auto flattened = [&](std::vector<int64_t> shape, int64_t batch, int64_t flatten) {
    return message([&](Plan &p) {
      p.groups[0].shape = shape;
      p.groups[0].batchAxes = batch;
      p.groups[0].flatten = flatten;
    });
  };
  EXPECT_EQ(flattened({6, 4}, 0, 1),
            "group group: expected three axes or more to flatten, found 2");
  EXPECT_EQ(flattened({6, 2, 2}, 1, 2),
            "group group: expected three axes or more to flatten, found 2");
  EXPECT_EQ(flattened({6, 2, 2}, 0, 3),
            "group group: expected columns from axis 1 to 2 on, found 3");
  EXPECT_EQ(flattened({6, 2, 2, 1}, 1, 1),
            "group group: expected columns from axis 2 to 3 on, found 1");
  EXPECT_EQ(flattened({6, 2, 2}, 0, 1), "");
  auto second = [&](auto change) {
    return message([&](Plan &p) {
      p.groups[0].division.parts = {{{0, 1}}, {{1, 4}}};
      p.groups.push_back(p.groups[0]);
      p.groups[1].parts = {1};
      change(p.groups[1]);
    });
  };
  EXPECT_EQ(second([](Group &) {}), "");
  EXPECT_EQ(second([](Group &g) { g.parts = {0}; }),
            "group group: expected each part of p0 in one group, found part 0 again");
  EXPECT_EQ(
      second([](Group &g) { g.gradientType = DType::F32; }),
      "group group: expected parameter p0 at place 0 of this group, found that it says place 0 of "
      "group 0");
  EXPECT_EQ(second([](Group &g) {
              g.parameters.pop_back();
              g.hops[0].base.pop_back();
            }),
            "group group: expected the parameters of group group, which has another part of them, "
            "found others");
}

} // namespace
} // namespace stepc::test
