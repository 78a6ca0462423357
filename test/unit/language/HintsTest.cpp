//===- HintsTest.cpp - What people bring from other languages --------------===//
#include "Helpers.h"
#include "frontends/language/Lexer.h"

#include "llvm/Support/raw_ostream.h"

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// The messages about syntax, without what analysis adds.
std::vector<std::string> syntaxErrors(std::string text) {
  Result result;
  result.source = std::make_unique<Source>("t.optim", std::move(text));
  result.file = parse(*result.source, result.diagnostics);
  return result.messages();
}

struct Case {
  const char *text;
  std::string message;
  std::string hint;
};

/// One message each, with this hint; "" for none. Notes are others' matter.
void expectHints(llvm::ArrayRef<Case> cases, bool isSyntax) {
  for (const Case &c : cases) {
    std::vector<std::string> messages = isSyntax ? syntaxErrors(rule(c.text)) : messagesIn(c.text);
    std::erase_if(messages, [](const std::string &line) {
      return line.find(": note: ") != std::string::npos;
    });
    std::vector<std::string> wanted = {c.message};
    if (!c.hint.empty())
      wanted.push_back("  hint: " + c.hint);
    EXPECT_EQ(messages, wanted) << c.text;
  }
}

TEST(Hints, Syntax) {
  const std::string select = "a choice is written 'select(condition, value, otherwise)'",
                    equality = "equality is written 'a == b'";
  expectHints(
      {
          {"m += grad", "2:3: error: expected '=' after 'm', found '+'", "write 'm = m + ...'"},
          {"param -= lr * grad", "2:7: error: expected '=' after 'param', found '-'",
           "write 'param = param - ...'"},
          {"sate m : f32", "2:6: error: expected '=' after 'sate', found 'm'",
           "did you mean 'state'?"},
          {"var x = 1", "2:5: error: expected '=' after 'var', found 'x'",
           "a value is named by 'let x = ...'"},
          {"m == grad", "2:3: error: expected '=' after 'm', found '=='", "assign with one '='"},
          {"state v = zeros", "2:9: error: expected ':', found '='",
           "a state has a type: write 'state v : f32', which starts at 0"},
          {"state v\nparam = grad", "2:8: error: expected ':', found the end of the line",
           "a state has a type: write 'state v : f32'"},
          {"let x = betas[0]",
           "2:14: error: expected an operator or the end of the line, found '['",
           "a value has no parts: each number has a name of its own, as beta1 and beta2"},
          {"let x = orthogonalize(grad, coefficients = \"simple\")",
           "2:44: error: expected a value, found \"simple\"",
           "words of the language stand without quotes: write simple"},
          {"let x = lr > 0 ? 1", "2:16: error: unexpected character '?'", select},
          {"return grad", "2:8: error: expected '=' after 'return', found 'grad'",
           "a step ends with 'param = ...'"},
          {"let x = select(step = 1, 2)",
           "2:26: error: expected arguments by position before those by name",
           "equality is written 'step == ...'"},
          {"let x = (lr = 1)", "2:13: error: expected ')', found '='", equality},
          {"let x = lr = 1", "2:12: error: expected an operator or the end of the line, found '='",
           equality},
          {"let x = select(lr = 1, 2)",
           "2:24: error: expected arguments by position before those by name",
           "equality is written 'lr == ...'"},
          {"let x = lr === 1", "2:14: error: expected a value, found '='", equality},
          {"let x = lr <> 1", "2:13: error: expected a value, found '>'",
           "'not equal' is written 'a != b'"},
          {"let x = lr && lr", "2:12: error: unexpected character '&&'", "write 'a and b'"},
          {"let x = lr || lr", "2:12: error: unexpected character '||'", "write 'a or b'"},
          {"let x = !lr", "2:9: error: unexpected character '!'", "write 'not a'"},
          {"let x = step % 10", "2:14: error: unexpected character '%'",
           "every k steps is 'step == k * floor(step / k)'"},
          {"let x = torch.sqrt(lr)", "2:14: error: unexpected character '.'",
           "functions have no prefix: 'sqrt(x)'"},
          {"let x = grad.sqrt()", "2:13: error: unexpected character '.'",
           "functions have no prefix: 'sqrt(x)'"},
          {"let x = param.rows", "2:14: error: unexpected character '.'",
           "write 'rows' alone: it is the parameter's"},
          {"let x = param.shape", "2:14: error: unexpected character '.'",
           "the parameter's sizes are 'rows', 'cols' and 'numel'"},
          {"let x = grad.T", "2:13: error: unexpected character '.'",
           "a transpose is 'transpose(x)', which is not supported yet"},
          {"state m : float32", "2:11: error: expected f32, bf16 or f16, found 'float32'",
           "did you mean 'f32'?"},
          {"state m : fp32", "2:11: error: expected f32, bf16 or f16, found 'fp32'",
           "did you mean 'f32'?"},
          {"state m : f32[row]",
           "2:15: error: expected 'rows', 'cols', a whole number or the name of a size, found "
           "'row'",
           "did you mean 'rows'?"},
      },
      /*isSyntax=*/true);
}

