//===- Language.cpp - Any bytes as an .optim file ---------------------------===//
//
// Parsing, analysis, the printing of diagnostics and the formatter: an answer or errors, never a
// crash; what is formatted parses again, to the same text.
//
//===----------------------------------------------------------------------===//
#include "frontends/language/Language.h"
#include "Fault.h"

#include "llvm/Support/raw_ostream.h"

using namespace stepc::lang;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  plantedFault(data, size);
  Source source("fuzz.optim", std::string(data, data + size));
  Diagnostics diagnostics;
  Diagnostics ofParser;
  parse(source, ofParser);
  bool parsed = !ofParser.hasErrors();
  auto noFile = [](llvm::StringRef) -> llvm::Expected<FoundFile> {
    return llvm::createStringError("no such file or directory");
  };
  std::unique_ptr<File> file = load(source, noFile, diagnostics);
  analyze(*file, diagnostics);
  std::string printed;
  llvm::raw_string_ostream os(printed);
  diagnostics.print(os, source, Diagnostics::Color::Never);

  Diagnostics ofFormat;
  std::optional<std::string> neat = format(source, ofFormat);
  if (neat.has_value() != parsed)
    __builtin_trap();
  if (!neat)
    return 0;
  Source again("neat.optim", *neat);
  Diagnostics ofNeat;
  std::optional<std::string> neater = format(again, ofNeat);
  if (!neater || *neater != *neat)
    __builtin_trap();
  return 0;
}
