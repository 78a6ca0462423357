//===- ForeignNames.h - What other languages and papers call it -*- C++ -*-===//
//
// Names that people bring along, with what to write instead. A name here is
// never guessed at by its spelling: `sin` is near to `sign`, and means another
// thing.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_LANGUAGE_FOREIGNNAMES_H
#define STEPC_FRONTENDS_LANGUAGE_FOREIGNNAMES_H

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace stepc::lang {

/// The hint for a function of another language; empty where this language has
/// none that is alike. Nothing for a name that is not known.
std::optional<llvm::StringRef> foreignFunctionHint(llvm::StringRef name);
/// The same for the name of a value.
std::optional<llvm::StringRef> foreignValueHint(llvm::StringRef name);
/// The same for a type of elements.
std::optional<llvm::StringRef> foreignDtypeHint(llvm::StringRef name);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_FOREIGNNAMES_H
