//===- Builtins.cpp -------------------------------------------------------===//
#include "frontends/language/Builtins.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace stepc::lang;
using llvm::ArrayRef;
using llvm::StringRef;

/// NaN if either operand is NaN, like arith.minimumf and arith.maximumf.
static double least(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b);
}
static double greatest(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
}

ArrayRef<FunctionInfo> stepc::lang::functions() {
  using C = FunctionClass;
  using X = ArrayRef<double>;
  static constexpr FunctionInfo table[] = {
      {"sqrt", Function::Sqrt, C::Elementwise, 1, [](X x) { return std::sqrt(x[0]); }},
      {"rsqrt", Function::Rsqrt, C::Elementwise, 1, [](X x) { return 1 / std::sqrt(x[0]); }},
      {"abs", Function::Abs, C::Elementwise, 1, [](X x) { return std::abs(x[0]); }},
      {"floor", Function::Floor, C::Elementwise, 1, [](X x) { return std::floor(x[0]); }},
      {"sign", Function::Sign, C::Elementwise, 1,
       [](X x) { return x[0] < 0   ? -1
                        : x[0] > 0 ? 1
                                   : x[0]; }},
      {"exp", Function::Exp, C::Elementwise, 1, [](X x) { return std::exp(x[0]); }},
      {"log", Function::Log, C::Elementwise, 1, [](X x) { return std::log(x[0]); }},
      {"min", Function::Min, C::Elementwise, 2, [](X x) { return least(x[0], x[1]); }},
      {"max", Function::Max, C::Elementwise, 2, [](X x) { return greatest(x[0], x[1]); }},
      {"clamp", Function::Clamp, C::Elementwise, 3,
       [](X x) { return least(greatest(x[0], x[1]), x[2]); }},
      {"lerp", Function::Lerp, C::Elementwise, 3, [](X x) { return x[0] + x[2] * (x[1] - x[0]); }},
      {"finite", Function::Finite, C::Test, 1, [](X x) { return double(std::isfinite(x[0])); }},
      {"select", Function::Select, C::Select, 3, [](X x) { return x[0] != 0 ? x[1] : x[2]; }},
      {"cast", Function::Cast, C::Cast, 2},
      {"momentum", Function::Momentum, C::Named, 3, nullptr, 2},
      {"decay", Function::Decay, C::Named, 3, nullptr, 1},
      {"sum", Function::Sum, C::Reduction, 1},
      {"mean", Function::Mean, C::Reduction, 1},
      {"rms", Function::Rms, C::Reduction, 1},
      {"norm", Function::Norm, C::Reduction, 1},
      {"orthogonalize", Function::Orthogonalize, C::Orthogonalize, 1},
      {"transpose", Function::Transpose, C::Transpose, 1},
      {"identity", Function::Identity, C::Identity, 1},
      {"rows", Function::RowsOf, C::SizeOf, 1},
      {"cols", Function::ColsOf, C::SizeOf, 1},
      {"uniform", Function::Uniform, C::Uniform, 0},
      {"stochastic", Function::Stochastic, C::Stochastic, 1},
  };
  return table;
}

const FunctionInfo *stepc::lang::findFunction(StringRef name) {
  const FunctionInfo *it =
      llvm::find_if(functions(), [&](const FunctionInfo &info) { return info.name == name; });
  return it == functions().end() ? nullptr : it;
}

ArrayRef<StringRef> stepc::lang::optionsOf(FunctionClass functionClass) {
  static constexpr StringRef reduction[] = {"over"};
  static constexpr StringRef orthogonalize[] = {"steps",  "coefficients", "precision", "eps",
                                                "safety", "form",         "restarts"};
  if (functionClass == FunctionClass::Reduction)
    return reduction;
  if (functionClass == FunctionClass::Orthogonalize)
    return orthogonalize;
  return {};
}

ArrayRef<StringRef> stepc::lang::plannedStatements() {
  static constexpr StringRef names[] = {"clip_grad_norm", "loss_scale", "skip_non_finite"};
  return names;
}

using Triple = std::array<double, 3>;

// Keller Jordan's Muon and torch.optim.Muon.
static constexpr Triple simple[] = {{3.4445, -4.7750, 2.0315}};
// leloykun, modded-nanogpt.
static constexpr Triple quintic[] = {{4.0848, -6.8946, 2.9270},
                                     {3.9505, -6.3029, 2.6377},
                                     {3.7418, -5.5913, 2.3037},
                                     {2.8769, -3.1427, 1.2046},
                                     {2.8366, -3.0525, 1.2012}};
// arXiv 2505.16932, without a safety factor.
static constexpr Triple polarExpress[] = {
    {8.28721201814563, -23.595886519098837, 17.300387312530933},
    {4.107059111542203, -2.9478499167379106, 0.5448431082926601},
    {3.9486908534822946, -2.908902115962949, 0.5518191394370137},
    {3.3184196573706015, -2.488488024314874, 0.51004894012372},
    {2.300652019954817, -1.6689039845747493, 0.4188073119525673},
    {1.891301407787398, -1.2679958271945868, 0.37680408948524835},
    {1.875, -1.25, 0.375}};
// arXiv 2506.10935.
static constexpr Triple cans[] = {{8.4703, -25.1081, 18.6293},
                                  {4.1828, -3.1087, 0.5806},
                                  {3.9619, -2.9541, 0.5630},
                                  {3.2866, -2.4647, 0.5074},
                                  {2.2737, -1.6447, 0.4162}};
// DeepSeek-V4's technical report, equation 28: eight steps of `simple`, then two that settle at 1.
static constexpr std::array<Triple, 10> deepseekV4 = [] {
  std::array<Triple, 10> steps;
  steps.fill(simple[0]);
  steps[8] = steps[9] = {2, -1.5, 0.5};
  return steps;
}();
// arXiv 2606.00371: c = 0, so the square of the Gram matrix is not needed.
static constexpr Triple cubic5[] = {{3.3656576, -3.3420992, 0},
                                    {2.5744352, -1.4957376, 0},
                                    {2.5368962, -1.4312570, 0},
                                    {2.4418906, -1.2764040, 0},
                                    {2.2230472, -0.9630650, 0}};

bool stepc::lang::isWordOption(StringRef name) {
  return llvm::is_contained({"over", "precision", "coefficients", "form"}, name);
}

ArrayRef<CoefficientSet> stepc::lang::coefficientSets() {
  static const CoefficientSet sets[] = {
      {"simple", simple, true, 5},
      {"quintic", quintic, false, 5},
      {"polar_express", polarExpress, true, 5},
      {"cans", cans, false, 5},
      {"cubic5", cubic5, false, 5},
      {"deepseekv4", deepseekV4, false, 10},
  };
  return sets;
}

const CoefficientSet *stepc::lang::findCoefficientSet(StringRef name) {
  const CoefficientSet *it =
      llvm::find_if(coefficientSets(), [&](const CoefficientSet &set) { return set.name == name; });
  return it == coefficientSets().end() ? nullptr : it;
}

std::vector<Triple> CoefficientSet::take(unsigned count, double safety) const {
  std::vector<Triple> result;
  for (unsigned i = 0; i < count; ++i) {
    bool repeats = i + 1 >= steps.size();
    auto [a, b, c] = steps[std::min<size_t>(i, steps.size() - 1)];
    double s = repeats ? 1.0 : safety;
    result.push_back({a / s, b / (s * s * s), c / (s * s * s * s * s)});
  }
  return result;
}
