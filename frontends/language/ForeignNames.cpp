//===- ForeignNames.cpp ---------------------------------------------------===//
#include "frontends/language/ForeignNames.h"
#include "llvm/ADT/ArrayRef.h"

using llvm::StringRef;

namespace {

struct Entry {
  StringRef name;
  StringRef hint;
};

constexpr StringRef noHint = "";
constexpr StringRef useSelect = "did you mean 'select'?";
constexpr StringRef usePower = "a power is written 'x ^ y'";
constexpr StringRef useSquare = "a square is written 'x ^ 2'";
constexpr StringRef useOrthogonalize = "did you mean 'orthogonalize'?";
constexpr StringRef useCast = "did you mean 'cast(x, dtype)'?";
constexpr StringRef useTurns = "every k steps is 'step == k * ((step / k + 6e15) - 6e15)'";
constexpr StringRef useZeros = "zeros like x are '0 * x'";

constexpr Entry functionNames[] = {
    // Functions that are here under another name, or written out.
    {"where", useSelect},
    {"iif", useSelect},
    {"cond", useSelect},
    {"pow", usePower},
    {"power", usePower},
    {"square", useSquare},
    {"sqr", useSquare},
    {"sq", useSquare},
    {"cbrt", "a cube root is written 'x ^ (1 / 3)'"},
    {"inv", "an inverse of numbers is written '1 / x'"},
    {"reciprocal", "it is written '1 / x'"},
    {"ln", "did you mean 'log'?"},
    {"log2", "it is written 'log(x) / log(2)'"},
    {"log10", "it is written 'log(x) / log(10)'"},
    {"log1p", "it is written 'log(1 + x)'"},
    {"exp2", "it is written '2 ^ x'"},
    {"expm1", "it is written 'exp(x) - 1'"},
    {"sigmoid", "it is written '1 / (1 + exp(-x))'"},
    {"relu", "it is written 'max(x, 0)'"},
    {"tanh", "it is written '1 - 2 / (1 + exp(2 * x))'"},
    {"fabs", "did you mean 'abs'?"},
    {"sgn", "did you mean 'sign'?"},
    {"clip", "did you mean 'clamp'?"},
    {"maximum", "did you mean 'max'?"},
    {"amax", "did you mean 'max'?"},
    {"fmax", "did you mean 'max'?"},
    {"minimum", "did you mean 'min'?"},
    {"fmin", "did you mean 'min'?"},
    {"amin", "the least of a tensor is '-max(-x)'"},
    {"average", "did you mean 'mean'?"},
    {"avg", "did you mean 'mean'?"},
    {"var", "it is written 'mean(x ^ 2) - mean(x) ^ 2'"},
    {"std", "it is written 'sqrt(mean(x ^ 2) - mean(x) ^ 2)'"},
    {"ema", "an exponential average is written 'lerp(m, grad, 1 - beta)'"},
    {"l2norm", "did you mean 'norm'?"},
    {"frobenius", "did you mean 'norm'?"},
    {"linear_interpolation", "did you mean 'lerp'?"},
    {"newton_schulz", useOrthogonalize},
    {"newtonschulz", useOrthogonalize},
    {"newtonschulz5", useOrthogonalize},
    {"zeropower_via_newtonschulz5", useOrthogonalize},
    {"ns5", useOrthogonalize},
    {"msign", useOrthogonalize},
    {"matrix_sign", useOrthogonalize},
    {"polar", useOrthogonalize},
    {"weight_decay", "did you mean 'decay'?"},
    {"float", useCast},
    {"bfloat16", useCast},
    {"half", useCast},
    {"f32", useCast},
    {"bf16", useCast},
    {"f16", useCast},
    {"zeros", useZeros},
    {"zeros_like", useZeros},
    {"ones_like", "ones like x are '0 * x + 1'"},
    {"dot", "a product of all elements is 'sum(a * b)'"},
    // Functions that the language lacks, and near to which it has others.
    {"sin", noHint},
    {"cos", noHint},
    {"tan", noHint},
    {"asin", noHint},
    {"acos", noHint},
    {"atan", noHint},
    {"atan2", noHint},
    {"sinh", noHint},
    {"cosh", noHint},
    {"erf", noHint},
    {"gamma", noHint},
    {"floor", noHint},
    {"ceil", noHint},
    {"round", "a scalar is rounded to a whole number by '(x + 6e15) - 6e15'"},
    {"trunc", noHint},
    {"mod", useTurns},
    {"fmod", useTurns},
    {"any", noHint},
    {"all", noHint},
    {"median", noHint},
    {"prod", noHint},
    {"sort", noHint},
    {"trace", noHint},
    {"svd", noHint},
    {"rand", noHint},
    {"randn", noHint},
};

constexpr Entry valueNames[] = {
    {"gradient", "did you mean 'grad'?"},
    {"gradients", "did you mean 'grad'?"},
    {"grads", "did you mean 'grad'?"},
    {"g", "did you mean 'grad'?"},
    {"parameter", "did you mean 'param'?"},
    {"parameters", "did you mean 'param'?"},
    {"params", "did you mean 'param'?"},
    {"p", "did you mean 'param'?"},
    {"w", "did you mean 'param'?"},
    {"weight", "did you mean 'param'?"},
    {"weights", "did you mean 'param'?"},
    {"theta", "did you mean 'param'?"},
    {"t", "did you mean 'step'?"},
    {"steps", "did you mean 'step'?"},
    {"iteration", "did you mean 'step'?"},
    {"row", "did you mean 'rows'?"},
    {"n_rows", "did you mean 'rows'?"},
    {"columns", "did you mean 'cols'?"},
    {"column", "did you mean 'cols'?"},
    {"col", "did you mean 'cols'?"},
    {"size", "did you mean 'numel'?"},
    {"pi", "write the number: 3.141592653589793"},
    {"inf", "write a number that f32 can hold, such as 3e38"},
    {"infinity", "write a number that f32 can hold, such as 3e38"},
    {"nan", noHint},
    {"true", "conditions are comparisons: '1 > 0'"},
    {"false", "conditions are comparisons: '1 < 0'"},
};

constexpr StringRef useF32 = "did you mean 'f32'?", useBF16 = "did you mean 'bf16'?",
                    useF16 = "did you mean 'f16'?";

constexpr Entry dtypeNames[] = {
    {"float", useF32},
    {"float32", useF32},
    {"fp32", useF32},
    {"single", useF32},
    {"bfloat16", useBF16},
    {"bfloat", useBF16},
    {"b16", useBF16},
    {"half", useF16},
    {"float16", useF16},
    {"fp16", useF16},
    {"f64", "only scalars are f64, and they are so by themselves"},
    {"float64", "only scalars are f64, and they are so by themselves"},
    {"fp64", "only scalars are f64, and they are so by themselves"},
    {"double", "only scalars are f64, and they are so by themselves"},
};

std::optional<StringRef> hintFor(llvm::ArrayRef<Entry> entries, StringRef name) {
  for (const Entry &entry : entries)
    if (entry.name.equals_insensitive(name))
      return entry.hint;
  return std::nullopt;
}

} // namespace

std::optional<StringRef> stepc::lang::foreignFunctionHint(StringRef name) {
  return hintFor(functionNames, name);
}

std::optional<StringRef> stepc::lang::foreignValueHint(StringRef name) {
  return hintFor(valueNames, name);
}

std::optional<StringRef> stepc::lang::foreignDtypeHint(StringRef name) {
  return hintFor(dtypeNames, name);
}
