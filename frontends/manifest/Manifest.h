// The manifest: the parameters of one model and where each lives on the device
// meshes. docs/manifest.md documents the JSON form, version 1, key by key.

#ifndef STEPC_FRONTENDS_MANIFEST_MANIFEST_H
#define STEPC_FRONTENDS_MANIFEST_MANIFEST_H

#include "frontends/manifest/InputError.h"
#include "frontends/manifest/ManifestCluster.h"
#include "runtime/plan/Plan.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepc::manifest {

/// The version of the schema that this compiler reads and writes.
inline constexpr int64_t kManifestVersion = 1;
/// The most axes of a mesh; the least is one. Apart from pipeline stages, no trainer has more.
inline constexpr size_t kMaxMeshAxes = 5;
/// Ranks in one mesh. The list of ranks is explicit in memory, so it needs a
/// bound.
inline constexpr int64_t kMaxMeshRanks = int64_t(1) << 20;
/// Elements of one parameter: 4 TiB of float32 are more than any device holds, and sums over a
/// million parameters still fit int64. `optim.parameter` has the same bound.
inline constexpr int64_t kMaxElements = int64_t(1) << 40;
/// The most elements in one tensor of a file: its bytes, even as float64, stay within 2^62, so that sums of
/// two offsets never overflow int64.
inline constexpr int64_t kMaxTensorElements = int64_t(1) << 59;

using plan::DType, plan::Mesh, plan::Placement, plan::PlacementKind;

/// The type of a parameter or gradient from its name: "f32", "bf16" or "f16".
std::optional<DType> parseDType(llvm::StringRef text);

/// The text forms of placements, for messages. Only gradients may be partial.
std::string placementForms(bool mayBePartial);

/// Reads a text form; blanks around numbers are ignored, dimensions may be
/// negative. On failure returns nothing and sets `error` to "expected ..., found ...", with the
/// allowed forms and the nearest one. A well-formed partial placement is returned even if
/// `mayBePartial` is false: geometry::checkPlacements refuses it with a better reason.
std::optional<Placement> parsePlacement(llvm::StringRef text, bool mayBePartial,
                                        std::string &error);

/// Cuts "S(0),_S(1, 2)" at the commas outside parentheses.
std::vector<std::string> splitPlacements(llvm::StringRef text);

struct Parameter {
  std::string name;
  /// Other names of the same storage (tied weights).
  std::vector<std::string> aliases;
  /// The global shape; empty for a scalar.
  std::vector<int64_t> shape;
  DType dtype = DType::F32;
  DType gradDType = DType::F32;
  /// The name of its mesh.
  std::string mesh;
  /// One placement per mesh axis. If the manifest gives none for gradient or states, the parameter's
  /// hold for them, too. Flat placements have the cuts that follow from the parameter's bucket.
  std::vector<Placement> placements;
  std::vector<Placement> gradPlacements;
  std::vector<Placement> statePlacements;
  /// Leading axes that count matrices (experts): 0 or, if nothing is flattened, the rank of the shape less 2.
  int64_t batchAxes = 0;
  /// The first of the axes that are flattened into a matrix's columns (convolutions); 0 if none are.
  int64_t flatten = 0;
  /// How each matrix is divided into blocks; has no parts if it is not divided.
  plan::Division blocks;
  bool requiresGrad = true;

  int64_t numElements() const;
  /// How many ranks of its mesh contribute to the gradient: 1 if it is not partial.
  plan::Contributions contributions(const Mesh &mesh) const;
  /// The index of the contribution that the rank at a position of the mesh has.
  int64_t contributionOf(const Mesh &mesh, int64_t position) const;
  bool operator==(const Parameter &) const = default;
};

/// One flat buffer in which a trainer keeps parameters one after the other. Each rank holds an equal share of
/// the buffer (ZeRO), and the ranges of its parameters follow from these shares.
struct Bucket {
  struct Range {
    std::string name;   // of a parameter
    int64_t offset = 0; // of its first element; what lies between parameters is padding
    bool operator==(const Range &) const = default;
  };
  std::string name;
  int64_t size = 0;      // elements, with the padding
  int64_t alignment = 1; // elements; each rank's share is a multiple of this number
  std::vector<Range> parameters;
  bool operator==(const Bucket &) const = default;
};

struct Manifest {
  int64_t version = kManifestVersion;
  std::vector<Mesh> meshes;
  std::vector<Bucket> buckets;
  std::optional<Cluster> cluster;
  std::vector<Parameter> parameters;

  /// The mesh of that name. Null if there is none.
  const Mesh *findMesh(llvm::StringRef name) const;
  /// The library's world: the ranks of all meshes that hold a parameter,
  /// ascending.
  std::vector<int64_t> worldRanks() const;
  bool operator==(const Manifest &) const = default;
};

/// Reads a manifest from JSON text; `file` names it in errors. Returns nothing
/// if there was an error; all errors of the text are in `errors`, in the order
/// of the text.
std::optional<Manifest> readManifest(llvm::StringRef text, llvm::StringRef file, ErrorList &errors);

/// JSON with stable order and defaults left out: readManifest(writeManifest(m))
/// == m for every m that checks without errors.
std::string writeManifest(const Manifest &manifest);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_MANIFEST_H
