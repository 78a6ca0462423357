// Checks of a manifest's structs beyond JSON types. The reader and
// `stepc manifest` share them.

#ifndef STEPC_FRONTENDS_MANIFEST_MANIFESTCHECK_H
#define STEPC_FRONTENDS_MANIFEST_MANIFESTCHECK_H

#include "frontends/manifest/Manifest.h"
#include <functional>

namespace stepc::manifest {

/// Reports an error: takes the JSON pointer of a bad value relative to the
/// checked struct ("/shape", "/placements/1"), and the message.
using CheckReport = std::function<void(const std::string &pointer, const std::string &message)>;

/// "1 rank", "4 ranks".
std::string count(int64_t value, llvm::StringRef noun);

/// Checks that there are one to kMaxMeshAxes axes with different names, and as
/// many different ranks as the product of the axes' sizes.
void checkMesh(const Mesh &mesh, const CheckReport &report);

/// Whether the shape has at most kMaxElements elements. Reports an error if not.
bool checkElements(const Parameter &parameter, const CheckReport &report);

/// Checks the shape: at most kMaxElements elements, and batch axes that leave a matrix. Checks that each row
/// or column of a divided matrix lies in one block.
void checkShape(const Parameter &parameter, const CheckReport &report);

class BucketIndex;

/// Checks the placements of parameter, gradient and states: one per axis,
/// dimensions within the shape, and all that geometry::checkPlacements checks.
/// Makes negative dimensions positive, and replaces partial placements along an
/// axis of one rank by R. Flat placements get their ranges from `buckets`. If
/// `buckets` is null, flat placements without ranges are errors.
void checkPlacements(Parameter &parameter, const Mesh &mesh, BucketIndex *buckets,
                     const CheckReport &report);

/// Checks that no two meshes have one name, and that no two parameters share a
/// name or alias without wrappers' prefixes. Pointers start at the manifest's
/// root. The report's third argument is the parameter's name.
void checkNames(const Manifest &manifest,
                const std::function<void(const std::string &, const std::string &,
                                         const std::string &)> &report);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_MANIFESTCHECK_H
