//===- LibraryFile.cpp - An open library ------------------------------------===//

#include "tools/stepc/LibraryFile.h"

#include "frontends/text/Files.h"
#include "passes/codegen/LibraryFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <dlfcn.h>

using namespace stepc;
using namespace stepc::driver;
using llvm::Twine;

LibraryFile::~LibraryFile() { dlclose(handle); }

std::unique_ptr<LibraryFile> LibraryFile::open(const std::string &path, Report &report) {
  auto refuse = [&](const Twine &message) {
    report.error(path, message);
    return nullptr;
  };
  // A name without a slash would be searched for in the system's folders.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  // The dynamic loader would also map a truncated file, and then a read would end the process.
  if (llvm::sys::fs::exists(file)) {
    auto bytes = llvm::MemoryBuffer::getFile(file, false, false, /*IsVolatile=*/true);
    if (!bytes)
      return refuse("expected a compiled library, " + text::reasonOf(bytes.getError()));
    if (std::string wrong = codegen::checkLibraryFile((*bytes)->getBuffer()); !wrong.empty())
      return refuse("expected a compiled library: " + wrong);
  }
  void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return refuse("expected a compiled library: " + Twine(dlerror()));
  std::unique_ptr<LibraryFile> made(new LibraryFile(path, handle));
  auto entry =
      reinterpret_cast<decltype(&stepc_library_table)>(dlsym(handle, "stepc_library_table"));
  if (!entry)
    return refuse("expected a library compiled by stepc, found no stepc_library_table in it");
  made->table = entry();
  const stepc_library &table = *made->table;
  if (table.abi_version != STEPC_ABI_VERSION)
    return refuse("expected ABI version " + Twine(STEPC_ABI_VERSION) + ", found " +
                  Twine(table.abi_version) + "; compile it again with this stepc");
  if (table.struct_size < static_cast<int32_t>(sizeof(stepc_library)))
    return refuse("expected a table of " + Twine(sizeof(stepc_library)) + " bytes, found " +
                  Twine(table.struct_size));
  // Check the status of each program before anything else of the program is read.
  for (const stepc_library *each = &table; each; each = each->next)
    if (each->status)
      return refuse(each->problem);
  return made;
}

std::optional<plan::Plan> LibraryFile::planOf(const stepc_library &table, Report &report) const {
  std::string error;
  auto plan = plan::deserialize(static_cast<const uint8_t *>(table.plan),
                                static_cast<size_t>(table.plan_bytes), error);
  if (!plan)
    report.error(path, "expected a plan in the library: " + error);
  return plan;
}
