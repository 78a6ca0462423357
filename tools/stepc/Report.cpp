//===- Report.cpp - Every message of the driver, in one form ---------------===//

#include "tools/stepc/Report.h"

#include "dialects/comm/Comm.h"
#include "frontends/text/Files.h"
#include "frontends/text/Text.h"
#include "passes/decide/Forces.h"
#include "passes/kernels/Passes.h"
#include "tools/stepc/Options.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace stepc;
using namespace stepc::driver;
using llvm::raw_ostream;
using llvm::StringRef;
using llvm::Twine;

static raw_ostream &err() { return llvm::errs(); }

static void paint(raw_ostream::Colors color, const Twine &text) {
  raw_ostream &os = err();
  bool colors = os.is_displayed() && os.has_colors();
  if (colors) {
    os.enable_colors(true);
    os.changeColor(color, /*Bold=*/true);
  }
  os << text::printable(text.str());
  if (colors)
    os.resetColor();
}

std::string driver::inputName(const std::string &path) { return path == "-" ? "<stdin>" : path; }

std::optional<StringRef> Report::read(const std::string &path, StringRef what, uint64_t mostBytes) {
  llvm::Expected<std::string> bytes = text::readFile(path, what, mostBytes);
  if (!bytes) {
    error(bytes.takeError());
    return std::nullopt;
  }
  bytes->erase(0, bytes->size() - text::withoutByteOrderMark(*bytes).size());
  std::string name = inputName(path);
  if (StringRef(*bytes).trim().empty()) {
    error(name, "expected " + what + ", found " + (path == "-" ? "nothing" : "an empty file"));
    return std::nullopt;
  }
  std::string &text = texts[name];
  text = std::move(*bytes);
  return text;
}

llvm::Expected<lang::FoundFile> Report::readImport(StringRef path) {
  llvm::SmallString<128> real;
  if (std::error_code code = llvm::sys::fs::real_path(path, real))
    return llvm::createStringError(text::reasonOf(code));
  llvm::Expected<std::string> bytes = text::readFile(path, "a specification", kMostSpecification);
  if (bytes) {
    // Its plain name, unless a link leads elsewhere.
    llvm::SmallString<128> plain(path), other;
    llvm::sys::path::remove_dots(plain, /*remove_dot_dot=*/true);
    std::string name =
        !llvm::sys::fs::real_path(plain, other) && other == real ? plain.str().str() : path.str();
    std::string text = texts[name] = text::withoutByteOrderMark(*bytes).str();
    return lang::FoundFile{std::move(text), std::move(name), std::string(real)};
  }
  std::string reason;
  llvm::handleAllErrors(
      bytes.takeError(),
      [&](const llvm::FileError &error) { reason = error.messageWithoutFileInfo(); },
      [&](const llvm::ErrorInfoBase &error) { reason = error.message(); });
  return llvm::createStringError(reason);
}

void Report::error(const Twine &message) { error("stepc", message); }

void Report::error(StringRef file, const Twine &message) {
  ++errorCount;
  paint(raw_ostream::SAVEDCOLOR, file + ": ");
  paint(raw_ostream::RED, "error: ");
  err() << text::printable(message.str()) << '\n';
}

void Report::error(llvm::Error error) {
  llvm::handleAllErrors(
      std::move(error),
      [&](const llvm::FileError &file) {
        this->error(StringRef(file.getFileName()), file.messageWithoutFileInfo());
      },
      [&](const llvm::ErrorInfoBase &other) { this->error(other.message()); });
}

void Report::hint(const Twine &message) {
  paint(raw_ostream::GREEN, "hint: ");
  err() << text::printable(message.str()) << '\n';
}

void Report::note(const Twine &message) {
  err() << "stepc: ";
  paint(raw_ostream::CYAN, "note: ");
  err() << text::printable(message.str()) << '\n';
}

void Report::internalError(const Twine &message) {
  error("internal error: " + message);
  hint(kFaultOfStepc);
}

void Report::errors(const manifest::ErrorList &list) {
  constexpr size_t shown = 50;
  for (const manifest::InputError &item : llvm::ArrayRef(list.get()).take_front(shown)) {
    manifest::InputError rest = item;
    std::string place = item.file;
    if (item.line)
      place += ":" + std::to_string(item.line) + ":" + std::to_string(item.column);
    rest.file.clear();
    rest.line = 0;
    std::string message = rest.str(); // ": MESSAGE"
    error(place, StringRef(message).substr(2));
    if (item.line)
      excerpt(item.file, item.line, item.column);
  }
  if (list.size() > shown)
    error("too many errors, " + Twine(shown) + " of " + Twine(list.size()) + " shown");
}

void Report::diagnostics(const lang::Diagnostics &list, const lang::Source &source) {
  errorCount += list.errorCount();
  list.print(err(), source);
}

