//===- Source.cpp ---------------------------------------------------------===//
#include "frontends/language/Source.h"
#include "frontends/text/Text.h"
#include <algorithm>

using namespace stepc::lang;

Source::Source(std::string name, std::string text) { add(std::move(name), std::move(text)); }

SourceRange Source::add(std::string name, std::string text) {
  // One more byte, so that the end of a file is not the begin of the next.
  uint32_t begin =
      files.empty() ? 0 : files.back()->begin + uint32_t(files.back()->contents.size()) + 1;
  auto file = std::make_unique<File>(
      File{std::move(name), text::withoutByteOrderMark(text).str(), begin, {0}});
  // `lex` refuses longer texts, so nothing refers to offsets beyond the limit, which may overflow 32 bits.
  size_t size = std::min(file->contents.size(), maxBytes);
  for (size_t i = 0; i < size; ++i)
    if (file->contents[i] == '\n')
      file->lineStarts.push_back(static_cast<uint32_t>(i + 1));
  files.push_back(std::move(file));
  return {begin, static_cast<uint32_t>(begin + size)};
}

const Source::File &Source::fileAt(uint32_t offset) const {
  auto behind = std::upper_bound(files.begin() + 1, files.end(), offset,
                                 [](uint32_t at, const auto &file) { return at < file->begin; });
  return **std::prev(behind);
}

llvm::StringRef Source::text(SourceRange range) const {
  const File &file = fileAt(range.begin);
  return llvm::StringRef(file.contents).slice(range.begin - file.begin, range.end - file.begin);
}

LineColumn Source::lineColumn(uint32_t offset) const {
  const File &file = fileAt(offset);
  uint32_t at = std::min<uint64_t>(offset - file.begin, file.contents.size());
  auto it = std::upper_bound(file.lineStarts.begin(), file.lineStarts.end(), at);
  unsigned line = static_cast<unsigned>(it - file.lineStarts.begin());
  return {line, at - file.lineStarts[line - 1] + 1};
}

llvm::StringRef Source::lineAt(uint32_t offset) const {
  const File &file = fileAt(offset);
  llvm::StringRef rest =
      llvm::StringRef(file.contents).drop_front(file.lineStarts[lineColumn(offset).line - 1]);
  return rest.take_until([](char c) { return c == '\n'; }).rtrim('\r');
}
