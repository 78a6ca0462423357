//===- TemporaryFolder.h - A folder for temporary files ---------*- C++ -*-===//
#ifndef STEPC_PASSES_CODEGEN_TEMPORARYFOLDER_H
#define STEPC_PASSES_CODEGEN_TEMPORARYFOLDER_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"

#include <string>

namespace stepc::codegen {

/// A folder in the system's folder for temporary files. The destructor removes it with all its files.
class TemporaryFolder {
public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder &) = delete;
  ~TemporaryFolder();

  /// Creates the folder. Fails with an llvm::FileError that names the path.
  llvm::Error create();
  /// The path of a file in the folder.
  std::string file(llvm::StringRef name) const;

private:
  llvm::SmallString<128> path;
};

} // namespace stepc::codegen

#endif
