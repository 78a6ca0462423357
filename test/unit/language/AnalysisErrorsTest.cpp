//===- AnalysisErrorsTest.cpp - What is refused, and how it is said --------===//
#include "Helpers.h"

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

TEST(NameErrors, All) {
  expectMessages({
      {"let x = grda", {"2:9: error: unknown name 'grda'", "  hint: did you mean 'grad'?"}},
      {"let x = zzz", {"2:9: error: unknown name 'zzz'"}},
      {"let x = sqrt",
       {"2:9: error: unknown name 'sqrt'", "  hint: 'sqrt' is a function: sqrt(...)"}},
      {"let x = sqroot(lr)",
       {"2:9: error: unknown function 'sqroot'", "  hint: did you mean 'sqrt'?"}},
      {"let x = where(lr > 0, 1, 2)",
       {"2:9: error: unknown function 'where'", "  hint: did you mean 'select'?"}},
      {"let x = pow(lr, 2)",
       {"2:9: error: unknown function 'pow'", "  hint: a power is written 'x ^ y'"}},
      {"let x = lr(3)",
       {"2:9: error: expected a function, found the value 'lr'",
        "  1:13: note: it is declared here", "  hint: a product is written 'lr * (...)'"}},
      {"let x = stochastic_round(grad)",
       {"2:9: error: unknown function 'stochastic_round'",
        "  hint: rounding by chance is written 'param = stochastic(x)'"}},
      {"let x = y\nlet y = lr",
       {"2:9: error: 'y' is used before it is declared", "  3:5: note: the declaration is here"}},
      {"let x = x + 1",
       {"2:9: error: 'x' is used before it is declared", "  2:5: note: the declaration is here"}},
      {"let x = m\nstate m : f32",
       {"2:9: error: 'm' is used before it is declared", "  3:7: note: the declaration is here"}},
      {"m = grad\nstate m : f32",
       {"2:1: error: 'm' is used before it is declared", "  3:7: note: the declaration is here"}},
      {"let x = 1\nlet x = 2",
       {"3:5: error: 'x' is declared twice", "  2:5: note: the first declaration is here"}},
      {"state lr : f32",
       {"2:7: error: 'lr' is declared twice", "  1:13: note: the first declaration is here"}},
      {"let m = 1\nstate m : f32",
       {"3:7: error: 'm' is declared twice", "  2:5: note: the first declaration is here"}},
  });
}

TEST(AssignmentErrors, All) {
  expectMessages({
      {"grad = param", {"2:1: error: expected a state or 'param' to assign to, found 'grad'"}},
      {"lr = 3",
       {"2:1: error: expected a state or 'param' to assign to, found the "
        "hyperparameter 'lr'",
        "  1:13: note: it is declared here"}},
      {"let x = 1\nx = 2",
       {"3:1: error: expected a state or 'param' to assign to, found the 'let' "
        "'x'",
        "  2:5: note: it is declared here",
        "  hint: only a 'repeat' assigns again to what 'let' declares"}},
      {"u = grad",
       {"2:1: error: unknown state 'u'", "  hint: declare it: 'state u : f32', or 'let u = ...'"}},
      {"state moment : f32\nmomen = grad",
       {"3:1: error: unknown state 'momen'", "  hint: did you mean 'moment'?"}},
      {"state m : f32\nm = norm(grad)",
       {"3:5: error: expected a tensor shaped like the parameter for 'm', found "
        "one value of the whole parameter",
        "  2:1: note: the state is declared here",
        "  hint: a state that is smaller is declared so: 'f32[]'"}},
      {"state m : f32\nm = 0",
       {"3:5: error: expected a tensor shaped like the parameter for 'm', found "
        "a scalar",
        "  2:1: note: the state is declared here"}},
      {"state m : f32[rows]\nm = norm(grad, over = rows)",
       {"3:5: error: expected one value per row for 'm', found one value per "
        "column",
        "  2:1: note: the state is declared here",
        "  hint: a reduction of a full tensor with 'over = columns' gives one value per row"}},
      {"state m : f32[]\nm = grad",
       {"3:5: error: expected one value of the whole parameter for 'm', found a "
        "tensor shaped like the parameter",
        "  2:1: note: the state is declared here",
        "  hint: a reduction such as 'mean(x)' gives one value"}},
      {"state m : f32\nm = grad > 0",
       {"3:5: error: expected a tensor shaped like the parameter for 'm', found "
        "a condition",
        "  2:1: note: the state is declared here",
        "  hint: make numbers of it: 'select(condition, 1, 0)'"}},
      {"param = grad",
       {"3:1: error: 'param' is assigned twice", "  2:1: note: the first assignment is here",
        "  hint: name what is between with 'let'"}},
  });
  EXPECT_THAT(check("optimizer A() {\n  param = 1\n}\n").messages(),
              ElementsAre("2:11: error: expected a tensor shaped like the "
                          "parameter for 'param', found a scalar"));
  // A scalar fits a single value; both later reads see the new values.
  EXPECT_THAT(messagesIn("state s : f32[]\ns = lr * step\ns = s + norm(grad)"), IsEmpty());
}

