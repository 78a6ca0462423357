#include "frontends/manifest/Names.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

namespace stepc::manifest {

std::string canonicalName(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> parts, kept;
  name.split(parts, '.');
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_back())
    if (part != "module" && part != "_orig_mod" && part != "_checkpoint_wrapped_module")
      kept.push_back(part);
  kept.push_back(parts.back());
  return llvm::join(kept, ".");
}

bool matchesParameter(const NamePattern &pattern, llvm::StringRef name) {
  return pattern.matches(name) || pattern.matches(canonicalName(name));
}

TensorName parseTensorName(llvm::StringRef name) {
  using Role = TensorName::Role;
  llvm::StringRef rest = name;
  if (rest.consume_front("param:"))
    return {Role::Parameter, rest.str(), 0, ""};
  if (rest.consume_front("grad:")) {
    auto [parameter, step] = rest.rsplit('@');
    int64_t number = 0;
    if (!step.empty() && llvm::all_of(step, llvm::isDigit) && !step.getAsInteger(10, number) &&
        number > 0)
      return {Role::Gradient, parameter.str(), number, ""};
    return {Role::Gradient, rest.str(), 0, ""};
  }
  if (rest.consume_front("state:")) {
    size_t colon = rest.rfind(':');
    if (colon != llvm::StringRef::npos)
      return {Role::State, rest.take_front(colon).str(), 0, rest.drop_front(colon + 1).str()};
  }
  return {Role::Other, name.str(), 0, ""};
}

} // namespace stepc::manifest
