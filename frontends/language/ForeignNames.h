//===- ForeignNames.h - Names of other languages and papers -----*- C++ -*-===//
//
// Names that people know from elsewhere, and hints what to write instead. For a
// name in these tables no name of similar spelling is suggested: `sin` is near
// to `sign`, but means another function.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_LANGUAGE_FOREIGNNAMES_H
#define STEPC_FRONTENDS_LANGUAGE_FOREIGNNAMES_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace stepc::lang {

/// The hint for the name of a function in another language; empty if this language has nothing like it.
/// Returns nothing for a name that is not in the table.
std::optional<llvm::StringRef> foreignFunctionHint(llvm::StringRef name);
/// The hint for the name of a value that other systems use, as for functions.
std::optional<llvm::StringRef> foreignValueHint(llvm::StringRef name);
/// The hint for a word in the place of a number; empty if there is no hint.
llvm::StringRef foreignConstantHint(llvm::StringRef word);
/// The hint for the name of an element type. Returns nothing for a name that is not in the table.
std::optional<llvm::StringRef> foreignDtypeHint(llvm::StringRef name);

/// The likely language of a text that is no definition: "Python", "JSON"; empty if it is unknown.
llvm::StringRef foreignTextKind(llvm::StringRef text);

/// The hint for a character outside ASCII that is no letter: what to write instead, or to delete it. Empty if
/// there is no hint.
llvm::StringRef foreignCharacterHint(uint32_t character);

/// Whether a character outside ASCII could be part of a name if names were not ASCII: it is no space, sign or
/// operator.
bool isForeignLetter(uint32_t character);

/// A name in ASCII: "beta1" for "β1", "lr0" for "lr₀", "naive" for "naïve". Empty if a letter has no spelling
/// here.
std::string asciiName(llvm::StringRef name);

/// The character of UTF-8 at the front of `text` and its number of bytes; 0 and 1 if there is none.
std::pair<uint32_t, unsigned> frontCharacter(llvm::StringRef text);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_FOREIGNNAMES_H