TEST(Hints, ChoicesOfOtherLanguages) {
  // Wherever the word stands, the one message about it names the function.
  for (const char *body :
       {"if (grad > 0) {\n  let x = 1\n}", "let x = if(lr > 0, 1, 2)", "let x = 1 if lr > 0 else 2",
        "let x = (1 if lr > 0 else 2)", "let x = abs(1 if lr > 0 else 2)"})
    EXPECT_THAT(messagesIn(body), testing::Contains(testing::HasSubstr("'select(condition, ")))
        << body;
}

TEST(Hints, OneRunReportsAllUpdates) {
  EXPECT_THAT(syntaxErrors(rule("m += grad\nparam -= lr * grad\nlet x = )")),
              ElementsAre("2:3: error: expected '=' after 'm', found '+'",
                          "  hint: write 'm = m + ...'",
                          "3:7: error: expected '=' after 'param', found '-'",
                          "  hint: write 'param = param - ...'",
                          "4:9: error: expected a value, found ')'"));
  EXPECT_THAT(syntaxErrors("route {\n  A() for matrixx\n  A for rest\n}\n"),
              ElementsAre("2:11: error: expected 'matrix', 'rest' or a pattern in quotes, found "
                          "'matrixx'",
                          "  hint: did you mean 'matrix'?", "3:5: error: expected '(', found 'for'",
                          "  hint: values of hyperparameters stand in parentheses: 'A(...) for'"));
}

TEST(Hints, BlockCommentsAreOneError) {
  // Whatever the comment says, what follows it is read.
  EXPECT_THAT(syntaxErrors(rule("/* a ' note\n  of # lines */\nlet x = )")),
              ElementsAre("2:1: error: expected a comment that starts with '//', found '/*'",
                          "  hint: comments go from '//' to the end of the line",
                          "4:9: error: expected a value, found ')'"));
  EXPECT_THAT(syntaxErrors("/* not closed"),
              ElementsAre("1:1: error: expected a comment that starts with '//', found '/*'",
                          "  hint: comments go from '//' to the end of the line"));
}

TEST(Hints, ByteOrderMarkIsSkipped) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_THAT(check(mark + rule("")).messages(), IsEmpty());
  // Places are those of the text behind it, and elsewhere it is no space.
  EXPECT_THAT(syntaxErrors(mark + "optimizer 3"),
              ElementsAre("1:11: error: expected the optimizer's name, found '3'"));
  EXPECT_THAT(syntaxErrors(rule("let x = " + mark)),
              ElementsAre("2:9: error: unexpected character '" + mark + "'",
                          "  hint: this character is invisible: delete it"));
}