TEST(KindErrors, All) {
  expectMessages({
      {"let x = 1 + (lr > 2)",
       {"2:14: error: expected a number, found a condition",
        "  hint: choose numbers with 'select(condition, a, b)'"}},
      {"let x = lr and lr > 1",
       {"2:9: error: expected a condition, found a scalar", "  hint: compare it: 'x != 0'"}},
      {"let x = not grad",
       {"2:13: error: expected a condition, found a tensor shaped like the "
        "parameter",
        "  hint: compare it: 'x != 0'"}},
      {"let x = select(lr, 1, 2)",
       {"2:16: error: expected a condition, found a scalar", "  hint: compare it: 'x != 0'"}},
      {"let x = sqrt(lr > 0)",
       {"2:14: error: expected a number, found a condition",
        "  hint: choose numbers with 'select(condition, a, b)'"}},
      {"let x = sum(lr)", {"2:13: error: expected a tensor, found a scalar"}},
      {"let x = max(lr)", {"2:13: error: expected a tensor, found a scalar"}},
      {"let x = sum(norm(grad))",
       {"2:13: error: expected a tensor of several values, found one value of "
        "the whole parameter"}},
      {"let x = sum(norm(grad, over = rows), over = rows)",
       {"2:13: error: expected a matrix, found one value per column",
        "  hint: without 'over' it reduces them to one value"}},
      {"let x = cast(lr, bf16)", {"2:14: error: expected a tensor, found a scalar"}},
      {"let x = cast(grad, f64)",
       {"2:20: error: expected f32, bf16 or f16, found 'f64'",
        "  hint: only scalars are f64, and they are so by themselves"}},
      {"let x = cast(grad, 3)", {"2:20: error: expected f32, bf16 or f16, found 3"}},
      {"let x = momentum(lr, grad, 0.9)", {"2:18: error: expected a tensor, found a scalar"}},
      {"let x = momentum(grad, grad, grad)",
       {"2:30: error: expected a scalar, found a tensor shaped like the "
        "parameter"}},
      {"let x = decay(param, grad, 1)",
       {"2:22: error: expected a scalar, found a tensor shaped like the "
        "parameter"}},
      {"let x = [(1, 2, 3)]",
       {"2:9: error: expected a value, found '['",
        "  hint: only 'coefficients' and 'restarts' of 'orthogonalize' are lists"}},
      {"let x = abs([(1, 2, 3)])",
       {"2:13: error: expected a value, found a list",
        "  hint: only 'coefficients' and 'restarts' of 'orthogonalize' are lists"}},
  });
}

