//===- AnalysisTest.cpp - Names, kinds and routes -------------------------===//
#include "Helpers.h"
#include "frontends/language/Builtins.h"

using namespace stepc;
using namespace stepc::lang;
using namespace stepc::lang::test;

namespace {

/// The type of an expression in a rule that has states of every kind.
Type typeOf(const std::string &expr) {
  Result result = check("optimizer T(lr, momentum = 1) {\n"
                        "state m : f32\nstate b : bf16\n"
                        "state r : f32[rows]\nstate c : f32[cols]\n"
                        "state o : f32[]\n"
                        "let x = " +
                        expr + "\nparam = grad\n}\n");
  EXPECT_FALSE(result.diagnostics.hasErrors())
      << expr << ": " << testing::PrintToString(result.messages());
  return result.file->rules[0]->statements[0]->value->type;
}

constexpr Type scalar{Shape::Scalar, ElementType::F64};
constexpr Type one{Shape::One, ElementType::F32};
constexpr Type rows{Shape::Rows, ElementType::F32};
constexpr Type cols{Shape::Cols, ElementType::F32};
constexpr Type full{Shape::Full, ElementType::F32};

Type condition(Shape shape) { return {shape, ElementType::Condition}; }

TEST(Types, Names) {
  for (const char *name : {"lr", "momentum", "step", "rows", "cols", "numel", "1"})
    EXPECT_EQ(typeOf(name), scalar) << name;
  EXPECT_EQ(typeOf("param"), full);
  EXPECT_EQ(typeOf("grad"), full);
  EXPECT_EQ(typeOf("m"), full);
  EXPECT_EQ(typeOf("b"), (Type{Shape::Full, ElementType::BF16}));
  EXPECT_EQ(typeOf("r"), rows);
  EXPECT_EQ(typeOf("c"), cols);
  EXPECT_EQ(typeOf("o"), one);
}

TEST(Types, BroadcastTable) {
  // Rows and columns of the table: scalar, one, rows, cols, full.
  const std::pair<const char *, Type> values[] = {
      {"lr", scalar}, {"o", one}, {"r", rows}, {"c", cols}, {"m", full}};
  const Type table[5][5] = {{scalar, one, rows, cols, full},
                            {one, one, rows, cols, full},
                            {rows, rows, rows, full, full},
                            {cols, cols, full, cols, full},
                            {full, full, full, full, full}};
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j) {
      std::string a = values[i].first, b = values[j].first;
      EXPECT_EQ(typeOf(a + " + " + b), table[i][j]) << a << " + " << b;
      EXPECT_EQ(typeOf("min(" + a + ", " + b + ")"), table[i][j]);
      EXPECT_EQ(typeOf(a + " < " + b), condition(table[i][j].shape));
    }
}

TEST(Finite, TypesAndErrors) {
  EXPECT_EQ(typeOf("finite(grad)"), condition(Shape::Full));
  EXPECT_EQ(typeOf("finite(b)"), condition(Shape::Full));
  EXPECT_EQ(typeOf("finite(r)"), condition(Shape::Rows));
  EXPECT_EQ(typeOf("finite(norm(grad))"), condition(Shape::One));
  EXPECT_EQ(typeOf("finite(lr) and not finite(step)"), condition(Shape::Scalar));
  EXPECT_THAT(messagesIn("let x = 1 + finite(grad)"),
              testing::ElementsAre("2:13: error: expected a number, found a condition",
                                   "  hint: choose numbers with 'select(condition, a, b)'"));
  EXPECT_THAT(messagesIn("let x = finite(grad > 0)"),
              testing::ElementsAre("2:16: error: expected a number, found a condition",
                                   "  hint: choose numbers with 'select(condition, a, b)'"));
  EXPECT_THAT(messagesIn("let x = finite(grad, lr)"),
              testing::ElementsAre("2:9: error: expected 1 argument of 'finite', found 2"));
  EXPECT_THAT(messagesIn("let x = isfinite(grad)"),
              testing::ElementsAre("2:9: error: unknown function 'isfinite'",
                                   "  hint: did you mean 'finite'?"));
  // A constant is folded, and its infinity is told where it is made.
  Result folded = check(rule("let x = finite(2)\nlet y = finite(1 / 0)"));
  EXPECT_EQ(folded.file->rules[0]->statements[0]->value->constant, 1.0);
  EXPECT_EQ(folded.file->rules[0]->statements[1]->value->constant, 0.0);
}

