//===- Files.h - Output files that appear whole or not at all ---*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_FILES_H
#define STEPC_TOOLS_STEPC_FILES_H

#include "tools/stepc/Report.h"

#include "llvm/ADT/SmallString.h"

namespace stepc::driver {

/// Files that replace their targets together: written under their own names in a hidden folder
/// beside them (a linker writes a file's name into it), moved by `commit`, removed by the
/// destructor if that never happens or fails, and by signals that end the program.
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
  /// False after an error, and then no file has changed its name.
  bool commit();

private:
  struct Pending {
    std::string temporary, target;
  };
  Report &report;
  std::string folder;
  std::vector<Pending> pending;
  llvm::SmallString<128> hidden;
  std::vector<std::string> folders; // that this object made
};

/// False, after an error, where files of these names cannot be written. Leaves nothing behind, so
/// that it can be asked before slow work.
bool canWrite(Report &report, llvm::StringRef folder, llvm::ArrayRef<std::string> names);

/// One file, atomically; "-" is standard output.
bool writeFile(Report &report, llvm::StringRef path, llvm::StringRef text);

} // namespace stepc::driver

#endif
