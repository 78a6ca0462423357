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
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace stepc::lang {

/// The hint for a function of another language; empty where this language has
/// none that is alike. Nothing for a name that is not known.
std::optional<llvm::StringRef> foreignFunctionHint(llvm::StringRef name);
/// The same for the name of a value.
std::optional<llvm::StringRef> foreignValueHint(llvm::StringRef name);
/// The hint for a word where a number must stand; empty where there is none.
llvm::StringRef foreignConstantHint(llvm::StringRef word);
/// The hint for the name of a type of elements, as for functions.
std::optional<llvm::StringRef> foreignDtypeHint(llvm::StringRef name);

/// The likely language of a text that is no definition: "Python", "JSON"; empty if it is unknown.
llvm::StringRef foreignTextKind(llvm::StringRef text);

/// The hint for a character outside ASCII that is no letter: the operator that it stands for, or
/// how to be rid of it. Empty where there is none.
llvm::StringRef foreignCharacterHint(uint32_t character);

/// Whether a character outside ASCII would be part of a name, were names not ASCII: all that is no
/// space, sign or operator.
bool isForeignLetter(uint32_t character);

/// A name in ASCII: "beta1" for "β1", "lr0" for "lr₀", "naive" for "naïve". Empty where a letter has
/// no spelling here.
std::string asciiName(llvm::StringRef name);

/// The character of UTF-8 at the front of `text` and its bytes; 0 and 1 where there is none.
std::pair<uint32_t, unsigned> frontCharacter(llvm::StringRef text);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_FOREIGNNAMES_H
