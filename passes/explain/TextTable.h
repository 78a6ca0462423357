//===- TextTable.h - Tables and numbers for people --------------*- C++ -*-===//
#ifndef STEPC_PASSES_EXPLAIN_TEXTTABLE_H
#define STEPC_PASSES_EXPLAIN_TEXTTABLE_H

#include "runtime/text/Plural.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace stepc::explain {

/// The text, cut to `width` columns of a terminal. If something is cut, the last column is "…".
std::string cut(llvm::StringRef text, size_t width);

/// Columns of the page.
inline constexpr size_t kPageWidth = 120;
/// Takes as many words from the front of `text` as `width` columns hold, at least one.
std::string takeLine(llvm::StringRef &text, size_t width);

/// Rows of cells under a header. Columns are as wide as their widest cell. A last cell that the page cannot
/// hold goes on in further lines.
class TextTable {
public:
  /// `aligned` has a character per column: '>' for right, '<' for left.
  TextTable(std::vector<std::string> header, std::string aligned) : aligned(std::move(aligned)) {
    rows.push_back(std::move(header));
  }
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  void print(llvm::raw_ostream &os) const;

private:
  std::string aligned;
  std::vector<std::vector<std::string>> rows;
};

// Three significant digits and a unit: "1.50 KiB", "12.0 M", "433 µs".
std::string bytes(int64_t value);
std::string flops(int64_t value);
std::string seconds(double value);
std::string perSecond(double value, llvm::StringRef what);
std::string capacity(double value); // in powers of 1000

std::string count(int64_t value);
/// Two digits after the point.
std::string fixed(double value);
/// "2–4", or one number if both are spelled alike.
std::string range(int64_t least, int64_t most, std::string (*spell)(int64_t));
using stepc::plural;

} // namespace stepc::explain

#endif