TEST(Hints, Names) {
  expectHints(
      {
          // Near by letters, and far in meaning.
          {"let x = cos(lr)", "2:9: error: unknown function 'cos'", ""},
          {"let x = sin(lr)", "2:9: error: unknown function 'sin'", ""},
          {"let x = round(lr)", "2:9: error: unknown function 'round'",
           "it is written 'floor(x + 0.5)'"},
          {"let x = frob(lr)", "2:9: error: unknown function 'frob'", ""},
          {"let x = nrom(grad)", "2:9: error: unknown function 'nrom'", "did you mean 'norm'?"},
          {"let x = clip(lr, 0, 1)", "2:9: error: unknown function 'clip'",
           "did you mean 'clamp'?"},
          {"let x = log2(lr)", "2:9: error: unknown function 'log2'",
           "it is written 'log(x) / log(2)'"},
          {"let x = square(lr)", "2:9: error: unknown function 'square'",
           "a square is written 'x ^ 2'"},
          {"let x = gradient", "2:9: error: unknown name 'gradient'", "did you mean 'grad'?"},
          {"let x = colls", "2:9: error: unknown name 'colls'", "did you mean 'cols'?"},
          {"params = grad", "2:1: error: unknown state 'params'", "did you mean 'param'?"},
          // What is declared later cannot be meant.
          {"let x = limi\nlet limit = x", "2:9: error: unknown name 'limi'", ""},
          {"let x = sqrt(lr = 1)", "2:14: error: unknown argument 'lr' of 'sqrt'",
           "equality is written 'lr == ...'"},
          {"let x = sqrt(step = 1)", "2:14: error: unknown argument 'step' of 'sqrt'",
           "equality is written 'step == ...'"},
          {"let x = orthogonalize(grad, step = 5)",
           "2:29: error: unknown argument 'step' of 'orthogonalize'", "did you mean 'steps'?"},
          {"let x = orthogonalize(grad, iterations = 5)",
           "2:29: error: unknown argument 'iterations' of 'orthogonalize'",
           "it takes steps, coefficients, precision, eps, safety, form or restarts"},
          {"let x = cast(grad, bfloat16)",
           "2:20: error: expected f32, bf16 or f16, found 'bfloat16'", "did you mean 'bf16'?"},
          {"let x = orthogonalize(grad, precision = fp16)",
           "2:41: error: expected f32, bf16 or f16, found 'fp16'", "did you mean 'f16'?"},
          {"let x = norm(grad, over = row)",
           "2:27: error: expected 'columns' or 'rows', found 'row'",
           "did you mean 'rows' (one value per column)?"},
      },
      /*isSyntax=*/false);
}

TEST(Hints, ShapesOfStates) {
  const std::string reduction = "a reduction of a full tensor with ",
                    rows = reduction + "'over = columns' gives one value per row",
                    cols = reduction + "'over = rows' gives one value per column";
  expectHints(
      {
          {"state v : f32[rows]\nv = grad * grad",
           "3:5: error: expected one value per row for 'v', found a tensor shaped like the "
           "parameter",
           rows},
          {"state v : f32[rows]\nv = norm(grad, over = rows)",
           "3:5: error: expected one value per row for 'v', found one value per column", rows},
          {"state v : bf16[cols]\nv = grad * grad",
           "3:5: error: expected one value per column for 'v', found a tensor shaped like the "
           "parameter",
           cols},
          {"state v : f32[]\nv = grad * grad",
           "3:5: error: expected one value of the whole parameter for 'v', found a tensor shaped "
           "like the parameter",
           "a reduction such as 'mean(x)' gives one value"},
          {"state m : bf16\nm = norm(grad, over = rows)",
           "3:5: error: expected a tensor shaped like the parameter for 'm', found one value per "
           "column",
           "a state that is smaller is declared so: 'bf16[cols]'"},
      },
      /*isSyntax=*/false);
}

/// All messages about a file with one hyperparameter's value in its declaration, and in its route.
void expectOne(const std::string &value, const std::string &message, const std::string &hint) {
  for (bool inRoute : {false, true}) {
    std::string text = "optimizer T(" + (inRoute ? "lr" : "lr = " + value) +
                       ", b = 1) {\n  param = param - lr * b * grad\n}\nroute {\n  T(" +
                       (inRoute ? "lr = " + value + ", " : "") + "b = 2) for rest\n}\n";
    std::vector<std::string> messages = check(text).messages();
    std::erase_if(messages, [](const std::string &line) {
      return line.find(": note: ") != std::string::npos;
    });
    ASSERT_EQ(messages.size(), hint.empty() ? 1u : 2u) << text << testing::PrintToString(messages);
    EXPECT_THAT(messages[0], testing::HasSubstr("error: " + message)) << text;
    if (!hint.empty())
      EXPECT_EQ(messages[1], "  hint: " + hint) << text;
  }
}

