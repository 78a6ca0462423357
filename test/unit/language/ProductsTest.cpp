//===- ProductsTest.cpp - Products of matrices, and sizes of values --------===//
#include "Helpers.h"

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// The type of the last `let` of a body.
Type typeOf(const std::string &body) {
  Result result = check(rule(body));
  EXPECT_FALSE(result.diagnostics.hasErrors()) << testing::PrintToString(result.messages());
  Type type;
  for (const auto &statement : result.file->rules[0]->statements)
    if (const auto *let = llvm::dyn_cast<LetStatement>(statement.get()))
      type = let->value->type;
  return type;
}

TEST(Products, HaveTheSizesOfTheirFactors) {
  Size r{Size::Of::Let, 0, "r"}, four{Size::Of::Number, 4};
  const std::pair<const char *, Shape> cases[] = {
      {"let x = grad @ transpose(grad)", Shape::of(Size::Rows, Size::Rows)},
      {"let x = transpose(grad) @ grad", Shape::of(Size::Cols, Size::Cols)},
      {"let x = grad @ transpose(grad) @ grad", Shape::Full},
      {"let x = 2 * grad @ transpose(grad)", Shape::of(Size::Rows, Size::Rows)},
      {"let x = transpose(grad)", Shape::of(Size::Cols, Size::Rows)},
      {"let x = transpose(sum(grad, over = columns))", Shape::of(Size::One, Size::Rows)},
      {"let x = sum(grad, over = columns) @ sum(grad, over = rows)", Shape::Full},
      {"let x = transpose(sum(grad, over = columns)) @ grad", Shape::Cols},
      {"let x = sum(grad @ transpose(grad), over = columns)", Shape::Rows},
      {"let x = sum(grad @ transpose(grad), over = rows)", Shape::of(Size::One, Size::Rows)},
      {"let x = max(grad @ transpose(grad))", Shape::One},
      {"let x = identity(rows)", Shape::of(Size::Rows, Size::Rows)},
      {"let x = identity(cols(grad @ transpose(grad)))", Shape::of(Size::Rows, Size::Rows)},
      {"let x = identity(4)", Shape::of(four, four)},
      {"let n = cols\nlet x = identity(n)", Shape::of(Size::Cols, Size::Cols)},
      {"let r = max(1, floor(rows / 4))\nlet x = identity(r)", Shape::of(r, r)},
      {"let r = max(1, floor(rows / 4))\nlet s = r\nlet x = identity(s)", Shape::of(r, r)},
      {"let r = 2 + 2\nlet x = identity(r)", Shape::of(four, four)},
      {"let x = identity(rows) * sum(grad, over = columns)", Shape::of(Size::Rows, Size::Rows)},
      {"let r = floor(numel / 2)\nstate Q : f32[cols, r]\nlet x = grad @ Q",
       Shape::of(Size::Rows, r)},
      {"state Q : f32[rows, cols]\nlet x = Q + grad", Shape::Full},
  };
  for (auto [body, shape] : cases)
    EXPECT_EQ(typeOf(body), (Type{shape, ElementType::F32})) << body;
  EXPECT_EQ(typeOf("let x = cast(grad, bf16) @ cast(transpose(grad), bf16)").element,
            ElementType::F32);
  EXPECT_EQ(typeOf("let x = rows(transpose(grad))"), (Type{Shape::Scalar, ElementType::F64}));
}

