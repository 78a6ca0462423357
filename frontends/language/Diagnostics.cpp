//===- Diagnostics.cpp ----------------------------------------------------===//
#include "frontends/language/Diagnostics.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stepc::lang;
namespace text = stepc::text;
using llvm::raw_ostream;
using llvm::StringRef;

Diagnostic &Diagnostics::keep(Diagnostic diagnostic) {
  if (!calls.empty() && !reported.emplace(diagnostic.range.begin, diagnostic.message).second)
    return dropped = Diagnostic();
  if (diagnostic.severity == Severity::Error && ++errors > errorLimit)
    return dropped = Diagnostic();
  if (!calls.empty())
    diagnostic.calls = activeCalls();
  // If many calls are nested, those in the middle are left out.
  constexpr size_t shown = 4;
  if (diagnostic.calls.size() > 2 * shown)
    diagnostic.calls.erase(diagnostic.calls.begin() + shown, diagnostic.calls.end() - shown);
  kept.push_back(std::move(diagnostic));
  return kept.back();
}

Diagnostic &Diagnostics::add(const Diagnostic &error) { return keep(error); }

Diagnostic &Diagnostics::error(SourceRange range, const llvm::Twine &message) {
  return keep({Severity::Error, range, message.str(), {}, {}, {}});
}

void Diagnostics::append(const Diagnostics &others, uint32_t shift) {
  for (const Diagnostic &each : others.kept)
    keep(each.movedBy(shift));
  errors += others.errors - std::min(others.errors, others.errorLimit);
}

void Diagnostics::keepFirst(unsigned count, const llvm::Twine &hint) {
  errorLimit = count;
  std::deque<Diagnostic> first;
  for (auto [begin, index] : inOrder())
    if (first.size() < count)
      first.push_back(std::move(kept[index]));
  kept = std::move(first);
  for (Diagnostic &each : kept)
    each.hint = &each == &kept.front() ? hint.str() : "";
}

/// Diagnostics at one offset stay in the order in which they were reported.
llvm::SmallVector<std::pair<uint32_t, size_t>> Diagnostics::inOrder() const {
  llvm::SmallVector<std::pair<uint32_t, size_t>> order;
  for (size_t i = 0; i < kept.size(); ++i)
    order.push_back({kept[i].range.begin, i});
  llvm::sort(order);
  return order;
}

Diagnostic &Diagnostics::warning(SourceRange range, const llvm::Twine &message) {
  if (range.begin >= warningsEnd)
    return dropped = Diagnostic();
  return keep({Severity::Warning, range, message.str(), {}, {}, {}});
}

namespace {

/// Prints with ANSI colors or without.
class Printer {
public:
  Printer(raw_ostream &os, const Source &source, bool colors)
      : os(os), source(source), colors(colors) {}

  void print(const Diagnostic &diagnostic) {
    bool isError = diagnostic.severity == Severity::Error;
    header(diagnostic.range, isError ? "error" : "warning",
           isError ? raw_ostream::RED : raw_ostream::MAGENTA, diagnostic.message);
    for (const auto *notes : {&diagnostic.notes, &diagnostic.calls})
      for (const Diagnostic::Note &note : *notes)
        header(note.range, "note", raw_ostream::CYAN, note.message);
    if (!diagnostic.hint.empty()) {
      paint(raw_ostream::GREEN, "hint: ");
      os << text::printable(diagnostic.hint) << '\n';
    }
  }

  void paint(raw_ostream::Colors color, StringRef text) {
    if (colors)
      os.changeColor(color, /*Bold=*/true);
    os << text;
    if (colors)
      os.resetColor();
  }

private:
  void header(SourceRange range, StringRef label, raw_ostream::Colors color, StringRef message) {
    LineColumn at = source.lineColumn(range.begin);
    std::string place = (source.name(range.begin) + ":" + llvm::Twine(at.line) + ":" +
                         llvm::Twine(at.column) + ": ")
                            .str();
    paint(raw_ostream::SAVEDCOLOR, text::printable(place));
    paint(color, (label + ": ").str());
    os << text::printable(message) << '\n';
    excerpt(range, at);
  }

  /// Prints the source line and the carets below it. A very long line is cut to
  /// the text around the place.
  void excerpt(SourceRange range, LineColumn at) {
    constexpr size_t widest = 160, before = 60;
    StringRef line = source.lineAt(range.begin);
    size_t first = std::min<size_t>(at.column - 1, line.size());
    size_t last = std::clamp<size_t>(first + (std::max(range.end, range.begin) - range.begin),
                                     first, line.size());
    size_t from = line.size() > widest && first > before ? first - before : 0;
    line = line.substr(from, widest);
    first -= from;
    last = std::min(last - from, line.size());

    os << "  " << text::printableLine(line) << "\n  ";
    // One column per UTF-8 character; tabs are copied so that carets line up.
    auto isContinuation = [](char c) { return (c & 0xC0) == 0x80; };
    for (char c : text::printableLine(line.take_front(first)))
      if (!isContinuation(c))
        os << (c == '\t' ? '\t' : ' ');
    std::string marks = "^";
    std::string marked = text::printableLine(line.slice(first, last));
    for (char c : StringRef(marked).drop_front(marked.empty() ? 0 : 1))
      if (!isContinuation(c))
        marks += '~';
    paint(raw_ostream::GREEN, marks);
    os << '\n';
  }

  raw_ostream &os;
  const Source &source;
  bool colors;
};

} // namespace

void Diagnostics::print(raw_ostream &os, const Source &source, Color color) const {
  bool colors =
      color == Color::Always || (color == Color::Auto && os.is_displayed() && os.has_colors());
  bool hadColors = os.colors_enabled();
  os.enable_colors(colors);
  Printer printer(os, source, colors);
  for (auto [begin, index] : inOrder())
    printer.print(kept[index]);
  if (isFull()) {
    printer.paint(raw_ostream::RED, "error: ");
    os << "too many errors, " << errorLimit << " shown\n";
  }
  os.enable_colors(hadColors);
}
