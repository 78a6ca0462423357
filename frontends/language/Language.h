//===- Language.h - The .optim front end ------------------------*- C++ -*-===//
//
// Text to tree (`parse`), tree to typed tree (`analyze`), text to neat text
// (`format`). docs/language.md is the reference of the language itself.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_LANGUAGE_LANGUAGE_H
#define STEPC_FRONTENDS_LANGUAGE_LANGUAGE_H

#include "frontends/language/AST.h"
#include "frontends/language/Diagnostics.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace stepc::lang {

/// Deepest nesting of an expression; beyond it is an error, so that no walk
/// over the tree can overflow the stack. A chain `a + b + ...` is one level,
/// however long.
constexpr unsigned maxNesting = 200;

/// The longest chain of operations in an optimizer in which each uses the one
/// before. Passes of the compiler recurse from a value to its operands, and
/// 8 MiB of stack hold that many calls.
constexpr unsigned maxDepth = 10000;

/// How many operations, statements and calls functions and repeats may become in a body.
constexpr unsigned maxInlined = 10000;

/// Parses a whole file. Never returns null: after an error the parser goes on at
/// the next statement, claim or declaration. The tree then holds what could be
/// read, and `analyze` may find more errors in it. `source` must outlive the file. Imports are not followed.
std::unique_ptr<File> parse(const Source &source, Diagnostics &diagnostics);

/// A file that is imported: its name in messages, and what tells it from all others, whatever its paths are.
struct FoundFile {
  std::string text, name, identity;
};
/// Finds a file by its path, or says why it cannot be read: "no such file or directory".
using ReadFile = llvm::function_ref<llvm::Expected<FoundFile>(llvm::StringRef path)>;

/// Parses the file of `source`, and the files that it imports, which it adds to `source`. A path is relative
/// to the folder of the importing file; paths that are written "stepc/..." name the library of optimizers
/// (Library.h). A text that came from no file, whose name begins with '<', imports from the library alone.
/// `identity` is that of the file itself, by which it is known if it imports itself.
std::unique_ptr<File> load(Source &source, ReadFile read, Diagnostics &diagnostics,
                           llvm::StringRef identity = "");

struct AnalysisOptions {
  /// Whether a file without a route is an error. `stepc compile` needs a route.
  /// A file of rules alone can be checked and formatted.
  bool requireRoute = false;
};

/// Resolves names, infers and checks kinds, and fills the "analysis" fields.
/// True if `diagnostics` holds no errors at all, the parser's included; only
/// then the file may be compiled. Call it once per file.
bool analyze(File &file, Diagnostics &diagnostics, AnalysisOptions options = {});

/// Returns the file's text in the house layout, with comments in their order.
/// Returns nothing if the file has syntax errors, which are in `diagnostics`.
/// Formatting is idempotent and never changes the tree.
std::optional<std::string> format(const Source &source, Diagnostics &diagnostics);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_LANGUAGE_H
