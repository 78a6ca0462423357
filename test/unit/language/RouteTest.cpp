//===- RouteTest.cpp - Names, patterns and layout of claims ---------------===//
#include "Helpers.h"

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::ElementsAre;

namespace {

/// Claims begin in line 8, after the optimizers A and B.
Result checkClaims(const std::string &claims) {
  return check("optimizer A() {\n  param = grad\n}\noptimizer B() {\n  param = grad\n}\nroute {\n" +
               claims + "\n}\n");
}

void expectMessages(llvm::ArrayRef<Case> cases) {
  test::expectMessages(cases,
                       [](const std::string &claims) { return checkClaims(claims).messages(); });
}

/// The names of the routes.
std::vector<std::string> names(const std::string &claims) {
  Result result = checkClaims(claims);
  EXPECT_THAT(result.messages(), testing::IsEmpty());
  std::vector<std::string> found;
  for (const Claim &claim : result.file->route()->claims)
    found.push_back(claim.name);
  return found;
}

TEST(Route, NamesAndOptionalPatternsAreRead) {
  Source source("t.optim", "route { A() as head for \"h\"\nif present except \"d\"\n"
                           "A() for matrix \"a\", \"b\" if present\n A() as present for rest }");
  Diagnostics diagnostics;
  EXPECT_EQ(dump(*parse(source, diagnostics)),
            "(route\n"
            "  (claim A (as head) (globs \"h\") if-present (except \"d\"))\n"
            "  (claim A matrix (globs \"a\" \"b\") if-present (except))\n"
            "  (claim A (as present) rest (globs) (except))\n)\n");
  EXPECT_FALSE(diagnostics.hasErrors());
}

TEST(Route, Syntax) {
  expectMessages({
      {"A() as for \"a\"",
       {"8:8: error: expected the route's name, found 'for'",
        "  hint: 'for' is a word of the language"}},
      {"A() for \"a\" as b", {"8:13: error: expected 'except' or the end of the line, found 'as'"}},
      {"A() if present for \"a\"", {"8:5: error: expected 'for', found 'if'"}},
      {"A() for \"a\" if absent",
       {"8:16: error: expected 'present', found 'absent'",
        "  hint: 'if present' lets the patterns of a claim match nothing; there is no other 'if'"}},
      {"A() for \"a\" except \"b\" if present",
       {"8:24: error: expected the end of the line, found 'if'",
        "  hint: 'if present' stands before 'except'"}},
  });
}

TEST(Route, PatternsThatAreNone) {
  expectMessages({
      {"A() for \"[^a]*\"",
       {"8:9: error: expected '!' where a set of a pattern is negated, found '^'",
        "  hint: write '[!...]' for a character that is not in the set, and a '^' that belongs to "
        "the set behind its first character"}},
      {"A() for \"a\" except \"[z-a]\"",
       {"8:20: error: expected a range that rises in a pattern, found 'z-a'",
        "  hint: write 'a-z'"}},
  });
}

TEST(Route, IfPresentNeedsPatterns) {
  expectMessages({
      {"A() for rest if present",
       {"8:14: error: expected 'if present' after patterns, found it after 'rest'",
        "  hint: leave it out: without patterns a claim may take no parameter at all"}},
      {"A() for matrix if present except \"a\"",
       {"8:16: error: expected 'if present' after patterns, found it after 'matrix'",
        "  hint: leave it out: without patterns a claim may take no parameter at all"}},
      {"A() for matrix \"a\" if present\nB() for rest", {}},
  });
}

TEST(Route, Names) {
  EXPECT_THAT(names("A() for \"a\"\nB() for rest"), ElementsAre("A", "B"));
  EXPECT_THAT(names("A() for \"a\"\nB() for \"b\"\nA() for rest"), ElementsAre("A.1", "B", "A.2"));
  // A name of its own leaves the numbers to the others, wherever it stands.
  EXPECT_THAT(names("A() as head for \"a\"\nB() for \"b\"\nA() for rest"),
              ElementsAre("head", "B", "A"));
  EXPECT_THAT(names("A() for \"a\"\nB() as head for \"b\"\nA() for rest"),
              ElementsAre("A.1", "head", "A.2"));
  EXPECT_THAT(names("A() as A for \"a\"\nB() for rest"), ElementsAre("A", "B"));
}

TEST(Route, NamesThatAreTaken) {
  expectMessages({
      {"A() as one for \"a\"\nB() as one for \"b\"",
       {"9:8: error: expected routes of different names, found another 'one'",
        "  8:8: note: the first is here", "  hint: 'as NAME' before 'for' names a route"}},
      {"A() as A for \"a\"\nA() for rest",
       {"9:1: error: expected routes of different names, found another 'A'",
        "  8:8: note: the first is here", "  hint: 'as NAME' before 'for' names a route"}},
      {"A() as B for \"a\"\nB() for rest",
       {"8:8: error: expected a route's name that no other optimizer has, found 'B'",
        "  4:11: note: the optimizer is declared here"}},
  });
}

/// The constants of the claims' first settings.
std::vector<double> values(const std::string &claims) {
  std::vector<double> found;
  Result result = check("optimizer A(lr = 3 / 4, b = 1) {\n  param = param - lr * b * grad\n}\n"
                        "route {\n" +
                        claims + "\n}\n");
  EXPECT_THAT(result.messages(), testing::IsEmpty()) << claims;
  for (const Claim &claim : result.file->route()->claims)
    found.push_back(claim.values[0]);
  return found;
}

TEST(Route, ValuesAreComputed) {
  EXPECT_THAT(values("A(lr = 0.1 / 3) for \"a\"\nA(b = 2) for \"b\"\n"
                     "A(lr = -(2 ^ -6) * (1 + 1)) for \"c\"\nA(lr = 1 / sqrt(16),) for rest"),
              ElementsAre(0.1 / 3, 0.75, -0.03125, 0.25));
  expectMessages(
      {{"A(lr = 1 / 0) for rest", {"8:8: error: expected a finite number, found infinity"}}});
  EXPECT_EQ(
      check("optimizer A(lr = 1 / 0, b = 1 < 2, c = log(-1)) {\n  param = lr * b * c * grad\n}\n")
          .messages(),
      (std::vector<std::string>{
          "1:18: error: expected a finite number, found infinity",
          "1:29: error: expected a number, found a condition",
          "  hint: choose numbers with 'select(condition, a, b)'",
          "1:40: error: expected a finite number, found NaN",
      }));
}

TEST(Route, Sizes) {
  expectMessages({
      {"A() for matrix where rows <= 2 ^ 16 and not (numel > 1e6)\nB() for rest", {}},
      {"A() for matrix \"a\" where max(rows, cols) < 9 if present except \"b\"\nB() for rest", {}},
      {"A() for matrix where floor(sqrt(rows)) != cols / 3\nB() for rest", {}},
      {"A() for matrix where 1 < 2\nB() for rest",
       {"8:22: warning: this condition holds for every matrix"}},
      {"A() for matrix where rows < numel / 0\nB() for rest", {"8:29: warning: this divides by 0"}},
      {"A() for matrix\nwhere rows < 3",
       {"9:1: error: expected a claim, found 'where'",
        "  hint: 'where' stands on the line of its 'matrix'"}},
      {"A() for matrix where rows + cols",
       {"8:22: error: expected a condition, found a scalar", "  hint: compare it: 'x != 0'"}},
      {"A() for matrix where step > 3 and rows > 4",
       {"8:22: error: expected a condition on rows, cols, numel and literals, found 'step'"}},
      {"A() for matrix where sum(rows) > 4",
       {"8:22: error: expected a condition on rows, cols, numel and literals, found 'sum'",
        "  hint: it is a function of tensors"}},
      {"A() for matrix where exp(rows) > 4",
       {"8:22: error: expected a condition on rows, cols, numel and literals, found 'exp'",
        "  hint: machines may round it differently"}},
      {"A() for matrix where 1.5 ^ rows > 4",
       {"8:22: error: expected a condition on rows, cols, numel and literals, found a power whose "
        "exponent is no whole literal from -16 to 16",
        "  hint: machines may round it differently"}},
      {"A() for matrix where model.size > 4",
       {"8:22: error: expected a condition on rows, cols, numel and literals, found a value of the "
        "model"}},
      {"A() for matrix where rows =< 3",
       {"8:27: error: expected a comparison, found '='", "  hint: at most is written 'a <= b'"}},
      {"A() for matrix where rows => 3",
       {"8:27: error: expected a comparison, found '='", "  hint: at least is written 'a >= b'"}},
      {"A() for matrix where rows = 3",
       {"8:27: error: expected a comparison, found '='", "  hint: equality is written 'a == b'"}},
      {"A() for matrix where row < 3",
       {"8:22: error: expected a condition on rows, cols, numel and literals, found 'row'",
        "  hint: did you mean 'rows'?"}},
      {"A() for matrix \"a\" when rows < 3",
       {"8:20: error: expected 'where', 'if present', 'except' or the end of the line, found "
        "'when'",
        "  hint: sizes are asked for by 'where': 'matrix where rows <= 4096'"}},
      {"A() for matrix wher rows < 3",
       {"8:16: error: expected 'where', 'if present', 'except' or the end of the line, found "
        "'wher'",
        "  hint: sizes are asked for by 'where': 'matrix where rows <= 4096'"}},
      {"A() for matrix where rows < 3 where cols < 3",
       {"8:31: error: expected the end of the line, found 'where'",
        "  hint: a claim has one 'where': join its conditions with 'and'"}},
      {"A() for matrix where", {"9:1: error: expected a value, found '}'"}},
      {"A() for \"a\" where rows < 3",
       {"8:13: error: expected 'if present', 'except' or the end of the line, found 'where'",
        "  hint: matrices have sizes: write 'for matrix \"a\" where ...'"}},
      {"A() for rest where rows < 3",
       {"8:14: error: expected 'if present', 'except' or the end of the line, found 'where'",
        "  hint: 'rest' takes what no other claim takes, whatever its size"}},
      {"A() for matrix except \"a\" where rows < 3",
       {"8:27: error: expected the end of the line, found 'where'",
        "  hint: 'where' stands behind 'matrix' and its patterns, before 'if present' and "
        "'except'"}},
  });
}

TEST(Route, Format) {
  Source source("t.optim",
                "route { A()  as\nhead for\n \"a\"  if\npresent   except \"b\"\n"
                "AnOptimizerOfALongName(learning_rate = 0.001) as a_route_of_a_long_name for "
                "\"layers.*.weight\" if present except \"layers.0.*\"\n"
                "AnOptimizerOfALongName(learning_rate =0.1/3) as another_route_of_a_long_name for "
                "matrix where(rows<  4096 or -cols > -8) except \"a\"\n}");
  Diagnostics diagnostics;
  EXPECT_EQ(format(source, diagnostics),
            "route {\n"
            "  A() as head for \"a\" if present except \"b\"\n"
            "  AnOptimizerOfALongName(learning_rate = 0.001) as a_route_of_a_long_name "
            "for \"layers.*.weight\"\n"
            "      if present except \"layers.0.*\"\n"
            "  AnOptimizerOfALongName(learning_rate = 0.1 / 3) as another_route_of_a_long_name\n"
            "      for matrix where (rows < 4096 or -cols > -8) except \"a\"\n"
            "}\n");
}

/// `if` is a word of routes alone.
TEST(Rule, ChoicesAreWrittenWithSelect) {
  const char *hint = "  hint: a choice is written 'select(condition, value, otherwise)'";
  auto expectHint = [&](const char *body, const char *message) {
    EXPECT_THAT(messagesIn(body), testing::IsSupersetOf({std::string(message), std::string(hint)}))
        << body;
  };
  expectHint("if step > 3", "2:1: error: expected a statement, found 'if'");
  expectHint("let x = if step > 3", "2:9: error: expected a value, found 'if'");
  expectHint("let x = lr if step > 3",
             "2:12: error: expected an operator or the end of the line, found 'if'");
  expectHint("let x = (lr if step > 3)", "2:13: error: expected ')', found 'if'");
}

} // namespace
