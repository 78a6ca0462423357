//===- Optimizers.cpp - stepc optimizers: what stepc brings -----------------===//

#include "frontends/language/Library.h"
#include "frontends/text/Text.h"
#include "tools/stepc/Files.h"
#include "tools/stepc/Options.h"
#include "tools/stepc/Report.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;

/// The first sentence of a file's comment, on one line.
static std::string titleOf(const lang::LibraryFile &file) {
  std::string title;
  for (StringRef rest = file.text; rest.consume_front("// ");) {
    auto [line, following] = rest.split('\n');
    title += (title.empty() ? "" : " ") + line.trim().str();
    rest = following;
  }
  return StringRef(title).split(". ").first.rtrim('.').str();
}

int driver::runOptimizers(const OptimizersCommand &command) {
  if (command.name.empty()) {
    for (const lang::LibraryFile &file : lang::libraryFiles())
      llvm::outs() << llvm::left_justify(file.name, 30) << ' ' << titleOf(file) << '\n';
    return kSuccess;
  }
  StringRef name = command.name;
  name.consume_front(lang::kLibraryPrefix);
  name.consume_back(".optim");
  std::string full = (lang::kLibraryPrefix + name + ".optim").str();
  if (const lang::LibraryFile *file = lang::findLibraryFile(full)) {
    llvm::outs() << file->text;
    return kSuccess;
  }
  Report report;
  report.error("expected the name of an optimizer that stepc brings, found '" + command.name + "'");
  std::vector<StringRef> names;
  for (const lang::LibraryFile &file : lang::libraryFiles())
    names.push_back(file.name);
  StringRef near = text::nearestName(full, names);
  report.hint(near.empty() ? "`stepc optimizers` lists them" : "did you mean '" + near + "'?");
  return kUsageError;
}
