//===- TemporaryFolder.cpp - Files that nobody is to find ------------------===//

#include "passes/codegen/TemporaryFolder.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace stepc::codegen {

TemporaryFolder::~TemporaryFolder() {
  if (!path.empty())
    sys::fs::remove_directories(path);
}

Error TemporaryFolder::create() {
  if (std::error_code code = sys::fs::createUniqueDirectory("stepc", path)) {
    path.clear();
    return createStringError(code, "expected to make a temporary folder, " + code.message());
  }
  return Error::success();
}

std::string TemporaryFolder::file(StringRef name) const {
  SmallString<128> result = path;
  sys::path::append(result, name);
  return std::string(result);
}

} // namespace stepc::codegen
