//===- LibraryFile.h - An open library ---------------------------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_LIBRARYFILE_H
#define STEPC_TOOLS_STEPC_LIBRARYFILE_H

#include "runtime/plan/Plan.h"
#include "stepc/stepc.h"
#include "tools/stepc/Report.h"

#include <memory>
#include <optional>

namespace stepc::driver {

/// A library that is whole, of this version, and loaded as long as this object lives.
class LibraryFile {
public:
  /// Returns null after an error.
  static std::unique_ptr<LibraryFile> open(const std::string &path, Report &report);
  LibraryFile(const LibraryFile &) = delete;
  ~LibraryFile();

  /// The plan of one of the library's tables. Returns nothing after an error.
  std::optional<plan::Plan> planOf(const stepc_library &table, Report &report) const;

  const std::string path;
  const stepc_library *table = nullptr; ///< the first

private:
  LibraryFile(const std::string &path, void *handle) : path(path), handle(handle) {}
  void *handle;
};

} // namespace stepc::driver

#endif