//===----------------------------------------------------------------------===//
// MLIR
//===----------------------------------------------------------------------===//

/// The first location of that class within a location: itself, or one of its parts. Null if there is none.
template <typename Wanted> static Wanted find(mlir::Location location) {
  if (auto wanted = llvm::dyn_cast<Wanted>(location))
    return wanted;
  if (auto name = llvm::dyn_cast<mlir::NameLoc>(location))
    return find<Wanted>(name.getChildLoc());
  if (auto call = llvm::dyn_cast<mlir::CallSiteLoc>(location))
    return find<Wanted>(call.getCallee());
  if (auto fused = llvm::dyn_cast<mlir::FusedLoc>(location))
    for (mlir::Location part : fused.getLocations())
      if (Wanted wanted = find<Wanted>(part))
        return wanted;
  return nullptr;
}

void Report::header(mlir::Location location, mlir::DiagnosticSeverity severity,
                    const std::string &message, bool withExcerpt) {
  mlir::FileLineColLoc place = find<mlir::FileLineColLoc>(location);
  if (place && place.getLine() == 0)
    paint(raw_ostream::SAVEDCOLOR, place.getFilename().getValue() + ": ");
  else if (place)
    paint(raw_ostream::SAVEDCOLOR, place.getFilename().getValue() + ":" + Twine(place.getLine()) +
                                       ":" + Twine(place.getColumn()) + ": ");
  else
    paint(raw_ostream::SAVEDCOLOR, "stepc: ");
  switch (severity) {
  case mlir::DiagnosticSeverity::Error:
    paint(raw_ostream::RED, "error: ");
    break;
  case mlir::DiagnosticSeverity::Warning:
    paint(raw_ostream::MAGENTA, "warning: ");
    break;
  case mlir::DiagnosticSeverity::Note:
    paint(raw_ostream::CYAN, "note: ");
    break;
  case mlir::DiagnosticSeverity::Remark:
    paint(raw_ostream::BLUE, "remark: ");
    break;
  }
  err() << text::printable(message) << '\n';
  if (place && withExcerpt)
    excerpt(place.getFilename().getValue(), place.getLine(), place.getColumn());
}

void Report::print(mlir::Diagnostic &diagnostic) {
  std::lock_guard<std::mutex> lock(mutex);
  if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
    ++errorCount;
  remarkCount += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark;
  std::string message = diagnostic.str();
  for (const mlir::DiagnosticArgument &mark : diagnostic.getMetadata()) {
    if (mark.getKind() != mlir::DiagnosticArgument::DiagnosticArgumentKind::String)
      continue;
    inputErrorCount += mark.getAsString() == comm::kInputErrorMark;
    toolErrorCount += mark.getAsString() == kernels::kToolErrorMark;
    // A pass does not know by which option of the driver it was given a strategy.
    if (mark.getAsString() == decide::kUsageErrorMark) {
      ++usageErrorCount;
      message.insert(0, "--strategy: ");
    }
  }
  header(diagnostic.getLocation(), diagnostic.getSeverity(), message, true);
  for (auto call = find<mlir::CallSiteLoc>(diagnostic.getLocation()); call;
       call = find<mlir::CallSiteLoc>(call.getCaller()))
    header(call.getCaller(), mlir::DiagnosticSeverity::Note, "in this call", true);
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    header(note.getLocation(), note.getSeverity(), note.str(),
           note.getLocation() != diagnostic.getLocation());
}

std::unique_ptr<mlir::ScopedDiagnosticHandler> Report::attach(mlir::MLIRContext &context) {
  return std::make_unique<mlir::ScopedDiagnosticHandler>(&context,
                                                         [this](mlir::Diagnostic &diagnostic) {
                                                           print(diagnostic);
                                                           return mlir::success();
                                                         });
}

void Report::excerpt(StringRef file, unsigned line, unsigned column) {
  constexpr size_t widest = 160, before = 60;
  auto it = texts.find(file.str());
  if (it == texts.end() || line == 0)
    return;
  StringRef rest = it->second;
  for (unsigned i = 1; i < line; ++i)
    rest = rest.split('\n').second;
  StringRef quoted = rest.split('\n').first.rtrim('\r');
  size_t at = std::min<size_t>(column ? column - 1 : 0, quoted.size());
  size_t from = quoted.size() > widest && at > before ? at - before : 0;
  quoted = quoted.substr(from, widest);
  raw_ostream &os = err();
  os << "  " << text::printableLine(quoted) << "\n  ";
  // One column per UTF-8 character; tabs are copied so that the caret lines up.
  for (char c : text::printableLine(quoted.take_front(at - from)))
    if ((c & 0xC0) != 0x80)
      os << (c == '\t' ? '\t' : ' ');
  paint(raw_ostream::GREEN, "^");
  os << '\n';
}