TEST(CallErrors, All) {
  expectMessages({
      {"let x = sqrt()", {"2:9: error: expected 1 argument of 'sqrt', found 0"}},
      {"let x = min(grad)",
       {"2:9: error: expected 2 arguments of 'min', found 1",
        "  hint: the least of a tensor is '-max(-x)'"}},
      {"let x = max(1, 2, 3)", {"2:9: error: expected 2 arguments of 'max', found 3"}},
      {"let x = max(1, 2, over = rows)",
       {"2:19: error: unknown argument 'over' of 'max'",
        "  hint: 'max' takes its arguments by position"}},
      {"let x = norm(grad, axis = rows)",
       {"2:20: error: unknown argument 'axis' of 'norm'", "  hint: did you mean 'over'?"}},
      {"let x = norm(grad, over = cols)",
       {"2:27: error: expected 'columns' or 'rows', found 'cols'",
        "  hint: did you mean 'columns' (one value per row)?"}},
      {"let x = norm(grad, over = 1)",
       {"2:27: error: expected 'columns' or 'rows', found 1",
        "  hint: 'over = columns' gives one value per row, 'over = rows' one per column"}},
      {"let x = norm(grad, over = rows, over = rows)",
       {"2:33: error: argument 'over' is given twice", "  2:20: note: the first is here"}},
      {"let x = orthogonalize(norm(grad))",
       {"2:23: error: expected a tensor shaped like the parameter, found one "
        "value of the whole parameter"}},
      {"let x = orthogonalize(lr)",
       {"2:23: error: expected a tensor shaped like the parameter, found a "
        "scalar"}},
      {"let x = orthogonalize(grad, stepss = 5)",
       {"2:29: error: unknown argument 'stepss' of 'orthogonalize'",
        "  hint: did you mean 'steps'?"}},
      {"let x = orthogonalize(grad, algorithm = gram)",
       {"2:29: error: unknown argument 'algorithm' of 'orthogonalize'",
        "  hint: did you mean 'form'?"}},
      {"let x = orthogonalize(grad, form = grams)",
       {"2:36: error: expected standard, gram or auto, found 'grams'",
        "  hint: did you mean 'gram'?"}},
      {"let x = orthogonalize(grad, form = 2)",
       {"2:36: error: expected standard, gram or auto, found 2"}},
      {"let x = orthogonalize(grad, restarts = [2])",
       {"2:29: error: expected 'restarts' with 'form = gram' or 'form = auto' only, found no "
        "form, which is 'form = standard'"}},
      {"let x = orthogonalize(grad, form = standard, restarts = [])",
       {"2:46: error: expected 'restarts' with 'form = gram' or 'form = auto' only, found 'form "
        "= standard'",
        "  2:29: note: the form is given here"}},
      {"let x = orthogonalize(grad, form = gram, restarts = 2)",
       {"2:53: error: expected a list of restarts, found 2",
        "  hint: a restart is how many steps are done before it: 'restarts = [2]'"}},
      {"let x = orthogonalize(grad, form = gram, restarts = [0])",
       {"2:54: error: expected restarts from 1 to 4, whole numbers before the last of 5 steps, "
        "found 0"}},
      {"let x = orthogonalize(grad, form = gram, restarts = [1.5])",
       {"2:54: error: expected restarts from 1 to 4, whole numbers before the last of 5 steps, "
        "found 1.5"}},
      {"let x = orthogonalize(grad, form = auto, restarts = [4, 5])",
       {"2:57: error: expected restarts from 1 to 4, whole numbers before the last of 5 steps, "
        "found 5"}},
      {"let x = orthogonalize(grad, form = gram, restarts = [3, 3])",
       {"2:57: error: expected ascending restarts, here one above 3, found 3"}},
      {"let x = orthogonalize(grad, form = gram, restarts = [1, 4, 2])",
       {"2:60: error: expected no restart behind 4, the last one that 5 steps have a place for, "
        "found 2"}},
      {"let x = orthogonalize(grad, form = gram, steps = 1, restarts = [1])",
       {"2:65: error: expected no restart, because one step leaves no place for it, found 1"}},
      {"let x = orthogonalize(grad, form = auto, coefficients = [(2, -1, 0), (2, -1, 0)], "
       "restarts = [2])",
       {"2:95: error: expected restart 1, the only one that 2 steps have a place for, found 2"}},
      // The caret is below the option that is to blame, given or not.
      {"let x = orthogonalize(grad, form = gram, precision = f16, restarts = [])",
       {"2:70: error: expected restarts that keep all numbers within f16, at most 65504, found up "
        "to 2.40288e+12 in step 5",
        "  hint: give more restarts, or 'precision = bf16'"}},
      {"let x = orthogonalize(grad, form = gram, precision = f16, steps = 30)",
       {"2:67: error: expected restarts that keep all numbers within f16, at most 65504, found no "
        "bound in step 9",
        "  hint: give more restarts, or 'precision = bf16'"}},
      {"let x = orthogonalize(grad, form = gram, precision = f16, coefficients = cans)",
       {"2:74: warning: coefficients 'cans' can diverge in f16", "  hint: give 'precision = f32'",
        "2:74: error: expected coefficients that keep all numbers within f16, at most 65504, "
        "found up to 2.48026e+93 in step 5",
        "  hint: give 'form = standard', or 'precision = bf16'"}},
      {"let x = orthogonalize(grad, precision = f16, coefficients = [(9, 1, 1), (9, 1, 1), (9, "
       "1, 1)])",
       {"2:61: error: expected coefficients that keep all numbers within f16, at most 65504, "
        "found up to 1.13243e+26 in step 3",
        "  hint: give 'precision = bf16'"}},
      {"let x = orthogonalize(grad, steps = lr)",
       {"2:37: error: expected a whole number of steps from 1 to 100, found "
        "'lr'"}},
      {"let x = orthogonalize(grad, steps = 2.5)",
       {"2:37: error: expected a whole number of steps from 1 to 100, found "
        "2.5"}},
      {"let x = orthogonalize(grad, steps = 0)",
       {"2:37: error: expected a whole number of steps from 1 to 100, found 0"}},
      {"let x = orthogonalize(grad, steps = 101)",
       {"2:37: error: expected a whole number of steps from 1 to 100, found "
        "101"}},
      {"let x = orthogonalize(grad, precision = f64)",
       {"2:41: error: expected f32, bf16 or f16, found 'f64'",
        "  hint: only scalars are f64, and they are so by themselves"}},
      {"let x = orthogonalize(grad, eps = 0)",
       {"2:35: error: expected a constant of at least 2^-100 (7.9e-31), found 0"}},
      {"let x = orthogonalize(grad, eps = lr * 2)",
       {"2:35: error: expected a constant of at least 2^-100 (7.9e-31), found an expression"}},
      {"let x = orthogonalize(grad, coefficients = quintc)",
       {"2:44: error: expected a list or one of simple, quintic, polar_express, "
        "cans, cubic5 or deepseekv4, found 'quintc'",
        "  hint: did you mean 'quintic'?"}},
      {"let x = orthogonalize(grad, coefficients = [])",
       {"2:44: error: expected 1 to 100 coefficients, one per step, found 0"}},
      {"let x = orthogonalize(grad, steps = 2, coefficients = [(1, 2, 3)])",
       {"2:55: error: expected 2 coefficients, one per step, found 1",
        "  2:29: note: the number of steps is given here"}},
      {"let x = orthogonalize(grad, steps = 4, coefficients = quintic)",
       {"2:37: error: expected the 5 steps of the coefficients 'quintic', found "
        "4",
        "  hint: give a list to use some of them"}},
      {"let x = orthogonalize(grad, coefficients = polar_express, safety = 0.5)",
       {"2:68: error: expected a constant of at least 1, found 0.5"}},
      {"let x = orthogonalize(grad, safety = 1.01)",
       {"2:29: error: expected 'safety' with 'coefficients = polar_express' "
        "only"}},
  });
}

