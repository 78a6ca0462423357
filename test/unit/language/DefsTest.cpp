//===- DefsTest.cpp - Functions, repeats and imports ----------------------===//
#include "Helpers.h"
#include "frontends/language/Library.h"

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// What is said about functions that an optimizer calls as `f(grad)`. They have line 1 and on.
std::vector<std::string> withCall(const std::string &functions) {
  return check(functions + "\noptimizer T(lr) { param = param - lr * f(grad) }\n").messages();
}

TEST(Defs, AreAccepted) {
  for (const char *functions : {
           "def f(x) = 2 * x",
           "def g(x, y,) = x + y\ndef f(x) = g(g(x, x), x)",
           "def f(x) = g(x)\ndef g(x) = x", // in any order
           "def f(x) {\n  return x\n}",
           "def f(x) {\n  let A = x @ transpose(x)\n  repeat 3 {\n    A = 0.5 * A @ A\n  }\n  "
           "return A @ x\n}",
           "def f(x) {\n  repeat 2 {\n    x = x * 2\n  }\n  return x\n}",
           "def f(x) {\n  repeat (a, b) in [(1, 2), (-3, 4)] {\n    x = a * x + b\n  }\n  return "
           "x\n}",
           "def f(x) {\n  repeat a in [1, norm(x)] {\n    x = a * x\n  }\n  return x\n}",
           "def g(x, n) {\n  repeat n {\n    x = x ^ n\n  }\n  return x\n}\ndef f(x) = g(x, 2)",
           "def f(x) = orthogonalize(g(x, 7))\ndef g(x, n) = orthogonalize(x, steps = n)",
           "def g(x) = floor(rows(x) / 2)\ndef f(x) {\n  let r = max(1, g(x))\n  return x * "
           "norm(identity(r))\n}",
           "def pi() = 3.14\ndef f(x) = pi() * x",
           "def norm(x) = max(abs(x))\ndef f(x) = x / norm(x)", // hides the builtin
       })
    EXPECT_THAT(withCall(functions), IsEmpty()) << functions;
}

TEST(Defs, Errors) {
  const std::string onlyArguments =
      "  hint: a function sees its arguments alone: make it one of them";
  expectMessages(
      {
          {"def f(x) = f(x)",
           {"1:12: error: expected functions that end, found 'f', which calls itself",
            "  hint: 'repeat 5 { ... }' repeats statements"}},
          {"def f(x) = g(x)\ndef g(x) = h(x)\ndef h(x) = 1 + g(x)",
           {"2:12: error: expected functions that end, found 'g', which calls itself",
            "  3:16: note: by way of 'h'", "  hint: 'repeat 5 { ... }' repeats statements"}},
          {"def f(x) = x * param",
           {"1:16: error: expected a value that 'f' is given, found 'param'", onlyArguments}},
          {"def f(x) = x * rows",
           {"1:16: error: expected a value that 'f' is given, found 'rows'",
            "  hint: 'rows(x)' says how many x has"}},
          {"def f(x) = x * lr",
           {"1:16: error: unknown name 'lr' in the function 'f'", onlyArguments}},
          {"def f(x) = x * model.k",
           {"1:16: error: expected a value that 'f' is given, found a value of the model",
            onlyArguments}},
          {"def f(value) = valeu",
           {"1:16: error: unknown name 'valeu' in the function 'f'",
            "  hint: did you mean 'value'?"}},
          {"def f(x) = sqr(x)",
           {"1:12: error: unknown function 'sqr'", "  hint: a square is written 'x ^ 2'"}},
          {"def f(x) = ff(x)\ndef fg(x) = x",
           {"1:12: error: unknown function 'ff'", "  hint: did you mean 'f'?"}},
          {"def f(x) {\n  return x\n  return x + 1\n}",
           {"3:3: error: expected '}' after 'return', found 'return'",
            "  hint: a function has one 'return', which ends it"}},
          {"def f(x) {\n  let y = x\n}",
           {"3:1: error: expected 'return' at the end of 'f', found '}'"}},
          {"def f(x) {\n  repeat 2 {\n    return x\n  }\n  return x\n}",
           {"3:5: error: expected 'let', 'repeat' or an assignment inside 'repeat', found 'return'",
            "  hint: a function has one 'return', at its end"}},
          {"def f(x) {\n  state m : f32\n  return x\n}",
           {"2:3: error: expected 'let', 'repeat' or 'return' in a function, found 'state'",
            "  hint: what lasts from step to step is declared in the optimizer itself"}},
          {"def f(x) {\n  x = 2 * x\n  return x\n}",
           {"2:3: error: expected 'let', 'repeat' or 'return' in a function, found an assignment",
            "  1:7: note: 'x' is declared here",
            "  hint: only a 'repeat' assigns again to what 'let' declares"}},
          {"def f(x) {\n  repeat 2 {\n    z = x\n  }\n  return x\n}",
           {"3:5: error: expected a name of 'let' to assign to, found 'z'",
            "  hint: write 'let z = ...', above the 'repeat' if it lasts from turn to turn"}},
          {"def f(x):\n  return x",
           {"1:9: error: expected '=' or '{' after the arguments of 'f', found ':'",
            "  hint: a function is 'def f(x) = x * x', or 'def f(x) { ... return x * x }'"}},
          {"def f(x, x) = x",
           {"1:10: error: 'x' is declared twice", "  1:7: note: the first declaration is here"}},
          {"def f(x) = x\ndef f(y) = y",
           {"2:5: error: function 'f' is declared twice",
            "  1:5: note: the first declaration is here"}},
          {"def f(x, y) = x + y",
           {"2:40: error: expected 2 arguments of 'f', found 1",
            "  1:5: note: the function is declared here"}},
          {"def g(x) = x\ndef f(x) = g(y = x)",
           {"2:14: error: unknown argument 'y' of 'g'",
            "  1:5: note: the function is declared here",
            "  hint: 'g' takes its arguments by position"}},
          // Each call is named, and what is wrong in several calls is told once.
          {"def g(x) = x @ x\ndef f(x) = g(x) + g(x)",
           {"1:12: error: expected the columns of the left factor to be the rows of the right one, "
            "found cols and rows",
            "  2:12: note: in this call of 'g'", "  3:40: note: in this call of 'f'"}},
      },
      withCall);
}

