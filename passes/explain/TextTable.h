//===- TextTable.h - Tables and numbers for people --------------*- C++ -*-===//
#ifndef STEPC_PASSES_EXPLAIN_TEXTTABLE_H
#define STEPC_PASSES_EXPLAIN_TEXTTABLE_H

#include "runtime/text/Plural.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace stepc::explain {

/// The first `width` columns of a terminal, the last of them "…" where something is cut.
std::string cut(llvm::StringRef text, size_t width);

/// Columns of the page.
inline constexpr size_t kPageWidth = 120;
/// Takes as many words from the front of `text` as `width` columns hold, at least one.
std::string takeLine(llvm::StringRef &text, size_t width);

/// Rows of cells under a header, as wide as they need to be. The last column goes on in further
/// lines where the page ends.
class TextTable {
public:
  /// `aligned` has '>' or '<' per column: to the right or to the left.
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
/// "2–4", or one of them where both are spelled alike.
std::string range(int64_t least, int64_t most, std::string (*spell)(int64_t));
using stepc::plural;

} // namespace stepc::explain

#endif