TEST(Hints, NumbersOfOtherLanguages) {
  const std::string number = "expected a number such as 1, 0.95 or 3e-4, found '";
  const std::pair<std::string, std::string> forms[] = {
      {".5", "write 0.5"},
      {"5.", "write 5"},
      {"0x10", "write 16"},
      {"0b101", "write 5"},
      {"1_000", "write 1000"},
      {"1'000", "write 1000"},
      {"1.0f", "write 1.0"},
      {"1e-3f", "write 1e-3"},
      {"10M", "write 10e6"},
      {"5k", "write 5e3"},
      {"5%", "write 0.05"},
      {".5e-3", "write 0.5e-3"},
      {"1.e3", "write 1e3"},
      {"1_0e-3", "write 10e-3"},
      {"1e", "digits follow the 'e', as in 1e-3"},
      {"3e4.5", "an exponent is a whole number"},
      {"1.2.3", ""},
  };
  for (const auto &[written, hint] : forms)
    expectOne(written, number + written + "'", hint);
  expectOne("1e400", "expected a number that fits f64, found '1e400'",
            "the largest is 1.7976931348623157e308");
  expectOne("1e-400", "expected a number that fits f64, found '1e-400'",
            "the smallest above 0 is 5e-324");
  expectOne("0.001e-400", "expected a number that fits f64, found '0.001e-400'",
            "the smallest above 0 is 5e-324");
  expectOne("(0.9, 0.95)", "expected a number, found '('",
            "a hyperparameter is one number: write 'lr1 = 0.9, lr2 = 0.95'");
  expectOne("[.9, 5.]", "expected a number, found '['",
            "a hyperparameter is one number: write 'lr1 = 0.9, lr2 = 5'");
  expectOne("(0.9,)", "expected a number, found '('",
            "a hyperparameter is one number, without parentheses");
  expectOne("+1", "expected a number, found '+'", "write 1");
  expectOne("1,000", "expected a hyperparameter's name, found '000'",
            "digits are not grouped: write 1000");
  expectOne("1 000", "expected ',' or ')', found '000'", "digits are not grouped: write 1000");
  expectOne("10 ** -1", "expected a value, found '*'", "a power is written 'x ^ y'");
  expectOne("\"0.1\"", "expected a number, found \"0.1\"", "write 0.1");
  expectOne("true", "expected a number, found 'true'", "write 1, and compare it: 'x != 0'");
  expectOne("inf", "expected a number, found 'inf'",
            "write a number that f32 can hold, such as 3e38");
  expectOne("1 / zero", "expected a number, found 'zero'",
            "a number is computed from literals alone: '0.1 / 3'");
  expectOne("2 * norm(3)", "expected a number, found 'norm'", "it is a function of tensors");
  expectOne("squrt(2)", "unknown function 'squrt'", "did you mean 'sqrt'?");
  // The name of several values is that of the list without its plural.
  EXPECT_THAT(
      check("optimizer T(lr, betas = (0.9, 0.95)) {\n  param = param - lr * grad\n}\n").messages(),
      ElementsAre("1:25: error: expected a number, found '('",
                  "  hint: a hyperparameter is one number: write 'beta1 = 0.9, beta2 = "
                  "0.95'"));
  // In expressions, states and options each is one message, too.
  expectHints(
      {{"let x = .5 * lr", "2:9: error: expected a number such as 1, 0.95 or 3e-4, found '.5'",
        "write 0.5"},
       {"state m : f32 = 1_0\nm = grad",
        "2:17: error: expected a number such as 1, 0.95 or 3e-4, found '1_0'", "write 10"},
       {"state m : f32 = lr\nm = grad", "2:17: error: expected a number, found 'lr'",
        "a number is computed from literals alone: '0.1 / 3'; 'param', 'identity' and 'normal' "
        "stand by themselves"},
       {"let x = orthogonalize(grad, steps = 5.)",
        "2:37: error: expected a number such as 1, 0.95 or 3e-4, found '5.'", "write 5"},
       {"let x = 1 000", "2:11: error: expected an operator or the end of the line, found '000'",
        "digits are not grouped: write 1000"}},
      /*isSyntax=*/false);
}

