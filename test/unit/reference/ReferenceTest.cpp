// The float64 reference against formulas written from the papers.

#include "Formulas.h"

#include "frontends/language/Builtins.h"
#include "frontends/language/Emit.h"
#include "frontends/language/Language.h"
#include "passes/reference/Reference.h"
#include "runtime/random/Philox.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>
#include <random>

using namespace stepc;
using formulas::Dense;
using formulas::Vector;
using reference::Tensor;
using reference::Tensors;

namespace {

constexpr const char *kAdamW = R"(
optimizer AdamW(lr, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1) {
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad * grad, 1 - beta2)
  let update = (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + eps)
  param = (1 - lr * weight_decay) * param - lr * update
})";

constexpr const char *kMuon = R"(
optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  state m : f32
  m     = momentum * m + grad
  let u = grad + momentum * m
  let o = orthogonalize(u, steps = 5, coefficients = SET, precision = bf16)
  param = (1 - lr * weight_decay) * param - lr * 0.2 * sqrt(max(rows, cols)) * o
})";

class ReferenceTest : public testing::Test {
protected:
  ReferenceTest()
      : handler(&context, [this](mlir::Diagnostic &diagnostic) { error = diagnostic.str(); }) {
    lang::loadDialects(context);
  }

  /// The first rule of a specification.
  optim::RuleOp emit(const std::string &text) {
    source = std::make_unique<lang::Source>("test.optim", text);
    lang::Diagnostics diagnostics;
    file = lang::parse(*source, diagnostics);
    std::string messages;
    llvm::raw_string_ostream os(messages);
    if (!lang::analyze(*file, diagnostics))
      diagnostics.print(os, *source);
    EXPECT_EQ(messages, "");
    module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    optim::RuleOp rule = lang::emitRule(*file->rules[0], *source, *module);
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
    return rule;
  }

  optim::ParameterOp parameter(std::vector<int64_t> shape, int64_t batch = 0, bool bf16 = false) {
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
    mlir::Type type = bf16 ? mlir::Type(builder.getBF16Type()) : builder.getF32Type();
    return optim::ParameterOp::create(
        builder, module->getLoc(), builder.getStringAttr("w"), builder.getDenseI64ArrayAttr(shape),
        builder.getI64IntegerAttr(batch), /*flatten=*/mlir::IntegerAttr(), mlir::UnitAttr(),
        mlir::IntegerAttr(), mlir::TypeAttr::get(type), mlir::TypeAttr::get(type),
        mlir::FlatSymbolRefAttr::get(&context, "mesh"), builder.getArrayAttr({}), mlir::ArrayAttr(),
        mlir::ArrayAttr(), optim::BlocksAttr(), mlir::UnitAttr(), optim::BlocksAttr(),
        builder.getStrArrayAttr({}), mlir::FlatSymbolRefAttr(), mlir::DenseI64ArrayAttr());
  }

  Tensor random(std::vector<int64_t> shape) {
    Tensor tensor{shape, {}};
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < count; ++i)
      tensor.data.push_back(normal(engine));
    return tensor;
  }

  Tensors start(optim::RuleOp rule, optim::ParameterOp op, const std::vector<int64_t> &shape) {
    Tensors tensors{random(shape), random(shape), {}};
    tensors.states = reference::initialStates(rule, op, tensors.parameter);
    return tensors;
  }

  static void expectNear(const Vector &found, const Vector &expected, double tolerance = 1e-13) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i])))
          << "at " << i;
  }

  mlir::MLIRContext context;
  std::string error;
  mlir::ScopedDiagnosticHandler handler;
  std::unique_ptr<lang::Source> source;
  std::unique_ptr<lang::File> file;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::mt19937 engine{7};
};

TEST_F(ReferenceTest, AdamW) {
  optim::RuleOp rule = emit(kAdamW);
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {5}, {4, 3}, {2, 3, 4}}) {
    optim::ParameterOp op = parameter(shape);
    Tensors tensors = start(rule, op, shape);
    Vector param = tensors.parameter.data, m(param.size()), v(param.size());
    for (int64_t step = 1; step <= 4; ++step) {
      tensors.gradient = random(shape);
      formulas::adamw(param, tensors.gradient.data, m, v, step, 1e-2, 0.9, 0.95, 1e-8, 0.1);
      ASSERT_TRUE(
          succeeded(reference::step(rule, op, tensors, {1e-2, 0.9, 0.95, 1e-8, 0.1}, step)));
      expectNear(tensors.parameter.data, param);
      expectNear(tensors.states[0].data, m);
      expectNear(tensors.states[1].data, v);
    }
  }
}