TEST(Types, Functions) {
  for (const char *name : {"sqrt", "rsqrt", "abs", "sign", "exp", "log"}) {
    EXPECT_EQ(typeOf(std::string(name) + "(lr)"), scalar) << name;
    EXPECT_EQ(typeOf(std::string(name) + "(r)"), rows) << name;
    EXPECT_EQ(typeOf(std::string(name) + "(b)"), full) << name;
  }
  EXPECT_EQ(typeOf("clamp(m, 0, r)"), full);
  EXPECT_EQ(typeOf("lerp(1, 2, 3)"), scalar);
  EXPECT_EQ(typeOf("lerp(r, 2, lr)"), rows);
  EXPECT_EQ(typeOf("momentum(m, grad, momentum)"), full);
  EXPECT_EQ(typeOf("decay(param, lr, 0.1)"), full);
  EXPECT_EQ(typeOf("-b"), full);
  EXPECT_EQ(typeOf("m ^ 2"), full);
  EXPECT_EQ(typeOf("cast(m, bf16)"), (Type{Shape::Full, ElementType::BF16}));
  EXPECT_EQ(typeOf("cast(r, f16)"), (Type{Shape::Rows, ElementType::F16}));
  EXPECT_EQ(typeOf("select(step > 1, lr, 2)"), scalar);
  EXPECT_EQ(typeOf("select(step > 1, m, 2)"), full);
  EXPECT_EQ(typeOf("select(m > 0, 1, 2)"), full);
  EXPECT_EQ(typeOf("not (m > 0) and step > 3"), condition(Shape::Full));
}

TEST(Types, Reductions) {
  for (const char *name : {"sum", "mean", "rms", "norm", "max"}) {
    std::string call = std::string(name) + "(";
    EXPECT_EQ(typeOf(call + "m)"), one);
    EXPECT_EQ(typeOf(call + "r)"), one);
    EXPECT_EQ(typeOf(call + "m, over = columns)"), rows);
    EXPECT_EQ(typeOf(call + "m, over = rows)"), cols);
  }
}

TEST(Types, LetsAndConditionsCarryTheirType) {
  Result result = check(rule("let k = grad > 0\nlet y = select(k, grad, 0)\n"
                             "param = y"));
  const auto &statements = result.file->rules[0]->statements;
  EXPECT_EQ(statements[0]->value->type, condition(Shape::Full));
  EXPECT_EQ(statements[1]->value->type, full);
}

const Orthogonalization &orthogonalization(Result &result) {
  const Expr &value = *result.file->rules[0]->statements[0]->value;
  return *llvm::cast<CallExpr>(value).orthogonalization;
}

TEST(Orthogonalize, Options) {
  Result result = check(rule("let o = orthogonalize(grad)\nparam = o"));
  const Orthogonalization *spec = &orthogonalization(result);
  EXPECT_EQ(spec->coefficients.size(), 5u);
  EXPECT_EQ(spec->coefficients[4], (std::array{3.4445, -4.7750, 2.0315}));
  EXPECT_EQ(spec->coefficientSet, "simple");
  EXPECT_EQ(spec->precision, ElementType::BF16);
  EXPECT_EQ(spec->eps, 1e-7);

  result = check(rule("let o = orthogonalize(grad, coefficients = [(1, -2, 3), "
                      "(4, 5, 6)], steps = 2, precision = f32, eps = 1e-5)"));
  spec = &orthogonalization(result);
  EXPECT_EQ(spec->coefficients.size(), 2u);
  EXPECT_EQ(spec->coefficients[0], (std::array{1., -2., 3.}));
  EXPECT_EQ(spec->coefficientSet, "");
  EXPECT_EQ(spec->precision, ElementType::F32);
  EXPECT_EQ(spec->eps, 1e-5);
  EXPECT_EQ(result.file->rules[0]->statements[0]->value->type, full);
}

TEST(Orthogonalize, FormsAndRestarts) {
  using optim::Form;
  auto check = [](const std::string &options, Form form, std::vector<int64_t> restarts) {
    SCOPED_TRACE(options);
    Result result =
        lang::test::check("optimizer T() {\nparam = orthogonalize(grad" + options + ")\n}\n");
    EXPECT_THAT(result.messages(), testing::IsEmpty());
    EXPECT_EQ(orthogonalization(result).form, form);
    EXPECT_EQ(orthogonalization(result).restarts, restarts);
  };
  check("", Form::Standard, {});
  check(", form = standard", Form::Standard, {});
  check(", form = gram", Form::Gram, {2});
  check(", form = auto, precision = f16", Form::Auto, {2});
  check(", form = gram, restarts = []", Form::Gram, {});
  check(", form = gram, restarts = [1, 3,]", Form::Gram, {1, 3});
  check(", form = gram, steps = 2", Form::Gram, {});
  check(", form = gram, steps = 1, restarts = []", Form::Gram, {});
  check(", restarts = [4], steps = 5, form = auto", Form::Auto, {4});
}

