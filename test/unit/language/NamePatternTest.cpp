//===- NamePatternTest.cpp - Patterns of parameter names ------------------===//
#include "dialects/optim/NamePattern.h"
#include "llvm/ADT/SmallVector.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <fstream>
#include <random>

using namespace stepc;
using llvm::StringRef;

namespace {

bool matches(StringRef pattern, StringRef name) {
  NamePatternError error;
  std::optional<NamePattern> parsed = NamePattern::parse(pattern, error);
  EXPECT_TRUE(parsed) << pattern.str() << ": " << error.text();
  return parsed && parsed->matches(name);
}

TEST(NamePattern, MeansWhatTheTableSays) {
  std::ifstream table(STEPC_SOURCE_DIR "/test/inputs/patterns.txt");
  unsigned matched = 0, differed = 0, refused = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line[0] == '#')
      continue;
    llvm::SmallVector<StringRef> fields;
    StringRef(line).split(fields, '\t');
    ASSERT_GE(fields.size(), 3u) << line;
    if (fields[0] == "refuse") {
      ++refused;
      ASSERT_EQ(fields.size(), 4u) << line;
      NamePatternError error;
      EXPECT_FALSE(NamePattern::parse(fields[1], error)) << line;
      EXPECT_EQ(error.message, fields[2].str()) << line;
      EXPECT_EQ(error.hint, fields[3].str()) << line;
      continue;
    }
    ++(fields[0] == "match" ? matched : differed);
    EXPECT_EQ(matches(fields[1], fields[2]), fields[0] == "match") << line;
  }
  EXPECT_GT(matched, 50u);
  EXPECT_GT(differed, 50u);
  EXPECT_GT(refused, 10u);
}

TEST(NamePattern, BytesThatAreNoText) {
  NamePatternError error;
  EXPECT_FALSE(NamePattern::parse("a\xFF", error));
  EXPECT_EQ(error.text(),
            "expected UTF-8 in a pattern, found the byte 0xff; names are Unicode text");
  // In a name each counts as one character, which is none that a pattern can say.
  EXPECT_TRUE(matches("?", "\xFF"));
  EXPECT_FALSE(matches("??", "\xFF"));
  EXPECT_FALSE(matches("[a-\xF4\x8F\xBF\xBF]", "\xFF")); // up to U+10FFFF
  EXPECT_FALSE(matches("\xC3\xBF", "\xFF"));             // U+00FF
}

TEST(NamePattern, ManyStarsAreNotExponential) {
  EXPECT_FALSE(matches(std::string(200, '*') + "a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST(NamePattern, SomeOfManyNames) {
  EXPECT_EQ(stepc::nameSome({"a"}), "'a'");
  EXPECT_EQ(stepc::nameSome({"a", "b"}), "'a' and 'b'");
  EXPECT_EQ(stepc::nameSome({"a", "b", "c", "d"}), "'a', 'b', 'c' and 'd'");
  EXPECT_EQ(stepc::nameSome({"a", "b", "c", "d", "e"}), "'a', 'b', 'c' and 2 more");
}

/// Stars, question marks and letters by the definition, one case each.
bool byDefinition(StringRef pattern, StringRef name) {
  if (pattern.empty())
    return name.empty();
  if (pattern.front() == '*')
    return byDefinition(pattern.drop_front(), name) ||
           (!name.empty() && byDefinition(pattern, name.drop_front()));
  return !name.empty() && (pattern.front() == '?' || pattern.front() == name.front()) &&
         byDefinition(pattern.drop_front(), name.drop_front());
}

TEST(NamePattern, StarsAgreeWithTheDefinition) {
  const char *given = std::getenv("STEPC_SEED");
  unsigned seed = given ? unsigned(std::strtoul(given, nullptr, 10)) : std::random_device()();
  std::cout << "seed " << seed << " (repeat with STEPC_SEED)\n";
  std::mt19937 random(seed);
  auto draw = [&](StringRef letters, unsigned longest) {
    std::string text;
    for (unsigned i = 0, size = 1 + random() % longest; i < size; ++i)
      text += letters[random() % letters.size()];
    return text;
  };
  unsigned matched = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string pattern = draw("ab**?", 8), name = draw("ab", 10);
    bool expected = byDefinition(pattern, name);
    matched += expected;
    ASSERT_EQ(matches(pattern, name), expected) << pattern << " " << name;
  }
  EXPECT_GT(matched, 1000u);
}

} // namespace
