//===- Library.h - The optimizers and functions that stepc brings --*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_LIBRARY_H
#define STEPC_FRONTENDS_LANGUAGE_LIBRARY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace stepc::lang {

/// A file of frontends/language/library. CMake makes the table of their texts.
struct LibraryFile {
  llvm::StringRef name; ///< As it is imported: "stepc/linalg.optim".
  llvm::StringRef text;
};

/// The prefix of all names.
inline constexpr llvm::StringLiteral kLibraryPrefix = "stepc/";

llvm::ArrayRef<LibraryFile> libraryFiles();
/// The file of that name. Null if there is none.
const LibraryFile *findLibraryFile(llvm::StringRef name);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_LIBRARY_H