TEST(Hints, WhatFollowsFromAnErrorIsNotSaid) {
  auto one = [](const std::string &text, const std::string &message) {
    EXPECT_THAT(check(text).diagnostics.errorCount(), 1u)
        << text << testing::PrintToString(check(text).messages());
    EXPECT_THAT(check(text).messages()[0], testing::HasSubstr(message)) << text;
  };
  const std::string
      body = ") {\n  state m : f32\n  m = beta * m + grad\n  param = param - lr * m\n}\n",
      route = "route {\n  A(lr = 1) for rest\n}\n";
  // An unknown name, function, state or optimizer is said once.
  one("optimizer A(lr" + body + route, "unknown name 'beta'");
  one("optimizer A(lr) {\n  m = grad\n  let u = m + m\n  param = param - lr * u\n}\n" + route,
      "unknown state 'm'");
  one("optimizer A(lr) {\n  let u = nrm(grad)\n  param = param - lr * nrm(grad)\n}\n" + route,
      "unknown function 'nrm'");
  one("optimizer A(lr) {\n  param = param - lr * grad\n}\nroute {\n  B() for \"x\"\n  B() for "
      "rest\n}\n",
      "unknown optimizer 'B'");
  // A hyperparameter's default that cannot be read leaves the others, and a value that cannot be.
  one("optimizer A(lr, beta = " + std::string("$") + body + route, "unexpected character '$'");
  one("optimizer A(lr = $, beta = 0.9" + body + "route {\n  A() for rest\n}\n",
      "unexpected character '$'");
  one("optimizer A(lr, \"beta\"" + body + "route {\n  A(lr = 1, beta = 2) for rest\n}\n",
      "expected a hyperparameter's name");
  one("optimizer A(lr beta = 1" + body + route, "expected ',' or ')', found 'beta'");
  one("optimizer A(lr, beta = 1" + body + "route {\n  A(lr = $) for rest\n}\n",
      "unexpected character '$'");
  one("optimizer A(lr, beta = 1" + body + "route {\n  A(missing_grad = $, lr = 1) for rest\n}\n",
      "unexpected character '$'");
  // An optimizer whose declaration is misspelt or without a name is no unknown one.
  one("optmizer A(lr, beta = 1" + body + route, "found 'optmizer'");
  one("rule A(lr, beta = 1" + body + route, "found 'rule'");
  one("optimizer \"A\"(lr, beta = 1" + body + route, "expected the optimizer's name");
  // What stands behind the first error of a statement follows from it.
  one("optimizer A(lr) {\n  let x = torch.tensor([1., 2.]).T @ grad\n  param = param - lr * "
      "grad\n}\n" +
          route,
      "unexpected character '.'");
  one("optimizer A(lr) {\n  state m : f32\n  m = 1 % 2\n  param = param - lr * grad\n}\n" + route,
      "unexpected character '%'");
  one("optimizer A(lr) {\n  state m : f32\n  m = 1 2\n  param = param - lr * m\n}\n" + route,
      "expected an operator or the end of the line, found '2'");
}

/// Each token of a definition is left out, misspelt, and replaced by a character that is none.
TEST(Hints, OneWrongTokenIsOneError) {
  const std::string text = R"(optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  state m : f32
  m = momentum * m + grad
  let u = grad + momentum * m
  let o = orthogonalize(u, steps = 5, coefficients = simple, precision = bf16)
  param = (1 - lr * weight_decay) * param - lr * 0.2 * sqrt(max(rows, cols)) * o
}

route {
  Muon(lr = 0.02) for matrix except "*embed*", "lm_head*"
  Muon(lr = 3e-4) as other for rest
}
)";
  Source source("t.optim", text);
  Diagnostics none;
  unsigned wrong = 0;
  for (const Token &token : lex(source, source.first(), none).tokens) {
    std::string spelling = source.text(token.range).str();
    for (std::string instead : {std::string(), std::string("$"), spelling + "q"}) {
      std::string edited = text;
      edited.replace(token.range.begin, token.range.end - token.range.begin, instead);
      Result result = check(edited);
      wrong += result.diagnostics.hasErrors();
      EXPECT_LE(result.diagnostics.errorCount(), 1u)
          << edited << testing::PrintToString(result.messages());
    }
  }
  EXPECT_GT(wrong, 200u);
}

