//===- Source.h - The text of one .optim file -------------------*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_SOURCE_H
#define STEPC_FRONTENDS_LANGUAGE_SOURCE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace stepc::lang {

/// A half-open range of byte offsets into a Source.
struct SourceRange {
  uint32_t begin = 0;
  uint32_t end = 0;

  /// The range from the begin of this one to the end of `other`, which must come later in the text.
  SourceRange to(SourceRange other) const { return {begin, other.end}; }
  bool operator==(const SourceRange &) const = default;
};

/// A position as people and compilers count it: both from 1, columns in bytes.
struct LineColumn {
  unsigned line = 1;
  unsigned column = 1;
  bool operator==(const LineColumn &) const = default;
};

/// The name and text of one file. The text may hold any bytes; a byte-order
/// mark at its start is dropped. AST nodes and diagnostics refer to the text by
/// offset, so the Source must outlive them.
class Source {
public:
  /// Offsets are 32-bit; `lex` refuses anything larger than this.
  static constexpr size_t maxBytes = size_t(64) << 20;

  Source(std::string name, std::string text);
  Source(const Source &) = delete;
  Source &operator=(const Source &) = delete;

  llvm::StringRef name() const { return fileName; }
  llvm::StringRef text() const { return contents; }
  /// The text of a range; a range beyond the end is cut.
  llvm::StringRef text(SourceRange range) const {
    return llvm::StringRef(contents).slice(range.begin, range.end);
  }
  /// The line and column of an offset. An offset beyond the end counts as the end.
  LineColumn lineColumn(uint32_t offset) const;
  /// The text of line `line` (from 1) without its line ending.
  llvm::StringRef line(unsigned line) const;
  /// The offset at which line `line` (from 1) starts.
  uint32_t lineStart(unsigned line) const { return lineStarts[line - 1]; }

private:
  std::string fileName;
  std::string contents;
  std::vector<uint32_t> lineStarts;
};

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_SOURCE_H
