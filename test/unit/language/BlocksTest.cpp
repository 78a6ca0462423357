//===- BlocksTest.cpp - Statements that divide fused weights --------------===//
#include "Helpers.h"

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::ElementsAre;

namespace {

/// Statements begin in line 1.
std::vector<std::string> messagesOf(const std::string &statements) {
  return check(statements + "\noptimizer A() {\n  param = grad\n}\n").messages();
}

void expectMessages(llvm::ArrayRef<Case> cases) { test::expectMessages(cases, messagesOf); }

TEST(Blocks, AreRead) {
  Source source("t.optim", "blocks \"a\" rows 512, 128,\n 128\n"
                           "blocks \"b\", \"c\" if present except \"d\" repeat 8 columns each 64\n"
                           "blocks \"e\" rows split 2\n"
                           "blocks \"f\" flatten 1\n"
                           "blocks \"g\" except \"h\" flatten 2 repeat 3 rows each 4\n"
                           "optimizer blocks(repeat, each) { param = each * grad }");
  Diagnostics diagnostics;
  EXPECT_EQ(dump(*parse(source, diagnostics)),
            "(optimizer blocks\n"
            "  (hyperparameter repeat)\n"
            "  (hyperparameter each)\n"
            "  (assign param (* each grad))\n"
            ")\n"
            "(blocks (globs \"a\") (except) (rows 512 128 128))\n"
            "(blocks (globs \"b\" \"c\") if-present (except \"d\") (repeat 8) (columns each 64))\n"
            "(blocks (globs \"e\") (except) (rows split 2))\n"
            "(blocks (globs \"f\") (except) (flatten 1))\n"
            "(blocks (globs \"g\") (except \"h\") (flatten 2) (repeat 3) (rows each 4))\n");
  EXPECT_FALSE(diagnostics.hasErrors());
}

TEST(Blocks, Syntax) {
  expectMessages({
      {"blocks qkv rows 3", {"1:8: error: expected a pattern in quotes, found 'qkv'"}},
      {"blocks \"a\" 512, 128",
       {"1:12: error: expected 'flatten', 'repeat', 'rows' or 'columns', found '512'",
        "  hint: say what the sizes count: 'rows 512, 128', 'columns each 64'"}},
      {"blocks \"a\" repeat 2 cols 3",
       {"1:21: error: expected 'rows' or 'columns', found 'cols'",
        "  hint: did you mean 'columns'?"}},
      {"blocks \"a\" except \"b\" if present rows 3",
       {"1:23: error: expected 'flatten', 'repeat', 'rows' or 'columns', found 'if'",
        "  hint: 'if present' stands before 'except'"}},
      {"blocks \"a\" if absent rows 3",
       {"1:15: error: expected 'present', found 'absent'",
        "  hint: 'if present' lets the patterns of 'blocks' match nothing; there is no other "
        "'if'"}},
      {"blocks \"a\" rows",
       {"2:1: error: expected sizes of blocks, 'each' or 'split', found 'optimizer'"}},
      {"blocks \"a\" rows 3,", {"2:1: error: expected a size, found 'optimizer'"}},
      {"blocks \"a\" rows -3",
       {"1:17: error: expected sizes of blocks, 'each' or 'split', found '-'"}},
      {"blocks \"a\" rows each",
       {"2:1: error: expected the size of each block, found 'optimizer'"}},
      {"blocks \"a\" rows split \"b\"",
       {"1:23: error: expected the number of blocks, found \"b\""}},
      {"blocks \"a\" repeat rows 3",
       {"1:19: error: expected how often the blocks follow each other, found 'rows'"}},
      {"blocks \"a\" flatten rows 3",
       {"1:20: error: expected the axis where columns begin, found 'rows'"}},
      {"blocks \"a\" flatten 1 repeat 2",
       {"2:1: error: expected 'rows' or 'columns', found 'optimizer'"}},
      {"blocks \"a\" flatten 1 blocks \"b\" rows 3",
       {"1:22: error: expected the end of the line, found 'blocks'"}},
      {"blocks \"a\" rows 3 blocks \"b\" rows 3",
       {"1:19: error: expected the end of the line, found 'blocks'"}},
  });
}

TEST(Blocks, Numbers) {
  expectMessages({
      {"blocks \"a\" rows 0",
       {"1:17: error: expected the size of a block as a whole number from 1 to 2^40, found 0"}},
      {"blocks \"a\" rows 3, 2.5",
       {"1:20: error: expected the size of a block as a whole number from 1 to 2^40, found 2.5"}},
      {"blocks \"a\" columns each 1e13",
       {"1:25: error: expected the size of a block as a whole number from 1 to 2^40, found 1e+13"}},
      {"blocks \"a\" rows split 65537",
       {"1:23: error: expected a number of blocks as a whole number from 1 to 2^16, found 65537"}},
      {"blocks \"a\" flatten 0",
       {"1:20: error: expected the axis where columns begin as a whole number from 1 to 2^6, found "
        "0"}},
      {"blocks \"a\" flatten 1.5 rows 1",
       {"1:20: error: expected the axis where columns begin as a whole number from 1 to 2^6, found "
        "1.5"}},
      {"blocks \"a\" repeat 0 rows 1",
       {"1:19: error: expected how often the blocks follow each other as a whole number from 1 to "
        "2^16, found 0"}},
      {"blocks \"a\" repeat 65536 rows 1099511627776, 1", {}},
  });
}

TEST(Blocks, PatternsThatAreNone) {
  expectMessages({
      {"blocks \"[z-a]\" rows 3",
       {"1:8: error: expected a range that rises in a pattern, found 'z-a'",
        "  hint: write 'a-z'"}},
      {"blocks \"a\" except \"[z-a]\" rows 3",
       {"1:19: error: expected a range that rises in a pattern, found 'z-a'",
        "  hint: write 'a-z'"}},
  });
}

TEST(Blocks, ErrorsDoNotHideOthers) {
  EXPECT_THAT(
      messagesOf("blocks \"a\" row 3\nblocks \"b\" rows each 0"),
      ElementsAre(
          "1:12: error: expected 'flatten', 'repeat', 'rows' or 'columns', found 'row'",
          "2:22: error: expected the size of a block as a whole number from 1 to 2^40, found "
          "0"));
  EXPECT_THAT(check("block \"a\" rows 3").messages(),
              ElementsAre("1:1: error: expected 'optimizer', 'model', 'def', 'import', 'blocks' or "
                          "'route', found 'block'",
                          "  hint: did you mean 'blocks'?"));
}

TEST(Blocks, Format) {
  Source source(
      "t.optim",
      "blocks   \"a\"\nrows 512,128 , 128 // three\nblocks \"b\" if\npresent columns  each 64\n"
      "optimizer A() { param = grad }\nblocks \"c\" repeat 8 rows split 3\n\n\nblocks "
      "\"layers.*.attention.qkv.weight\""
      ", \"layers.*.attention.query_key_value.weight\" if present except \"*.bias\" rows 512, 128\n"
      "// all\nroute { A() for rest }");
  Diagnostics diagnostics;
  EXPECT_EQ(format(source, diagnostics),
            "blocks \"a\" rows 512, 128, 128  // three\n"
            "blocks \"b\" if present columns each 64\n"
            "\n"
            "optimizer A() {\n"
            "  param = grad\n"
            "}\n"
            "\n"
            "blocks \"c\" repeat 8 rows split 3\n"
            "\n"
            "blocks \"layers.*.attention.qkv.weight\", "
            "\"layers.*.attention.query_key_value.weight\" if present\n"
            "    except \"*.bias\" rows 512, 128\n"
            "\n"
            "// all\n"
            "route {\n"
            "  A() for rest\n"
            "}\n");
}

} // namespace
