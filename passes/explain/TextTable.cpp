//===- TextTable.cpp - Tables and numbers for people -----------------------===//

#include "passes/explain/TextTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace stepc;
using llvm::StringRef;

/// Columns on a terminal: characters, not bytes.
static size_t widthOf(StringRef text) {
  return llvm::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

std::string explain::cut(StringRef text, size_t width) {
  if (widthOf(text) <= width)
    return text.str();
  size_t columns = 0, bytes = 0;
  while (bytes < text.size() && columns + 1 < width) {
    ++columns;
    do
      ++bytes;
    while (bytes < text.size() && (text[bytes] & 0xC0) == 0x80);
  }
  return text.take_front(bytes).str() + "…";
}

/// Takes as many words from the front of `text` as `width` columns hold, at least one.
std::string explain::takeLine(StringRef &text, size_t width) {
  std::string line;
  while (!text.empty()) {
    auto [word, rest] = text.split(' ');
    if (!line.empty() && widthOf(line) + 1 + widthOf(word) > width)
      break;
    line += (line.empty() ? "" : " ") + explain::cut(word, width);
    text = rest;
  }
  return line;
}

void explain::TextTable::print(llvm::raw_ostream &os) const {
  std::vector<size_t> widths(rows[0].size());
  for (const auto &row : rows)
    for (auto [cell, width] : llvm::zip(row, widths))
      width = std::max(width, widthOf(cell));
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      std::string space(widths[i] - widthOf(row[i]), ' ');
      line += (aligned[i] == '>' ? space + row[i] : row[i] + space) + "  ";
    }
    if (aligned.back() == '>')
      line += std::string(widths.back() - widthOf(row.back()), ' ');
    size_t indent = widthOf(line), room = kPageWidth - std::min(kPageWidth - 20, indent);
    StringRef rest = row.back();
    line += takeLine(rest, room);
    os << StringRef(line).rtrim() << '\n';
    while (!rest.empty())
      os << std::string(indent, ' ') << takeLine(rest, room) << '\n';
  }
}

static std::string scaled(double value, double base, llvm::ArrayRef<const char *> units) {
  size_t unit = 0;
  while (value >= base && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  if (unit == 0)
    os << llvm::format("%.0f", value);
  else
    os << llvm::format(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  os << units[unit];
  return text;
}

std::string explain::bytes(int64_t value) {
  return scaled(double(value), 1024, {" B", " KiB", " MiB", " GiB", " TiB"});
}
std::string explain::flops(int64_t value) {
  return scaled(double(value), 1000, {"", " k", " M", " G", " T", " P"});
}
std::string explain::perSecond(double value, StringRef what) {
  return scaled(value, 1000, {" ", " k", " M", " G", " T", " P"}) + what.str() + "/s";
}
std::string explain::capacity(double value) {
  return scaled(value, 1000, {" B", " kB", " MB", " GB", " TB"});
}
std::string explain::seconds(double value) {
  return scaled(value * 1e9, 1000, {" ns", " µs", " ms", " s"});
}

std::string explain::count(int64_t value) { return std::to_string(value); }

std::string explain::fixed(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.2f", value);
  return text;
}

std::string explain::range(int64_t least, int64_t most, std::string (*spell)(int64_t)) {
  std::string first = spell(least), last = spell(most);
  return first == last ? last : first + "–" + last;
}
