//===- NumberForms.h - Numbers as other languages write them ----*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_NUMBERFORMS_H
#define STEPC_FRONTENDS_LANGUAGE_NUMBERFORMS_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace stepc::lang {

/// Whether the text is a number of this language: `1`, `0.95`, `3e-4`.
bool isNumber(llvm::StringRef text);

/// The number of this language that `text` means in another one: "0.5" for ".5", "16" for "0x10",
/// "1000" for "1_000", "1e-3" for "1e-3f", "0.05" for "5%". Nothing if the meaning is unknown.
std::optional<std::string> rightNumber(llvm::StringRef text);

/// The value of a number of this language; infinite if it is too large for f64.
double numberValue(llvm::StringRef text);
/// Whether f64 holds a number of this language: it is not too large, and not too small unless it is 0.
bool fitsF64(llvm::StringRef text);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_NUMBERFORMS_H