TEST(Hints, TextsOfOtherLanguages) {
  const std::string definition =
      "; a definition has 'optimizer NAME(...) { ... }' and 'route { ... }'";
  auto foreign = [&](const std::string &text, const std::string &kind) {
    Result result = check(text);
    EXPECT_THAT(result.diagnostics.all().size(), testing::AllOf(testing::Ge(1u), testing::Le(3u)))
        << text;
    EXPECT_EQ(result.diagnostics.all().front().hint,
              "this does not look like a definition" + kind + definition)
        << text;
    for (size_t i = 1; i < result.diagnostics.all().size(); ++i)
      EXPECT_EQ(result.diagnostics.all()[i].hint, "") << text;
  };
  std::string python = "import torch\n\n# it's a class\nclass Muon(torch.optim.Optimizer):\n"
                       "    optimizer = None\n";
  for (int i = 0; i < 100; ++i)
    python += "    x = self.a['b'] % 3\n";
  foreign(python, ", but like Python");
  Result result = check(python);
  std::string printed;
  llvm::raw_string_ostream os(printed);
  result.diagnostics.print(os, *result.source, Diagnostics::Color::Never);
  EXPECT_THAT(printed, testing::EndsWith("error: too many errors, 3 shown\n"));
  EXPECT_THAT(printed,
              testing::StartsWith("t.optim:1:1: error: expected 'optimizer', 'model', "
                                  "'def', 'import', 'blocks' or 'route', found 'import'\n"));
  foreign("{\n  \"version\": 1\n}\n", ", but like JSON");
  foreign("#include <stdio.h>\nint main(void) { return 0; }\n", ", but like C or C++");
  foreign("/* A\n   program. */\n#include <a.h>\nstruct optimizer_state { int a; };\n",
          ", but like C or C++");
  foreign("module @m {\n}\n", ", but like the IR of a level, whose files end with .mlir");
  foreign("<html></html>", ", but like HTML or XML");
  foreign("optimizer = torch.optim.AdamW(params, lr=1e-3)\noptimizer.step()\n", "");
  foreign("}", "");
  // A misspelt word, comments alone and one declaration of this language are not foreign.
  for (const char *own : {"optimiser A(lr) {\n}\n", "rotue {\n}\n", "// nothing\n",
                          "import \"x\"\noptimizer A(lr) {\n  param = lr * grad\n}\n"})
    for (const Diagnostic &each : check(own).diagnostics.all())
      EXPECT_THAT(each.hint, testing::Not(testing::HasSubstr("does not look like"))) << own;
}

TEST(Hints, AxesInClaims) {
  for (const char *selector :
       {"ndim >= 2", "param.ndim >= 2", "len(shape) == 2", "shape", "rows > 1"})
    EXPECT_THAT(
        check("optimizer A(lr) {\n  param = param - lr * grad\n}\nroute {\n  A(lr = 1) for " +
              std::string(selector) + "\n  A(lr = 2) as b for rest\n}\n")
            .messages(),
        ElementsAre(
            testing::HasSubstr("5:17: error: expected 'matrix', 'rest' or a pattern in quotes"),
            "  hint: 'matrix' takes parameters of two axes and declared stacks of "
            "matrices, 'rest' all that no other claim takes; sizes are asked for by 'matrix where "
            "rows <= 4096'"))
        << selector;
}

TEST(Hints, StatesNearFunctions) {
  expectHints(
      {
          {"state momentun : f32\nmomentun = lr * momentum + grad",
           "3:17: error: unknown name 'momentum'",
           "did you mean 'momentun'? 'momentum' is a function: momentum(...)"},
          {"state momentum : f32\nmomentum = lr * momentun + grad",
           "3:17: error: unknown name 'momentun'", "did you mean 'momentum'?"},
          {"let x = momentun", "2:9: error: unknown name 'momentun'",
           "did you mean the function 'momentum(...)'?"},
          {"let x = momentun(grad, grad, lr)", "2:9: error: unknown function 'momentun'",
           "did you mean 'momentum'?"},
          {"let scale = 3\nlet x = scal(grad)", "3:9: error: unknown function 'scal'",
           "did you mean the value 'scale'? A product is written 'scale * (...)'"},
      },
      /*isSyntax=*/false);
}

