//===- ForeignNames.cpp ---------------------------------------------------===//
#include "frontends/language/ForeignNames.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

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
constexpr StringRef useTurns = "every k steps is 'step == k * floor(step / k)'";
constexpr StringRef useLarge = "write a number that f32 can hold, such as 3e38";
constexpr StringRef useProductOfMatrices = "a product of matrices is written 'a @ b'";
constexpr StringRef useUniform = "did you mean 'uniform()'?";
constexpr StringRef useStochastic = "rounding by chance is written 'param = stochastic(x)'";
constexpr StringRef useZeros = "zeros like x are '0 * x'";

constexpr Entry functionNames[] = {
    // Functions that this language has under another name, or that can be written out.
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
    {"isfinite", "did you mean 'finite'?"},
    {"is_finite", "did you mean 'finite'?"},
    {"isnan", "a NaN is what differs from itself: 'x != x'"},
    {"isinf", "it is written 'x == x and not finite(x)'"},
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
    {"matmul", useProductOfMatrices},
    {"mm", useProductOfMatrices},
    {"bmm", useProductOfMatrices},
    {"eye", "the identity matrix of n rows is 'identity(n)'"},
    // Functions that this language lacks, although some of its functions have similar names.
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
    {"ceil", "it is written '-floor(-x)'"},
    {"round", "it is written 'floor(x + 0.5)'"},
    {"trunc", "it is written 'sign(x) * floor(abs(x))'"},
    {"mod", useTurns},
    {"fmod", useTurns},
    {"any", noHint},
    {"all", noHint},
    {"median", noHint},
    {"prod", noHint},
    {"sort", noHint},
    {"trace", noHint},
    {"svd", noHint},
    {"rand", useUniform},
    {"rand_like", useUniform},
    {"random", useUniform},
    {"stochastic_round", useStochastic},
    {"stochastic_rounding", useStochastic},
    {"copy_stochastic", useStochastic},
    {"copy_stochastic_", useStochastic},
    {"randn", noHint},
};

