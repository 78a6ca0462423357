//===- ParserTest.cpp - Tokens, trees, syntax errors and recovery ---------===//
#include "Helpers.h"
#include "frontends/language/Lexer.h"
#include "frontends/text/Text.h"
#include "llvm/Support/raw_ostream.h"

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// The dump of the value of `let x = ...`.
std::string tree(const std::string &expr) {
  Source source("t.optim", rule("let x = " + expr));
  Diagnostics diagnostics;
  auto file = parse(source, diagnostics);
  EXPECT_FALSE(diagnostics.hasErrors()) << expr;
  return dump(*file->rules[0]->statements[0]->value);
}

/// Syntax errors alone, without what analysis adds.
std::vector<std::string> syntaxErrors(std::string text) {
  Result result;
  result.source = std::make_unique<Source>("t.optim", std::move(text));
  result.file = parse(*result.source, result.diagnostics);
  return result.messages();
}

std::vector<std::string> bodyErrors(const std::string &body) { return syntaxErrors(rule(body)); }

TEST(Lexer, KindsRangesAndLines) {
  Source source("t", "let x1 = 3e-4 // c\n  \"a\\\"b\" <= !=");
  Diagnostics diagnostics;
  TokenStream stream = lex(source, source.first(), diagnostics);
  std::vector<TokenKind> kinds;
  for (const Token &token : stream.tokens)
    kinds.push_back(token.kind);
  EXPECT_THAT(kinds, ElementsAre(TokenKind::KwLet, TokenKind::Name, TokenKind::Equal,
                                 TokenKind::Number, TokenKind::String, TokenKind::LessEqual,
                                 TokenKind::NotEqual, TokenKind::End));
  EXPECT_EQ(source.text(stream.tokens[1].range), "x1");
  EXPECT_EQ(stringValue(source.text(stream.tokens[4].range)), "a\"b");
  EXPECT_TRUE(stream.tokens[0].startsLine);
  EXPECT_FALSE(stream.tokens[1].startsLine);
  EXPECT_TRUE(stream.tokens[4].startsLine);
  ASSERT_EQ(stream.comments.size(), 1u);
  EXPECT_EQ(source.text(stream.comments[0].range), "// c");
  EXPECT_FALSE(stream.comments[0].startsLine);
}

TEST(Lexer, WindowsLineEndingsAreSpace) {
  EXPECT_THAT(check("optimizer T(lr) {\r\n  // c\r\n  param = lr * grad\r\n}\r\n").messages(),
              IsEmpty());
}

TEST(Lexer, NoTextHasControlCharacters) {
  auto place = [](const std::string &text) {
    std::vector<std::string> errors = syntaxErrors(text);
    EXPECT_EQ(errors.size(), 1u) << text;
    llvm::StringRef first = errors.empty() ? llvm::StringRef() : llvm::StringRef(errors[0]);
    EXPECT_TRUE(
        first.contains(": error: expected text in UTF-8 without control characters, found "));
    return (first.split(": ").first + " " + first.rsplit("found ").second).str();
  };
  EXPECT_EQ(place("// a comment\n// with \x1B[2J\n"), "2:9 U+001B");
  EXPECT_EQ(place("route {\n  A() for \"a\x7F\"\n}\n"), "2:13 U+007F");
  EXPECT_EQ(place("// \u202E } gnihton //\n"), "1:4 U+202E");
  EXPECT_EQ(place("// in Latin-1: \xE9t\xE9\n"), "1:16 the byte 0xe9");
  EXPECT_EQ(place(std::string("\x7F"
                              "ELF\0\0\0\xFF",
                              8)),
            "1:1 U+007F");
  // Only what a terminal obeys: other scripts and what joins them stay.
  EXPECT_THAT(syntaxErrors("// \u05D0\u0644 重み é\u200D\r\n\t// x\r\n"), IsEmpty());
}

