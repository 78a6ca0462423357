//===- ModelTest.cpp - The model, and what rules read of it ----------------===//
#include "Helpers.h"

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// A model with these lines (from line 2) beside an optimizer and a route.
std::string model(const std::string &body) {
  return "model(k = 1) {\n" + body +
         "\nlet unused = k\n}\noptimizer T(lr) {\nparam = param - lr * grad * model.unused\n}\n";
}

/// An optimizer with these lines (from line 6) beside a model.
std::string reader(const std::string &body) {
  return "model(k = 1, free = 2) {\nlet one = norm(grad)\nlet all = 2 * grad\n"
         "let flag = finite(one)\nlet tiny = 1e-60}\n" +
         body + "\n";
}

std::vector<std::string> modelMessages(const std::string &body) {
  return check(model(body)).messages();
}

void expectModelMessages(llvm::ArrayRef<Case> cases) { expectMessages(cases, modelMessages); }

/// The messages about a statement in an optimizer that may read the model. Warnings are left out.
std::vector<std::string> readerMessages(const std::string &body) {
  std::vector<std::string> messages = check(reader(rule(body))).messages();
  if (llvm::none_of(messages,
                    [](const std::string &m) { return m.find(": error: ") != std::string::npos; }))
    messages.clear();
  return messages;
}

TEST(Model, WhatItMayHold) {
  EXPECT_THAT(modelMessages("grad = min(1, k / (norm(grad) + 1e-6)) * grad"), IsEmpty());
  EXPECT_THAT(
      modelMessages(
          "let a = sum(param) + mean(grad) * rms(grad) - max(abs(grad)) * step\n"
          "let b = sum(select(abs(grad) > a and finite(param), lerp(param, grad, k), 0 * grad))\n"
          "grad = clamp(cast(momentum(grad, decay(param, k, b + 0 * grad) , k), bf16), -b, b)"),
      ElementsAre("4:50: error: expected a scalar, found a tensor shaped like the parameter"));
  EXPECT_THAT(
      modelMessages("let b = norm(grad)\ngrad = cast(momentum(grad, decay(param, k, 0.1), k), "
                    "bf16) * select(step < 10, step / 10, 1) ^ 2 / b"),
      IsEmpty());
  // No parameter and no statement is needed.
  EXPECT_THAT(check("model() {\n}\n" + rule("")).messages(), IsEmpty());
  // It stands before or after the optimizers, which read it in either case.
  for (const char *text :
       {"optimizer A() { param = grad * model.n }\nmodel() { let n = norm(grad) }\n",
        "model() { let n = norm(grad) }\noptimizer A() { param = grad * model.n }\n"})
    EXPECT_THAT(check(text).messages(), IsEmpty()) << text;
}