constexpr Entry valueNames[] = {
    {"columns", "did you mean 'cols', or 'over = columns' of a reduction?"},
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
    {"n_rows", "did you mean 'rows'?"},
    {"column", "did you mean 'cols'?"},
    {"size", "did you mean 'numel'?"},
    {"pi", "write the number: 3.141592653589793"},
    {"inf", useLarge},
    {"infinity", useLarge},
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

constexpr StringRef useMinus = "write '-' for minus", useProduct = "write '*' for a product",
                    useQuotes = "strings stand in straight double quotes",
                    useAssign = "assign with '='", useNorm = "a norm is written 'norm(x)'",
                    usePlainSpace = "this is a space of another kind: write a plain one",
                    useNothing = "this character is invisible: delete it",
                    useTransposeLater = "a transpose is 'transpose(x)', which is not supported yet";

struct Range {
  uint32_t first, last;
  StringRef hint;
};

/// Characters that are no letters, by rising code points.
constexpr Range characters[] = {
    {0x80, 0x9F, useNothing},
    {0xA0, 0xA0, usePlainSpace},
    {0xA1, 0xA9, noHint},
    {0xAB, 0xAB, useQuotes},
    {0xAC, 0xAC, "write 'not a'"},
    {0xAD, 0xAD, useNothing},
    {0xAE, 0xB1, noHint},
    {0xB2, 0xB2, useSquare},
    {0xB3, 0xB3, "a cube is written 'x ^ 3'"},
    {0xB4, 0xB4, useQuotes},
    {0xB6, 0xB6, noHint},
    {0xB7, 0xB7, useProduct},
    {0xB8, 0xB8, noHint},
    {0xB9, 0xB9, usePower},
    {0xBB, 0xBB, useQuotes},
    {0xBC, 0xBC, "write 0.25"},
    {0xBD, 0xBD, "write 0.5"},
    {0xBE, 0xBE, "write 0.75"},
    {0xBF, 0xBF, noHint},
    {0xD7, 0xD7, useProduct},
    {0xF7, 0xF7, "write '/' for a quotient"},
    {0x1D40, 0x1D40, useTransposeLater},
    {0x2000, 0x200A, usePlainSpace},
    {0x200B, 0x200F, useNothing},
    {0x2010, 0x2015, useMinus},
    {0x2016, 0x2016, useNorm},
    {0x2017, 0x2017, noHint},
    {0x2018, 0x201F, useQuotes},
    {0x2020, 0x2027, noHint},
    {0x2028, 0x202E, useNothing},
    {0x202F, 0x202F, usePlainSpace},
    {0x2030, 0x2031, noHint},
    {0x2032, 0x2037, noHint},
    {0x2038, 0x2043, noHint},
    {0x2044, 0x2044, "write '/' for a quotient"},
    {0x2045, 0x205F, noHint},
    {0x2060, 0x206F, useNothing},
    {0x2070, 0x207F, usePower},
    {0x208A, 0x208E, noHint},
    {0x20A0, 0x20CF, noHint},
    {0x2190, 0x2190, useAssign},
    {0x2191, 0x2201, noHint},
    {0x2203, 0x2206, noHint},
    {0x2208, 0x2210, noHint},
    {0x2211, 0x2211, "a sum is written 'sum(x)'"},
    {0x2212, 0x2212, useMinus},
    {0x2213, 0x2214, noHint},
    {0x2215, 0x2215, "write '/' for a quotient"},
    {0x2216, 0x2216, noHint},
    {0x2217, 0x2219, useProduct},
    {0x221A, 0x221A, "a root is written 'sqrt(x)'"},
    {0x221B, 0x221D, noHint},
    {0x221E, 0x221E, useLarge},
    {0x221F, 0x2224, noHint},
    {0x2225, 0x2225, useNorm},
    {0x2226, 0x2226, noHint},
    {0x2227, 0x2227, "write 'a and b'"},
    {0x2228, 0x2228, "write 'a or b'"},
    {0x2229, 0x2253, noHint},
    {0x2254, 0x2254, useAssign},
    {0x2255, 0x225F, noHint},
    {0x2260, 0x2260, "'not equal' is written 'a != b'"},
    {0x2261, 0x2263, noHint},
    {0x2264, 0x2264, "write 'a <= b'"},
    {0x2265, 0x2265, "write 'a >= b'"},
    {0x2266, 0x2298, noHint},
    {0x2299, 0x2299, useProduct},
    {0x229A, 0x22A3, noHint},
    {0x22A4, 0x22A4, useTransposeLater},
    {0x22A5, 0x22C4, noHint},
    {0x22C5, 0x22C5, useProduct},
    {0x22C6, 0x2BFF, noHint},
    {0x3000, 0x3000, usePlainSpace},
    {0x3001, 0x3004, noHint},
    {0x3008, 0x3020, noHint},
    {0xE000, 0xF8FF, noHint},
    {0xFE00, 0xFE0F, useNothing},
    {0xFEFF, 0xFEFF, useNothing},
    {0xFF01, 0xFF0F, "write the character of ASCII that looks like it"},
    {0xFF1A, 0xFF20, "write the character of ASCII that looks like it"},
    {0xFF3B, 0xFF3E, "write the character of ASCII that looks like it"},
    {0xFF5B, 0xFF65, "write the character of ASCII that looks like it"},
    {0xFFE0, 0xFFFF, noHint},
    {0x1F000, 0x1FAFF, noHint},
};

struct Letter {
  uint32_t character;
  StringRef spelling;
};

/// Letters that papers use, and some that look like ASCII's.
constexpr Letter letters[] = {
    {0xAA, "a"},         {0xB5, "mu"},      {0xBA, "o"},       {0xC4, "Ae"},
    {0xC7, "C"},         {0xD6, "Oe"},      {0xDC, "Ue"},      {0xDF, "ss"},
    {0xE0, "a"},         {0xE1, "a"},       {0xE2, "a"},       {0xE3, "a"},
    {0xE4, "ae"},        {0xE5, "a"},       {0xE6, "ae"},      {0xE7, "c"},
    {0xE8, "e"},         {0xE9, "e"},       {0xEA, "e"},       {0xEB, "e"},
    {0xEC, "i"},         {0xED, "i"},       {0xEE, "i"},       {0xEF, "i"},
    {0xF1, "n"},         {0xF2, "o"},       {0xF3, "o"},       {0xF4, "o"},
    {0xF5, "o"},         {0xF6, "oe"},      {0xF8, "o"},       {0xF9, "u"},
    {0xFA, "u"},         {0xFB, "u"},       {0xFC, "ue"},      {0xFD, "y"},
    {0xFF, "y"},         {0x302, "_hat"},   {0x303, "_tilde"}, {0x304, "_bar"},
    {0x305, "_bar"},     {0x393, "Gamma"},  {0x394, "Delta"},  {0x398, "Theta"},
    {0x39B, "Lambda"},   {0x39E, "Xi"},     {0x3A0, "Pi"},     {0x3A3, "Sigma"},
    {0x3A6, "Phi"},      {0x3A8, "Psi"},    {0x3A9, "Omega"},  {0x3B1, "alpha"},
    {0x3B2, "beta"},     {0x3B3, "gamma"},  {0x3B4, "delta"},  {0x3B5, "epsilon"},
    {0x3B6, "zeta"},     {0x3B7, "eta"},    {0x3B8, "theta"},  {0x3B9, "iota"},
    {0x3BA, "kappa"},    {0x3BB, "lambda"}, {0x3BC, "mu"},     {0x3BD, "nu"},
    {0x3BE, "xi"},       {0x3BF, "o"},      {0x3C0, "pi"},     {0x3C1, "rho"},
    {0x3C2, "sigma"},    {0x3C3, "sigma"},  {0x3C4, "tau"},    {0x3C5, "upsilon"},
    {0x3C6, "phi"},      {0x3C7, "chi"},    {0x3C8, "psi"},    {0x3C9, "omega"},
    {0x3D1, "theta"},    {0x3D5, "phi"},    {0x3F1, "rho"},    {0x3F5, "epsilon"},
    {0x430, "a"},        {0x435, "e"},      {0x43E, "o"},      {0x440, "p"},
    {0x441, "c"},        {0x443, "y"},      {0x445, "x"},      {0x456, "i"},
    {0x1E7D, "v_tilde"}, {0x2113, "l"},     {0x2202, "d"},
};

constexpr Entry constantWords[] = {
    {"inf", useLarge},
    {"infinity", useLarge},
    {"true", "write 1, and compare it: 'x != 0'"},
    {"false", "write 0, and compare it: 'x != 0'"},
    {"none", "write 0"},
    {"null", "write 0"},
    {"pi", "write 3.141592653589793"},
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

StringRef stepc::lang::foreignConstantHint(StringRef word) {
  return hintFor(constantWords, word).value_or(noHint);
}

std::optional<StringRef> stepc::lang::foreignDtypeHint(StringRef name) {
  return hintFor(dtypeNames, name);
}

std::pair<uint32_t, unsigned> stepc::lang::frontCharacter(StringRef text) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.begin()), *at = begin;
  llvm::UTF32 character = 0;
  if (text.empty() || llvm::convertUTF8Sequence(&at, begin + text.size(), &character,
                                                llvm::strictConversion) != llvm::conversionOK)
    return {0, 1};
  return {character, unsigned(at - begin)};
}