TEST(Lexer, Errors) {
  EXPECT_THAT(bodyErrors("let x = 1.5.2"),
              ElementsAre("2:9: error: expected a number such as 1, 0.95 or "
                          "3e-4, found '1.5.2'"));
  EXPECT_THAT(bodyErrors("let x = 3e"),
              ElementsAre("2:9: error: expected a number such as 1, 0.95 or "
                          "3e-4, found '3e'",
                          "  hint: digits follow the 'e', as in 1e-3"));
  EXPECT_THAT(bodyErrors("let x = 2x"),
              ElementsAre("2:9: error: expected a number such as 1, 0.95 or "
                          "3e-4, found '2x'"));
  EXPECT_THAT(bodyErrors("let x = 1e999"),
              ElementsAre("2:9: error: expected a number that fits f64, found "
                          "'1e999'",
                          "  hint: the largest is 1.7976931348623157e308"));
  EXPECT_THAT(bodyErrors("let x = .5"),
              ElementsAre("2:9: error: expected a number such as 1, 0.95 or 3e-4, found '.5'",
                          "  hint: write 0.5"));
  EXPECT_THAT(bodyErrors("let x = lr \xE2\x88\x92 1"),
              ElementsAre("2:12: error: unexpected character '\xE2\x88\x92'",
                          "  hint: write '-' for minus"));
  EXPECT_THAT(bodyErrors("let x = lr \xC3\x97 1"),
              ElementsAre("2:12: error: unexpected character '\xC3\x97'",
                          "  hint: write '*' for a product"));
  EXPECT_THAT(bodyErrors("# comment"), ElementsAre("2:1: error: unexpected character '#'",
                                                   "  hint: comments start with '//'"));
  EXPECT_THAT(bodyErrors("let x = 1;"), ElementsAre("2:10: error: unexpected character ';'",
                                                    "  hint: a statement ends with its line"));
  EXPECT_THAT(
      bodyErrors(std::string("let x = \x01 1")),
      ElementsAre("2:9: error: expected text in UTF-8 without control characters, found U+0001"));
  EXPECT_THAT(syntaxErrors("route {\n  A() for \"abc\n}\n"),
              ElementsAre("2:11: error: expected '\"' before the end of the "
                          "line"));
  EXPECT_THAT(syntaxErrors("route {\n  A() for 'abc'\n}\n"),
              ElementsAre("2:11: error: unexpected character '''",
                          "  hint: strings stand in double quotes"));
  EXPECT_THAT(syntaxErrors("route {\n  A() for \"a\\nb\"\n}\n"),
              ElementsAre("2:13: error: expected '\\\"' or '\\\\' in a string, "
                          "found another escape"));
}

TEST(Parser, Precedence) {
  EXPECT_EQ(tree("1 + 2 * 3 - 4"), "(- (+ 1 (* 2 3)) 4)");
  EXPECT_EQ(tree("1 - 2 - 3"), "(- (- 1 2) 3)");
  EXPECT_EQ(tree("8 / 4 / 2"), "(/ (/ 8 4) 2)");
  EXPECT_EQ(tree("2 ^ 3 ^ 4"), "(^ 2 (^ 3 4))");
  EXPECT_EQ(tree("-2 ^ 4"), "(negate (^ 2 4))");
  EXPECT_EQ(tree("2 ^ -4 * 3"), "(* (^ 2 (negate 4)) 3)");
  EXPECT_EQ(tree("-a * b"), "(* (negate a) b)");
  EXPECT_EQ(tree("- - a"), "(negate (negate a))");
  EXPECT_EQ(tree("(1 + 2) * 3"), "(* (paren (+ 1 2)) 3)");
  EXPECT_EQ(tree("((1))"), "(paren 1)");
  EXPECT_EQ(tree("a < b + 1 and not c >= d or e == f"),
            "(or (and (< a (+ b 1)) (not (>= c d))) (== e f))");
  EXPECT_EQ(tree("not not a != b"), "(not (not (!= a b)))");
}

