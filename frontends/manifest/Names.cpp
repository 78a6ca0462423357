#include "frontends/manifest/Names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

namespace stepc::manifest {

/// Components of names that wrappers add. frontends/python/stepc/torch/names.py has the same list, and
/// test_names.py compares both.
static constexpr llvm::StringLiteral kWrappers[] = {
    "module", "_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module", "_forward_module"};

std::string canonicalName(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> parts, kept;
  name.split(parts, '.');
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_back())
    if (!llvm::is_contained(kWrappers, part))
      kept.push_back(part);
  kept.push_back(parts.back());
  return llvm::join(kept, ".");
}

bool matchesParameter(const NamePattern &pattern, llvm::StringRef name) {
  return pattern.matches(name) || pattern.matches(canonicalName(name));
}

/// Splits "NAME@STEP" into both. Text that does not end with a step of 1 or more is a name with step 0.
static std::pair<llvm::StringRef, int64_t> splitStep(llvm::StringRef text) {
  auto [name, digits] = text.rsplit('@');
  int64_t step = 0;
  if (!digits.empty() && llvm::all_of(digits, llvm::isDigit) && !digits.getAsInteger(10, step) &&
      step > 0)
    return {name, step};
  return {text, 0};
}

TensorName parseTensorName(llvm::StringRef name) {
  using Role = TensorName::Role;
  llvm::StringRef rest = name;
  if (rest.consume_front("param:"))
    return {Role::Parameter, rest.str(), 0, ""};
  if (rest.consume_front("grad:")) {
    auto [parameter, step] = splitStep(rest);
    return {Role::Gradient, parameter.str(), step, ""};
  }
  if (rest.consume_front("input:")) {
    auto [named, step] = splitStep(rest);
    if (size_t colon = named.rfind(':'); colon != llvm::StringRef::npos)
      return {Role::Input, named.take_front(colon).str(), step, named.drop_front(colon + 1).str()};
    return {Role::Other, name.str(), 0, ""};
  }
  bool isMetric = rest.consume_front("metric:");
  if (isMetric || rest.consume_front("state:")) {
    size_t colon = rest.rfind(':');
    if (colon != llvm::StringRef::npos)
      return {isMetric ? Role::Metric : Role::State, rest.take_front(colon).str(), 0,
              rest.drop_front(colon + 1).str()};
  }
  return {Role::Other, name.str(), 0, ""};
}

std::string ambiguousGradient(llvm::StringRef tensor) {
  TensorName name = parseTensorName(tensor);
  llvm::StringRef whole = tensor.drop_front(5); // "grad:"
  return ("expected a gradient of one parameter, found '" + tensor + "', which is that of '" +
          name.parameter + "' for step " + llvm::Twine(name.step) + " and that of '" + whole +
          "' for every step; '" + tensor + "@STEP' names the latter's for one step")
      .str();
}

} // namespace stepc::manifest
