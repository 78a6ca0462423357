//===- NamePattern.cpp - Patterns of parameter names -----------------------===//

#include "dialects/optim/NamePattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

using namespace stepc;
using llvm::StringRef;

/// A byte b that is not UTF-8 is decoded to kNoCharacter + b, which is above all code points.
static constexpr uint32_t kNoCharacter = 0x110000;

static std::vector<uint32_t> decode(StringRef text) {
  std::vector<uint32_t> characters;
  characters.reserve(text.size());
  const auto *at = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.end());
  while (at != end) {
    llvm::UTF32 character;
    const llvm::UTF8 *begin = at;
    if (llvm::convertUTF8Sequence(&at, end, &character, llvm::strictConversion) !=
        llvm::conversionOK) {
      character = kNoCharacter + *begin;
      at = begin + 1;
    }
    characters.push_back(character);
  }
  return characters;
}

static std::string encode(uint32_t character) {
  char buffer[UNI_MAX_UTF8_BYTES_PER_CODE_POINT];
  char *end = buffer;
  llvm::ConvertCodePointToUTF8(character, end);
  return std::string(buffer, end);
}

std::optional<NamePattern> NamePattern::parse(StringRef text, NamePatternError &error) {
  auto refuse = [&](std::string message, std::string hint) {
    error = {std::move(message), std::move(hint)};
    return std::nullopt;
  };
  if (text.empty())
    return refuse("expected a pattern, found an empty one", "'*' matches every name");
  std::vector<uint32_t> characters = decode(text);
  for (uint32_t character : characters)
    if (character >= kNoCharacter)
      return refuse("expected UTF-8 in a pattern, found the byte 0x" +
                        llvm::utohexstr(character - kNoCharacter, /*LowerCase=*/true),
                    "names are Unicode text");
  NamePattern pattern;
  pattern.source = text.str();
  for (size_t at = 0; at < characters.size(); ++at) {
    uint32_t character = characters[at];
    if (character == '*') {
      pattern.elements.push_back({Element::Kind::AnyText, false, {}});
    } else if (character == '?') {
      pattern.elements.push_back({Element::Kind::AnyCharacter, false, {}});
    } else if (character != '[') {
      pattern.elements.push_back({Element::Kind::Character, false, {{character, character}}});
    } else {
      Element set{Element::Kind::Set, false, {}};
      size_t begin = at + 1;
      if (begin < characters.size() && characters[begin] == '^')
        return refuse("expected '!' where a set of a pattern is negated, found '^'",
                      "write '[!...]' for a character that is not in the set, and a '^' that "
                      "belongs to the set behind its first character");
      if (begin < characters.size() && characters[begin] == '!') {
        set.negated = true;
        ++begin;
      }
      // A `]` at the beginning is a member of the set, so the search for the closing `]` starts after it.
      size_t close = begin + 1;
      while (close < characters.size() && characters[close] != ']')
        ++close;
      if (close >= characters.size())
        return refuse("expected ']' after '[' in a pattern",
                      "a '[' of the name itself is written '[[]'");
      while (begin < close) {
        uint32_t low = characters[begin++], high = low;
        if (begin + 1 < close && characters[begin] == '-') {
          high = characters[begin + 1];
          begin += 2;
        }
        if (low > high)
          return refuse("expected a range that rises in a pattern, found '" + encode(low) + "-" +
                            encode(high) + "'",
                        "write '" + encode(high) + "-" + encode(low) + "'");
        set.ranges.emplace_back(low, high);
      }
      pattern.elements.push_back(std::move(set));
      at = close;
    }
  }
  return pattern;
}

bool NamePattern::Element::matches(uint32_t character) const {
  if (kind == Kind::AnyCharacter)
    return true;
  bool found = llvm::any_of(ranges, [&](const std::pair<uint32_t, uint32_t> &range) {
    return range.first <= character && character <= range.second;
  });
  return found != negated;
}

bool NamePattern::matches(StringRef name) const {
  std::vector<uint32_t> characters = decode(name);
  // On a mismatch the last `*` takes one character more, and no earlier `*` changes. This takes quadratic
  // time at worst. A recursive match could take exponential time.
  constexpr size_t none = ~size_t(0);
  size_t element = 0, at = 0, star = none, starAt = 0;
  while (at < characters.size()) {
    if (element < elements.size() && elements[element].kind == Element::Kind::AnyText) {
      star = ++element;
      starAt = at;
    } else if (element < elements.size() && elements[element].matches(characters[at])) {
      ++element;
      ++at;
    } else if (star != none) {
      element = star;
      at = ++starAt;
    } else {
      return false;
    }
  }
  while (element < elements.size() && elements[element].kind == Element::Kind::AnyText)
    ++element;
  return element == elements.size();
}

std::string stepc::nameSome(llvm::ArrayRef<StringRef> names) {
  constexpr size_t kNamed = 3;
  // "and 1 more" would take as much room as the name.
  size_t shown = names.size() <= kNamed + 1 ? names.size() : kNamed;
  std::string text;
  for (size_t i = 0; i < shown; ++i)
    text += (i == 0 ? "'" : i + 1 == names.size() ? " and '" : ", '") + names[i].str() + "'";
  return shown == names.size() ? text
                               : text + " and " + std::to_string(names.size() - shown) + " more";
}
