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

  std::unique_ptr<File> run(StringRef identity) {
    std::unique_ptr<File> file = parse(source, diagnostics);
    size = source.text().size();
    loadImports(*file, {source.name().str(), identity.str(), /*isOfLibrary=*/false});
    file->imported = std::move(loaded);
    return file;
  }

private:
  static constexpr size_t mostFiles = 100;

  /// A file, by the name that messages have and by what tells it from others.
  struct Place {
    std::string name, identity;
    bool isOfLibrary;
    SourceRange import = {}; ///< The import that is being followed.
  };

  void loadImports(File &file, const Place &place) {
    opened.push_back(place);
    for (ImportStatement &import : file.imports) {
      opened.back().import = import.path.range;
      std::optional<Place> found = resolve(import, place);
      import.file = found ? load(import, *found) : nullptr;
      file.lacksRules |= !import.file || import.file->lacksRules;
      file.lacksNames |= !import.file || import.file->lacksNames;
    }
    opened.pop_back();
  }

  Diagnostic &error(const ImportStatement &import, const Twine &message) {
    return diagnostics.error(import.path.range, message);
  }

  /// Which file `import` means in the file `from`. Nothing after an error.
  std::optional<Place> resolve(const ImportStatement &import, const Place &from) {
    StringRef written = import.path.value;
    if (written.starts_with(kLibraryPrefix))
      return Place{written.str(), "library:" + written.str(), /*isOfLibrary=*/true};
    // A text with an escape is no path that programs find without this parser.
    if (written.empty() || written == "-" || path::is_absolute(written) ||
        source.text(import.path.range).contains('\\')) {
      error(import, "expected the path of a file beside this one, found '" + written + "'")
          .withHint(
              "paths are relative to the importing file's folder, and have '/' between names");
      return std::nullopt;
    }
    if (from.isOfLibrary || StringRef(from.name).starts_with("<")) {
      error(import,
            "expected a file of stepc, because this text is in no folder, found '" + written + "'")
          .withHint("'import \"stepc/linalg.optim\"' is the library's");
      return std::nullopt;
    }
    llvm::SmallString<128> joined(path::parent_path(from.name));
    path::append(joined, written);
    path::remove_dots(joined); // but not '..', because a folder may be a link
    return Place{std::string(joined), "", /*isOfLibrary=*/false};
  }

  /// The file of that place, which is parsed only once. Null after an error.
  File *load(const ImportStatement &import, Place place) {
    std::optional<std::string> text = textOf(import, place);
    if (!text)
      return nullptr;
    auto open =
        llvm::find_if(opened, [&](const Place &each) { return each.identity == place.identity; });
    if (open != opened.end()) {
      Diagnostic &cycle = error(import, "expected files that do not import each other, found '" +
                                            place.name + "', which imports itself");
      for (const Place &by : llvm::make_range(open, std::prev(opened.end())))
        cycle.withNote(by.import, "by way of this import");
      return nullptr;
    }
    auto [known, isNew] = files.try_emplace(place.identity, nullptr);
    if (!isNew)
      return known->second;
    if (files.size() > mostFiles) {
      if (files.size() == mostFiles + 1)
        error(import, "expected at most " + Twine(mostFiles) + " imported files, found more");
      return nullptr;
    }
    size += text->size();
    if (size > Source::maxBytes) {
      error(import, "expected at most " + Twine(Source::maxBytes >> 20) +
                        " MiB of text with all imports, found more");
      return nullptr;
    }
    SourceRange part = source.add(place.name, std::move(*text));
    Diagnostics own; // so that what the file says last does not drop what others said
    std::unique_ptr<File> file = Parser(source, part, own).parseFile();
    diagnostics.append(own);
    file->lacksRules |= file->isForeign;
    file->lacksNames |= file->isForeign;
    loadImports(*file, place);
    loaded.push_back(std::move(file));
    return files[place.identity] = loaded.back().get();
  }

  /// The text of a file, whose identity it sets. Nothing after an error.
  std::optional<std::string> textOf(const ImportStatement &import, Place &place) {
    if (place.isOfLibrary) {
      if (const LibraryFile *file = findLibraryFile(place.name))
        return file->text.str();
      std::vector<StringRef> names;
      for (const LibraryFile &file : libraryFiles())
        names.push_back(file.name);
      StringRef near = stepc::text::nearestName(place.name, names);
      error(import, "expected a file of stepc's library, found '" + place.name + "'")
          .withHint(near.empty() ? "`stepc optimizers` lists its files"
                                 : ("did you mean '" + near + "'?").str());
      return std::nullopt;
    }
    llvm::Expected<FoundFile> found = read(place.name);
    if (found) {
      place.name = std::move(found->name);
      place.identity = std::move(found->identity);
      return std::move(found->text);
    }
    llvm::SmallString<128> plain(place.name);
    path::remove_dots(plain, /*remove_dot_dot=*/true);
    Diagnostic &failed =
        error(import, "cannot import '" + plain + "': " + llvm::toString(found.takeError()));
    if (findLibraryFile((kLibraryPrefix + import.path.value).str()))
      failed.withHint("the library has 'stepc/" + import.path.value + "'");
    return std::nullopt;
  }

  Source &source;
  ReadFile read;
  Diagnostics &diagnostics;
  size_t size = 0;                           ///< Bytes of all texts.
  std::vector<std::unique_ptr<File>> loaded; ///< Each after those that it imports.
  llvm::StringMap<File *> files;             ///< By identity; null after an error.
  std::vector<Place> opened;                 ///< The main file first.
};

} // namespace

std::unique_ptr<File> stepc::lang::load(Source &source, ReadFile read, Diagnostics &diagnostics,
                                        StringRef identity) {
  return Loader(source, read, diagnostics).run(identity);
}
