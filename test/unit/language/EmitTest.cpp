//===- EmitTest.cpp - The typed tree as level 1 ---------------------------===//
#include "frontends/language/Emit.h"
#include "Helpers.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <fstream>
#include <regex>

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::HasSubstr;

namespace {

/// The module of a file, verified and read back from its own text.
class Emitted {
public:
  explicit Emitted(const std::string &text) : result(check(text)) {
    EXPECT_FALSE(result.diagnostics.hasErrors())
        << text << testing::PrintToString(result.messages());
    loadDialects(context);
    module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    if (result.diagnostics.hasErrors())
      return;
    emitDefinitions(*result.file, *module);
    EXPECT_TRUE(succeeded(mlir::verify(*module))) << text;
    auto again = mlir::parseSourceString<mlir::ModuleOp>(str(), &context);
    EXPECT_TRUE(again) << str();
    if (again)
      EXPECT_EQ(print(*again), str());
  }

  std::string str() { return print(*module); }

  stepc::optim::RuleOp rule() { return *module->getOps<stepc::optim::RuleOp>().begin(); }

  /// The names of the operations in the rule, constants and splats left out.
  std::string operations() { return operations(rule().getBody().front()); }
  std::string operationsOfModel() { return operations(model().getBody().front()); }

  stepc::optim::ModelOp model() { return *module->getOps<stepc::optim::ModelOp>().begin(); }
  mlir::ModuleOp get() { return *module; }

private:
  static std::string operations(mlir::Block &block) {
    std::string names;
    for (mlir::Operation &op : block) {
      llvm::StringRef name = op.getName().getStringRef();
      if (name != "arith.constant" && name != "optim.splat")
        names += (names.empty() ? "" : " ") + name.str();
    }
    return names;
  }

  static std::string print(mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os);
    return text;
  }

