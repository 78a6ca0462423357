//===- TemporaryFolder.cpp - A folder for temporary files ------------------===//

#include "passes/codegen/TemporaryFolder.h"

#include "frontends/text/Files.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace stepc::codegen {

TemporaryFolder::~TemporaryFolder() {
  if (!path.empty())
    sys::fs::remove_directories(path);
}

Error TemporaryFolder::create() {
  Expected<std::string> made = text::makeTemporaryFolder();
  if (!made)
    return made.takeError();
  path = *made;
  return Error::success();
}

std::string TemporaryFolder::file(StringRef name) const {
  SmallString<128> result = path;
  sys::path::append(result, name);
  return std::string(result);
}

} // namespace stepc::codegen