TEST(Defs, RepeatErrors) {
  expectMessages({
      {"let z = grad\nrepeat 101 {\n  z = 2 * z\n}",
       {"3:8: error: expected a whole number of turns from 1 to 100, found 101"}},
      {"let z = grad\nrepeat 0 {\n  z = 2 * z\n}",
       {"3:8: error: expected a whole number of turns from 1 to 100, found 0"}},
      {"let z = grad\nrepeat lr {\n  z = 2 * z\n}",
       {"3:8: error: expected a whole number of turns from 1 to 100, found one that is not known "
        "when compiling",
        "  hint: the turns are written out by the compiler, so that literals give their number"}},
      {"let z = grad\nrepeat 2 {\n  z = norm(z)\n}",
       {"4:7: error: expected a tensor shaped like the parameter for 'z', found one value of the "
        "whole parameter",
        "  2:5: note: it is declared here",
        "  hint: a name keeps its sizes and its type from turn to turn"}},
      {"let z = grad\nrepeat 2 {\n  z = cast(z, bf16)\n}",
       {"4:7: error: expected f32 for 'z', found bf16", "  2:5: note: it is declared here",
        "  hint: write 'cast(cast(z, bf16), f32)'"}},
      {"let z = grad\nrepeat (a, b) in [(1, 2), (3, 4, 5)] {\n  z = a * z + b\n}",
       {"3:28: error: expected 2 values, one for each name, found 3"}},
      {"repeat 2 {\n  let a = grad\n}\nlet b = a",
       {"5:9: error: 'a' is used outside of its 'repeat'", "  3:7: note: the declaration is here",
        "  hint: what lasts beyond a turn is declared above the 'repeat', and assigned in it"}},
      {"repeat 2 {\n  let b = a\n  let a = grad\n}",
       {"3:11: error: 'a' is used before it is declared", "  4:7: note: the declaration is here",
        "  hint: what lasts beyond a turn is declared above the 'repeat', and assigned in it"}},
      {"let a = 1\nrepeat 2 {\n  let a = grad\n}",
       {"4:7: error: 'a' is declared twice", "  2:5: note: the first declaration is here"}},
      {"repeat lr in [1, 2] {\n  let a = grad\n}",
       {"2:8: error: 'lr' is declared twice", "  1:13: note: the first declaration is here"}},
      {"repeat 2 {\n  metric a = norm(grad)\n}",
       {"3:3: error: expected 'let', 'repeat' or an assignment inside 'repeat', found 'metric'",
        "  hint: a metric stands in the optimizer itself, outside of 'repeat'"}},
      {"let z = grad\nrepeat 100 {\n  repeat 100 {\n    z = z + 1\n  }\n}",
       {"3:1: error: expected at most 10000 operations after functions and repeats are inlined, "
        "found more"}},
      {"repeat 2 {\n  total = 5 * grad\n}\nlet total = grad",
       {"3:3: error: 'total' is used before it is declared",
        "  5:5: note: the declaration is here"}},
      {"let c = lr > 1\nlet y = grad\nrepeat 3 {\n  c = y > 1\n}",
       {"5:7: error: expected a condition of kind 'a scalar' for 'c', found a condition of kind 'a "
        "tensor shaped like the parameter'",
        "  2:5: note: it is declared here",
        "  hint: a name keeps its sizes and its type from turn to turn"}},
      {"repeat {\n  let a = 1\n}",
       {"2:8: error: expected a number of turns, found '{'",
        "  hint: it is written 'repeat 5 { ... }', or 'repeat x in [1, 2] { ... }'"}},
  });
  EXPECT_THAT(
      check("optimizer T(lr) {\n  repeat 2 {\n    param = param - lr * grad\n  }\n}\n").messages(),
      ElementsAre("3:5: error: expected an assignment to 'param' outside of 'repeat', found it "
                  "inside",
                  "  hint: it is assigned once: name what the turns compute with 'let'"));
}