static const Range *rangeOf(uint32_t character) {
  for (const Range &range : characters)
    if (range.first <= character && character <= range.last)
      return &range;
  return nullptr;
}

StringRef stepc::lang::foreignCharacterHint(uint32_t character) {
  const Range *range = rangeOf(character);
  return range ? range->hint : noHint;
}

bool stepc::lang::isForeignLetter(uint32_t character) {
  return character >= 0x80 && !rangeOf(character);
}

std::string stepc::lang::asciiName(StringRef name) {
  std::string result;
  while (!name.empty()) {
    auto [character, bytes] = frontCharacter(name);
    StringRef written = name.take_front(bytes);
    name = name.drop_front(bytes);
    const auto *letter = llvm::find_if(letters, [character = character](const Letter &each) {
      return each.character == character;
    });
    if (character < 0x80)
      result += written;
    else if (letter != std::end(letters))
      result += letter->spelling;
    else if (character >= 0x2080 && character <= 0x2089) // subscripts
      result += char('0' + (character - 0x2080));
    else if (character >= 0xFF10 && character <= 0xFF5A) // full-width characters
      result += char(character - 0xFEE0);
    else
      return "";
  }
  return result;
}

StringRef stepc::lang::foreignTextKind(StringRef text) {
  text = text.take_front(1 << 16);
  StringRef front = text.ltrim();
  if (front.starts_with("{") || front.starts_with("["))
    return "JSON";
  if (front.starts_with("<"))
    return "HTML or XML";
  bool isIR = false, isC = false, isPython = false;
  while (!text.empty()) {
    StringRef line;
    std::tie(line, text) = text.split('\n');
    line = line.trim();
    StringRef word =
        line.take_while([](char c) { return llvm::isAlnum(c) || c == '#' || c == '_'; });
    isIR |= line.starts_with("module {") || line.starts_with("module @") ||
            line.starts_with("module attributes") || line.starts_with("builtin.module");
    isC |= word == "#include" || word == "#define" || word == "#pragma" || word == "#ifndef" ||
           word == "typedef" || word == "struct" || word == "namespace" || line.ends_with(";");
    isPython |=
        word == "import" || word == "from" || line.starts_with("@") ||
        ((word == "def" || word == "class" || word == "if" || word == "for" || word == "with") &&
         line.ends_with(":"));
  }
  return isIR               ? "the IR of a level, whose files end with .mlir"
         : isC && !isPython ? "C or C++"
         : isPython         ? "Python"
                            : "";
}