TEST(Model, Errors) {
  const std::string sizes =
      "  hint: all parameters of a model count as one vector, without rows and columns";
  const Case cases[] = {
      {"let x = norm(grad, over = rows)",
       {"2:20: error: expected no 'over = rows' in a model", sizes}},
      {"grad = orthogonalize(grad)", {"2:8: error: expected no 'orthogonalize' in a model", sizes}},
      {"let x = rows", {"2:9: error: expected no 'rows' in a model", sizes}},
      {"let x = 2 * cols", {"2:13: error: expected no 'cols' in a model", sizes}},
      {"let x = numel", {"2:9: error: expected no 'numel' in a model", sizes}},
      {"param = grad", {"2:1: error: expected a state or 'grad' to assign to, found 'param'"}},
      {"step = 1", {"2:1: error: expected a state or 'grad' to assign to, found 'step'"}},
      {"k = 1",
       {"2:1: error: expected a state or 'grad' to assign to, found the hyperparameter 'k'",
        "  1:7: note: it is declared here"}},
      {"let x = 1\nx = 2",
       {"3:1: error: expected a state or 'grad' to assign to, found the 'let' 'x'",
        "  2:5: note: it is declared here",
        "  hint: only a 'repeat' assigns again to what 'let' declares"}},
      {"m = grad",
       {"2:1: error: unknown state 'm'",
        "  hint: declare it: 'state m : f32[]', or 'let m = ...'"}},
      {"grda = grad", {"2:1: error: unknown state 'grda'", "  hint: did you mean 'grad'?"}},
      {"g = 2 * grad", {"2:1: error: unknown state 'g'", "  hint: did you mean 'grad'?"}},
      {"grad = grad\ngrad = 2 * param",
       {"3:1: error: 'grad' is assigned twice", "  2:1: note: the first assignment is here",
        "  hint: name what is between with 'let'"}},
      {"grad = 2 * grad\nlet x = norm(grad)",
       {"3:14: error: 'grad' is read after it was assigned", "  2:1: note: the assignment is here",
        "  hint: name the new value with 'let' before assigning it"}},
      {"grad = norm(grad)",
       {"2:8: error: expected a tensor shaped like the parameter for 'grad', found one value of "
        "all "
        "parameters"}},
      {"grad = k",
       {"2:8: error: expected a tensor shaped like the parameter for 'grad', found a scalar"}},
      {"grad = finite(grad)",
       {"2:8: error: expected a tensor shaped like the parameter for 'grad', found a condition",
        "  hint: make numbers of it: 'select(condition, 1, 0)'"}},
      {"let x = sum(norm(grad))",
       {"2:13: error: expected a tensor of several values, found one value of all parameters"}},
      {"let x = rowz", {"2:9: error: unknown name 'rowz'"}},
      {"let x = n_rows", {"2:9: error: unknown name 'n_rows'"}},
      {"let x = steps", {"2:9: error: unknown name 'steps'", "  hint: did you mean 'step'?"}},
      {"let x = lr", {"2:9: error: unknown name 'lr'"}},
      {"let x = y\nlet y = 1",
       {"2:9: error: 'y' is used before it is declared", "  3:5: note: the declaration is here"}},
      {"let k = 1",
       {"2:5: error: 'k' is declared twice", "  1:7: note: the first declaration is here"}},
      {"let x = model.k",
       {"2:9: error: expected 'model.k' in an optimizer, found it in the model",
        "  hint: write 'k'"}},
      {"master : f32",
       {"2:1: error: expected 'state', 'let', 'metric', 'skip when' or an assignment in a model, "
        "found "
        "'master'",
        "  hint: the master copy of a parameter is declared in its optimizer"}},
      {"return grad",
       {"2:8: error: expected '=' after 'return', found 'grad'",
        "  hint: a model ends with 'grad = ...'"}},
      {"skip if k > 1",
       {"2:6: error: expected 'when' after 'skip', found 'if'",
        "  hint: a step is skipped by 'skip when CONDITION'"}},
      {"skip unless k > 1",
       {"2:6: error: expected 'when' after 'skip', found 'unless'",
        "  hint: a step is skipped by 'skip when CONDITION'"}},
      {"skip when", {"2:10: error: expected a value, found the end of the line"}},
      {"skip when k > ", {"2:14: error: expected a value, found the end of the line"}},
      {"skip when norm(grad)",
       {"2:11: error: expected a condition, found one value of all parameters",
        "  hint: compare it: 'x != 0'"}},
      {"skip when not finite(grad)",
       {"2:11: error: expected one condition for the whole step, found one for each element",
        "  hint: a reduction such as 'norm(grad)' gives one value, which a condition can be "
        "about"}},
      {"state s : f32[rows]\ns = norm(grad)\nlet t = s",
       {"2:1: error: expected no state 's' with one value per row in a model",
        "  hint: all parameters of a model count as one vector, without rows and columns"}},
      {"grad = k * grad\ngrad = 2 * grad",
       {"3:1: error: 'grad' is assigned twice", "  2:1: note: the first assignment is here",
        "  hint: name what is between with 'let'"}},
      {"skip when zz > 1", {"2:11: error: unknown name 'zz'"}},
      {"skip when 1 < 2\nskip when k < 1\nskip when 2 < 1",
       {"2:1: warning: this skips every step", "4:1: warning: this never skips a step"}},
      {"let late = max(1, -step) + k\nskip when k < 3 and late <= 2",
       {"3:1: warning: once this skips a step, it may skip all further ones: a skipped step does "
        "not "
        "count, so 'step' stays",
        "  hint: a state can count the steps: 'seen = seen + 1' above the statement"}},
      {"state seen : f32\nseen = seen + 1\nskip when seen < step or k > 2", {}},
  };
  expectModelMessages(cases);
}

