#include "frontends/manifest/InputError.h"
#include "frontends/text/Text.h"
#include "llvm/Support/raw_ostream.h"

namespace stepc::manifest {

std::string InputError::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << text::printableName(file);
  if (line)
    os << ':' << line << ':' << column;
  os << ": ";
  if (!pointer.empty())
    os << text::printableName(pointer) << ": ";
  os << text::printableName(message);
  if (!parameter.empty())
    os << " (parameter '" << text::printableName(parameter) << "')";
  return text;
}

std::string ErrorList::str() const {
  std::string text;
  for (const InputError &error : errors)
    text += error.str() + "\n";
  return text;
}

} // namespace stepc::manifest