TEST(Parser, Calls) {
  EXPECT_EQ(tree("f()"), "(call f)");
  EXPECT_EQ(tree("f(a, b,)"), "(call f a b)");
  EXPECT_EQ(tree("norm(grad, over = columns)"), "(call norm grad (over columns))");
  EXPECT_EQ(tree("orthogonalize(u, coefficients = [(1, -2, 3e0), (4, 5, 6)])"),
            "(call orthogonalize u (coefficients [(1 -2 3 )(4 5 6 )]))");
  EXPECT_EQ(tree("orthogonalize(u, form = gram, restarts = [1, 3,])"),
            "(call orthogonalize u (form gram) (restarts [1 3 ]))");
  // A name can be a value and a function at once.
  EXPECT_EQ(tree("momentum * momentum(a, b, momentum)"),
            "(* momentum (call momentum a b momentum))");
}

TEST(Parser, ExpressionsGoOnOverLines) {
  EXPECT_EQ(tree("1\n  + 2\n  * f(a,\n b)"), "(+ 1 (* 2 (call f a b)))");
}

TEST(Parser, Declarations) {
  Source source("t.optim", "optimizer A(lr, eps = -1e-8,) { master : f32\n"
                           "state m : bf16[rows] = 0.5\n state v : f16[cols]\n"
                           "state c : f32[]\n param = grad }\n"
                           "route { A(lr = 1, missing_grad = skip) for matrix "
                           "\"a*\", \"b\" except \"c\"\n A(lr = -2) for rest }");
  Diagnostics diagnostics;
  auto file = parse(source, diagnostics);
  EXPECT_FALSE(diagnostics.hasErrors());
  EXPECT_EQ(dump(*file), "(optimizer A\n"
                         "  (hyperparameter lr)\n"
                         "  (hyperparameter eps -1e-08)\n"
                         "  (state m bf16 [rows, 1] 0.5)\n"
                         "  (state v f16 [1, cols])\n"
                         "  (state c f32 [1, 1])\n"
                         "  (master f32)\n"
                         "  (assign param grad)\n)\n"
                         "(route\n"
                         "  (claim A (lr 1) (missing_grad skip) matrix (globs "
                         "\"a*\" \"b\") (except \"c\"))\n"
                         "  (claim A (lr -2) rest (globs) (except))\n)\n");
}

TEST(Parser, RangesPointAtTheText) {
  Source source("t.optim", rule("let x = (lr + 1) * abs(lr)"));
  Diagnostics diagnostics;
  auto file = parse(source, diagnostics);
  const auto &let = *file->rules[0]->statements[0];
  EXPECT_EQ(source.text(let.range), "let x = (lr + 1) * abs(lr)");
  const auto &product = llvm::cast<BinaryExpr>(*let.value);
  EXPECT_EQ(source.text(product.opRange), "*");
  EXPECT_EQ(source.text(product.lhs->range), "lr + 1");
  EXPECT_EQ(source.text(product.rhs->range), "abs(lr)");
}

