//===- Diagnostics.h - Errors, warnings, notes and hints --------*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_DIAGNOSTICS_H
#define STEPC_FRONTENDS_LANGUAGE_DIAGNOSTICS_H

#include "frontends/language/Source.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include <deque>
#include <set>

namespace llvm {
class raw_ostream;
}

namespace stepc::lang {

enum class Severity : uint8_t { Error, Warning };

/// One message about one place in the text: lower case, no full stop, "expected
/// X, found Y". Notes point at other places. The hint says what to write instead.
struct Diagnostic {
  struct Note {
    SourceRange range;
    std::string message;
  };

  Severity severity = Severity::Error;
  SourceRange range;
  std::string message;
  std::vector<Note> notes;
  std::vector<Note> calls; ///< Where the text with the place is called, the innermost call first.
  std::string hint;

  Diagnostic &withNote(SourceRange where, const llvm::Twine &text) {
    notes.push_back({where, text.str()});
    return *this;
  }
  /// A copy whose place and notes stand so many bytes later in the text.
  Diagnostic movedBy(uint32_t bytes) const {
    Diagnostic moved = *this;
    moved.range = range + bytes;
    for (Note &note : moved.notes)
      note.range = note.range + bytes;
    return moved;
  }
  Diagnostic &withHint(const llvm::Twine &text) {
    hint = text.str();
    return *this;
  }
};

/// Collects the errors and warnings of one Source. Errors beyond the limit are dropped, and `print` says so;
/// hasErrors stays true.
class Diagnostics {
public:
  explicit Diagnostics(unsigned errorLimit = 50) : errorLimit(errorLimit) {}

  /// The returned reference stays valid as long as this object.
  Diagnostic &error(SourceRange range, const llvm::Twine &message);
  Diagnostic &warning(SourceRange range, const llvm::Twine &message);

  /// Until `leave`, messages are about the text of a function that is called here. Each gets the note, and a
  /// message that was reported in an earlier call of the function is dropped.
  void enter(const Diagnostic::Note &call) { calls.push_back(call); }
  void leave() { calls.pop_back(); }
  /// The notes of the calls that were entered, the innermost first.
  std::vector<Diagnostic::Note> activeCalls() const { return {calls.rbegin(), calls.rend()}; }

  /// Adds an error that was built before, such as the lexer's error of a token.
  Diagnostic &add(const Diagnostic &error);
  /// Adds what another object holds about text that begins at offset `shift`.
  void append(const Diagnostics &others, uint32_t shift = 0);
  /// Drops warnings about text from this offset on: what is imported has its own author.
  void dropWarningsFrom(uint32_t offset) { warningsEnd = offset; }
  /// Keeps the first `count` diagnostics in the order of the text, and drops further errors. The first one
  /// gets `hint`, and the others lose theirs.
  void keepFirst(unsigned count, const llvm::Twine &hint);

  bool hasErrors() const { return errors != 0; }
  /// True once an error was dropped: a parser need not go on.
  bool isFull() const { return errors > errorLimit; }
  unsigned errorCount() const { return errors; }
  /// The last diagnostic that is kept. There must be one.
  Diagnostic &last() { return kept.back(); }
  const std::deque<Diagnostic> &all() const { return kept; }

  enum class Color { Auto, Always, Never };
  /// Prints every diagnostic, in the order of the text, as
  ///
  ///   file:line:column: error: message
  ///       source line
  ///       ^~~~~~
  ///   file:line:column: note: message (with its line and caret)
  ///   hint: what to do
  ///
  /// `Auto` colors on a terminal only.
  void print(llvm::raw_ostream &os, const Source &source, Color color = Color::Auto) const;

private:
  Diagnostic &keep(Diagnostic diagnostic);
  /// Offsets in the text and indices in `kept` of all diagnostics, in the order of the text.
  llvm::SmallVector<std::pair<uint32_t, size_t>> inOrder() const;

  unsigned errorLimit;
  uint32_t warningsEnd = UINT32_MAX;
  unsigned errors = 0;
  std::deque<Diagnostic> kept;
  Diagnostic dropped;
  std::vector<Diagnostic::Note> calls; ///< The outermost first.
  std::set<std::pair<uint32_t, std::string>>
      reported; ///< Places and messages in text that is called.
};

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_DIAGNOSTICS_H