TEST_F(ReferenceTest, MuonOfWideTallAndSquareMatrices) {
  for (const char *set : {"simple", "quintic"}) {
    std::string text = kMuon;
    text.replace(text.find("SET"), 3, set);
    optim::RuleOp rule = emit(text);
    auto steps = lang::findCoefficientSet(set)->take(5, 1.0);
    for (auto [rows, cols] : {std::pair<int64_t, int64_t>{4, 7}, {9, 3}, {6, 6}, {1, 5}}) {
      optim::ParameterOp op = parameter({rows, cols});
      Tensors tensors = start(rule, op, {rows, cols});
      Dense param{rows, cols, tensors.parameter.data};
      Vector m(rows * cols);
      for (int64_t step = 1; step <= 3; ++step) {
        tensors.gradient = random({rows, cols});
        formulas::muon(param, {rows, cols, tensors.gradient.data}, m, steps, 0.02, 0.95, 0.1);
        ASSERT_TRUE(succeeded(reference::step(rule, op, tensors, {0.02, 0.95, 0.1}, step)));
        expectNear(tensors.parameter.data, param.data, 1e-12);
        expectNear(tensors.states[0].data, m);
      }
    }
  }
}

// Each matrix of a stack is stepped as if it were alone.
TEST_F(ReferenceTest, StacksOfMatrices) {
  std::string text = kMuon;
  text.replace(text.find("SET"), 3, "simple");
  optim::RuleOp rule = emit(text);
  optim::ParameterOp stack = parameter({2, 3, 4, 5}, 2), single = parameter({4, 5});
  Tensors tensors = start(rule, stack, {2, 3, 4, 5});
  Tensors before = tensors;
  ASSERT_TRUE(succeeded(reference::step(rule, stack, tensors, {0.02, 0.95, 0.1}, 1)));
  for (int64_t block = 0; block < 6; ++block) {
    auto part = [&](const Tensor &tensor) {
      return Tensor{
          {4, 5}, Vector(tensor.data.begin() + block * 20, tensor.data.begin() + block * 20 + 20)};
    };
    Tensors one{part(before.parameter), part(before.gradient), {part(before.states[0])}};
    ASSERT_TRUE(succeeded(reference::step(rule, single, one, {0.02, 0.95, 0.1}, 1)));
    EXPECT_EQ(part(tensors.parameter).data, one.parameter.data);
    EXPECT_EQ(part(tensors.states[0]).data, one.states[0].data);
  }
}

// Statistics of rows, columns and all, with states of these kinds.
TEST_F(ReferenceTest, RowAndColumnStatistics) {
  optim::RuleOp rule = emit(R"(
optimizer Rows(lr, beta = 0.9) {
  state r : f32[rows] = 1
  state c : f32[cols]
  state s : f32[]
  r = lerp(r, mean(grad * grad, over = columns), 1 - beta)
  c = max(grad, over = rows)
  s = s + norm(grad) + sum(grad) + rms(grad)
  param = param - lr * grad / sqrt(r) + c * s
})");
  optim::ParameterOp op = parameter({3, 4});
  Tensors tensors = start(rule, op, {3, 4});
  Tensors before = tensors;
  ASSERT_EQ(tensors.states[0].data, Vector(3, 1.0));
  ASSERT_EQ(tensors.states[0].shape, (std::vector<int64_t>{3}));
  ASSERT_EQ(tensors.states[1].shape, (std::vector<int64_t>{4}));
  ASSERT_TRUE(tensors.states[2].shape.empty());
  ASSERT_TRUE(succeeded(reference::step(rule, op, tensors, {0.5, 0.9}, 1)));
  Dense grad{3, 4, before.gradient.data}, param{3, 4, before.parameter.data};
  Vector r(3), c(4, -1e300);
  double squares = 0, sum = 0;
  for (int64_t i = 0; i < 3; ++i) {
    double row = 0;
    for (int64_t j = 0; j < 4; ++j) {
      row += grad(i, j) * grad(i, j);
      sum += grad(i, j);
      c[j] = std::max(c[j], grad(i, j));
    }
    squares += row;
    r[i] = 0.9 * 1.0 + 0.1 * row / 4;
  }
  double s = std::sqrt(squares) + sum + std::sqrt(squares / 12);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 4; ++j)
      param(i, j) += c[j] * s - 0.5 * grad(i, j) / std::sqrt(r[i]);
  expectNear(tensors.states[0].data, r);
  expectNear(tensors.states[1].data, c);
  expectNear(tensors.states[2].data, {s});
  expectNear(tensors.parameter.data, param.data);
}

TEST_F(ReferenceTest, EveryElementwiseFunction) {
  optim::RuleOp rule = emit(R"(
optimizer All(k) {
  let a = sqrt(abs(grad)) + rsqrt(1 + grad * grad) + sign(grad) + exp(-abs(grad)) + log(1 + abs(grad))
  let b = min(grad, param) + max(grad, 0.5) + clamp(param, -0.5, k) + lerp(grad, param, 0.25)
  let c = select(grad > param and not (grad > 2 or param <= -2), grad, -param)
  let d = abs(grad) ^ 1.5 + grad ^ 3 + (1 + abs(param)) ^ -2 + select(k == 1, 1, 2)
  let e = momentum(param, grad, 0.5) + decay(param, k, 0.1) + cast(grad, bf16)
  param = a + b + c + d + e
})");
  optim::ParameterOp op = parameter({5, 5});
  Tensors tensors = start(rule, op, {5, 5});
  Tensors before = tensors;
  double k = 1;
  ASSERT_TRUE(succeeded(reference::step(rule, op, tensors, {k}, 1)));
  Vector expected;
  for (size_t i = 0; i < 25; ++i) {
    double g = before.gradient.data[i], p = before.parameter.data[i];
    double a = std::sqrt(std::abs(g)) + 1 / std::sqrt(1 + g * g) + (g > 0) - (g < 0) +
               std::exp(-std::abs(g)) + std::log(1 + std::abs(g));
    double b =
        std::min(g, p) + std::max(g, 0.5) + std::min(std::max(p, -0.5), k) + g + 0.25 * (p - g);
    double c = g > p && !(g > 2 || p <= -2) ? g : -p;
    double d =
        std::pow(std::abs(g), 1.5) + g * g * g + 1 / ((1 + std::abs(p)) * (1 + std::abs(p))) + 1;
    double e = 0.5 * p + g + (1 - k * 0.1) * p + g;
    expected.push_back(a + b + c + d + e);
  }
  expectNear(tensors.parameter.data, expected);
}

