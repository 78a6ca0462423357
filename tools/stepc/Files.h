//===- Files.h - Output files that appear whole or not at all ---*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_FILES_H
#define STEPC_TOOLS_STEPC_FILES_H

#include "tools/stepc/Report.h"

#include "llvm/ADT/SmallString.h"

namespace stepc::driver {

/// Makes the folders of an output. The destructor removes folders that it has made, unless `keep` was called.
class OutputFolders {
public:
  OutputFolders() = default;
  OutputFolders(const OutputFolders &) = delete;
  ~OutputFolders();

  /// Makes a folder, and the folders above it.
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

  /// Returns the temporary name under which to write `name`. Empty after an error.
  std::string add(llvm::StringRef name);
  /// Adds a file with that text. Returns false after an error.
  bool addText(llvm::StringRef name, llvm::StringRef text);
  /// Checks that all files can take their names. Returns false after an error.
  bool checkTargets();
  /// Moves all files to their names. Returns false after an error; each file then is the old or the new one,
  /// and whole.
  bool commit();

private:
  struct Pending {
    std::string temporary, target;
  };
  Report &report;
  std::string folder;
  OutputFolders folders; // made before `hidden`
  std::vector<Pending> pending;
  llvm::SmallString<128> hidden;
};

/// Checks that files of these names can be written. Returns false after an error. Leaves nothing behind, so
/// that commands can check before slow work.
bool canWrite(Report &report, llvm::StringRef folder, llvm::ArrayRef<std::string> names);

/// Checks that writeFile can write one file. `option` names the file in errors, and "-" is standard output.
bool canWriteFile(Report &report, llvm::StringRef option, llvm::StringRef path);
/// Writes one file by text::writeFile and makes its folder if there is none; "-" is standard output.
bool writeFile(Report &report, llvm::StringRef path, llvm::ArrayRef<llvm::StringRef> pieces);

/// A file that the command line names, and by which option.
struct NamedFile {
  llvm::StringRef option;
  std::string path; ///< "" and "-" are no file
};
/// Returns false, after an error, if two outputs are one file, or if an output is an input. The later write
/// would replace the earlier file.
bool areApart(Report &report, llvm::ArrayRef<NamedFile> outputs, llvm::ArrayRef<NamedFile> inputs);

/// Returns the exit code of a command that printed to standard output, which may be full or closed. Text that
/// could not be printed is an error. All commands end with this call.
int finish(int exitCode);

} // namespace stepc::driver

#endif