TEST(Parser, StatementErrors) {
  const Case cases[] = {
      {"let = 3", {"2:5: error: expected a name, found '='"}},
      {"let step = 3",
       {"2:5: error: expected a name, found 'step'", "  hint: 'step' is a word of the language"}},
      {"let x 3", {"2:7: error: expected '=' after 'x', found '3'"}},
      {"let x = ", {"2:8: error: expected a value, found the end of the line"}},
      {"let x = lr lr", {"2:12: error: expected an operator or the end of the line, found 'lr'"}},
      {"let x = lr ** 2",
       {"2:13: error: expected a value, found '*'", "  hint: a power is written 'x ^ y'"}},
      {"let x = +1",
       {"2:9: error: expected a value, found '+'", "  hint: a number needs no sign '+'"}},
      {"let x = 1 + not lr",
       {"2:13: error: expected a value, found 'not'", "  hint: put parentheses around 'not ...'"}},
      {"let x = 1 < 2 < 3",
       {"2:15: error: comparisons cannot be chained", "  hint: write 'a < b and b < c'"}},
      {"let x = (lr",
       {"3:1: error: expected ')', found 'param'", "  2:9: note: to match this '('"}},
      {"let x = abs(lr",
       {"3:1: error: expected ',' or ')', found 'param'", "  2:12: note: to match this '('"}},
      {"let x = norm(over = rows, grad)",
       {"2:27: error: expected arguments by position before those by name",
        "  2:14: note: the first by name is here"}},
      {"let x = f([(1, 2)])",
       {"2:12: error: expected three coefficients (a, b, c) per step, found 2"}},
      {"let x = f([(1, 2, a)])", {"2:19: error: expected a number, found 'a'"}},
      {"state m f32",
       {"2:9: error: expected ':', found 'f32'",
        "  hint: a state has a type: write 'state m : f32'"}},
      {"state m : f64",
       {"2:11: error: expected f32, bf16 or f16, found 'f64'",
        "  hint: only scalars are f64, and they are so by themselves"}},
      {"state m : f32[columns]",
       {"2:15: error: expected 'rows', 'cols', a whole number or the name of a size, found "
        "'columns'",
        "  hint: did you mean 'cols'?"}},
      {"state m : f32[rows", {"3:1: error: expected ']', found 'param'"}},
      {"state let : f32",
       {"2:7: error: expected the state's name, found 'let'",
        "  hint: 'let' is a word of the language"}},
      {"master = f32", {"2:8: error: expected ':', found '='"}},
      {"master : bf16",
       {"2:10: error: expected f32, found 'bf16'", "  hint: a master copy keeps full precision"}},
      {"3 + 4", {"2:1: error: expected a statement, found '3'"}},
      {"grad", {"3:1: error: expected '=' after 'grad', found 'param'"}},
      {"input 3 : f32", {"2:7: error: expected the input's name, found '3'"}},
      {"input logits = 3",
       {"2:14: error: expected ':', found '='",
        "  hint: an input has a type: write 'input logits : f32'"}},
      {"metric 3 = lr", {"2:8: error: expected the metric's name, found '3'"}},
      {"metric size : f32 = lr",
       {"2:13: error: expected '=' after 'size', found ':'",
        "  hint: a metric is always an f32, so it has no type"}},
      {"metrc size = lr",
       {"2:7: error: expected '=' after 'metrc', found 'size'", "  hint: did you mean 'metric'?"}},
      {"clip_grad_norm(1.0)",
       {"2:1: error: 'clip_grad_norm' is not supported yet",
        "  hint: a model clips: 'model(max_norm = 1) { grad = min(1, max_norm / (norm(grad) + "
        "1e-6)) "
        "* grad }'"}},
      {"skip_non_finite",
       {"2:1: error: 'skip_non_finite' is not supported yet",
        "  hint: a model skips steps: 'model() { skip when not finite(norm(grad)) }'"}},
      {"loss_scale 3", {"2:1: error: 'loss_scale' is not supported yet"}},
  };
  expectMessages(cases, bodyErrors);
}

