//===- Files.h - Output files that appear whole or not at all ---*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_FILES_H
#define STEPC_TOOLS_STEPC_FILES_H

#include "tools/stepc/Report.h"

#include "llvm/ADT/SmallString.h"

namespace stepc::driver {

/// Folders on the way to an output. Those that were not there go again with the object, unless they are kept.
class OutputFolders {
public:
  OutputFolders() = default;
  OutputFolders(const OutputFolders &) = delete;
  ~OutputFolders();

  /// Makes a folder and those above it.
  std::error_code make(llvm::StringRef folder);
  void keep() { made.clear(); }

private:
  std::vector<std::string> made;
};

/// Files that replace their targets together. They are written under their own names in a hidden folder
/// beside the targets, because a linker writes a file's name into it. `commit` moves them. The destructor
/// removes them if that never happens or fails, and so do signals that end the program.
class OutputFiles {
public:
  OutputFiles(Report &report, llvm::StringRef folder) : report(report), folder(folder.str()) {}
  OutputFiles(const OutputFiles &) = delete;
  ~OutputFiles();

  /// The name to write `name` under; empty after an error.
  std::string add(llvm::StringRef name);
  /// Adds a file with that text; false after an error.
  bool addText(llvm::StringRef name, llvm::StringRef text);
  /// False after an error, if a file cannot take its name.
  bool checkTargets();
  /// False after an error. Each file then is the old one or the new one, and whole.
  bool commit();

private:
  struct Pending {
    std::string temporary, target;
  };
  Report &report;
  std::string folder;
  OutputFolders folders; // before the hidden one is made
  std::vector<Pending> pending;
  llvm::SmallString<128> hidden;
};

/// False, after an error, if files of these names cannot be written. It leaves nothing behind, so that it can
/// be asked before slow work.
bool canWrite(Report &report, llvm::StringRef folder, llvm::ArrayRef<std::string> names);

/// Whether one file can be written by writeFile; `option` names it in errors, and "-" is standard output.
bool canWriteFile(Report &report, llvm::StringRef option, llvm::StringRef path);
/// Writes one file by text::writeFile and makes its folder if there is none; "-" is standard output.
bool writeFile(Report &report, llvm::StringRef path, llvm::ArrayRef<llvm::StringRef> pieces);

/// A file that the command line names, and by which option.
struct NamedFile {
  llvm::StringRef option;
  std::string path; ///< "" and "-" are no file
};
/// False, after an error, if two outputs are one file, or an output is an input: the later would replace the
/// earlier.
bool areApart(Report &report, llvm::ArrayRef<NamedFile> outputs, llvm::ArrayRef<NamedFile> inputs);

/// The exit code of a command that printed to standard output, which may be full or closed: text that it
/// could not print is an error. All commands end with it.
int finish(int exitCode);

} // namespace stepc::driver

#endif