TEST(Products, Errors) {
  const std::string size = "  hint: a size is a number of 'let', above the state: "
                           "'let r = max(1, floor(rows / 4))'";
  const std::string known =
      ": error: expected sizes that follow from rows, cols, numel and numbers alone, found ";
  const Case cases[] = {
      {"let x = grad @ grad",
       {"2:9: error: expected the columns of the left factor to be the rows of the right one, "
        "found "
        "cols and rows"}},
      {"let r = floor(rows / 2)\nstate Q : f32[cols, r]\nlet x = Q @ grad",
       {"4:9: error: expected the columns of the left factor to be the rows of the right one, "
        "found "
        "r and rows"}},
      {"let x = grad @ 2",
       {"2:16: error: expected a matrix as a factor of '@', found a scalar",
        "  hint: a scalar multiplies each element: 'x * y'"}},
      {"let x = (grad > 0) @ grad",
       {"2:10: error: expected a number, found a condition",
        "  hint: choose numbers with 'select(condition, a, b)'"}},
      {"let x = cast(grad, bf16) @ transpose(grad)",
       {"2:9: error: expected factors of one type, found bf16 and f32",
        "  hint: round one of them: 'cast(transpose(grad), bf16)'"}},
      {"let x = grad + grad @ transpose(grad)",
       {"2:9: error: expected values of equal sizes, found a tensor shaped like the parameter and "
        "a "
        "matrix of rows × rows"}},
      {"let x = min(identity(rows), identity(cols))",
       {"2:9: error: expected values of equal sizes, found a matrix of rows × rows and a matrix of "
        "cols × cols"}},
      {"state L : f32[rows, rows]\nL = transpose(grad) @ grad",
       {"3:5: error: expected a matrix of rows × rows for 'L', found a matrix of cols × cols",
        "  2:1: note: the state is declared here"}},
      {"state m : f32\nm = transpose(grad)",
       {"3:5: error: expected a tensor shaped like the parameter for 'm', found a matrix of cols × "
        "rows",
        "  2:1: note: the state is declared here",
        "  hint: 'transpose(x)' exchanges rows and columns"}},
      {"let x = orthogonalize(grad @ transpose(grad))",
       {"2:23: error: expected a tensor shaped like the parameter, found a matrix of rows × rows"}},
      {"let x = transpose(lr)", {"2:19: error: expected a tensor, found a scalar"}},
      {"let x = rows(lr)", {"2:14: error: expected a tensor, found a scalar"}},
      {"let x = matmul(grad, grad)",
       {"2:9: error: unknown function 'matmul'",
        "  hint: a product of matrices is written 'a @ b'"}},
      {"let x = eye(3)",
       {"2:9: error: unknown function 'eye'",
        "  hint: the identity matrix of n rows is 'identity(n)'"}},
      {"let x = identity(grad)",
       {"2:18: error: expected a size: 'rows', 'cols', 'rows(x)', 'cols(x)', a whole number from 1 "
        "to "
        "2^20 or a 'let' that follows from these, found a tensor shaped like the parameter",
        "  hint: the identity matrix beside x is 'identity(rows(x))'"}},
      {"let x = identity(0)",
       {"2:18: error: expected a size: 'rows', 'cols', 'rows(x)', 'cols(x)', a whole number from 1 "
        "to "
        "2^20 or a 'let' that follows from these, found 0"}},
      {"state Q : f32[cols, 2.5]",
       {"2:14: error: expected whole numbers from 1 to 2^20 as sizes, found [cols, 2.5]"}},
      {"state Q : f32[cols, 2000000]",
       {"2:14: error: expected whole numbers from 1 to 2^20 as sizes, found [cols, 2000000]"}},
      {"state Q : f32[8]", {"2:15: error: expected 'rows', 'cols', ']' or two sizes, found 8"}},
      {"state Q : f32[cols, r]", {"2:14" + known + "the unknown name 'r'", size}},
      {"state Q : f32[cols, lr]", {"2:14" + known + "the hyperparameter 'lr'", size}},
      {"let r = floor(step)\nstate Q : f32[cols, r]\nQ = Q",
       {"3:14" + known + "'r', which reads 'step'", size}},
      {"let r = floor(lr * rows)\nstate Q : f32[cols, r]\nQ = Q",
       {"3:14" + known + "'r', which reads 'lr'", size}},
      {"let r = floor(log(rows))\nstate Q : f32[cols, r]\nQ = Q",
       {"3:14" + known + "'r', which reads 'log(rows)'", size}},
      {"let r = norm(grad)\nstate Q : f32[cols, r]\nQ = Q",
       {"3:14" + known + "'r', one value of the whole parameter", size}},
      {"let r = 0\nstate Q : f32[cols, r]\nQ = Q", {"3:14" + known + "'r', which is 0", size}},
      {"state Q : f32[cols, r]\nlet r = rows\nQ = Q",
       {"2:14: error: 'r' is used before it is declared", "  3:5: note: the declaration is here"}},
      {"state Q : f32[rows, cols] = param\nstate R : f32[rows, rows] = param\nlet x = Q @ "
       "transpose(Q) @ R",
       {"3:29: error: expected a number, because 'R' has a matrix of rows × rows, found 'param'",
        "  3:1: note: the state is declared here",
        "  hint: only a state shaped like the parameter can start at it"}},
      {"let k = 1\nstate s : f32[rows, k] = normal\nlet x = transpose(s) @ grad",
       {"3:26: error: expected a number, because 's' has one value per row, found 'normal'",
        "  3:1: note: the state is declared here",
        "  hint: only a state shaped like the parameter can start at it"}},
      {"let r = floor(rows * exp(-1))\nstate Q : f32[cols, r]\nQ = Q",
       {"3:14" + known + "'r', which reads 'exp(-1)'", size}},
      {"state R : f32[rows, 4] = identity\nR = R",
       {"2:26: error: expected a number, because 'R' has a matrix of rows × 4, found 'identity'",
        "  2:1: note: the state is declared here",
        "  hint: only a state shaped like the parameter can start at it"}},
      {"input R : f32[rows, rows] = 0\nlet x = R @ grad",
       {"2:14: error: expected an input of the parameter's sizes, or one value per row, column or "
        "block, found a matrix of rows × rows"}},
  };
  expectMessages(cases);
}