TEST(RuleErrors, All) {
  EXPECT_THAT(messagesIn("master : f32\nmaster : f32"),
              ElementsAre("3:1: error: expected one 'master' in an optimizer, "
                          "found another",
                          "  2:1: note: the first is here"));
  EXPECT_THAT(check("optimizer A(lr) {\n  let x = lr\n}\n").messages(),
              ElementsAre("1:11: error: expected an assignment to 'param' in "
                          "optimizer 'A', found none",
                          "  hint: a step ends with 'param = ...'"));
  EXPECT_THAT(check("optimizer A(lr, lr) {\n  param = lr * grad\n}\n").messages(),
              ElementsAre("1:17: error: 'lr' is declared twice",
                          "  1:13: note: the first declaration is here"));
  EXPECT_THAT(check("optimizer A(missing_grad) {\n  param = missing_grad * grad\n}\n").messages(),
              ElementsAre("1:13: error: expected another name for the hyperparameter: "
                          "'missing_grad' is a setting of every route"));
  EXPECT_THAT(check("// nothing\n").messages(),
              ElementsAre("2:1: error: expected at least one optimizer, found "
                          "none"));
  EXPECT_THAT(check(rule(""), {.requireRoute = true}).messages(),
              ElementsAre("5:1: error: expected a route, found none",
                          "  hint: end the file with 'route { T(...) for rest }'"));
}

TEST(Warnings, CoefficientsThatDivergeInLowPrecision) {
  auto warned = [](const std::string &options) {
    return check("optimizer T() {\nparam = param - orthogonalize(grad, " + options + ")\n}\n")
        .messages();
  };
  EXPECT_THAT(warned("coefficients = polar_express"),
              ElementsAre("2:52: warning: coefficients 'polar_express' can diverge in bf16",
                          "  hint: give 'safety = 1.01', or 'precision = f32'"));
  EXPECT_THAT(warned("coefficients = cans, precision = f16"),
              ElementsAre("2:52: warning: coefficients 'cans' can diverge in f16",
                          "  hint: give 'precision = f32'"));
  EXPECT_THAT(warned("coefficients = polar_express, safety = 1.01"), IsEmpty());
  EXPECT_THAT(warned("coefficients = cans, precision = f32"), IsEmpty());
  EXPECT_THAT(warned("coefficients = simple"), IsEmpty());
}

