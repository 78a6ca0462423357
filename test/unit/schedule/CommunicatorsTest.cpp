//===- CommunicatorsTest.cpp - Which ranks meet in what --------------------===//

#include "passes/distribute/Communicators.h"
#include "dialects/comm/Comm.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace stepc;
using plan::Factor;

namespace {

TEST(Communicators, JoinIsOneOfEqualsOrWholeAxes) {
  MLIRContext context;
  context.loadDialect<comm::CommDialect>();
  plan::Mesh mesh{"m", {"x", "y", "z"}, {2, 4, 2}, {}};
  auto make = [&](StringRef name, std::vector<Factor> factors) {
    return comm::CommunicatorAttr::get(&context, FlatSymbolRefAttr::get(&context, name), factors);
  };
  auto join = [&](comm::CommunicatorAttr one, comm::CommunicatorAttr other) {
    return comm::CommunicatorAttr::join(one, other, mesh);
  };
  comm::CommunicatorAttr half = make("m", {{1, 1, 2}});
  EXPECT_EQ(join(half, half), half);
  EXPECT_EQ(join(half, make("m", {{1, 2, 2}})), make("m", {{1, 1, 4}}));
  EXPECT_EQ(join(half, make("m", {{2, 1, 2}})), make("m", {{1, 1, 4}, {2, 1, 2}}));
  EXPECT_EQ(join(half, make("m", {{0, 1, 1}})), make("m", {{1, 1, 4}})); // one rank goes nowhere
  EXPECT_EQ(join(half, make("other", {{1, 1, 2}})), comm::CommunicatorAttr());
}

TEST(Communicators, RanksMeetAlongFactorsOfFactors) {
  using distribute::meetAlong;
  EXPECT_TRUE(meetAlong({}, {}));
  EXPECT_TRUE(meetAlong(Factor{0, 1, 1}, {}));
  EXPECT_FALSE(meetAlong(Factor{0, 1, 2}, {}));
  EXPECT_TRUE(meetAlong(Factor{0, 2, 2}, Factor{0, 1, 4}));
  EXPECT_TRUE(meetAlong(Factor{0, 1, 4}, {{0, 2, 2}, {0, 1, 2}}));
  EXPECT_FALSE(meetAlong(Factor{0, 1, 4}, Factor{0, 2, 2}));
  EXPECT_FALSE(meetAlong(Factor{0, 1, 2}, Factor{1, 1, 2}));
  // Ranks 2 and 3 of six are neighbours two by two, not three by three.
  EXPECT_FALSE(meetAlong(Factor{0, 1, 2}, Factor{0, 1, 3}));
}

} // namespace
