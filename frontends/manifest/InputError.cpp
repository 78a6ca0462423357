#include "frontends/manifest/InputError.h"
#include "llvm/Support/raw_ostream.h"

namespace stepc::manifest {

std::string InputError::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << file;
  if (line)
    os << ':' << line << ':' << column;
  os << ": ";
  if (!pointer.empty())
    os << pointer << ": ";
  os << message;
  if (!parameter.empty())
    os << " (parameter '" << parameter << "')";
  return text;
}

std::string ErrorList::str() const {
  std::string text;
  for (const InputError &error : errors)
    text += error.str() + "\n";
  return text;
}

} // namespace stepc::manifest