TEST(Warnings, WhatIsSeldomMeant) {
  auto warned = [](const std::string &expr) {
    return check("optimizer O(lr) {\n  state m : f32\n  m = " + expr +
                 "\n  param = param - lr * m\n}\nroute { O(lr = 1) for matrix }\n")
        .messages();
  };
  EXPECT_THAT(
      warned("grad / sqrt(mean(grad * grad, over = columns))"),
      ElementsAre("3:14: warning: squares may overflow or underflow here where 'rms' does not",
                  "  hint: write 'rms(grad, over = columns)'"));
  EXPECT_THAT(
      warned("grad / sqrt(sum((grad + m) ^ 2))"),
      ElementsAre("3:14: warning: squares may overflow or underflow here where 'norm' does not",
                  "  hint: write 'norm(grad + m)'"));
  EXPECT_THAT(
      warned("lerp(m, grad, abs(grad))"),
      ElementsAre("3:21: warning: the weight of this 'lerp' is a tensor shaped like the parameter",
                  "  hint: lerp(from, to, weight) is from + weight * (to - from)"));
  EXPECT_THAT(warned("grad / sqrt(mean((grad - m) * (grad - m)))"),
              testing::Contains("  hint: write 'rms(grad - m)'"));
  EXPECT_THAT(warned("grad / sqrt(mean(((grad * grad)), over = rows))"),
              testing::Contains("  hint: write 'rms(grad, over = rows)'"));
  EXPECT_THAT(warned("grad / sqrt(mean(grad * m))"), IsEmpty());
  EXPECT_THAT(warned("lerp(m, grad / rms(grad), 1 - 0.9)"), IsEmpty());
}

TEST(Errors, OnesThatFollowFromOthersAreLeftOut) {
  EXPECT_THAT(
      check("every 3 steps {\n}\noptimizer O(lr, mu = -) { param = param - lr * mu * grad }\n"
            "route { O(lr = 1) for rest }\n")
          .messages(),
      ElementsAre("1:1: error: 'every' is not supported yet",
                  "3:23: error: expected a value, found ')'"));
  EXPECT_THAT(check("model = 3\noptimizer O(lr) { param = param - lr * mean(grad, columns) }\n"
                    "route { O(lr = 1) for rest }\n")
                  .messages(),
              ElementsAre("1:7: error: expected '(', found '='",
                          "2:40: error: expected 1 argument of 'mean', found 2",
                          "  hint: write 'over = columns'"));
  EXPECT_THAT(check("import \"a.optim\"\noptimizer O(lr) { param = param - lr * f(grad) }\n"
                    "route { O(lr = 1) for matrix\n  P(lr = 1) for rest }\n")
                  .messages(),
              ElementsAre("1:8: error: cannot import 'a.optim': no such file or directory"));
  EXPECT_THAT(check("optimizer O(lr) { param = stochastic_round(param - lr * grad, bf16) }\n"
                    "route { O(lr = 1) for rest }\n")
                  .messages(),
              ElementsAre("1:27: error: unknown function 'stochastic_round'",
                          "  hint: rounding by chance is written 'param = stochastic(x)'"));
}

TEST(Warnings, All) {
  EXPECT_THAT(check("optimizer A(lr, k = 1) {\n  state m : f32\n"
                    "  let x = lr\n  param = grad + m\n}\n")
                  .messages(),
              ElementsAre("1:17: warning: hyperparameter 'k' is never used",
                          "2:9: warning: state 'm' is never assigned",
                          "  hint: if the trainer writes it, say so: 'm = m'",
                          "3:7: warning: 'x' is never used"));
  EXPECT_THAT(check("optimizer A() {\n  param = grad\n}\n"
                    "optimizer B() {\n  param = grad\n}\n"
                    "route {\n  A() for rest\n}\n")
                  .messages(),
              ElementsAre("4:11: warning: no route uses optimizer 'B'"));
  // What the trainer writes is passed on; one number may be there for it to read.
  EXPECT_THAT(messagesIn("state scale : f32[] = 1\nscale = scale\nstate size : f32[]\n"
                         "size = norm(grad)\nstate last : f32\nlast = grad"),
              ElementsAre("6:7: warning: state 'last' is assigned and never read"));
  EXPECT_THAT(check("optimizer A(lr) {\n  param = (1 - lr) * param\n}\n").messages(),
              ElementsAre("1:11: warning: optimizer 'A' never uses 'grad'"));
}

std::vector<std::string> routeMessages(const std::string &claims) {
  return check("optimizer Sgd(lr, mu = 0.5) {\n  param = mu * lr * grad\n}\n"
               "route {\n" +
               claims + "\n}\n")
      .messages();
}