TEST(Model, States) {
  // One number each, with brackets or without.
  Result result = check("model(k) {\n  state a : f32 = 2\n  state b : f32[]\n  let n = norm(grad)\n"
                        "  a = k * a + n\n  b = max(a, 3)\n  grad = grad / (1 + b)\n}\n" +
                        rule("state m : f32[]\nm = model.a + model.b"));
  EXPECT_THAT(result.messages(), IsEmpty());
  for (const StateDeclaration &state : result.file->model()->states)
    EXPECT_EQ(state.shape, Shape::One);
  const Case cases[] = {
      {"state a : bf16\na = k",
       {"2:1: error: expected an f32 as a state of the model, found bf16",
        "  hint: a state of the model is one number, for which a narrow type saves nothing"}},
      {"state a : f32[rows]\na = k",
       {"2:1: error: expected no state 'a' with one value per row in a model",
        "  hint: all parameters of a model count as one vector, without rows and columns"}},
      {"state a : f32\na = k * grad",
       {"3:5: error: expected one value of all parameters for 'a', found a tensor shaped like the "
        "parameter",
        "  2:1: note: the state is declared here",
        "  hint: a reduction such as 'mean(x)' gives one value"}},
      {"a = k\nstate a : f32",
       {"2:1: error: 'a' is used before it is declared", "  3:7: note: the declaration is here"}},
      {"state k : f32\nk = 2",
       {"2:7: error: 'k' is declared twice", "  1:7: note: the first declaration is here",
        "3:1: error: expected a state or 'grad' to assign to, found the hyperparameter 'k'",
        "  1:7: note: it is declared here"}},
      {"state a : f32 = k",
       {"2:17: error: expected a number, found 'k'",
        "  hint: a number is computed from literals alone: '0.1 / 3'"}},
      {"state a : f32", {"2:7: warning: state 'a' is never used"}},
  };
  expectModelMessages(cases);
}

TEST(Model, Skips) {
  EXPECT_THAT(check("model(most = 1) {\n  let total = norm(grad)\n  skip when not finite(total)\n"
                    "  skip when most < 0 or total > most and step > 10\n}\n" +
                    rule("state m : f32[]\nm = lr"))
                  .messages(),
              IsEmpty());
  // No optimizer skips.
  EXPECT_THAT(messagesIn("skip when lr > 1"),
              ElementsAre("2:1: error: expected a statement of an optimizer, found 'skip when'",
                          "  hint: a model skips steps: 'model() { skip when not "
                          "finite(norm(grad)) }'"));
  EXPECT_THAT(messagesIn("skip often = lr"),
              ElementsAre("2:6: error: expected '=' after 'skip', found 'often'",
                          "  hint: a value is named by 'let often = ...'"));
}

TEST(Model, WhatALaterVersionWillHave) {
  // One error at each place. The lines around it are read, and uses of its names say nothing more.
  const Case cases[] = {
      {"input loss : f32",
       {"2:1: error: expected 'state', 'let', 'metric', 'skip when' or an assignment in a model, "
        "found 'input'",
        "  hint: an input is given for each parameter: it is declared in an optimizer"}},
      {"state n : f32[]\nskip when n > 3\nskip when n > 4\ninput m : f32\ngrad = rows * grad\nlet "
       "y "
       "= zz",
       {"5:1: error: expected 'state', 'let', 'metric', 'skip when' or an assignment in a model, "
        "found 'input'",
        "  hint: an input is given for each parameter: it is declared in an optimizer",
        "6:8: error: expected no 'rows' in a model",
        "  hint: all parameters of a model count as one vector, without rows and columns",
        "7:9: error: unknown name 'zz'"}},
  };
  expectModelMessages(cases);
  // Optimizers read what text that cannot be parsed may name.
  EXPECT_THAT(
      check("model() {\n  state n : f32[]\n  input m = n\n  let a = n\n}\n" +
            rule("let x = model.n + model.m + model.a + model.b"))
          .messages(),
      ElementsAre("3:3: error: expected 'state', 'let', 'metric', 'skip when' or an assignment in "
                  "a model, found 'input'",
                  "  hint: an input is given for each parameter: it is declared in an "
                  "optimizer",
                  "7:39: error: unknown value 'model.b'", "  1:1: note: the model is here",
                  "  hint: the model has n, a"));
}