TEST(Parser, DeclarationErrors) {
  const Case cases[] = {
      {"optimiser A() { }",
       {"1:1: error: expected 'optimizer', 'model', 'def', 'import', 'blocks' or 'route', found "
        "'optimiser'",
        "  hint: did you mean 'optimizer'?"}},
      {"}",
       {"1:1: error: expected 'optimizer', 'model', 'def', 'import', 'blocks' or 'route', found "
        "'}'",
        "  hint: this does not look like a definition; a definition has 'optimizer NAME(...) { ... "
        "}' and 'route { ... }'"}},
      {"metric x = 3",
       {"1:1: error: expected 'optimizer', 'model', 'def', 'import', 'blocks' or 'route', found "
        "'metric'",
        "  hint: a metric is a statement of an optimizer or of the model"}},
      {"input x : f32",
       {"1:1: error: expected 'optimizer', 'model', 'def', 'import', 'blocks' or 'route', found "
        "'input'",
        "  hint: an input is declared in the optimizer that reads it"}},
      {"optimizer { }", {"1:11: error: expected the optimizer's name, found '{'"}},
      {"optimizer A { }",
       {"1:13: error: expected '(', found '{'",
        "  hint: one without hyperparameters is 'optimizer A() { ... }'"}},
      {"optimizer A(3) { }", {"1:13: error: expected a hyperparameter's name, found '3'"}},
      {"optimizer A(param) { }",
       {"1:13: error: expected a hyperparameter's name, found 'param'",
        "  hint: 'param' is a word of the language"}},
      {"optimizer A(lr eps) { }",
       {"1:16: error: expected ',' or ')', found 'eps'", "  1:12: note: to match this '('"}},
      {"optimizer A(lr)\nparam = grad\n", {"2:1: error: expected '{', found 'param'"}},
      {"optimizer A(lr) {\nparam = grad\n",
       {"3:1: error: expected '}', found end of file", "  1:17: note: to match this '{'"}},
      {"optimizer A() {\nparam = grad\noptimizer B() {\nparam = grad\n}",
       {"3:1: error: expected '}', found 'optimizer'", "  1:15: note: to match this '{'"}},
      {"route A() for rest", {"1:7: error: expected '{', found 'A'"}},
      {"route {\nA for rest\n}",
       {"2:3: error: expected '(', found 'for'",
        "  hint: values of hyperparameters stand in parentheses: 'A(...) for'"}},
      {"route {\n3\n}", {"2:1: error: expected an optimizer's name, found '3'"}},
      {"route {\nA() matrix\n}", {"2:5: error: expected 'for', found 'matrix'"}},
      {"route {\nA() for vector\n}",
       {"2:9: error: expected 'matrix', 'rest' or a pattern in quotes, found "
        "'vector'",
        "  hint: vectors are claimed by their names, or by 'rest' beside a claim for 'matrix'"}},
      {"route {\nA() for embed\n}",
       {"2:9: error: expected 'matrix', 'rest' or a pattern in quotes, found 'embed'",
        "  hint: patterns stand in quotes: \"embed\""}},
      {"route {\nA() for \"a\", matrix\n}",
       {"2:14: error: expected a pattern in quotes, found 'matrix'"}},
      {"route {\nA() for rest \"a\"\n}",
       {"2:14: error: expected 'except' or the end of the line, found \"a\""}},
      {"route {\nA() for rest except matrix\n}",
       {"2:21: error: expected a pattern in quotes, found 'matrix'"}},
      {"route {\nA(lr 3) for rest\n}", {"2:6: error: expected '=', found '3'"}},
      {"route {\nA(lr = \"x\") for rest\n}", {"2:8: error: expected a number, found \"x\""}},
  };
  expectMessages(cases, syntaxErrors);
}

TEST(Parser, OneRunReportsErrorsOfManyStatements) {
  EXPECT_THAT(
      check("optimizer A(lr) {\n"
            "  state m : f64\n"
            "  let u = m +\n"
            "  let v = momentum(m, grad\n"
            "  m = lerp(m, grad, 0.1))\n"
            "  let w = unknown + 1\n"
            "  param = param - lr * u\n"
            "}\n"
            "optimizer B(lr) {\n"
            "  param = param - * lr\n"
            "}\n"
            "route {\n"
            "  A(lr = ) for matrix\n"
            "  C(lr = 1) for rest\n"
            "}\n")
          .messages(),
      ElementsAre("2:13: error: expected f32, bf16 or f16, found 'f64'",
                  "  hint: only scalars are f64, and they are so by themselves",
                  "3:14: error: expected a value, found the end of the line",
                  "5:3: error: expected ',' or ')', found 'm'", "  4:19: note: to match this '('",
                  "5:25: error: expected an operator or the end of the "
                  "line, found ')'",
                  "10:19: error: expected a value, found '*'",
                  "13:10: error: expected a number, found ')'",
                  "6:11: error: unknown name 'unknown'", "14:3: error: unknown optimizer 'C'"));
}