TEST(RouteErrors, All) {
  const Case cases[] = {
      {"Sdg(lr = 1) for rest",
       {"5:1: error: unknown optimizer 'Sdg'", "  hint: did you mean 'Sgd'?"}},
      {"Sgd() for rest",
       {"5:1: error: expected a value for 'lr' of 'Sgd', found none",
        "  1:15: note: it has no default", "  hint: write 'Sgd(lr = ...)'"}},
      {"Sgd(lr = 1, mo = 2) for rest",
       {"5:13: error: unknown hyperparameter 'mo' of 'Sgd'",
        "  1:11: note: the optimizer is declared here", "  hint: did you mean 'mu'?"}},
      {"Sgd(learning_rate = 1) for rest",
       {"5:5: error: unknown hyperparameter 'learning_rate' of 'Sgd'",
        "  1:11: note: the optimizer is declared here", "  hint: its hyperparameters are lr, mu"}},
      {"Sgd(lr = 1, lr = 2) for rest",
       {"5:13: error: 'lr' is given twice", "  5:5: note: the first is here"}},
      {"Sgd(lr = skip) for rest", {"5:10: error: expected a number, found 'skip'"}},
      {"Sgd(lr = 1, missing_grad = none) for rest",
       {"5:28: error: expected error, skip or zero, found 'none'"}},
      {"Sgd(lr = 1, missing_grad = 0) for rest",
       {"5:28: error: expected error, skip or zero, found a number"}},
      {"Sgd(lr = 1) for rest\nSgd(lr = 2) for rest",
       {"6:17: error: 'rest' is claimed twice", "  5:17: note: the first claim is here"}},
      {"Sgd(lr = 1) for \"\"",
       {"5:17: error: expected a pattern, found an empty one", "  hint: '*' matches every name"}},
      {"Sgd(lr = 1) for \"a[b\"",
       {"5:17: error: expected ']' after '[' in a pattern",
        "  hint: a '[' of the name itself is written '[[]'"}},
      {"Sgd(lr = 1) for rest except \"a[]\"",
       {"5:29: error: expected ']' after '[' in a pattern",
        "  hint: a '[' of the name itself is written '[[]'"}},
      {"Sgd(lr = 1) for \"a[]b][!]c]*\", \"[[]\"", {}},
      {"", {"4:1: error: expected at least one claim in the route, found none"}},
  };
  expectMessages(cases, routeMessages);
  EXPECT_THAT(check("optimizer A() {\n  param = grad\n}\n"
                    "route {\n  A() for matrix\n}\n"
                    "route {\n  A() for rest\n}\n")
                  .messages(),
              ElementsAre("7:1: error: expected one route in a file, found "
                          "another",
                          "  4:1: note: the first is here"));
}

TEST(Route, ClaimsAreResolved) {
  Result result = check("optimizer Sgd(lr, mu = 0.5) {\n"
                        "  param = mu * lr * grad\n}\n"
                        "route {\n"
                        "  Sgd(lr = 1) for matrix \"a\" except \"b\"\n"
                        "  Sgd(mu = -3, lr = 2, missing_grad = skip) for rest\n"
                        "}\n");
  EXPECT_THAT(result.messages(), IsEmpty());
  const auto &claims = result.file->route()->claims;
  EXPECT_EQ(claims[0].rule, result.file->rules[0].get());
  EXPECT_THAT(claims[0].values, ElementsAre(1, 0.5));
  EXPECT_THAT(claims[1].values, ElementsAre(2, -3));
  EXPECT_EQ(claims[0].missingGrad, MissingGrad::Error);
  EXPECT_EQ(claims[1].missingGrad, MissingGrad::Skip);
  EXPECT_TRUE(claims[0].isMatrix);
  EXPECT_EQ(claims[0].globs[0].value, "a");
  EXPECT_EQ(claims[0].except[0].value, "b");
  EXPECT_TRUE(claims[1].isRest);
}

TEST(States, ARuleThatDrawsHasASeed) {
  const std::string draws = "  state z : f32 = normal\n  z = z + grad\n  param = param - z\n}\n";
  Result result = check("optimizer A() {\n" + draws + "optimizer B(seed = 3, lr = 1) {\n" + draws +
                        "route {\n  A(seed = 7) for \"a\"\n  B() for rest\n}\n");
  EXPECT_THAT(result.messages(), ElementsAre("6:23: warning: hyperparameter 'lr' is never used"));
  const auto &claims = result.file->route()->claims;
  EXPECT_THAT(claims[0].values, ElementsAre(7));
  EXPECT_THAT(claims[1].values, ElementsAre(3, 1));
}