/// The limits are of what is inlined, so that a function which calls others twice cannot take the time of 2^n.
TEST(Defs, LimitsEndTheWork) {
  std::string twice = "def f0(x) = x\n", deep = twice;
  for (int i = 1; i <= 60; ++i) {
    std::string before = "f" + std::to_string(i - 1), name = "def f" + std::to_string(i);
    twice += name + "(x) = " + before + "(" + before + "(x))\n";
    deep += name + "(x) = " + before + "(x)\n";
  }
  std::string call = "optimizer T(lr) { param = param - lr * f60(grad) }\n";
  EXPECT_THAT(check(twice + call).messages(),
              ElementsAre("62:40: error: expected at most 10000 operations after functions and "
                          "repeats are inlined, found more"));
  EXPECT_THAT(check(deep + call).messages(), IsEmpty());
  for (int i = 61; i <= 5000; ++i)
    deep += "def f" + std::to_string(i) + "(x) = f" + std::to_string(i - 1) + "(x)\n";
  EXPECT_THAT(check(deep + "optimizer T(lr) { param = param - lr * f5000(grad) }\n").messages(),
              testing::Contains(HasSubstr("expected at most 200 levels of nesting")));
  std::string levels = "optimizer T(lr) {\n";
  for (int i = 0; i < 100000; ++i)
    levels += "repeat 1 {\n";
  EXPECT_THAT(check(levels).messages(),
              testing::Contains(HasSubstr("expected at most 20 levels of 'repeat'")));
}

TEST(Defs, WarningsNameWhatIsUnused) {
  EXPECT_THAT(
      check("def f(x, y) {\n  let a = x\n  repeat (p, q) in [(1, 2)] {\n    x = p * x\n    let c = "
            "3\n  }\n"
            "  return x\n}\ndef g(x) = x\noptimizer T(lr) { param = param - lr * f(grad, 2) }\n"
            "route { T(lr = 1) for rest }\n")
          .messages(),
      ElementsAre("1:10: warning: argument 'y' is never used", "2:7: warning: 'a' is never used",
                  "3:14: warning: 'q' is never used", "5:9: warning: 'c' is never used",
                  "9:5: warning: function 'g' is never used"));
}

