#include "frontends/manifest/Names.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

namespace stepc::manifest {
namespace {

/// Takes one character off the front. Bytes that are not UTF-8 count as one
/// character each.
uint32_t takeCharacter(llvm::StringRef &text) {
  unsigned char first = text.front();
  text = text.drop_front();
  unsigned extra = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  if (extra == 0 || text.size() < extra)
    return first;
  uint32_t character = first & (0x3F >> extra);
  for (unsigned i = 0; i < extra; ++i) {
    unsigned char next = text[i];
    if ((next & 0xC0) != 0x80)
      return first;
    character = character << 6 | (next & 0x3F);
  }
  text = text.drop_front(extra);
  return character;
}

/// Matches one character against the part of `pattern` at its front that stands
/// for one character (anything but `*`), and takes both off.
bool matchOne(llvm::StringRef &pattern, llvm::StringRef &name) {
  uint32_t character = takeCharacter(name);
  llvm::StringRef rest = pattern;
  uint32_t head = takeCharacter(rest);
  if (head == '[') {
    llvm::StringRef set = rest;
    bool negated = set.consume_front("!");
    // A `]` in first place is a member, so the search for the closing one
    // starts after it.
    size_t close = set.find(']', 1);
    if (close != llvm::StringRef::npos) {
      pattern = set.drop_front(close + 1);
      set = set.take_front(close);
      bool found = false;
      while (!set.empty()) {
        uint32_t low = takeCharacter(set), high = low;
        if (set.size() >= 2 && set.front() == '-') {
          set = set.drop_front();
          high = takeCharacter(set);
        }
        found |= low <= character && character <= high;
      }
      return found != negated;
    }
  }
  pattern = rest;
  return head == '?' || head == character;
}

} // namespace

bool matchGlob(llvm::StringRef pattern, llvm::StringRef name) {
  // On a mismatch only the last star may take one character more: linear in
  // practice, and never exponential as a recursive match would be.
  llvm::StringRef starPattern, starName;
  bool sawStar = false;
  while (!name.empty()) {
    if (pattern.consume_front("*")) {
      sawStar = true;
      starPattern = pattern;
      starName = name;
      continue;
    }
    if (!pattern.empty() && matchOne(pattern, name))
      continue;
    if (!sawStar)
      return false;
    takeCharacter(starName);
    pattern = starPattern;
    name = starName;
  }
  return pattern.ltrim('*').empty();
}

std::string canonicalName(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> parts, kept;
  name.split(parts, '.');
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_back())
    if (part != "module" && part != "_orig_mod" && part != "_checkpoint_wrapped_module")
      kept.push_back(part);
  kept.push_back(parts.back());
  return llvm::join(kept, ".");
}

bool matchesParameter(llvm::StringRef pattern, llvm::StringRef name) {
  return matchGlob(pattern, name) || matchGlob(pattern, canonicalName(name));
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

std::string ambiguousGradient(llvm::StringRef tensor) {
  TensorName name = parseTensorName(tensor);
  llvm::StringRef whole = tensor.drop_front(5); // "grad:"
  return ("expected a gradient of one parameter, found '" + tensor + "', which is that of '" +
          name.parameter + "' for step " + llvm::Twine(name.step) + " and that of '" + whole +
          "' for every step; '" + tensor + "@STEP' names the latter's for one step")
      .str();
}

} // namespace stepc::manifest
