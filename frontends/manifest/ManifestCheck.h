// What must hold for a manifest beyond its JSON types, checked on the structs:
// the reader and `stepc manifest` share it.

#ifndef STEPC_FRONTENDS_MANIFEST_MANIFESTCHECK_H
#define STEPC_FRONTENDS_MANIFEST_MANIFESTCHECK_H

#include "frontends/manifest/Manifest.h"
#include <functional>

namespace stepc::manifest {

/// Takes the pointer of a bad value relative to the checked struct ("/shape",
/// "/placements/1") and the message.
using CheckReport = std::function<void(const std::string &pointer, const std::string &message)>;

/// "1 rank", "4 ranks".
std::string count(int64_t value, llvm::StringRef noun);

/// Axes: one to kMaxMeshAxes, named once each. Ranks: as many as the sizes'
/// product, each once.
void checkMesh(const Mesh &mesh, const CheckReport &report);

/// Whether the shape has at most kMaxElements.
bool checkElements(const Parameter &parameter, const CheckReport &report);

/// Elements within kMaxElements; batch axes that leave a matrix; blocks of matrices, each row or column
/// in one.
void checkShape(const Parameter &parameter, const CheckReport &report);

class BucketIndex;

/// Placements: one per axis, dimensions within the shape, strided shards that
/// exist; gradient and state like the parameter. Rewrites negative dimensions
/// to their positive form, and partial placements along an axis of one rank to R.
/// Flat placements without ranges get those of `buckets`; without buckets they are refused.
void checkPlacements(Parameter &parameter, const Mesh &mesh, BucketIndex *buckets,
                     const CheckReport &report);

/// No two meshes of one name; no name or alias that two parameters have once
/// wrappers' prefixes are dropped. Pointers start at the manifest's root; the
/// report's third argument is the parameter's name.
void checkNames(const Manifest &manifest,
                const std::function<void(const std::string &, const std::string &,
                                         const std::string &)> &report);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_MANIFESTCHECK_H