TEST(Model, Metrics) {
  // They may be called like values, but no statement reads them.
  EXPECT_THAT(check("model(most = 1) {\n  let total = norm(grad)\n  metric total = total\n"
                    "  metric most = most\n  skip when total > most\n  metric taken = step\n}\n" +
                    rule("state m : f32\nm = lr * grad\nmetric lr = lr\nmetric size = rms(m)"))
                  .messages(),
              IsEmpty());
  const Case cases[] = {
      {"metric size = 2 * grad",
       {"2:15: error: expected one number for the metric 'size', found a tensor shaped like the "
        "parameter",
        "  hint: a reduction such as 'rms(x)' gives one number"}},
      {"metric fine = finite(norm(grad))",
       {"2:15: error: expected one number for the metric 'fine', found a condition",
        "  hint: make a number of it: 'select(condition, 1, 0)'"}},
      {"state n : f32\nmetric n = norm(grad)\nn = 1",
       {"3:8: error: 'n' is declared twice", "  2:7: note: the first declaration is here"}},
      {"metric n = norm(grad)\nmetric n = 3",
       {"3:8: error: 'n' is declared twice", "  2:8: note: the first declaration is here"}},
      {"metric n = norm(grad)\ngrad = n * grad",
       {"3:8: error: unknown name 'n'",
        "  hint: no statement reads a metric: name the value with 'let'"}},
      {"metric n = 1e60",
       {"2:12: error: expected a number that f32 can hold next to a tensor, found 1e+60, which "
        "rounds to infinity",
        "  hint: f32 holds numbers from 1.4e-45 to 3.4e+38"}},
  };
  expectModelMessages(cases);
  // The trainer finds a metric by its name alone.
  EXPECT_THAT(check("model() {\n  metric size = norm(grad)\n}\n" + rule("metric size = rms(grad)"))
                  .messages(),
              ElementsAre("5:8: error: expected another name for the metric, found 'size', as a "
                          "metric of the model has",
                          "  2:10: note: the model's is here"));
  EXPECT_THAT(
      check("model() {\n  metric size = norm(grad)\n}\n" + rule("let x = model.size * grad"))
          .messages(),
      ElementsAre("5:9: error: unknown value 'model.size'", "  1:1: note: the model is here",
                  "  hint: nothing reads a metric: name the value with 'let'"));
}

TEST(Model, HeaderErrors) {
  const Case cases[] = {
      {"model {\n  grad = grad\n}\n",
       {"1:7: error: expected '(', found '{'",
        "  hint: one without hyperparameters is 'model() { ... }'"}},
      {"model Clip(k = 1) {\n  grad = k * grad\n}\n",
       {"1:7: error: expected '(' after 'model', found 'Clip'",
        "  hint: a file has one model, which has no name"}},
      {"model(k = 1)\n", {"2:1: error: expected '{', found 'optimizer'"}},
      {"model(k = ) {\n  grad = k * grad\n}\n", {"1:11: error: expected a number, found ')'"}},
      {"model(k, k) {\n  grad = k * grad\n}\n",
       {"1:10: error: 'k' is declared twice", "  1:7: note: the first declaration is here"}},
      {"model() {\n  grad = 2 * grad\n",
       {"3:1: error: expected '}', found 'optimizer'", "  1:9: note: to match this '{'"}},
      {"modell(k = 1) {\n  grad = k * grad\n}\n",
       {"1:1: error: expected 'optimizer', 'model', 'def', 'import', 'blocks' or 'route', found "
        "'modell'",
        "  hint: did you mean 'model'?"}},
      {"model() {\n}\nmodel() {\n}\nmodel() {\n}\n",
       {"3:1: error: expected one model in a file, found another", "  1:1: note: the first is here",
        "5:1: error: expected one model in a file, found another",
        "  1:1: note: the first is here"}},
  };
  for (const Case &c : cases)
    EXPECT_EQ(check(c.text + "optimizer T(lr) {\n  param = param - lr * grad\n}\n").messages(),
              c.messages)
        << c.text;
  EXPECT_THAT(check("model() {\n}\n").messages(),
              ElementsAre("3:1: error: expected at least one optimizer, found none"));
  // Text in a model that misses its brace is no statement of an optimizer.
  EXPECT_THAT(
      check("optimizer T(lr) {\n  param = param - lr * grad\nmodel() {\n}\n").messages(),
      ElementsAre("3:1: error: expected '}', found 'model'", "  1:17: note: to match this '{'"));
  EXPECT_THAT(
      check("optimizer model(lr) {\n  param = param - lr * grad\n}\nmodel() {\n}\n"
            "optimizer S(lr) {\n  param = lr * grad\n}\n"
            "route {\n  model(lr = 1) for matrix\n  S(lr = 1) as model for rest\n}\n")
          .messages(),
      ElementsAre("1:11: error: expected another name for the optimizer, found 'model', as "
                  "the model has",
                  "  4:1: note: the model is here",
                  "  hint: in a checkpoint 'model' is the entry of the model",
                  "11:16: error: expected another name for the route, found 'model', as the "
                  "model has",
                  "  4:1: note: the model is here",
                  "  hint: in a checkpoint 'model' is the entry of the model",
                  "11:16: error: expected a route's name that no other optimizer has, found "
                  "'model'",
                  "  1:11: note: the optimizer is declared here"));
}

