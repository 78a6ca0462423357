//===- NamePattern.h - Patterns of parameter names --------------*- C++ -*-===//
//
// The compiler's one matcher of patterns: for routes, `--strategy`, `--place`, `--batch` and all else that
// names parameters. docs/language.md (Routes) has the rules. The Python package has a matcher with the same
// rules, and tests run both on test/inputs/patterns.txt. This file uses LLVM Support without MLIR, so that
// every front end may use it.
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

  /// Message and hint in one line, for output that has no separate line for a hint.
  std::string text() const { return message + "; " + hint; }
};

/// A pattern matches whole names, case counts, characters are Unicode code points of UTF-8 text:
///
///   written    matches
///   *          any characters, also none, dots too
///   ?          one character
///   [abc]      one character of the set; `[a-z]` a range of code points; a `]` that comes first belongs to
///              the set, and so does a `-` that is first, last or right after a range
///   [!abc]     one character that is not in the set
///   other      itself, backslash and braces too
///
/// `parse` refuses texts that other matchers would read in another way. These are an empty pattern, a `[`
/// without `]`, a set that begins with `^`, a range whose end is below its begin, and text that is not UTF-8.
class NamePattern {
public:
  /// Returns nullopt if the text is no pattern. `error` then says why.
  static std::optional<NamePattern> parse(llvm::StringRef text, NamePatternError &error);

  /// Whether the pattern matches the whole name. Each byte of the name that is not UTF-8 counts as a
  /// character that differs from all characters of patterns.
  bool matches(llvm::StringRef name) const;

  llvm::StringRef text() const { return source; }

private:
  struct Element {
    enum class Kind : uint8_t { AnyText, AnyCharacter, Set, Character } kind;
    bool negated = false;
    /// Ranges of code points, with first and last included. A single character is a range of one.
    std::vector<std::pair<uint32_t, uint32_t>> ranges;

    bool matches(uint32_t character) const;
  };

  std::string source;
  std::vector<Element> elements;
};

/// A list of names for a message. It shows three of many names: "'a', 'b', 'c' and 4 more".
std::string nameSome(llvm::ArrayRef<llvm::StringRef> names);

} // namespace stepc

#endif // STEPC_DIALECTS_OPTIM_NAMEPATTERN_H