TEST(States, RandomNumbers) {
  const std::string elsewhere =
      "error: expected 'stochastic' as the whole right side of an assignment to 'param' or to a "
      "state of bf16, found it elsewhere";
  const std::string hint = "  hint: it rounds what is stored: 'param = stochastic(...)'";
  expectMessages({
      {"let x = uniform() - 0.5\nstate m : bf16\nm = stochastic(m + x * seed)", {}},
      {"let x = grad\nrepeat 2 {\n  x = x * uniform()\n}\nstate m : f32\nm = m + x", {}},
      {"state m : bf16\nrepeat 2 {\n  m = stochastic(m + grad)\n}", {}},
      {"state q : bf16[rows, rows]\nq = stochastic(q + grad @ transpose(grad))", {}},
      {"let x = uniform(3)", {"2:9: error: expected 0 arguments of 'uniform', found 1"}},
      {"let x = uniform() < seed\nlet seed = 3\nstate m : f32\nm = select(x, m, grad)",
       {"3:5: error: 'seed' is declared twice",
        "  2:9: note: random numbers have the hyperparameter 'seed'",
        "  hint: take another name, or declare the hyperparameter: 'seed = 0'"}},
      {"state seed : f32\nseed = seed + uniform()",
       {"2:7: error: 'seed' is declared twice",
        "  3:15: note: random numbers have the hyperparameter 'seed'",
        "  hint: take another name, or declare the hyperparameter: 'seed = 0'"}},
      {"state m : bf16\nm = 0.5 * stochastic(grad)", {"3:11: " + elsewhere, hint}},
      {"let x = stochastic(grad)", {"2:9: " + elsewhere, hint}},
      {"state m : bf16\nm = stochastic(stochastic(grad))", {"3:16: " + elsewhere, hint}},
      {"state m : bf16\nm = stochastic(lr)", {"3:16: error: expected a tensor, found a scalar"}},
      {"state m : f32\nm = stochastic(m + grad)",
       {"3:5: error: expected a state of bf16 for 'stochastic', found the f32 state 'm'",
        "  2:1: note: the state is declared here", "  hint: f32 holds the value as it is"}},
      {"state m : f16\nm = stochastic(m + grad)",
       {"3:5: error: expected a state of bf16 for 'stochastic', found the f16 state 'm'",
        "  2:1: note: the state is declared here"}},
      {"state m : bf16[rows]\nm = stochastic(max(grad, over = columns))",
       {"3:5: error: expected a state of matrices for 'stochastic', found one value per row",
        "  2:1: note: the state is declared here", "  hint: so few numbers can be kept in f32"}},
      {"state m : bf16\nm = stochastic(max(grad, over = columns))",
       {"3:5: error: expected a tensor shaped like the parameter for 'm', found one value per row",
        "  2:1: note: the state is declared here",
        "  hint: a state that is smaller is declared so: 'bf16[rows]'"}},
      {"state m : f32\nm = m + uniform\nlet stochastic = 3",
       {"3:9: error: unknown name 'uniform'", "  hint: 'uniform' is a function: uniform(...)"}},
  });
  EXPECT_THAT(
      check("optimizer A(lr) {\n  master : f32\n  param = stochastic(param - lr * grad)\n}\n")
          .messages(),
      ElementsAre("3:11: error: expected no 'stochastic' for 'param' beside a master, "
                  "which is f32 and keeps the value as it is",
                  "  2:3: note: the master is declared here", "  hint: leave out one of them"));
  EXPECT_THAT(
      check("model() {\n  grad = grad * uniform()\n}\n" + rule("")).messages(),
      ElementsAre(
          "2:17: error: expected no 'uniform' in a model",
          "  hint: all parameters of a model count as one vector, without rows and columns"));
  EXPECT_THAT(check("def half(x) = stochastic(x / 2)\noptimizer A(lr) {\n"
                    "  param = half(param - lr * grad)\n}\n")
                  .messages(),
              ElementsAre("1:15: " + elsewhere, "  3:11: note: in this call of 'half'", hint));
  // The words are names where a declaration takes them.
  EXPECT_THAT(check("optimizer A(uniform, stochastic = 2) {\n  state seed : f32\n"
                    "  seed = seed * stochastic + grad\n  param = param - uniform * seed\n}\n"
                    "def stochastics(uniform) = 2 * uniform\n")
                  .messages(),
              IsEmpty());
  // A function of the file hides that of the language, and draws nothing.
  EXPECT_THAT(check("def uniform() = 3\noptimizer A(lr) {\n  let seed = uniform()\n"
                    "  param = param - lr * seed * grad\n}\n")
                  .messages(),
              IsEmpty());
  // Functions that draw, in any order, give their callers a seed.
  Result result = check("optimizer A(lr) {\n  param = param - lr * (grad + noise(0.5))\n}\n"
                        "def noise(x) = x * centered()\ndef centered() = uniform() - 0.5\n"
                        "route {\n  A(lr = 1, seed = 4) for rest\n}\n");
  EXPECT_THAT(result.messages(), IsEmpty());
  EXPECT_THAT(result.file->route()->claims[0].values, ElementsAre(1, 4));
}

