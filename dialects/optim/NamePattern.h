//===- NamePattern.h - Patterns of parameter names --------------*- C++ -*-===//
//
// The one matcher of patterns: routes, `--strategy`, `--place`, `--batch` and whatever else names
// parameters. docs/language.md (Routes) has the rules; the Python package follows the same ones,
// and test/inputs/patterns.txt holds both to them. Plain LLVM Support, no MLIR, so that every front
// end may use it.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_NAMEPATTERN_H
#define STEPC_DIALECTS_OPTIM_NAMEPATTERN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepc {

/// Why a text is no pattern.
struct NamePatternError {
  std::string message;
  std::string hint;

  /// Both in one line, for places that have no line of their own for a hint.
  std::string text() const { return message + "; " + hint; }
};

/// A pattern matches whole names, case counts, characters are Unicode code points of UTF-8 text:
///
///   written    matches
///   *          any characters, also none, dots too
///   ?          one character
///   [abc]      one of the set; `[a-z]` a range of code points; a `]` that comes first belongs to
///              the set, and so does a `-` that is first, last or right after a range
///   [!abc]     one that is not in the set
///   other      itself, backslash and braces too
///
/// What other matchers read otherwise is refused: an empty pattern, a `[` that nothing closes, a
/// set that begins with `^`, a range that falls, text that is not UTF-8.
class NamePattern {
public:
  /// Nothing if the text is no pattern; `error` then says why.
  static std::optional<NamePattern> parse(llvm::StringRef text, NamePatternError &error);

  /// Bytes of the name that are not UTF-8 count as one character each, which no character of a
  /// pattern equals.
  bool matches(llvm::StringRef name) const;

  llvm::StringRef text() const { return source; }

private:
  struct Element {
    enum class Kind : uint8_t { AnyText, AnyCharacter, Set, Character } kind;
    bool negated = false;
    /// From first to last, both included; a character is a range of one.
    std::vector<std::pair<uint32_t, uint32_t>> ranges;

    bool matches(uint32_t character) const;
  };

  std::string source;
  std::vector<Element> elements;
};

/// Names for a message, which may concern very many: "'a', 'b', 'c' and 4 more".
std::string nameSome(llvm::ArrayRef<llvm::StringRef> names);

} // namespace stepc

#endif // STEPC_DIALECTS_OPTIM_NAMEPATTERN_H
