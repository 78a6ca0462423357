//===- TemporaryFolder.h - Files that nobody is to find ---------*- C++ -*-===//
#ifndef STEPC_PASSES_CODEGEN_TEMPORARYFOLDER_H
#define STEPC_PASSES_CODEGEN_TEMPORARYFOLDER_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"

#include <string>

namespace stepc::codegen {

/// A folder in the system's place for temporary files, gone with the object and all that is in it.
class TemporaryFolder {
public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder &) = delete;
  ~TemporaryFolder();

  /// Errors: an llvm::FileError that names the place.
  llvm::Error create();
  std::string file(llvm::StringRef name) const;

private:
  llvm::SmallString<128> path;
};

} // namespace stepc::codegen

#endif