/// Each new word stays a name: of hyperparameters, states, lets and functions.
TEST(Defs, NewWordsStayNames) {
  for (std::string word : {"def", "import", "repeat", "return", "in"}) {
    EXPECT_THAT(
        check("optimizer T(lr, " + word + " = 1) { param = param - lr * " + word + " * grad }\n")
            .messages(),
        IsEmpty())
        << word;
    EXPECT_THAT(check("optimizer T(lr) {\n  state " + word + " : f32\n  " + word + " = " + word +
                      " + grad\n  param = param - lr * " + word + "\n}\n")
                    .messages(),
                IsEmpty())
        << word;
    EXPECT_THAT(check("optimizer T(lr) {\n  let " + word + " = grad\n  param = param - lr * " +
                      word + "\n}\n")
                    .messages(),
                IsEmpty())
        << word;
    EXPECT_THAT(check("def " + word + "(" + word + ") = " + word +
                      "\noptimizer T(lr) {\n  param = param - lr * " + word + "(grad)\n}\n")
                    .messages(),
                IsEmpty())
        << word;
  }
  EXPECT_THAT(check("def f(in) {\n  let return = in\n  repeat in in [1, 2] {\n    return = in * "
                    "return\n  }\n  return return\n}\n"
                    "optimizer T(lr) { param = param - lr * f(grad) }\n")
                  .messages(),
              ElementsAre("3:10: error: 'in' is declared twice", HasSubstr("note")));
}

//===----------------------------------------------------------------------===//
// Imports
//===----------------------------------------------------------------------===//

const std::string call = "optimizer T(lr) { param = param - lr * f(grad) }\n";

TEST(Imports, BringFunctionsOptimizersAndTheModel) {
  const std::map<std::string, std::string> files = {
      {"folder/a.optim", "import \"../b.optim\"\nmodel(most = 1) {\n  let total = norm(grad)\n"
                         "  grad = min(1, most / total) * grad\n}\n"
                         "optimizer A(lr) {\n  param = param - lr * model.total * f(grad)\n}\n"
                         "blocks \"*\" rows each 3\nroute { A(lr = 1) for \"none\" }\n"},
      {"b.optim", "def f(x) = g(x)\ndef g(x) = 2 * x\n"}};
  Result result = check("import \"folder/a.optim\"\nimport \"./b.optim\"\n" + call +
                            "route {\n  A(lr = 1) for \"a*\"\n  T(lr = 2) for rest\n}\n",
                        {.requireRoute = true}, files);
  EXPECT_THAT(result.messages(), IsEmpty());
  EXPECT_EQ(result.file->imported.size(), 2u);
  EXPECT_EQ(result.file->allRules().size(), 2u);
  EXPECT_TRUE(result.file->blocks.empty());
  ASSERT_NE(result.file->model(), nullptr);
}

TEST(Imports, OfTheLibrary) {
  for (const LibraryFile &file : libraryFiles()) {
    EXPECT_THAT(check(file.text.str(), {}, {}, "copy.optim").messages(), IsEmpty())
        << file.name.str();
    Source source(file.name.str(), file.text.str());
    Diagnostics diagnostics;
    EXPECT_EQ(format(source, diagnostics), file.text.str());
  }
  EXPECT_THAT(
      check("import \"stepc/linalg.optim\"\noptimizer T(lr) { param = param - lr * fine(grad, "
            "identity(cols)) }\n",
            {}, {}, "<stdin>")
          .messages(),
      IsEmpty());
}

