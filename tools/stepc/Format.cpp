//===- Format.cpp - stepc fmt ----------------------------------------------===//

#include "frontends/language/Language.h"
#include "frontends/text/Text.h"
#include "tools/stepc/Files.h"
#include "tools/stepc/Input.h"

#include "llvm/Support/raw_ostream.h"

using namespace stepc;
using namespace stepc::driver;

/// Formats one file. Returns false after an error. `changed` says whether the formatted text differs from the
/// file's.
static bool formatFile(Report &report, const std::string &path, bool check, bool &changed) {
  std::optional<llvm::StringRef> read = report.read(path, "a specification", kMostSpecification);
  if (!read)
    return false;
  lang::Source source(inputName(path), read->str());
  lang::Diagnostics diagnostics;
  std::optional<std::string> formatted = lang::format(source, diagnostics);
  report.diagnostics(diagnostics, source);
  if (!formatted)
    return false;
  changed = *formatted != *read;
  if (check) {
    if (changed)
      llvm::outs() << text::printable(source.name()) << '\n';
    return true;
  }
  // A file that is formatted already keeps its time stamp.
  return path != "-" && !changed ? true : writeFile(report, path, {*formatted});
}

int driver::runFormat(const FormatCommand &command) {
  Report report;
  bool good = true, anyChanged = false;
  // Refuse IR before any file is changed.
  for (const std::string &path : command.files)
    if (refuseModule(report, path))
      return kUsageError;
  for (const std::string &path : command.files) {
    bool changed = false;
    good &= formatFile(report, path, command.check, changed);
    anyChanged |= changed;
  }
  if (!good)
    return kInputError;
  return command.check && anyChanged ? kInputError : kSuccess;
}
