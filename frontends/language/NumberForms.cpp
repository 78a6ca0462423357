//===- NumberForms.cpp ----------------------------------------------------===//
#include "frontends/language/NumberForms.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <cmath>

using llvm::StringRef;

/// Drops the digits at the front; false if there are none.
static bool takeDigits(StringRef &text) {
  size_t before = text.size();
  text = text.drop_while(llvm::isDigit);
  return text.size() != before;
}

bool stepc::lang::isNumber(StringRef text) {
  if (!takeDigits(text) || (text.consume_front(".") && !takeDigits(text)))
    return false;
  if (!text.consume_front("e") && !text.consume_front("E"))
    return text.empty();
  if (!text.consume_front("+"))
    text.consume_front("-");
  return takeDigits(text) && text.empty();
}

double stepc::lang::numberValue(StringRef text) {
  double value = 0;
  return text.getAsDouble(value, /*AllowInexact=*/true) ? HUGE_VAL : value;
}

bool stepc::lang::fitsF64(StringRef text) {
  double value = numberValue(text);
  StringRef mantissa = text.take_until([](char c) { return c == 'e' || c == 'E'; });
  return std::isfinite(value) &&
         (value != 0 || mantissa.find_first_of("123456789") == StringRef::npos);
}

/// The shortest decimal from which this number is read back.
static std::string shortest(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::optional<std::string> stepc::lang::rightNumber(StringRef text) {
  // Digits in groups: 1_000 and 1'000.
  std::string plain = text.str();
  std::erase_if(plain, [](char c) { return c == '_' || c == '\''; });
  StringRef rest = plain;
  // Whole numbers of other bases: 0x10, 0b101, 0o17.
  uint64_t whole = 0;
  if (rest.size() > 2 && rest[0] == '0' && llvm::isAlpha(rest[1]) && !rest.getAsInteger(0, whole))
    return std::to_string(whole);
  bool percent = rest.consume_back("%");
  auto complete = [](StringRef number) -> std::optional<std::string> {
    // Puts a digit on each side of the point.
    size_t letter = number.find_first_of("eEdD");
    StringRef mantissa = number.take_front(letter);
    auto [before, after] = mantissa.split('.');
    std::string right = before.empty() ? "0" : before.str();
    if (!after.empty())
      right += "." + after.str();
    if (letter != StringRef::npos)
      right += "e" + number.drop_front(letter + 1).str();
    bool hasDigit = !before.empty() || !after.empty();
    if (!hasDigit || !isNumber(right) || !std::isfinite(numberValue(right)))
      return std::nullopt;
    return right;
  };
  std::optional<std::string> right = complete(rest);
  if (right && percent)
    return shortest(numberValue(*right) / 100);
  if (right || percent || rest.empty())
    return right;
  // Suffixes: of types in C, and of thousands.
  StringRef number = rest.drop_back();
  char suffix = rest.back();
  if (StringRef("fFlLuU").contains(suffix))
    return complete(number);
  int exponent = suffix == 'k' || suffix == 'K'   ? 3
                 : suffix == 'M'                  ? 6
                 : suffix == 'G' || suffix == 'B' ? 9
                                                  : 0;
  right = complete(number);
  if (!right || exponent == 0 || StringRef(*right).contains('e'))
    return std::nullopt;
  return *right + "e" + std::to_string(exponent);
}
