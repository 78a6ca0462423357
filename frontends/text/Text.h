// What the readers of all text files share.
#ifndef STEPC_FRONTENDS_TEXT_TEXT_H
#define STEPC_FRONTENDS_TEXT_TEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace stepc::text {

/// A byte-order mark is how some editors store UTF-8. It is no part of the text, whose columns are
/// counted from behind it.
llvm::StringRef withoutByteOrderMark(llvm::StringRef text);

/// The candidate nearest to `name` by edit distance if it is near enough to be
/// a likely misspelling (at most a third of the letters differ), otherwise an
/// empty string. The candidates are names of the kind that is wanted.
llvm::StringRef nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates);

/// A text of somebody else as messages may have it. What a terminal would obey instead of show is spelt
/// "\u001b": control characters except tabs and line feeds, and what turns the direction of text. A byte that
/// is not UTF-8 is spelt "\xff". Calling it twice changes nothing more.
std::string printable(llvm::StringRef text);
/// Spells like `printable`, for names that stand in one line: it also spells tabs and line feeds.
std::string printableName(llvm::StringRef name);
/// The text of one line with one column in place of each character that `printable` spells, so that carets
/// below it line up.
std::string printableLine(llvm::StringRef line);
/// The first character that a terminal would obey, with its place: "U+001B", or "the byte 0xff" for a byte
/// that is not UTF-8. Characters of `allowed`, which are ASCII, are passed over.
struct Unprintable {
  size_t offset = 0, bytes = 0;
  std::string what; ///< empty: there is none
};
Unprintable findUnprintable(llvm::StringRef text, llvm::StringRef allowed);
/// What is wrong with a name: "expected a name in UTF-8 without control characters, found U+001B in
/// 'a\u001b'", or "". Invisible characters are also wrong. `what` reads as "a name". Names go into C strings,
/// file names and messages.
std::string checkName(llvm::StringRef name, llvm::StringRef what);

} // namespace stepc::text

#endif // STEPC_FRONTENDS_TEXT_TEXT_H