TEST(Names, PositionsAreValuesOfMatrices) {
  expectMessages({
      {"state r : f32[rows]\nr = r + row", {}},
      {"let x = grad * row - col\nstate m : f32\nm = m + x", {}},
      {"state r : f32[rows]\nr = r + col",
       {"3:5: error: expected one value per row for 'r', found a tensor shaped like the parameter",
        "  2:1: note: the state is declared here",
        "  hint: a reduction of a full tensor with 'over = columns' gives one value per row"}},
      {"let x = row\nlet row = 3\nstate m : f32\nm = m * x",
       {"2:9: error: 'row' is used before it is declared", "  3:5: note: the declaration is here"}},
  });
  EXPECT_TRUE(check("optimizer A(lr) {\n  param = param - lr * row * grad\n}\n")
                  .file->rules[0]
                  ->needsMatrix.has_value());
  // A declaration hides the name, and the rule is one of any parameter.
  EXPECT_FALSE(check("optimizer A(row) {\n  param = param - row * grad\n}\n")
                   .file->rules[0]
                   ->needsMatrix.has_value());
}

TEST(States, InputsAreRead) {
  expectMessages({
      {"input most : f32[]\nlet x = grad / most\nstate m : f32\nm = m + x", {}},
      {"input row : f32[rows] = 1 / 3\ninput c : bf16[cols] = -1\nstate m : f32\nm = m + row * c",
       {}},
      {"input most : f32", {"2:7: warning: input 'most' is never used"}},
      {"input most : f32\nmost = grad * most",
       {"3:1: error: expected a state or 'param' to assign to, found the input 'most'",
        "  2:7: note: it is declared here"}},
      {"input most : f32 = param\nstate m : f32\nm = m + most",
       {"2:20: error: expected a number, found 'param'",
        "  hint: a number is computed from literals alone: '0.1 / 3'"}},
      {"input most : f16 = 1e6\nstate m : f32\nm = m + most",
       {"2:20: error: expected a default that f16 can hold, found 1e+06, which rounds to "
        "infinity"}},
      {"state most : f32\ninput most : f32\nmost = most + grad",
       {"3:7: error: 'most' is declared twice", "  2:7: note: the first declaration is here"}},
  });
}

TEST(States, StartAtTheParameter) {
  expectMessages({
      {"state z : f32 = param\nz = z - grad", {}},
      // It need not be assigned: it is what the parameter was.
      {"state z : bf16 = param\nlet x = z - grad\nstate m : f32\nm = x + m", {}},
      {"state z : f32[rows] = param\nz = mean(grad, over = columns) + z",
       {"2:23: error: expected a number, because 'z' has one value per row, found 'param'",
        "  2:1: note: the state is declared here",
        "  hint: only a state shaped like the parameter can start at it"}},
      {"state z : f32 = grad\nz = z - grad",
       {"2:17: error: expected a number, found 'grad'",
        "  hint: a number is computed from literals alone: '0.1 / 3'; 'param', 'identity' and "
        "'normal' stand by themselves"}},
      {"state z : f32 = 2 * param\nz = z - grad",
       {"2:21: error: expected a number, found 'param'",
        "  hint: a number is computed from literals alone: '0.1 / 3'; 'param', 'identity' and "
        "'normal' stand by themselves"}},
      {"state z : f32 = parm\nz = z - grad",
       {"2:17: error: expected a number, found 'parm'", "  hint: did you mean 'param'?"}},
      {"state z : f32 = identity\nz = z - grad", {}},
      {"state z : f32 = normal\nlet x = z * seed\nz = x - grad", {}},
      {"state z : f32\nlet x = seed * uniform()\nz = z + x - grad", {}},
      {"state z : f32[cols] = normal\nz = mean(grad, over = rows) + z",
       {"2:23: error: expected a number, because 'z' has one value per column, found 'normal'",
        "  2:1: note: the state is declared here",
        "  hint: only a state shaped like the parameter can start at it"}},
      {"let seed = 3\nstate z : f32 = normal\nz = z * seed - grad",
       {"2:5: error: 'seed' is declared twice",
        "  3:17: note: random numbers have the hyperparameter 'seed'",
        "  hint: take another name, or declare the hyperparameter: 'seed = 0'"}},
  });
  EXPECT_EQ(
      check("model() {\n  state z : f32 = normal\n  z = z + 1\n}\n" + rule("")).messages(),
      (std::vector<std::string>{"2:19: error: expected a number, found 'normal'",
                                "  hint: a number is computed from literals alone: '0.1 / 3'"}));
  EXPECT_EQ(
      check("model() {\n  state z : f32 = param\n  z = z + 1\n}\n" + rule("")).messages(),
      (std::vector<std::string>{"2:19: error: expected a number, found 'param'",
                                "  hint: a number is computed from literals alone: '0.1 / 3'"}));
}

} // namespace
