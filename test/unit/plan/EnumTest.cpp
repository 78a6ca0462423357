//===- EnumTest.cpp - Names of enumerations -------------------------------===//

#include "runtime/plan/Plan.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace stepc::test {

using namespace plan;

/// Whether the enumeration has an enumerator of this value: compilers spell others as a cast of a number.
template <auto value> constexpr bool isEnumerator() {
  std::string_view text = __PRETTY_FUNCTION__;
  return text.find("value = (") == std::string_view::npos;
}
enum class Two { One, Other };
static_assert(isEnumerator<Two::Other>() && !isEnumerator<static_cast<Two>(2)>());

namespace {

template <typename Enum> class EnumTest : public testing::Test {};
using Enums =
    testing::Types<DType, PlacementKind, ShardsKind, MissingGrad, Division::Axis, BlockSizes,
                   Distribution::Kind, End, TableKind, CollectiveKind, Accumulation, Reduction>;
TYPED_TEST_SUITE(EnumTest, Enums);

TYPED_TEST(EnumTest, EveryNameParsesBack) {
  std::set<std::string_view> names;
  for (int64_t i = 0; i < count<TypeParam>(); ++i) {
    auto value = static_cast<TypeParam>(i);
    EXPECT_TRUE(isKnown(value));
    EXPECT_EQ(parse<TypeParam>(name(value)), value);
    EXPECT_TRUE(names.insert(name(value)).second) << name(value);
    EXPECT_EQ(name(value).find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"),
              std::string_view::npos)
        << name(value);
  }
  EXPECT_EQ(static_cast<int64_t>(last<TypeParam>()), count<TypeParam>() - 1);
}

TYPED_TEST(EnumTest, EveryValueHasAName) {
  EXPECT_TRUE(isEnumerator<last<TypeParam>()>());
  EXPECT_FALSE(isEnumerator<static_cast<TypeParam>(count<TypeParam>())>());
}

TYPED_TEST(EnumTest, UnknownValuesAreSafe) {
  for (int64_t number : {int64_t(-1), count<TypeParam>(), int64_t(1) << 40}) {
    auto value = static_cast<TypeParam>(number);
    EXPECT_FALSE(isKnown(value));
    EXPECT_EQ(name(value), "?");
  }
  for (std::string_view word : {"", "?", "no_such_word"})
    EXPECT_FALSE(parse<TypeParam>(word));
}

TEST(Names, MessagesListThem) {
  EXPECT_EQ(oneOf(kNames<MissingGrad>), "error, skip or zero");
  EXPECT_EQ(oneOf(kNames<Division::Axis>), "rows or columns");
}

TEST(ValueKinds, AreNamedOrSayTheirExtents) {
  EXPECT_EQ(name(ValueKind::Full), "full");
  EXPECT_EQ(name(ValueKind{1, ValueKind::OfCols}), "cols");
  EXPECT_EQ(name(ValueKind{ValueKind::OfSmaller, ValueKind::OfSmaller}), "gram");
  EXPECT_EQ(name(ValueKind{ValueKind::OfCols, 8}), "[cols, 8]");
  EXPECT_EQ(name(ValueKind{ValueKind::OfSmaller, ValueKind::OfRows}), "[smaller, rows]");
  for (auto [word, kind] : kNamedKinds) {
    EXPECT_EQ(name(kind), word);
    EXPECT_EQ(kind.isStored(), word != "gram") << word;
  }
  for (int64_t wrong : {ValueKind::ofSize(ValueKind::kMostSizes), int64_t(0), kMostExtent + 1}) {
    EXPECT_FALSE(isKnown(ValueKind{wrong, 1}));
    EXPECT_FALSE(isKnown(ValueKind{1, wrong}));
    EXPECT_EQ(name(ValueKind{1, wrong}), "?");
  }
  EXPECT_EQ((ValueKind{ValueKind::OfCols, 8}.extents(5, 7, 5, {})),
            std::pair(int64_t(7), int64_t(8)));
  EXPECT_EQ((ValueKind{ValueKind::ofSize(1), ValueKind::ofSize(0)}.extents(5, 7, 5, {3, 4})),
            std::pair(int64_t(4), int64_t(3)));
  EXPECT_EQ(name(ValueKind{ValueKind::OfCols, ValueKind::ofSize(1)}), "[cols, size1]");
}

TEST(ValueKinds, HaveViewsOfTheirExtents) {
  Group group;
  group.shape = {3, 5, 7};
  group.batchAxes = 1;
  for (auto [kind, rows, cols] :
       {std::tuple(ValueKind::Full, 5, 7), std::tuple(ValueKind::Gram, 5, 5),
        std::tuple(ValueKind{ValueKind::OfCols, 8}, 7, 8),
        std::tuple(ValueKind{2, ValueKind::OfSmaller}, 2, 5)}) {
    View view = plan::view(group, kind);
    EXPECT_EQ(std::tuple(view.blocks, view.rows, view.cols), std::tuple(3, rows, cols))
        << name(kind);
  }
}

TEST(ShardsKinds, MessagesSayWhatShardsAreOf) {
  EXPECT_EQ(describe(ShardsKind::State), "state");
  EXPECT_EQ(describe(ShardsKind::Reduced), "reduced gradient");
}

} // namespace
} // namespace stepc::test
