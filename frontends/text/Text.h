// What the readers of all text files share.
#ifndef STEPC_FRONTENDS_TEXT_TEXT_H
#define STEPC_FRONTENDS_TEXT_TEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace stepc::text {

/// A byte-order mark is how some editors store UTF-8. It is no part of the text, whose columns are
/// counted from behind it.
llvm::StringRef withoutByteOrderMark(llvm::StringRef text);

/// The candidate nearest to `name` by edit distance if it is near enough to be
/// a likely misspelling (at most a third of the letters differ), otherwise an
/// empty string. The candidates are names of the kind that is wanted.
llvm::StringRef nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace stepc::text

#endif // STEPC_FRONTENDS_TEXT_TEXT_H