TEST(Products, SizesHaveSeveralNames) {
  for (const char *body :
       {"let r = floor(rows / 2)\nlet s = r\nstate Q : f32[r, s] = identity\nQ = Q @ transpose(Q)",
        "let n = rows\nstate m : f32[n, cols] = param\nm = m + grad",
        "let n = rows\ninput X : f32[n, cols] = 0\nlet x = X @ transpose(grad)",
        "state S : bf16[rows, rows]\nS = S @ cast(grad, bf16) @ transpose(grad)",
        "let x = identity(1) * grad"})
    for (const std::string &message : messagesIn(body))
      EXPECT_THAT(message, testing::Not(testing::HasSubstr("error"))) << body;
  // Each `let` reads the one above twice.
  std::string body = "let a0 = rows\n";
  for (int i = 1; i < 60; ++i)
    body += "let a" + std::to_string(i) + " = a" + std::to_string(i - 1) + " + a" +
            std::to_string(i - 1) + "\n";
  EXPECT_FALSE(check(rule(body + "let x = identity(a59)")).diagnostics.hasErrors());
}

TEST(Products, HaveAFewSizes) {
  std::string body;
  for (int i = 0; i < 8; ++i)
    body += "let r" + std::to_string(i) + " = floor(rows / " + std::to_string(i + 2) + ")\nlet x" +
            std::to_string(i) + " = identity(r" + std::to_string(i) + ")\n";
  EXPECT_FALSE(check(rule(body)).diagnostics.hasErrors());
  Result result = check(rule(body + "let r = rows + 1\nlet x = identity(r)"));
  EXPECT_EQ(result.diagnostics.errorCount(), 1u);
  EXPECT_THAT(
      result.messages(),
      testing::Contains("18:5: error: expected at most 8 sizes of values in a rule, found more"));
  EXPECT_THAT(
      check("model() {\n  state s : f32[rows, cols]\n  s = s\n}\n" + rule("")).messages().front(),
      testing::HasSubstr("2:3: error: "));
}

/// Names of functions are free for values, as before they existed.
TEST(Products, NewWordsAreOrdinaryNames) {
  for (std::string word : {"transpose", "identity"}) {
    EXPECT_THAT(
        check("optimizer A(" + word + ") {\n  param = param - " + word + " * grad\n}\n").messages(),
        IsEmpty());
    EXPECT_THAT(
        messagesIn("state " + word + " : f32\n" + word + " = 2 * " + word + " + " + word + "(" +
                   (word == "identity" ? "rows) @ grad" : "grad @ transpose(grad)) @ grad")),
        IsEmpty());
    EXPECT_THAT(messagesIn("let " + word + " = lr\nparam = " + word + " * grad").front(),
                "4:1: error: 'param' is assigned twice");
  }
}

TEST(Products, NeedAMatrix) {
  for (const char *use : {"grad @ transpose(grad) @ grad", "transpose(transpose(grad))",
                          "grad * sum(identity(4))", "grad * rows(grad)"}) {
    Result result =
        check(std::string("optimizer A(lr) {\n  param = param - lr * (") + use + ")\n}\n");
    ASSERT_THAT(result.messages(), IsEmpty()) << use;
    EXPECT_TRUE(result.file->rules[0]->needsMatrix) << use;
  }
  EXPECT_THAT(
      check("model() {\n  let x = norm(grad @ transpose(grad))\n}\n" + rule("")).messages().front(),
      testing::HasSubstr("2:21: error: expected no '@' in a model"));
}

} // namespace