TEST(Parser, RecoveryInsideParenthesesSkipsArguments) {
  // `coefficients = simple` on a line of its own is no statement.
  EXPECT_THAT(bodyErrors("let o = orthogonalize(grad,\n  steps = $,\n"
                         "  coefficients = simple)\nlet y = )"),
              ElementsAre("3:11: error: unexpected character '$'",
                          "5:9: error: expected a value, found ')'"));
}

TEST(Parser, StopsAtTheErrorLimit) {
  std::string body;
  for (int i = 0; i < 80; ++i)
    body += "let x = )\n";
  Result result = check(rule(body));
  EXPECT_EQ(result.diagnostics.all().size(), 50u);
  std::string printed;
  llvm::raw_string_ostream os(printed);
  result.diagnostics.print(os, *result.source, Diagnostics::Color::Never);
  EXPECT_THAT(printed, testing::EndsWith("error: too many errors, 50 shown\n"));
}

TEST(Diagnostics, Layout) {
  Result result = check("optimizer A(momentum) {\n\tparam = momentun * grad\n}\n"
                        "optimizer A(lr) {\n  param = lr * grad\n}\n");
  std::string printed;
  llvm::raw_string_ostream os(printed);
  result.diagnostics.print(os, *result.source, Diagnostics::Color::Never);
  EXPECT_EQ(printed, "t.optim:2:10: error: unknown name 'momentun'\n"
                     "  \tparam = momentun * grad\n"
                     "  \t        ^~~~~~~~\n"
                     "hint: did you mean 'momentum'?\n"
                     "t.optim:4:11: error: optimizer 'A' is declared twice\n"
                     "  optimizer A(lr) {\n"
                     "            ^\n"
                     "t.optim:1:11: note: the first declaration is here\n"
                     "  optimizer A(momentum) {\n"
                     "            ^\n");
}

TEST(Diagnostics, ColorsOnlyWhenAsked) {
  Result result = check("x");
  std::string plain, colored;
  llvm::raw_string_ostream plainStream(plain), coloredStream(colored);
  result.diagnostics.print(plainStream, *result.source);
  result.diagnostics.print(coloredStream, *result.source, Diagnostics::Color::Always);
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(colored.find('\x1b'), std::string::npos);
}

TEST(Diagnostics, CaretsCountCharactersAndLongLinesAreCut) {
  Result result = check("// \xC3\xA4\xC3\xB6\noptimizer A(lr) { param = grad * \xC3\xA4 }");
  std::string printed;
  llvm::raw_string_ostream os(printed);
  result.diagnostics.print(os, *result.source);
  EXPECT_THAT(printed, testing::HasSubstr("\n  " + std::string(33, ' ') + "^\n"));

  std::string longLine = "let x = lr";
  for (int i = 0; i < 100; ++i)
    longLine += " + lr";
  result = check(rule(longLine + " ) "));
  std::string cut;
  llvm::raw_string_ostream cutStream(cut);
  result.diagnostics.print(cutStream, *result.source);
  EXPECT_LT(cut.size(), 500u);
}

TEST(Diagnostics, NearestName) {
  llvm::StringRef names[] = {"momentum", "lr", "beta1", "beta2"};
  EXPECT_EQ(stepc::text::nearestName("momentun", names), "momentum");
  EXPECT_EQ(stepc::text::nearestName("Momentum", names), "momentum");
  EXPECT_EQ(stepc::text::nearestName("lrr", names), "lr");
  EXPECT_EQ(stepc::text::nearestName("beta", names), "beta1");
  EXPECT_EQ(stepc::text::nearestName("q", names), "");
  EXPECT_EQ(stepc::text::nearestName("gradient", names), "");
  // Swapped letters are one mistake, and short names begin alike.
  EXPECT_EQ(stepc::text::nearestName("btea1", names), "beta1");
  EXPECT_EQ(stepc::text::nearestName("rl", names), "");
  EXPECT_EQ(stepc::text::nearestName("mr", names), "");
  EXPECT_EQ(stepc::text::nearestName("bta22", names), "");
}

} // namespace