TEST(Model, ValuesThatOptimizersRead) {
  EXPECT_THAT(readerMessages("let x = model.one * model.k + model . free"), IsEmpty());
  Result result = check(reader(rule("let x = model.one\nlet y = model.k * lr")));
  EXPECT_FALSE(result.diagnostics.hasErrors());
  for (int i : {0, 1})
    EXPECT_EQ(result.file->rules[0]->statements[size_t(i)]->value->type,
              (Type{Shape::One, ElementType::F32}));
  EXPECT_EQ(result.file->rules[0]->modelValues, (std::set<std::string, std::less<>>{"k", "one"}));

  const Case cases[] = {
      {"let x = model.all",
       {"7:9: error: expected one number of the model, found a tensor shaped like the parameter",
        "  3:5: note: it is declared here",
        "  hint: a reduction such as 'mean(x)' gives one number"}},
      {"let x = model.flag",
       {"7:9: error: expected one number of the model, found a condition",
        "  4:5: note: it is declared here",
        "  hint: make a number of it: 'select(condition, 1, 0)'"}},
      {"let x = model.tiny",
       {"7:9: error: expected a number that f32 can hold next to a tensor, found 1e-60, which "
        "rounds "
        "to 0",
        "  5:12: note: its value is given here",
        "  hint: f32 holds numbers from 1.4e-45 to 3.4e+38"}},
      {"let x = model.on + model.on",
       {"7:9: error: unknown value 'model.on'", "  1:1: note: the model is here",
        "  hint: did you mean 'one'?"}},
      {"let x = model.quux",
       {"7:9: error: unknown value 'model.quux'", "  1:1: note: the model is here",
        "  hint: the model has k, free, one, all, flag, tiny"}},
      {"let x = model.grad",
       {"7:15: error: expected the name of a value of the model, found 'grad'",
        "  hint: 'grad' is a word of the language"}},
      {"let x = model.1", {"7:15: error: expected the name of a value of the model, found '1'"}},
      {"let x = model.one.all",
       {"7:18: error: unexpected character '.'", "  hint: functions have no prefix: 'sqrt(x)'"}},
      {"model.one = 1",
       {"7:6: error: expected '=' after 'model', found '.'",
        "  hint: a value of the model is computed in the 'model' block alone"}},
      {"let x = model",
       {"7:9: error: unknown name 'model'",
        "  hint: a value of the model is read as 'model.NAME'"}},
      {"let y = momentum(grad, grad, model.one)",
       {"7:30: error: expected a scalar, found one value of the whole parameter"}},
      {"let model = lr\nlet x = model.one",
       {"8:9: error: expected a value of the model, found the 'let' 'model'",
        "  7:5: note: it is declared here",
        "  hint: give it another name, because it hides the model"}},
      {"state model : f32\nmodel = model\nlet x = model.one",
       {"9:9: error: expected a value of the model, found the state 'model'",
        "  7:7: note: it is declared here",
        "  hint: give it another name, because it hides the model"}},
  };
  expectMessages(cases, readerMessages);
  EXPECT_THAT(messagesIn("let x = model.one + model.two"),
              ElementsAre("2:9: error: unknown value 'model.one', because the file has no 'model' "
                          "block"));
  EXPECT_THAT(messagesIn("let model = lr\nlet x = model.one"),
              ElementsAre("3:9: error: expected a value of the model, found the 'let' 'model'",
                          "  2:5: note: it is declared here"));
  // A wrong value of the model is one error.
  EXPECT_THAT(check("model() {\n  let a = zz\n}\n" + rule("let x = model.a")).messages(),
              ElementsAre("2:11: error: unknown name 'zz'"));
}

