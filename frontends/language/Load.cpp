//===- Load.cpp - A file and all that it imports --------------------------===//
#include "frontends/language/Library.h"
#include "frontends/language/Parser.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;
namespace path = llvm::sys::path;

const LibraryFile *stepc::lang::findLibraryFile(StringRef name) {
  const auto *found =
      llvm::find_if(libraryFiles(), [&](const LibraryFile &file) { return file.name == name; });
  return found == libraryFiles().end() ? nullptr : found;
}

namespace {

class Loader {
public:
  Loader(Source &source, ReadFile read, Diagnostics &diagnostics)
      : source(source), read(read), diagnostics(diagnostics) {}

  std::unique_ptr<File> run() {
    std::unique_ptr<File> file = parse(source, diagnostics);
    size = source.text().size();
    loadImports(*file, source.name());
    file->imported = std::move(loaded);
    return file;
  }

private:
  static constexpr size_t mostFiles = 100;

  void loadImports(File &file, StringRef name) {
    opened.push_back({name.str(), {}});
    for (ImportStatement &import : file.imports) {
      opened.back().second = import.path.range;
      std::optional<std::string> found = resolve(import, name);
      import.file = found ? load(import, *found) : nullptr;
      file.lacksRules |= !import.file || import.file->lacksRules;
      file.lacksNames |= !import.file || import.file->lacksNames;
    }
    opened.pop_back();
  }

  Diagnostic &error(const ImportStatement &import, const Twine &message) {
    return diagnostics.error(import.path.range, message);
  }

  /// The name of the file that `import` means in the file `from`. Nothing after an error.
  std::optional<std::string> resolve(const ImportStatement &import, StringRef from) {
    StringRef written = import.path.value;
    if (written.starts_with(kLibraryPrefix))
      return written.str();
    if (written.empty() || path::is_absolute(written) ||
        source.text(import.path.range).contains('\\')) {
      error(import, "expected the path of a file beside this one, found '" + written + "'")
          .withHint(
              "paths are relative to the importing file's folder, and have '/' between names");
      return std::nullopt;
    }
    if (from.starts_with("<")) {
      error(import,
            "expected a file of stepc, because this text is in no folder, found '" + written + "'")
          .withHint("'import \"stepc/linalg.optim\"' is the library's");
      return std::nullopt;
    }
    llvm::SmallString<128> joined(path::parent_path(from));
    path::append(joined, written);
    path::remove_dots(joined, /*remove_dot_dot=*/true);
    return std::string(joined);
  }

  /// The file of that name, which is read only once. Null after an error.
  File *load(const ImportStatement &import, const std::string &name) {
    auto open = llvm::find_if(opened, [&](const auto &each) { return sameName(each.first, name); });
    if (open != opened.end()) {
      Diagnostic &cycle = error(import, "expected files that do not import each other, found '" +
                                            name + "', which imports itself");
      for (auto &[by, place] : llvm::make_range(open, std::prev(opened.end())))
        cycle.withNote(place, "by way of this import");
      return nullptr;
    }
    auto [known, isNew] = files.try_emplace(name, nullptr);
    if (!isNew)
      return known->second;
    if (files.size() > mostFiles) {
      error(import, "expected at most " + Twine(mostFiles) + " imported files, found more");
      return nullptr;
    }
    std::optional<std::string> text = textOf(import, name);
    if (!text)
      return nullptr;
    size += text->size();
    if (size > Source::maxBytes) {
      error(import, "expected at most " + Twine(Source::maxBytes >> 20) +
                        " MiB of text with all imports, found more");
      return nullptr;
    }
    SourceRange part = source.add(name, std::move(*text));
    Diagnostics own; // so that what the file says last does not drop what others said
    std::unique_ptr<File> file = Parser(source, part, own).parseFile();
    diagnostics.append(own);
    file->lacksRules |= file->isForeign;
    file->lacksNames |= file->isForeign;
    loadImports(*file, name);
    loaded.push_back(std::move(file));
    return files[name] = loaded.back().get();
  }

  static bool sameName(StringRef a, StringRef b) {
    llvm::SmallString<128> plain(a);
    path::remove_dots(plain, /*remove_dot_dot=*/true);
    return plain == b;
  }

  std::optional<std::string> textOf(const ImportStatement &import, StringRef name) {
    if (name.starts_with(kLibraryPrefix)) {
      if (const LibraryFile *file = findLibraryFile(name))
        return file->text.str();
      std::vector<StringRef> names;
      for (const LibraryFile &file : libraryFiles())
        names.push_back(file.name);
      StringRef near = stepc::text::nearestName(name, names);
      error(import, "expected a file of stepc's library, found '" + name + "'")
          .withHint(near.empty() ? "it has " + llvm::join(names, ", ")
                                 : ("did you mean '" + near + "'?").str());
      return std::nullopt;
    }
    llvm::Expected<std::string> text = read(name);
    if (text)
      return std::move(*text);
    Diagnostic &failed =
        error(import, "cannot import '" + name + "': " + llvm::toString(text.takeError()));
    if (findLibraryFile((kLibraryPrefix + import.path.value).str()))
      failed.withHint("the library has 'stepc/" + import.path.value + "'");
    return std::nullopt;
  }

  Source &source;
  ReadFile read;
  Diagnostics &diagnostics;
  size_t size = 0;                           ///< Bytes of all texts.
  std::vector<std::unique_ptr<File>> loaded; ///< Each behind those that it imports.
  llvm::StringMap<File *> files;             ///< By name; null after an error.
  std::vector<std::pair<std::string, SourceRange>>
      opened; ///< With the import that is being followed.
};

} // namespace

std::unique_ptr<File> stepc::lang::load(Source &source, ReadFile read, Diagnostics &diagnostics) {
  return Loader(source, read, diagnostics).run();
}
