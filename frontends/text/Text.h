// Helpers that the readers of all text files share.
#ifndef STEPC_FRONTENDS_TEXT_TEXT_H
#define STEPC_FRONTENDS_TEXT_TEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace stepc::text {

/// The text without the byte-order mark that some editors write at the start of UTF-8. Columns are counted
/// without the mark.
llvm::StringRef withoutByteOrderMark(llvm::StringRef text);

/// The candidate nearest to `name` by edit distance, if `name` is a likely
/// misspelling of it: at most a third of the letters differ, or one letter.
/// Otherwise an empty string. The candidates are names of the kind that is wanted.
llvm::StringRef nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates);

/// Makes text from outside safe for messages. Characters that a terminal would obey instead of show become
/// "\u001b". They are controls except tabs and line feeds, and characters that turn the direction of text. A
/// byte that is not UTF-8 becomes "\xff". A second call changes nothing more.
std::string printable(llvm::StringRef text);
/// Spells like `printable`, for names that stand in one line: it also spells tabs and line feeds.
std::string printableName(llvm::StringRef name);
/// One line of text, with a blank in place of each character that `printable` spells. A caret below the line
/// then stands in the right column.
std::string printableLine(llvm::StringRef line);
/// The first character that a terminal would obey: its offset and length in bytes, and its name "U+001B". A
/// byte that is not UTF-8 is "the byte 0xff". The search skips characters of `allowed`, which must be ASCII.
struct Unprintable {
  size_t offset = 0, bytes = 0;
  std::string what; ///< empty if there is no such character
};
Unprintable findUnprintable(llvm::StringRef text, llvm::StringRef allowed);
/// What is wrong with a name: "expected a name in UTF-8 without control characters, found U+001B in
/// 'a\u001b'", or "". Invisible characters are also wrong. `what` reads as "a name". Names go into C strings,
/// file names and messages.
std::string checkName(llvm::StringRef name, llvm::StringRef what);

} // namespace stepc::text

#endif // STEPC_FRONTENDS_TEXT_TEXT_H
