//===- Version.cpp - What `stepc --version` prints -------------------------===//
//
// A source of its own: the build knows the commit, and little is compiled again when it moves.
//
//===----------------------------------------------------------------------===//

#include "tools/stepc/Version.h"

const char *const stepc::driver::kVersion = STEPC_VERSION;
const char *const stepc::driver::kVersionDetails = "LLVM " STEPC_LLVM_VERSION ", commit "
#include "Commit.inc"
    ;
