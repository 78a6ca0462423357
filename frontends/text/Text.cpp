#include "frontends/text/Text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <vector>

using llvm::StringRef;

StringRef stepc::text::withoutByteOrderMark(StringRef text) {
  text.consume_front("\xEF\xBB\xBF");
  return text;
}

/// How many letters turn `a` into `b` if they are inserted, left out, replaced, or swapped with a neighbour.
/// Case does not count.
static unsigned editDistance(StringRef a, StringRef b) {
  // distance[i][j]: from the first i letters of `a` to the first j of `b`.
  std::vector<std::vector<unsigned>> distance(a.size() + 1, std::vector<unsigned>(b.size() + 1, 0));
  auto same = [&](size_t i, size_t j) { return llvm::toLower(a[i]) == llvm::toLower(b[j]); };
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      unsigned &best = distance[i][j];
      if (i == 0 || j == 0) {
        best = static_cast<unsigned>(i + j);
        continue;
      }
      best = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1,
                       distance[i - 1][j - 1] + !same(i - 1, j - 1)});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1))
        best = std::min(best, distance[i - 2][j - 2] + 1);
    }
  return distance[a.size()][b.size()];
}

StringRef stepc::text::nearestName(StringRef name, llvm::ArrayRef<StringRef> candidates) {
  // A third of the letters may differ, and at least one letter. Names of up to three letters must begin with
  // the same letter: 'mo' may mean 'mu', but 'bog' does not mean 'log'.
  constexpr size_t longest = 64, isShort = 3;
  if (name.size() < 2 || name.size() > longest)
    return StringRef();
  unsigned best = static_cast<unsigned>(std::max<size_t>(name.size() / 3, 1)) + 1;
  StringRef nearest;
  for (StringRef candidate : candidates) {
    if (candidate.empty() || candidate.size() > longest ||
        (name.size() <= isShort && llvm::toLower(candidate[0]) != llvm::toLower(name[0])))
      continue;
    unsigned distance = editDistance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

namespace {

/// One character: its bytes, and its code point if they are UTF-8. A byte that is not UTF-8 is one character.
struct Character {
  StringRef bytes;
  std::optional<llvm::UTF32> code;

  /// Whether a terminal shows the character and does nothing else. It is no control character of C0 or C1, no
  /// separator of lines, and none of the controls that turn the direction of text.
  bool isShown() const {
    auto isIn = [&](llvm::UTF32 first, llvm::UTF32 last) {
      return *code >= first && *code <= last;
    };
    return code && !isIn(0, 0x1F) && !isIn(0x7F, 0x9F) && !isIn(0x61C, 0x61C) &&
           !isIn(0x200E, 0x200F) && !isIn(0x2028, 0x202E) && !isIn(0x2066, 0x2069);
  }
  /// Whether a reader can see the character. Two names must not differ in invisible characters alone.
  bool isVisible() const {
    static constexpr std::pair<llvm::UTF32, llvm::UTF32> unseen[] = {
        {0xAD, 0xAD},     {0x34F, 0x34F},   {0x115F, 0x1160},  {0x17B4, 0x17B5}, {0x180B, 0x180F},
        {0x200B, 0x200F}, {0x2060, 0x206F}, {0x3164, 0x3164},  {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
        {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF}};
    return isShown() && llvm::none_of(unseen, [&](const auto &range) {
             return *code >= range.first && *code <= range.second;
           });
  }
};

Character takeCharacter(StringRef &rest) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(rest.data()), *next = begin;
  llvm::UTF32 code = 0;
  bool isText = llvm::convertUTF8Sequence(&next, begin + rest.size(), &code,
                                          llvm::strictConversion) == llvm::conversionOK;
  Character taken{rest.take_front(isText ? next - begin : 1), std::nullopt};
  if (isText)
    taken.code = code;
  rest = rest.drop_front(taken.bytes.size());
  return taken;
}

} // namespace

static std::string spell(StringRef text, bool hasLayout) {
  std::string shown;
  llvm::raw_string_ostream os(shown);
  while (!text.empty()) {
    Character next = takeCharacter(text);
    if ((hasLayout ? next.isShown() : next.isVisible()) ||
        (hasLayout && (next.bytes == "\n" || next.bytes == "\t")))
      os << next.bytes;
    else if (next.code)
      os << llvm::format("\\u%04x", *next.code);
    else
      os << llvm::format("\\x%02x", uint8_t(next.bytes[0]));
  }
  return shown;
}

std::string stepc::text::printable(StringRef text) { return spell(text, /*hasLayout=*/true); }

std::string stepc::text::printableName(StringRef name) { return spell(name, /*hasLayout=*/false); }

std::string stepc::text::printableLine(StringRef line) {
  std::string shown;
  while (!line.empty()) {
    Character next = takeCharacter(line);
    shown += next.isShown() || next.bytes == "\t" ? next.bytes : StringRef(" ");
  }
  return shown;
}

stepc::text::Unprintable stepc::text::findUnprintable(StringRef text, StringRef allowed) {
  for (StringRef rest = text; !rest.empty();) {
    size_t offset = text.size() - rest.size();
    Character next = takeCharacter(rest);
    if (next.isShown() || allowed.contains(next.bytes))
      continue;
    std::string what;
    llvm::raw_string_ostream os(what);
    if (next.code)
      os << llvm::format("U+%04X", *next.code);
    else
      os << llvm::format("the byte 0x%02x", uint8_t(next.bytes[0]));
    return {offset, next.bytes.size(), what};
  }
  return {};
}

std::string stepc::text::checkName(StringRef name, StringRef what) {
  std::string found = findUnprintable(name, /*allowed=*/"").what;
  StringRef kind = "without control characters";
  for (StringRef rest = name; found.empty() && !rest.empty();)
    if (Character next = takeCharacter(rest); !next.isVisible()) {
      llvm::raw_string_ostream(found) << llvm::format("U+%04X", *next.code);
      kind = "without invisible characters";
    }
  return found.empty() ? ""
                       : ("expected " + what + " in UTF-8 " + kind + ", found " + found + " in '" +
                          printableName(name) + "'")
                             .str();
}
