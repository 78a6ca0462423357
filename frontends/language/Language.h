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

namespace stepc::lang {

/// Deepest nesting of an expression; beyond it is an error, so that no walk
/// over the tree can overflow the stack. A chain `a + b + ...` is one level,
/// however long.
constexpr unsigned maxNesting = 200;

/// Most operations of an optimizer that follow from one another. Passes of the
/// compiler recurse from a value to its operands, and 8 MiB of stack hold that
/// many.
constexpr unsigned maxDepth = 10000;

/// Parses a whole file. Never null: after an error parsing goes on at the next
/// statement, claim or declaration, and the tree holds what could be read, fit
/// for `analyze` to find more. `source` must outlive the file.
std::unique_ptr<File> parse(const Source &source, Diagnostics &diagnostics);

struct AnalysisOptions {
  /// Whether a file without a route is an error. To compile needs one; a file
  /// of rules alone is fine to check and to format.
  bool requireRoute = false;
};

/// Resolves names, infers and checks kinds, and fills the "analysis" fields.
/// True if `diagnostics` holds no errors at all, the parser's included; only
/// then the file may be compiled. Call it once per file.
bool analyze(File &file, Diagnostics &diagnostics, AnalysisOptions options = {});

/// The file in the house layout, comments kept in order. Nothing if the file
/// does not parse; what is wrong with it is in `diagnostics`. Formatting is
/// idempotent and never changes the tree.
std::optional<std::string> format(const Source &source, Diagnostics &diagnostics);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_LANGUAGE_H