TEST(Hints, Coefficients) {
  const std::string found = ": error: expected a list of steps or the name of a set, found '",
                    hint = "a list has a triple for each step: [(3.4, -4.7, 2)]";
  expectHints(
      {
          {"let o = orthogonalize(grad, coefficients = (3.4, -4.7, 2))",
           "2:44" + found + "(3.4, -4.7, 2)'", hint},
          {"let o = orthogonalize(grad, coefficients = [3.4, -4.7, 2])",
           "2:44" + found + "[3.4, -4.7, 2]'", hint},
          {"let o = orthogonalize(grad, coefficients = [[3.4, -4.7, 2]])",
           "2:45: error: expected '(', found '['",
           "the triple of a step stands in parentheses: [(a, b, c), ...]"},
          {"let o = orthogonalize(grad, coefficients = [(3.4, -4.7, 2), 2])",
           "2:61: error: expected '(', found '2'",
           "the triple of a step stands in parentheses: [(a, b, c), ...]"},
          {"let o = orthogonalize(grad, coefficients = [2])", "2:44" + found + "[2]'",
           "a list has a triple for each step: [(a, b, c), ...]"},
      },
      /*isSyntax=*/false);
}

TEST(Hints, Restarts) {
  const std::string numbers = "restarts are numbers of steps: [1, 3]",
                    lists = "only 'coefficients' and 'restarts' of 'orthogonalize' are lists",
                    options =
                        "give further arguments by name: steps, coefficients, precision, eps, "
                        "safety, form, restarts",
                    call = "2:9: error: expected 1 argument of 'orthogonalize', found 2";
  expectHints(
      {
          {"let o = orthogonalize(grad, form = gram, restarts = (1, 3))",
           "2:53: error: expected a list of restarts, found '(1, 3)'",
           "a list stands in brackets: [1, 3]"},
          {"let o = orthogonalize(grad, form = gram, restarts = (2))",
           "2:53: error: expected a list of restarts, found '(2)'",
           "a list stands in brackets: [2]"},
          {"let o = orthogonalize(grad, form = gram, restarts = [(1, 2, 3)])",
           "2:54: error: expected a number, found '('", numbers},
          {"let o = orthogonalize(grad, form = gram, restarts = [[1]])",
           "2:54: error: expected a number, found '['", numbers},
          {"let o = orthogonalize(grad, form = gram, restarts = [1, lr])",
           "2:57: error: expected a number, found 'lr'", numbers},
          {"let o = orthogonalize(grad, form = [gram])",
           "2:36: error: expected a value of 'form', found '['", lists},
          {"let o = orthogonalize(grad, form = [1])",
           "2:36: error: expected standard, gram or auto, found a list", ""},
          {"let o = orthogonalize(grad, precision = [(1, 2, 3)])",
           "2:41: error: expected f32, bf16 or f16, found a list", ""},
          {"let o = orthogonalize(grad, precision = F16)",
           "2:41: error: expected f32, bf16 or f16, found 'F16'", "did you mean 'f16'?"},
          {"let o = orthogonalize(grad, precision = Half)",
           "2:41: error: expected f32, bf16 or f16, found 'Half'", "did you mean 'f16'?"},
          {"let o = orthogonalize(grad, shift = 1)",
           "2:29: error: unknown argument 'shift' of 'orthogonalize'",
           "it takes steps, coefficients, precision, eps, safety, form or restarts"},
          {"let o = orthogonalize(grad, gram)", call, options},
          {"let o = orthogonalize(grad, form)", call, options},
          {"let o = orthogonalize(grad, lr)", call, options},
          {"let o = lr * [2]", "2:14: error: expected a value, found '['", lists},
          {"let o = lr * [gram]", "2:14: error: expected a value, found '['", lists},
      },
      /*isSyntax=*/false);
}

