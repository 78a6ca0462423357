//===- ManifestLines.cpp - Where a manifest names its parameters -----------===//

#include "frontends/import/ManifestLines.h"

#include "llvm/ADT/SmallVector.h"

using namespace stepc::frontends;
using llvm::StringRef;

namespace {

/// An open object or array, and the key whose value it is.
struct Frame {
  StringRef key;     // in the enclosing object
  StringRef lastKey; // the last key that was read in this object
  bool isObject = false;
  bool expectsKey = false;
};

} // namespace

std::vector<LinePosition> stepc::frontends::namePositions(StringRef text, StringRef array) {
  std::vector<LinePosition> result;
  llvm::SmallVector<Frame> stack;
  unsigned line = 1;
  size_t lineStart = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '\n':
      ++line;
      lineStart = i + 1;
      break;
    case '{':
    case '[': {
      bool isObject = text[i] == '{';
      StringRef key = stack.empty() ? StringRef() : stack.back().lastKey;
      // {"parameters": [{ : an element of `array`. The brace is its position until its name is read.
      if (isObject && stack.size() == 2 && stack[1].key == array)
        result.push_back({line, unsigned(i - lineStart) + 1});
      stack.push_back({key, {}, isObject, isObject});
      break;
    }
    case '}':
    case ']':
      if (!stack.empty())
        stack.pop_back();
      break;
    case ',':
      if (!stack.empty())
        stack.back().expectsKey = stack.back().isObject;
      break;
    case '"': {
      size_t start = i++;
      while (i < text.size() && text[i] != '"')
        i += text[i] == '\\' ? 2 : 1;
      if (stack.empty())
        break;
      Frame &top = stack.back();
      if (top.expectsKey) {
        top.lastKey = text.slice(start + 1, i);
        top.expectsKey = false;
      } else if (stack.size() == 3 && stack[1].key == array && top.lastKey == "name") {
        result.back() = {line, unsigned(start - lineStart) + 1};
      }
      break;
    }
    default:
      break;
    }
  }
  return result;
}