// The rule steps the master; a parameter that is f32 has none.
TEST_F(ReferenceTest, Masters) {
  optim::RuleOp rule = emit(R"(
optimizer Sgd(lr) {
  master : f32
  param = param - lr * grad
})");
  optim::ParameterOp low = parameter({3}, 0, /*bf16=*/true), full = parameter({3});
  Tensors tensors = start(rule, low, {3});
  EXPECT_EQ(tensors.states[0].data, tensors.parameter.data);
  tensors.states[0].data = {1, 2, 3}; // it is read, not the parameter
  tensors.gradient.data = {1, 1, 1};
  ASSERT_TRUE(succeeded(reference::step(rule, low, tensors, {0.5}, 1)));
  EXPECT_EQ(tensors.parameter.data, (Vector{0.5, 1.5, 2.5}));
  EXPECT_EQ(tensors.states[0].data, (Vector{0.5, 1.5, 2.5}));
  EXPECT_TRUE(start(rule, full, {3}).states[0].data.empty());
}

TEST_F(ReferenceTest, NumelIsOfTheMatrixOrTheParameter) {
  optim::RuleOp rule = emit("optimizer N() {\n  param = grad * numel\n}");
  for (auto [shape, batch, numel] :
       {std::tuple<std::vector<int64_t>, int64_t, double>{{2, 3, 4}, 1, 12},
        {{2, 3, 4}, 0, 24},
        {{5}, 0, 5},
        {{}, 0, 1}}) {
    optim::ParameterOp op = parameter(shape, batch);
    Tensors tensors = start(rule, op, shape);
    ASSERT_TRUE(succeeded(reference::step(rule, op, tensors, {}, 1)));
    EXPECT_EQ(tensors.parameter.data[0], tensors.gradient.data[0] * numel);
  }
}

TEST_F(ReferenceTest, Errors) {
  optim::RuleOp rule = emit(kAdamW);
  optim::ParameterOp op = parameter({4, 3});
  Tensors tensors = start(rule, op, {4, 3});
  EXPECT_TRUE(failed(reference::step(rule, op, tensors, {1e-2}, 1)));
  EXPECT_EQ(error, "expected 5 hyperparameters and 2 states for rule AdamW, found 1 and 2");

  tensors.gradient = random({3, 4});
  EXPECT_TRUE(failed(reference::step(rule, op, tensors, {1e-2, 0.9, 0.95, 1e-8, 0.1}, 1)));
  EXPECT_EQ(error, "expected the gradient of parameter 'w' to have shape [4, 3], found [3, 4]");

  // An operation that it does not know is named, and nothing is changed.
  tensors.gradient = random({4, 3});
  Vector before = tensors.parameter.data;
  mlir::Operation &first = rule.getBody().front().front();
  mlir::OpBuilder builder(&first);
  auto index = mlir::OperationState(first.getLoc(), "math.cbrt");
  index.addOperands(rule.getParameterArgument());
  index.addTypes(rule.getParameterArgument().getType());
  builder.create(index);
  EXPECT_TRUE(failed(reference::step(rule, op, tensors, {1e-2, 0.9, 0.95, 1e-8, 0.1}, 1)));
  EXPECT_EQ(error, "'math.cbrt' op expected an operation that the reference interpreter knows");
  EXPECT_EQ(tensors.parameter.data, before);
}

// The known answers of Random123 (kat_vectors, philox4x32 with 10 rounds).
TEST(Random, PhiloxHasTheKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(stepc::random::philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t ones = 0xffffffff;
  EXPECT_EQ(stepc::random::philox({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(stepc::random::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                  {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, ElementsStepsCallsAndKeysDiffer) {
  std::set<double> drawn;
  for (uint64_t element : {uint64_t(0), uint64_t(1), uint64_t(1) << 32})
    for (uint32_t step : {1, 2})
      for (uint32_t call : {0, 1})
        for (std::array<uint32_t, 2> key : {std::array<uint32_t, 2>{0, 0}, {1, 0}, {0, 1}})
          drawn.insert(stepc::random::normal(element, step, call, key));
  EXPECT_EQ(drawn.size(), 36u);
}

} // namespace