  Result result;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

std::string operationsOf(const std::string &body) {
  return Emitted("optimizer T(lr) {\n" + body + "\n}\n").operations();
}

TEST(Emit, StateThatIsLeftAlone) {
  // `s = s` is no rounding and no write, whatever the state's type: the argument goes through.
  Emitted emitted(rule("state s : bf16\ns = s"));
  mlir::Block &block = emitted.rule().getBody().front();
  EXPECT_EQ(block.getTerminator()->getOperand(1), emitted.rule().getStateArgument(0));
  EXPECT_EQ(emitted.operations().find("truncf"), std::string::npos);
}

TEST(Emit, LongChainsAreOneOperationPerTerm) {
  std::string chain = "grad";
  for (int i = 0; i < 5000; ++i)
    chain += " + grad";
  Emitted emitted("optimizer T() {\nparam = " + chain + "\n}\n");
  std::string operations = emitted.operations();
  EXPECT_EQ(llvm::StringRef(operations).count("arith.addf"), 5000u);
}

TEST(Emit, MuonExample) {
  std::ifstream stream(STEPC_SOURCE_DIR "/examples/muon.optim");
  std::stringstream text;
  text << stream.rdbuf();
  Emitted emitted(text.str());
  EXPECT_THAT(emitted.str(), HasSubstr("optim.rule @Muon hyperparameters [\"lr\", \"momentum\", "
                                       "\"weight_decay\"] states [#optim.state<\"m\", f32, "
                                       "full, 0.000000e+00 : f64, false>] needs_matrix {"));
  EXPECT_THAT(emitted.str(), HasSubstr("optim.rule @AdamW hyperparameters [\"lr\", \"beta1\", "
                                       "\"beta2\", \"eps\", \"weight_decay\"] states "));
  EXPECT_EQ(emitted.operations(), "arith.mulf arith.addf arith.mulf arith.addf arith.truncf "
                                  "optim.orthogonalize arith.mulf arith.subf arith.mulf arith.mulf "
                                  "arith.maximumf math.sqrt arith.mulf arith.extf arith.mulf "
                                  "arith.subf optim.yield");
}

TEST(Emit, NamedOperations) {
  EXPECT_EQ(operationsOf("state m : f32\nm = momentum(m, grad, lr)\n"
                         "m = lerp(m, grad, lr)\nparam = decay(m, lr, 0.1)"),
            "optim.momentum optim.lerp optim.decay optim.yield");
  // Scalars alone stay in f64.
  EXPECT_EQ(operationsOf("let x = lerp(lr, 2, step)\nparam = grad * x"),
            "arith.subf arith.mulf arith.addf arith.mulf optim.yield");
}

TEST(Emit, Functions) {
  EXPECT_EQ(operationsOf("param = sqrt(abs(exp(log(grad))))"),
            "math.log math.exp math.absf math.sqrt optim.yield");
  EXPECT_EQ(operationsOf("param = rsqrt(grad)"), "math.sqrt arith.divf optim.yield");
  EXPECT_EQ(operationsOf("param = sign(grad)"),
            "arith.cmpf arith.select arith.cmpf arith.select optim.yield");
  EXPECT_EQ(operationsOf("param = clamp(max(grad, 1), 0, min(lr, 1)) / -grad"),
            "arith.maximumf arith.minimumf arith.maximumf arith.minimumf "
            "arith.negf arith.divf optim.yield");
}

TEST(Emit, Finite) {
  EXPECT_EQ(operationsOf("param = select(finite(grad), grad, 0)"),
            "math.absf arith.cmpf arith.select optim.yield");
  // Of a scalar it is an f64, of a bf16 value what that is in f32.
  EXPECT_EQ(operationsOf("param = grad * select(finite(lr), 1, 0)"),
            "math.absf arith.cmpf arith.select arith.mulf optim.yield");
  EXPECT_EQ(operationsOf("param = select(not finite(cast(grad, bf16)), param, grad)"),
            "arith.truncf arith.extf math.absf arith.cmpf arith.cmpf arith.xori arith.select "
            "optim.yield");
  EXPECT_THAT(Emitted("optimizer T() {\n  param = select(finite(grad), grad, 0)\n}\n").str(),
              HasSubstr("arith.cmpf olt, "));
}

TEST(Emit, Model) {
  const std::string sgd = "optimizer T(lr) {\n  param = param - lr * grad * model.total / model.k\n"
                          "  // model.none\n}\n",
                    model =
                        "model(j = 2, k) {\n  let total = norm(grad)\n  let unread = sum(param)\n"
                        "  let bound = 3 * k\n  grad = min(1, j / (total + 1e-6)) * grad\n}\n";
  // Either order of the text gives the model before the rules, with what these read, as it is declared.
  for (const std::string &text : {sgd + model, model + sgd}) {
    Emitted emitted(text);
    EXPECT_THAT(emitted.str(),
                HasSubstr("optim.model hyperparameters [\"j\", \"k\"] defaults [2.000000e+00, "
                          "0x7FF8000000000000] values [\"k\", \"total\"] {"));
    EXPECT_EQ(emitted.operationsOfModel(),
              "optim.reduce optim.reduce arith.mulf arith.addf arith.divf arith.minimumf "
              "optim.broadcast arith.mulf optim.yield");
    EXPECT_EQ(emitted.operations(), "arith.mulf optim.model_value optim.broadcast arith.mulf "
                                    "optim.model_value optim.broadcast arith.divf arith.subf "
                                    "optim.yield");
    EXPECT_TRUE(llvm::isa<stepc::optim::ModelOp>(emitted.get().getBody()->front()));
    mlir::Operation *yield = emitted.model().getBody().front().getTerminator();
    auto k = yield->getOperand(1).getDefiningOp<stepc::optim::SplatOp>();
    EXPECT_EQ(k.getOperand(), emitted.model().getBody().getArgument(3));
    auto named = llvm::cast<mlir::NameLoc>(yield->getOperand(2).getLoc());
    EXPECT_EQ(named.getName(), "total");
  }
}

TEST(Emit, ModelThatAssignsNothing) {
  Emitted emitted("model() {\n  let half = cast(rms(param), bf16)\n  let two = 2\n}\n" +
                  rule("let x = grad * model.half * model.two * model.half"));
  mlir::Block &block = emitted.model().getBody().front();
  EXPECT_EQ(block.getTerminator()->getOperand(0), emitted.model().getGradientArgument());
  EXPECT_THAT(emitted.str(), HasSubstr("optim.model hyperparameters [] defaults [] values "
                                       "[\"half\", \"two\"]"));
  // A value of a narrow type is extended, a scalar is rounded.
  EXPECT_EQ(emitted.operationsOfModel(), "optim.reduce arith.truncf arith.extf optim.yield");
}

TEST(Emit, ModelThatSkips) {
  Emitted emitted("model(k) {\n  let a = norm(grad)\n  skip when not finite(a)\n"
                  "  skip when k > step\n}\n" +
                  rule("let x = grad * model.a"));
  EXPECT_THAT(emitted.str(), HasSubstr("values [\"a\"] skips {"));
  // The conditions are one value, which is 1 or 0.
  EXPECT_EQ(emitted.operationsOfModel(),
            "optim.reduce math.absf arith.cmpf arith.cmpf arith.xori arith.cmpf arith.select "
            "arith.cmpf arith.ori arith.select optim.yield");
  mlir::Operation *yield = emitted.model().getBody().front().getTerminator();
  ASSERT_EQ(yield->getNumOperands(), 3u);
  EXPECT_EQ(emitted.model().getSkipped(), yield->getOperand(2));
  EXPECT_EQ(yield->getOperand(2).getType(), yield->getOperand(1).getType());
  Emitted never("model() {\n  let a = norm(grad)\n}\n" + rule("let x = grad * model.a"));
  EXPECT_FALSE(never.model().getSkipped());
}

TEST(Emit, Metrics) {
  Emitted emitted("model() {\n  state a : f32\n  let n = norm(grad)\n  skip when n > 3\n"
                  "  metric n = n\n  a = n\n  metric taken = step\n}\n" +
                  rule("master : f32\nstate m : bf16\nmetric half = cast(rms(m), bf16)\nm = grad"));
  // They stand behind the states. A skipped step writes them as others do.
  EXPECT_THAT(
      emitted.str(),
      HasSubstr("states [#optim.state<\"a\", f32, one, 0.000000e+00 : f64, false>, "
                "#optim.state<\"n\", f32, one, 0.000000e+00 : f64, false, metric = true>, "
                "#optim.state<\"taken\", f32, one, 0.000000e+00 : f64, false, metric = true>] "
                "skips {"));
  mlir::ValueRange made = emitted.model().getNewStates();
  EXPECT_EQ(made[1].getDefiningOp()->getName().getStringRef(), "optim.reduce");
  EXPECT_EQ(made[2].getDefiningOp()->getName().getStringRef(), "optim.splat");
  stepc::optim::RuleOp madeRule = emitted.rule();
  ASSERT_EQ(madeRule.getNumStates(), 3u);
  EXPECT_FALSE(madeRule.getState(0).getMetric());
  EXPECT_TRUE(madeRule.getState(1).getMetric());
  EXPECT_TRUE(madeRule.getState(2).getMaster());
  EXPECT_TRUE(madeRule.getStateArgument(1).use_empty());
  mlir::Value half = madeRule.getBody().front().getTerminator()->getOperand(2);
  EXPECT_EQ(half.getDefiningOp()->getName().getStringRef(), "arith.extf");
}

TEST(Emit, StatesOfTheModel) {
  Emitted emitted("model() {\n  state a : f32 = 2\n  state b : f32\n  let n = norm(grad)\n"
                  "  a = a + n\n  skip when n > 3\n  a = a * n\n  b = n\n}\n" +
                  rule("let x = grad * model.a"));
  EXPECT_THAT(emitted.str(), HasSubstr("values [\"a\"] states [#optim.state<\"a\", f32, one, "
                                       "2.000000e+00 : f64, false>, #optim.state<\"b\", f32, one, "
                                       "0.000000e+00 : f64, false>] skips {"));
  // What is assigned below a `skip` stays where the step is skipped.
  EXPECT_EQ(emitted.operationsOfModel(),
            "optim.model_state optim.model_state optim.reduce arith.addf arith.cmpf arith.mulf "
            "arith.select arith.select arith.select optim.yield");
  mlir::OperandRange states = emitted.model().getNewStates();
  ASSERT_EQ(states.size(), 2u);
  auto kept = states[0].getDefiningOp<mlir::arith::SelectOp>();
  EXPECT_TRUE(kept.getTrueValue().getDefiningOp<mlir::arith::AddFOp>());
  // Rules read what a step that is not skipped assigns.
  mlir::Value read = emitted.model().getBody().front().getTerminator()->getOperand(1);
  EXPECT_TRUE(read.getDefiningOp<mlir::arith::MulFOp>());
  EXPECT_EQ(read, kept.getFalseValue());
}

TEST(Emit, RulesThatAreTaken) {
  Result result = check("model() {\n  let a = norm(grad)\n  let b = norm(param)\n}\n"
                        "optimizer A() {\n  param = grad * model.a\n}\n"
                        "optimizer B() {\n  param = grad * model.b\n}\n");
  mlir::MLIRContext context;
  loadDialects(context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  emitDefinitions(*result.file, *module, [](const Rule &rule) { return rule.name.text == "B"; });
  EXPECT_TRUE(succeeded(mlir::verify(*module)));
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  EXPECT_THAT(text, HasSubstr("values [\"b\"]"));
  EXPECT_THAT(text, testing::Not(HasSubstr("@A")));
}

TEST(Emit, Powers) {
  EXPECT_EQ(operationsOf("param = grad ^ 1"), "optim.yield");
  EXPECT_EQ(operationsOf("param = grad ^ 2"), "arith.mulf optim.yield");
  EXPECT_EQ(operationsOf("param = grad ^ 6"), "arith.mulf arith.mulf arith.mulf optim.yield");
  EXPECT_EQ(operationsOf("param = grad ^ -1"), "arith.divf optim.yield");
  EXPECT_EQ(operationsOf("param = grad ^ 0.5"), "math.sqrt optim.yield");
  EXPECT_EQ(operationsOf("param = grad ^ 1.5"), "math.powf optim.yield");
  EXPECT_EQ(operationsOf("param = grad * 0.9 ^ step"), "math.powf arith.mulf optim.yield");
}

TEST(Emit, KindsMeetThroughBroadcast) {
  Emitted emitted("optimizer T(lr) {\n  state r : f32[rows]\n"
                  "  state c : f32[cols]\n  state o : f32[] = 1\n"
                  "  r = mean(grad * grad, over = columns)\n"
                  "  c = rms(grad, over = rows)\n"
                  "  o = max(r) * lr\n"
                  "  param = r * c + o + sum(grad)\n}\n");
  EXPECT_EQ(emitted.operations(), "arith.mulf optim.reduce optim.reduce optim.reduce arith.mulf "
                                  "optim.broadcast optim.broadcast arith.mulf optim.broadcast "
                                  "arith.addf optim.reduce optim.broadcast arith.addf optim.yield");
  std::string text = emitted.str();
  EXPECT_THAT(text, HasSubstr("optim.reduce mean %0 : tensor<?x?xf32> to "
                              "tensor<?x1xf32>"));
  EXPECT_THAT(text, HasSubstr(": tensor<?x?xf32> to tensor<1x?xf32>"));
  EXPECT_THAT(text, HasSubstr(": tensor<?x1xf32> to tensor<1x1xf32>"));
  EXPECT_THAT(text, HasSubstr("#optim.state<\"o\", f32, one, 1.000000e+00 : "
                              "f64, false>"));
}

TEST(Emit, ConditionsAndSelection) {
  EXPECT_EQ(operationsOf("param = select(grad > 0 and grad < 1 or grad != 2, "
                         "grad, lr)"),
            "arith.cmpf arith.cmpf arith.andi arith.cmpf arith.ori "
            "arith.select optim.yield");
  // A scalar condition crosses as the number 1 or 0.
  EXPECT_EQ(operationsOf("param = select(step > 10, grad, lr)"),
            "arith.cmpf arith.select arith.cmpf arith.select optim.yield");
  EXPECT_EQ(operationsOf("param = grad * select(not (step > 10), 1, lr)"),
            "arith.cmpf arith.xori arith.select arith.mulf optim.yield");
  EXPECT_EQ(operationsOf("param = select(not (grad > 0), grad, lr)"),
            "arith.cmpf arith.cmpf arith.xori arith.select optim.yield");
}

TEST(Emit, StatesRoundWhenTheyAreReadAgain) {
  EXPECT_EQ(operationsOf("state m : bf16\nm = m + grad\nparam = m * lr"),
            "arith.addf arith.truncf arith.extf arith.mulf optim.yield");
  EXPECT_EQ(operationsOf("param = cast(cast(grad, bf16), f16)"),
            "arith.truncf arith.extf arith.truncf arith.extf optim.yield");
}

TEST(Emit, MasterIsAState) {
  Emitted emitted("optimizer T(lr) {\n  master : f32\n  param = param - lr * grad\n}\n");
  EXPECT_THAT(emitted.str(), HasSubstr("#optim.state<\"master\", f32, full, "
                                       "0.000000e+00 : f64, true>"));
}

TEST(Emit, OrthogonalizeAttributes) {
  Emitted emitted("optimizer T() {\n  param = orthogonalize(grad, coefficients "
                  "= [(1, -2, 3)], precision = f32, eps = 1e-5)\n}\n");
  EXPECT_THAT(emitted.str(), HasSubstr("coefficients [[1.000000e+00, -2.000000e+00, "
                                       "3.000000e+00]] eps 1.000000e-05 : tensor<?x?xf32>"));
  Emitted gram("optimizer T() {\n  param = orthogonalize(grad, form = gram, precision = f16)\n}\n");
  EXPECT_THAT(gram.str(), HasSubstr("form gram restarts [2] : tensor<?x?xf32> to tensor<?x?xf16>"));
  Emitted standard("optimizer T() {\n  param = orthogonalize(grad, form = standard)\n}\n");
  EXPECT_THAT(standard.str(), testing::Not(HasSubstr(" form ")));
}

TEST(Emit, LocationsAreThePlacesInTheFileAndNameLets) {
  Emitted emitted("optimizer T() {\n  let u = grad *\n    grad\n  param = u\n}\n");
  mlir::Operation &product = emitted.rule().getBody().front().front();
  auto named = llvm::cast<mlir::NameLoc>(product.getLoc());
  EXPECT_EQ(named.getName(), "u");
  auto at = llvm::cast<mlir::FileLineColLoc>(named.getChildLoc());
  EXPECT_EQ(at.getFilename(), "t.optim");
  EXPECT_EQ(at.getLine(), 2u);
  EXPECT_EQ(at.getColumn(), 16u);
}

TEST(Emit, RandomProgramsVerify) {
  const char *given = std::getenv("STEPC_SEED");
  unsigned seed = given ? unsigned(std::strtoul(given, nullptr, 10)) : std::random_device()();
  std::cout << "seed " << seed << " (repeat with STEPC_SEED)\n";
  Generator generator(seed);
  for (int i = 0; i < 100; ++i)
    Emitted emitted(generator.file());
}

/// A function is its text: a call makes the operations of the text in which its arguments have names.
TEST(Emit, CallsAndRepeatsAreTheirText) {
  unsigned seed = std::random_device()();
  if (const char *given = std::getenv("STEPC_SEED"))
    seed = unsigned(std::strtoul(given, nullptr, 10));
  std::cout << "seed " << seed << " (repeat with STEPC_SEED)\n";
  Generator random(seed);
  for (int i = 0; i < 100; ++i) {
    std::string body = random.elementwise(4, {"x", "y"}), inner = random.elementwise(3, {"z", "y"}),
                first = random.elementwise(2, {"param", "grad"}),
                second = random.elementwise(2, {"param", "grad"});
    std::string end = "  param = param - lr * z\n}\n";
    Emitted called("def f(x, y, c) {\n  let z = c * (" + body +
                   ")\n  repeat k in [1, -2, y] {\n    z = k * " + inner +
                   "\n  }\n  return z\n}\noptimizer T(lr) {\n  let z = f(" + first + ", " + second +
                   ", 0.5)\n" + end);
    std::string written = "optimizer T(lr) {\n  let x = " + first + "\n  let y = " + second +
                          "\n  let z0 = 0.5 * (" + body + ")\n";
    const char *factors[] = {"1", "(-2)", "y"};
    for (int turn = 0; turn < 3; ++turn) {
      std::string name = turn == 2 ? "z" : "z" + std::to_string(turn + 1);
      written += "  let " + name + " = " + factors[turn] + " * " +
                 std::regex_replace(inner, std::regex("\\bz\\b"), "z" + std::to_string(turn)) +
                 "\n";
    }
    Emitted plain(written + end);
    ASSERT_EQ(called.str(), plain.str()) << body << "\n" << inner;
  }
}

TEST(Emit, SizesWithinFunctions) {
  // Both calls have a size 'r' of their own. Equal computations are one size.
  Emitted emitted("def half(x) {\n  let r = max(1, floor(rows(x) / 2))\n  return identity(r)\n}\n"
                  "optimizer T(lr) {\n  let r = max(1, floor(rows / 2))\n  state A : f32[r, r]\n"
                  "  A = A + half(grad)\n  let B = half(transpose(grad))\n"
                  "  param = param - lr * norm(A) * norm(B) * grad\n}\n");
  EXPECT_THAT(emitted.str(), HasSubstr("optim.size 0 \"r\""));
  EXPECT_THAT(emitted.str(), HasSubstr("optim.size 1 \"r2\""));
  EXPECT_THAT(emitted.str(), testing::Not(HasSubstr("optim.size 2")));
}

TEST(Emit, WhatCallsReportHasTheirPlaces) {
  Emitted emitted("def f(x) = 2 * x\noptimizer T(lr) {\n  param = param - lr * f(grad)\n}\n");
  std::string places;
  llvm::raw_string_ostream os(places);
  emitted.rule()->print(os, mlir::OpPrintingFlags().enableDebugInfo());
  EXPECT_THAT(places, HasSubstr("callsite("));
}

TEST(Emit, ModelValuesAreThoseOfTheLastTurn) {
  Emitted emitted(
      "model(k = 2) {\n  let z = 1\n  repeat 3 {\n    z = k * z\n  }\n  grad = z * grad\n}\n"
      "optimizer T(lr) {\n  param = param - lr * model.z * grad\n}\n");
  EXPECT_EQ(emitted.operationsOfModel(), "arith.mulf arith.mulf arith.mulf arith.mulf optim.yield");
}

TEST(Emit, WideRulesHaveARuleOfTallMatrices) {
  Emitted emitted("optimizer T(lr) wide {\n  state L : f32[rows, rows]\n  state v : f32[cols]\n"
                  "  L = L + grad @ transpose(grad)\n  v = max(grad, over = rows)\n"
                  "  param = param - lr * select(transposed, rows, 1) * L @ grad\n}\n");
  // The values of the tall rule are stored as transposes: L of cols × cols, and products from the right.
  EXPECT_THAT(emitted.str(), HasSubstr("optim.rule @T.tall"));
  EXPECT_THAT(emitted.str(), HasSubstr("tall @T.tall"));
  auto rules = emitted.get().getOps<stepc::optim::RuleOp>();
  stepc::optim::RuleOp tall = *rules.begin(), wide = *std::next(rules.begin());
  EXPECT_EQ(tall.getState(0).getKind(), wide.getState(0).getKind().ofTransposed());
  EXPECT_EQ(tall.getState(1).getKind(), stepc::plan::ValueKind::Rows);
  EXPECT_EQ(wide.getState(1).getKind(), stepc::plan::ValueKind::Cols);
}

/// A size may be declared in a function of which only the sizes are read.
TEST(Emit, SizesOfFunctionsThatAreNotComputed) {
  Emitted emitted(
      "def top(x) {\n  let h = max(1, floor(rows(x) / 2))\n  return identity(h)\n}\n"
      "def half(n) {\n  let h = max(1, floor(n / 2))\n  return h\n}\n"
      "optimizer T(lr) {\n  let r = rows(top(grad))\n  let k = max(1, floor(rows / 2))\n"
      "  let I = identity(half(rows))\n"
      "  param = param - lr * grad * sum(identity(k)) * r * sum(I)\n}\n");
  EXPECT_THAT(emitted.str(), HasSubstr("optim.size 0 \"h\""));
  EXPECT_THAT(emitted.str(), testing::Not(HasSubstr("optim.size 1")));
}

/// The entries of a list have the values before the first turn.
TEST(Emit, ListsAreComputedBeforeTheirTurns) {
  Emitted turns(
      "optimizer T(lr) {\n  let z = grad\n  repeat c in [2 * z, z] {\n    z = z + c\n  }\n"
      "  param = param - lr * z\n}\n");
  Emitted written("optimizer T(lr) {\n  let c1 = 2 * grad\n  let z1 = grad + c1\n"
                  "  let z = z1 + grad\n  param = param - lr * z\n}\n");
  EXPECT_EQ(turns.str(), written.str());
}

} // namespace