// Q is 3.4445 to the power of the steps of a run where R is 0, and larger where rounding has made R negative.
TEST(Orthogonalize, TheBoundIsOfTheLargestNumber) {
  const std::vector<optim::NewtonSchulzStep> simple(12, {3.4445, -4.775, 2.0315});
  auto bound = [&](size_t steps, optim::Form form, std::vector<int64_t> restarts) {
    return optim::boundOf(llvm::ArrayRef(simple).take_front(steps), form, restarts).bound;
  };
  // |b + c| of R = 1, and more where singular values are above 1.
  EXPECT_GE(bound(1, optim::Form::Standard, {}), 4.775 - 2.0315);
  EXPECT_LE(bound(12, optim::Form::Standard, {}), 3);
  for (int64_t run : {1, 2}) {
    SCOPED_TRACE(run);
    double found = bound(size_t(2 * run), optim::Form::Gram, {run}), least = std::pow(3.4445, run);
    EXPECT_GE(found, least);
    EXPECT_LE(found, 2 * least);
    EXPECT_EQ(bound(size_t(2 * run), optim::Form::Auto, {run}), found);
  }
  EXPECT_LE(bound(5, optim::Form::Gram, {2}), 100);
  EXPECT_LE(bound(4, optim::Form::Gram, {}), optim::kLargestHalf);
  EXPECT_GT(bound(5, optim::Form::Gram, {}), optim::kLargestHalf);
  // The singular values grow without bound.
  const std::vector<optim::NewtonSchulzStep> wild(100, {9.0, 1.0, 1.0});
  EXPECT_TRUE(std::isinf(optim::boundOf(wild, optim::Form::Standard, {}).bound));
}

TEST(Orthogonalize, CoefficientSets) {
  // Each set starts and ends as reference.md says.
  const std::tuple<const char *, size_t, double, double> sets[] = {
      {"simple", 5, 3.4445, 2.0315},
      {"quintic", 5, 4.0848, 1.2012},
      {"polar_express", 5, 8.28721201814563, 0.4188073119525673},
      {"cans", 5, 8.4703, 0.4162},
      {"cubic5", 5, 3.3656576, 0},
      {"deepseekv4", 10, 3.4445, 0.5}};
  EXPECT_EQ(coefficientSets().size(), std::size(sets));
  for (const auto &[name, steps, first, last] : sets) {
    auto taken = findCoefficientSet(name)->take(steps, 1);
    EXPECT_EQ(taken.size(), steps);
    EXPECT_EQ(taken.front()[0], first) << name;
    EXPECT_EQ(taken.back()[2], last) << name;
  }
  const CoefficientSet &polar = *findCoefficientSet("polar_express");
  auto nine = polar.take(9, 1.01);
  EXPECT_EQ(nine[0][0], 8.28721201814563 / 1.01);
  EXPECT_DOUBLE_EQ(nine[0][1], -23.595886519098837 / std::pow(1.01, 3));
  EXPECT_DOUBLE_EQ(nine[0][2], 17.300387312530933 / std::pow(1.01, 5));
  EXPECT_EQ(nine[6], (std::array{1.875, -1.25, 0.375}));
  EXPECT_EQ(nine[8], nine[6]);
  EXPECT_EQ(polar.take(3, 1).size(), 3u);
}

TEST(NeedsMatrix, FirstReasonIsKept) {
  const std::pair<const char *, const char *> cases[] = {
      {"let x = orthogonalize(grad)", "'orthogonalize'"},
      {"let x = lr * rows", "'rows'"},
      {"let x = lr * cols", "'cols'"},
      {"let x = norm(grad, over = rows)", "'over = rows'"},
      {"let x = norm(grad, over = columns)", "'over = columns'"},
      {"state s : f32[rows]", "state 's' with one value per row"},
      {"state s : f32[cols]", "state 's' with one value per column"}};
  for (const auto &[body, what] : cases) {
    Result result = check(rule(body));
    ASSERT_TRUE(result.file->rules[0]->needsMatrix) << body;
    EXPECT_EQ(result.file->rules[0]->needsMatrix->what, what);
  }
  Result result = check(rule("state s : f32[]\ns = norm(grad) * numel"));
  EXPECT_FALSE(result.file->rules[0]->needsMatrix);
}

} // namespace
