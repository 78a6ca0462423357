//===- Helpers.h - What the language's tests share --------------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_LANGUAGE_HELPERS_H
#define STEPC_TEST_UNIT_LANGUAGE_HELPERS_H

#include "frontends/language/Language.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <map>
#include <memory>
#include <random>
#include <sstream>

namespace stepc::lang::test {

/// A file with everything that was said about it.
struct Result {
  std::unique_ptr<Source> source;
  Diagnostics diagnostics;
  std::unique_ptr<File> file;

  /// "line:column: severity: message" of each, notes and hints indented below.
  std::vector<std::string> messages() const {
    std::vector<std::string> lines;
    auto place = [&](SourceRange range) {
      LineColumn at = source->lineColumn(range.begin);
      std::string name = source->name(range.begin).str();
      return (name == source->name() ? "" : name + ":") + std::to_string(at.line) + ":" +
             std::to_string(at.column) + ": ";
    };
    for (const Diagnostic &diagnostic : diagnostics.all()) {
      bool isError = diagnostic.severity == Severity::Error;
      lines.push_back(place(diagnostic.range) + (isError ? "error: " : "warning: ") +
                      diagnostic.message);
      for (const auto *notes : {&diagnostic.notes, &diagnostic.calls})
        for (const Diagnostic::Note &note : *notes)
          lines.push_back("  " + place(note.range) + "note: " + note.message);
      if (!diagnostic.hint.empty())
        lines.push_back("  hint: " + diagnostic.hint);
    }
    return lines;
  }
};

/// `files` are the files that may be imported.
inline Result check(std::string text, AnalysisOptions options = {},
                    const std::map<std::string, std::string> &files = {},
                    const std::string &name = "t.optim") {
  Result result;
  result.source = std::make_unique<Source>(name, text);
  auto read = [&](llvm::StringRef path) -> llvm::Expected<FoundFile> {
    llvm::SmallString<64> plain(path);
    llvm::sys::path::remove_dots(plain, /*remove_dot_dot=*/true);
    auto found = files.find(plain.str().str());
    std::string known = plain.str().str();
    if (found != files.end())
      return FoundFile{found->second, known, known};
    if (known == llvm::StringRef(name).ltrim("./"))
      return FoundFile{text, known, known};
    return llvm::createStringError("no such file or directory");
  };
  result.file = load(*result.source, read, result.diagnostics, llvm::StringRef(name).ltrim("./"));
  analyze(*result.file, result.diagnostics, options);
  return result;
}

/// A rule `T(lr)` with these lines as body (from line 2) and a final
/// assignment that uses lr, so that the lines alone decide what is reported.
inline std::string rule(const std::string &body) {
  return "optimizer T(lr) {\n" + body + "\nparam = param - lr * grad\n}\n";
}

inline std::vector<std::string> messagesIn(const std::string &body) {
  return check(rule(body)).messages();
}

/// A text of the language, and all that is said about it.
struct Case {
  std::string text;
  std::vector<std::string> messages;
};

using MessagesOf = llvm::function_ref<std::vector<std::string>(const std::string &)>;

inline void expectMessages(llvm::ArrayRef<Case> cases, MessagesOf messagesOf = messagesIn) {
  for (const Case &c : cases)
    EXPECT_EQ(messagesOf(c.text), c.messages) << c.text;
}

/// Random but legal expressions and files. Everything it makes parses and
/// analyzes without errors.
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  std::string file();
  /// A value of tensors with these names, without other names but those of earlier functions.
  std::string elementwise(unsigned depth, const std::vector<std::string> &of);
  /// A function of two tensors with the name `f` and the number.
  std::string function(unsigned index);
  unsigned pick(unsigned count) {
    return std::uniform_int_distribution<unsigned>(0, count - 1)(random);
  }

private:
  bool chance(unsigned percent) { return pick(100) < percent; }
  std::string oneOf(std::initializer_list<const char *> words) {
    return *(words.begin() + pick(static_cast<unsigned>(words.size())));
  }
  std::string space() { return oneOf({"", " ", " ", "  ", "\t"}); }
  std::string lineEnd();
  std::string number();
  std::string scalar(unsigned depth);
  /// A scalar that is no constant: constants may leave the range of f32.
  std::string variable(unsigned depth);
  std::string tensor(unsigned depth);
  std::string condition(unsigned depth);
  std::string model();
  std::string optimizer(unsigned index);
  std::string route(unsigned rules);
  std::string blocks();

  std::mt19937 random;
  std::vector<std::string> tensors;     ///< Full values in scope.
  std::vector<std::string> modelValues; ///< What rules may read of the model.
  bool inModel = false;                 ///< Whether no value has to do with a matrix.
  unsigned names = 0;
  unsigned functions = 0; ///< How many functions the file has.
};

} // namespace stepc::lang::test

#endif // STEPC_TEST_UNIT_LANGUAGE_HELPERS_H