TEST(Hints, CharactersOutsideAscii) {
  const std::string name = "expected a name of ASCII letters, digits and '_', found '";
  auto expectName = [&](const std::string &body, const std::string &written,
                        const std::string &code, const std::string &ascii) {
    std::vector<std::string> wanted = {": error: " + name + written + "' with " + code};
    std::vector<std::string> messages = messagesIn(body);
    ASSERT_EQ(messages.size(), ascii.empty() ? 1u : 2u) << testing::PrintToString(messages);
    EXPECT_THAT(messages[0], testing::EndsWith(wanted[0]));
    if (!ascii.empty())
      EXPECT_EQ(messages[1], "  hint: write '" + ascii + "'");
  };
  // One message for each name, however often it stands there.
  expectName("let β1 = 0.9\nlet x = β1 * β1 + lr", "β1", "U+03B2", "beta1");
  expectName("state m̂ : f32\nm̂ = grad", "m̂", "U+0302", "m_hat");
  expectName("let lr₀ = lr", "lr₀", "U+2080", "lr0");
  expectName("let naïve = lr", "naïve", "U+00EF", "naive");
  expectName("let mоm = lr", "mоm", "U+043E", "mom"); // a Cyrillic o
  expectName("let x = 中文", "中文", "U+4E2D", "");
  EXPECT_THAT(messagesIn("let x = ∇"), ElementsAre("2:9: error: " + name + "∇' with U+2207",
                                                   "  hint: the gradient is 'grad'"));
  const std::pair<std::string, std::string> characters[] = {
      {"−", "write '-' for minus"},
      {"×", "write '*' for a product"},
      {"⊙", "write '*' for a product"},
      {"÷", "write '/' for a quotient"},
      {"≤", "write 'a <= b'"},
      {"≠", "'not equal' is written 'a != b'"},
      {"²", "a square is written 'x ^ 2'"},
      {"“", "strings stand in straight double quotes"},
      {"\u00A0", "this is a space of another kind: write a plain one"},
      {"\u200B", "this character is invisible: delete it"},
      {"ᵀ", "a transpose is 'transpose(x)', which is not supported yet"},
  };
  for (const auto &[character, hint] : characters)
    EXPECT_THAT(
        messagesIn("let x = lr " + character + " lr"),
        ElementsAre("2:12: error: unexpected character '" + character + "'", "  hint: " + hint));
}

TEST(Hints, EscapesOfRegularExpressions) {
  const std::string none = "  hint: patterns are no regular expressions: ";
  auto route = [](const std::string &pattern) {
    return syntaxErrors("route { A() for \"" + pattern + "\" }");
  };
  EXPECT_THAT(route("layers\\.0\\.w"), ElementsAre(testing::HasSubstr("found another escape"),
                                                   none + "'.' is itself, and '*' any text"));
  EXPECT_THAT(route("a\\d"),
              ElementsAre(testing::HasSubstr("found another escape"), none + "a digit is '[0-9]'"));
  EXPECT_THAT(route("a\\*"),
              ElementsAre(testing::HasSubstr("found another escape"),
                          "  hint: in a pattern a '*' of the name itself is written '[*]'"));
}

TEST(Hints, StatementsOnOneLine) {
  const std::string hint = "each statement and each claim starts a line";
  expectHints({{"let x = 1 let y = 2",
                "2:11: error: expected an operator or the end of the line, found 'let'", hint},
               {"state m : f32 m = grad",
                "2:15: error: expected an operator or the end of the line, found 'm'", hint}},
              /*isSyntax=*/true);
  EXPECT_THAT(syntaxErrors("route {\n  A() for \"a\" B() for rest\n}\n"),
              ElementsAre("2:15: error: expected 'except' or the end of the line, found 'B'",
                          "  hint: " + hint));
}

TEST(Hints, SeveralThingsThatALaterVersionWillHave) {
  EXPECT_THAT(
      syntaxErrors("optimizer O() {\n  state l : f32[rows, rows]\n  every 6 steps { l = l }\n}\n"
                   "route { O() for rest }\n"),
      ElementsAre("3:3: error: 'every' is not supported yet",
                  testing::HasSubstr("  hint: every k steps is ")));
}

TEST(Hints, WhatALaterVersionWillHave) {
  expectHints(
      {
          {"every 6 steps {\nparam = grad\nlet y = 3\n}",
           "2:1: error: 'every' is not supported yet",
           "every k steps is 'step == k * floor(step / k)'"},
          {"every lr steps { param = grad }", "2:1: error: 'every' is not supported yet",
           "every k steps is 'step == k * floor(step / k)'"},
          {"state l : f32[cols][cols]\nl = l",
           "2:14: error: expected two sizes as [rows, cols], found [cols][cols]", ""},
          {"state l : f32[cols * cols]\nl = l",
           "2:14: error: expected two sizes as [rows, cols], found [cols * cols]", ""},
      },
      /*isSyntax=*/false);
  // The words stay names.
  EXPECT_THAT(messagesIn("state every : f32\nlet def = lr\nlet model = def\nevery = model * grad\n"
                         "let import = every\nlet steps = import"),
              testing::Each(testing::HasSubstr("warning")));
}

} // namespace