TEST(Model, Warnings) {
  EXPECT_THAT(check("model(k = 1, j = 1e-60) {\n  let a = 2\n  let b = norm(grad)\n}\n"
                    "optimizer A() {\n  param = grad * model.b * model.j\n}\n")
                  .messages(),
              ElementsAre("1:7: warning: hyperparameter 'k' is never used",
                          "2:7: warning: 'a' is never used",
                          "1:18: warning: 'j' is 1e-60, which rounds to 0 in f32",
                          "  6:28: note: it meets a tensor here"));
  EXPECT_THAT(check("model(j = 1e-60) {\n  let a = j\n}\n"
                    "optimizer A() {\n  param = grad * model.a\n}\n")
                  .messages(),
              ElementsAre("1:11: warning: 'j' is 1e-60, which rounds to 0 in f32",
                          "  5:18: note: it meets a tensor here"));
}

TEST(Model, DepthGoesThroughIt) {
  // Passes compute the model's operations anew in each rule, and recurse along both.
  std::string chain = "grad";
  for (int i = 0; i < 6000; ++i)
    chain += " + 1";
  auto messages = [&](const std::string &text) { return check(text).messages(); };
  std::string sum = "model() {\ngrad = " + chain + "\n}\n";
  EXPECT_THAT(messages(sum + "optimizer A() {\nparam = " + chain + "\n}\n"),
              ElementsAre("5:9: error: expected at most 10000 operations that follow from one "
                          "another, found more",
                          "  hint: add in groups, '(a + b) + (c + d)', rather than one after the "
                          "other"));
  EXPECT_THAT(messages(sum + "optimizer A() {\nparam = grad\n}\n"), IsEmpty());
  std::string read =
      "model() {\nlet a = sum(" + chain + ")\n}\noptimizer A() {\nparam = grad * model.a";
  EXPECT_THAT(messages(read + "\n}\n"), IsEmpty());
  for (int i = 0; i < 6000; ++i)
    read += " + 1";
  EXPECT_THAT(messages(read + "\n}\n"),
              testing::Contains(testing::HasSubstr("operations that follow from one another")));
}

TEST(Model, DepthOfWhatSkipsAndIsKept) {
  auto has = [](const std::string &body) {
    std::vector<std::string> found =
        check("model(k) {\n  state s : f32\n" + body + "}\n" + rule("state m : f32[]\nm = model.s"))
            .messages();
    return llvm::any_of(found, [](const std::string &message) {
      return message.find("operations that follow from one another") != std::string::npos;
    });
  };
  auto many = [](const std::string &line, int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += line;
    return text;
  };
  EXPECT_FALSE(has(many("  skip when k > 1\n", 100) + many("  s = k\n", 100)));
  EXPECT_TRUE(has(many("  skip when k > 1\n", 4000)));
  EXPECT_TRUE(has(many("  s = k\n", 4000)));
  // A state that is assigned behind the gradient is not the gradient.
  std::string sum = "  grad = grad" + many(" + grad", 6000) + "\n";
  std::string text = "model() {\n  state s : f32\n" + sum +
                     "  s = 1\n}\noptimizer A() {\n  param = "
                     "model.s * grad" +
                     many(" + grad", 6000) + "\n}\n";
  EXPECT_THAT(check(text).messages(),
              testing::Contains(testing::HasSubstr("operations that follow from one another")));
}

