//===- Source.h - The texts of .optim files ----------------------*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_SOURCE_H
#define STEPC_FRONTENDS_LANGUAGE_SOURCE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stepc::lang {

/// A half-open range of byte offsets into a Source.
struct SourceRange {
  uint32_t begin = 0;
  uint32_t end = 0;

  /// The range from the begin of this one to the end of `other`, which must come later in the text.
  SourceRange to(SourceRange other) const { return {begin, other.end}; }
  /// This range, moved so many bytes towards the end of the text.
  SourceRange operator+(uint32_t bytes) const { return {begin + bytes, end + bytes}; }
  bool operator==(const SourceRange &) const = default;
};

/// A position as people and compilers count it: both from 1, columns in bytes.
struct LineColumn {
  unsigned line = 1;
  unsigned column = 1;
  bool operator==(const LineColumn &) const = default;
};

/// The names and texts of a file and of those that it imports. A text may hold any bytes; a byte-order mark
/// at its start is dropped. One text follows the other, so that an offset also tells its file. AST
/// nodes and diagnostics refer to text by offset, so the Source must outlive them.
class Source {
public:
  /// Offsets are 32-bit; `lex` refuses anything larger than this, and so does `load` for all texts together.
  static constexpr size_t maxBytes = size_t(64) << 20;

  Source(std::string name, std::string text);
  Source(const Source &) = delete;
  Source &operator=(const Source &) = delete;

  /// Adds a file behind the others, and returns the range of its text. All together must have at most
  /// maxBytes.
  SourceRange add(std::string name, std::string text);

  /// The name of the first file, and of the file that an offset belongs to.
  llvm::StringRef name() const { return files.front()->name; }
  llvm::StringRef name(uint32_t offset) const { return fileAt(offset).name; }
  /// The text of the first file.
  llvm::StringRef text() const { return files.front()->contents; }
  /// The text of a range; a range beyond the end of its file is cut.
  llvm::StringRef text(SourceRange range) const;
  /// The range of the first file's text.
  SourceRange first() const { return {0, static_cast<uint32_t>(text().size())}; }
  /// The line and column of an offset in its file. An offset beyond the end counts as the end.
  LineColumn lineColumn(uint32_t offset) const;
  /// The text of the line with an offset, without its line ending.
  llvm::StringRef lineAt(uint32_t offset) const;

private:
  struct File {
    std::string name, contents;
    uint32_t begin;                   ///< The offset of the first byte.
    std::vector<uint32_t> lineStarts; ///< From the file's begin.
  };
  const File &fileAt(uint32_t offset) const;

  std::vector<std::unique_ptr<File>> files; ///< Texts never move: names of sizes refer to them.
};

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_SOURCE_H
