//===- ManifestLines.h - Where a manifest names its parameters --*- C++ -*-===//
#ifndef STEPC_FRONTENDS_IMPORT_MANIFESTLINES_H
#define STEPC_FRONTENDS_IMPORT_MANIFESTLINES_H

#include "llvm/ADT/StringRef.h"

#include <vector>

namespace stepc::frontends {

struct LinePosition {
  unsigned line = 1, column = 1; // both from 1
};

/// Positions of the values of "name" in the elements of one array of the
/// manifest's top level ("parameters", "meshes"), in order. The text must be JSON that was accepted
/// by readManifest. One pass, whatever the number of parameters.
std::vector<LinePosition> namePositions(llvm::StringRef text, llvm::StringRef array);

} // namespace stepc::frontends

#endif