TEST(Model, LongChainsOfNamesAreFollowedOnce) {
  std::string text = "model(k = 1) {\n  let a0 = k + k\n";
  for (int i = 1; i < 60; ++i)
    text += "  let a" + std::to_string(i) + " = a" + std::to_string(i - 1) + " + a" +
            std::to_string(i - 1) + "\n";
  EXPECT_THAT(check(text + "  skip when a59 > 3\n}\n" + rule("let x = lr * grad")).messages(),
              testing::Not(testing::Contains(testing::HasSubstr("step"))));
}

TEST(Model, WordsStayNames) {
  // Text that was legal before there was a model.
  for (const char *word : {"model", "skip", "metrics", "finite", "when", "where", "floor", "row",
                           "col", "identity", "normal", "seed"}) {
    std::string name = word;
    EXPECT_THAT(check("optimizer A(" + name + " = 1) {\n  param = param - " + name + " * grad\n}\n")
                    .messages(),
                IsEmpty());
    EXPECT_THAT(messagesIn("state " + name + " : f32 = 1\n" + name + " = grad * " + name),
                IsEmpty());
    EXPECT_THAT(messagesIn("let " + name + " = lr\nstate m : f32\nm = (" + name + ") * grad +\n" +
                           name + "\n* " + name + "\nm = m * " + name + "\nm = m"),
                IsEmpty());
    // A name at the end of a line, before a statement.
    EXPECT_THAT(
        messagesIn("let " + name + " = lr\nstate m : f32\nm = grad +\n  " + name + "\nm = m"),
        IsEmpty());
    // An optimizer and routes of that name.
    EXPECT_THAT(check("optimizer " + name + "(lr) {\n  param = param - lr * grad\n}\nroute {\n  " +
                          name + "(lr = 1) for matrix\n  " + name +
                          "(lr = 2) as skip2 for rest\n}\n",
                      {.requireRoute = true})
                    .messages(),
                IsEmpty())
        << name;
    EXPECT_THAT(check("optimizer " + name + "() {\n  param = grad\n}\nroute {\n  " + name +
                          "()\n  for rest\n}\n",
                      {.requireRoute = true})
                    .messages(),
                IsEmpty())
        << name;
  }
  // The function is one beside a value of its name.
  EXPECT_THAT(messagesIn("let finite = lr\nlet y = select(finite(finite), finite, 2)\n"
                         "state m : f32[]\nm = y"),
              IsEmpty());
  // In the model they are names, too.
  EXPECT_THAT(check("model(model = 1, skip = 2) {\n  let finite = model * skip\n"
                    "  let when = finite +\n    skip\n  grad = when * grad\n}\n" +
                    rule("let x = model.model * model.skip\nstate m : f32[]\nm = x"))
                  .messages(),
              IsEmpty());
}

TEST(Format, Model) {
  auto formatted = [](const std::string &text) {
    Source source("t.optim", text);
    Diagnostics diagnostics;
    return format(source, diagnostics).value_or("");
  };
  const std::string neat = "blocks \"a\" rows split 2\n"
                           "\n"
                           "model(max_norm = 1) {\n"
                           "  let total = norm(grad)  // of all\n"
                           "  skip when (total > 3)\n"
                           "  skip when -total < -3 or not finite(total)\n"
                           "  grad = min(1, max_norm / total) * grad\n"
                           "}\n"
                           "\n"
                           "optimizer A(lr) {\n"
                           "  param = param - lr * grad * model.total\n"
                           "}\n"
                           "\n"
                           "blocks \"b\" rows split 2\n"
                           "blocks \"c\" rows split 2\n";
  EXPECT_EQ(
      formatted("blocks \"a\" rows split 2\nmodel  (max_norm=1){let total=norm( grad )// of all\n"
                "skip  when(total>3)\nskip when - total< -3 or not finite(total)\n"
                "grad=min(1,max_norm/total)*grad}\noptimizer A(lr){param=param-lr*grad*model .\n"
                "total\n}\nblocks \"b\" rows split 2\nblocks \"c\" rows split 2"),
      neat);
  EXPECT_EQ(formatted(neat), neat);
}

} // namespace
