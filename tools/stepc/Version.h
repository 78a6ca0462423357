//===- Version.h - What `stepc --version` prints ----------------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_VERSION_H
#define STEPC_TOOLS_STEPC_VERSION_H

namespace stepc::driver {

/// As "0.2.0", the version of the Python package.
extern const char *const kVersion;
/// LLVM's version, and the commit that was built: 12 digits, or "unknown" outside of git.
extern const char *const kVersionDetails;

} // namespace stepc::driver

#endif
