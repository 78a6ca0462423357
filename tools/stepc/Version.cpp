//===- Version.cpp - What `stepc --version` prints -------------------------===//
//
// A source of its own, because the build passes the commit to it: little is compiled again when the commit
// changes.
//
//===----------------------------------------------------------------------===//

#include "tools/stepc/Version.h"

const char *const stepc::driver::kVersion = STEPC_VERSION;
const char *const stepc::driver::kVersionDetails = "LLVM " STEPC_LLVM_VERSION ", commit "
#include "Commit.inc"
    ;