TEST(Imports, Errors) {
  const std::map<std::string, std::string> files = {
      {"a.optim", "import \"b.optim\"\ndef f(x) = g(x)\n"},
      {"b.optim", "import \"a.optim\"\ndef g(x) = x\n"},
      {"own.optim", "import \"own.optim\"\n"},
      {"back.optim", "import \"t.optim\"\n"},
      {"f.optim", "def f(x) = x\noptimizer T(lr) { param = param - lr * grad }\n"},
      {"f2.optim", "def f(x) = x + 1\n"},
      {"wrong.optim", "def f(x) = x +\n"},
      {"types.optim", "def f(x) = x @ x\n"},
      {"model.optim", "model(k = 1) {\n  grad = k * grad\n}\n"},
      {"foreign.optim", "import torch\nclass A:\n  pass\n  def f(x): return 3\n"},
      {"unused.optim", "def f(x, y) = x\n"}};
  auto of = [&](const std::string &text, const std::string &name = "t.optim") {
    return check(text + call, {}, files, name).messages();
  };
  EXPECT_THAT(of("import \"none.optim\"\n"),
              ElementsAre("1:8: error: cannot import 'none.optim': no such file or directory"));
  EXPECT_THAT(of("import \"linalg.optim\"\n"),
              ElementsAre("1:8: error: cannot import 'linalg.optim': no such file or directory",
                          "  hint: the library has 'stepc/linalg.optim'"));
  EXPECT_THAT(
      of("import \"stepc/linalgs.optim\"\n"),
      ElementsAre("1:8: error: expected a file of stepc's library, found 'stepc/linalgs.optim'",
                  "  hint: did you mean 'stepc/linalg.optim'?"));
  EXPECT_THAT(
      of("import \"/a.optim\"\n"),
      ElementsAre("1:8: error: expected the path of a file beside this one, found '/a.optim'",
                  HasSubstr("hint: paths are relative")));
  EXPECT_THAT(
      of("import \"a.optim\"\n", "<stdin>"),
      ElementsAre("1:8: error: expected a file of stepc, because this text is in no folder, "
                  "found 'a.optim'",
                  "  hint: 'import \"stepc/linalg.optim\"' is the library's"));
  EXPECT_THAT(of("import \"a.optim\"\n"),
              ElementsAre("b.optim:1:8: error: expected files that do not import each other, found "
                          "'a.optim', which imports itself",
                          "  a.optim:1:8: note: by way of this import"));
  EXPECT_THAT(
      of("import \"own.optim\"\n"),
      ElementsAre("own.optim:1:8: error: expected files that do not import each other, found "
                  "'own.optim', which imports itself"));
  EXPECT_THAT(
      of("import \"back.optim\"\n", "./t.optim"),
      ElementsAre("back.optim:1:8: error: expected files that do not import each other, found "
                  "'t.optim', which imports itself",
                  "  1:8: note: by way of this import"));
  EXPECT_THAT(of("import \"f2.optim\"\ndef f(x) = 3 * x\n"),
              ElementsAre("2:5: error: function 'f' is declared twice",
                          "  f2.optim:1:5: note: the first declaration is here"));
  EXPECT_THAT(of("import \"f2.optim\"\nimport \"f.optim\"\n"),
              ElementsAre("3:11: error: optimizer 'T' is declared twice",
                          "  f.optim:2:11: note: the first declaration is here",
                          "2:8: error: function 'f' is declared twice",
                          "  f2.optim:1:5: note: the first declaration is here",
                          "  f.optim:1:5: note: another is here"));
  EXPECT_THAT(of("import \"wrong.optim\"\n"),
              ElementsAre("wrong.optim:2:1: error: expected a value, found end of file"));
  EXPECT_THAT(of("import \"types.optim\"\n"),
              ElementsAre(HasSubstr("types.optim:1:12: error: expected the columns of the left"),
                          "  2:40: note: in this call of 'f'"));
  EXPECT_THAT(of("import \"model.optim\"\ndef f(x) = x\nmodel(k = 1) {\n  grad = k * grad\n}\n"),
              ElementsAre("model.optim:1:1: error: expected one model in a file, found another",
                          "  3:1: note: the first is here"));
  EXPECT_THAT(of("import \"foreign.optim\"\n"),
              testing::Contains(HasSubstr("foreign.optim:1:1: error: expected 'optimizer'")));
  // A file that hides a function of the language does so for those that import it.
  EXPECT_THAT(
      check("import \"norm.optim\"\noptimizer T(lr) { param = param - lr * norm(grad) * grad }\n",
            {},
            {{"norm.optim", "import \"deep.optim\"\n"}, {"deep.optim", "def norm(x) = sum(x)\n"}})
          .messages(),
      ElementsAre("1:8: warning: this import hides the language's function 'norm'",
                  "  deep.optim:1:5: note: it is declared here"));
  // Warnings about a file are for its author.
  EXPECT_THAT(
      check("import \"unused.optim\"\noptimizer T(lr) { param = param - lr * f(grad, 1) }\n", {},
            files)
          .messages(),
      IsEmpty());
}

TEST(Imports, AreBounded) {
  std::map<std::string, std::string> files;
  std::string text;
  for (int i = 0; i < 101; ++i) {
    files["f" + std::to_string(i)] = "def g" + std::to_string(i) + "(x) = x\n";
    text += "import \"f" + std::to_string(i) + "\"\n";
  }
  EXPECT_THAT(check(text + "def f(x) = x\n" + call, {}, files).messages(),
              ElementsAre("101:8: error: expected at most 100 imported files, found more"));
  files["f0"] = std::string(Source::maxBytes, ' ');
  EXPECT_THAT(
      check("import \"f0\"\ndef f(x) = x\n" + call, {}, files).messages(),
      ElementsAre("1:8: error: expected at most 64 MiB of text with all imports, found more"));
}

} // namespace
