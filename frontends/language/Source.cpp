//===- Source.cpp ---------------------------------------------------------===//
#include "frontends/language/Source.h"
#include "frontends/text/Text.h"
#include <algorithm>

using namespace stepc::lang;

Source::Source(std::string name, std::string text)
    : fileName(std::move(name)), contents(text::withoutByteOrderMark(text)) {
  lineStarts.push_back(0);
  // `lex` refuses longer texts, so nothing refers to offsets beyond the limit, which may overflow 32 bits.
  size_t size = std::min(contents.size(), maxBytes);
  for (size_t i = 0; i < size; ++i)
    if (contents[i] == '\n')
      lineStarts.push_back(static_cast<uint32_t>(i + 1));
}

LineColumn Source::lineColumn(uint32_t offset) const {
  offset = std::min<uint64_t>(offset, contents.size());
  auto it = std::upper_bound(lineStarts.begin(), lineStarts.end(), offset);
  unsigned line = static_cast<unsigned>(it - lineStarts.begin());
  return {line, offset - lineStarts[line - 1] + 1};
}

llvm::StringRef Source::line(unsigned line) const {
  llvm::StringRef rest = llvm::StringRef(contents).drop_front(lineStart(line));
  return rest.take_until([](char c) { return c == '\n'; }).rtrim('\r');
}
