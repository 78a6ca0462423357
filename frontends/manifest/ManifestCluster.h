// The cluster: the machines as a manifest, or a file of their own, describes them.

#ifndef STEPC_FRONTENDS_MANIFEST_MANIFESTCLUSTER_H
#define STEPC_FRONTENDS_MANIFEST_MANIFESTCLUSTER_H

#include "frontends/manifest/JsonText.h"
#include "passes/cost/Cluster.h"
#include "runtime/plan/Plan.h"
#include "llvm/ADT/ArrayRef.h"

namespace stepc::manifest {

/// Links of one kind, in the units of the JSON text. Absent figures come from the profile's level of this
/// name.
struct ClusterLevel {
  std::string name;
  /// How many ranks these links join into a domain. If the profile gives no number either, the level must be
  /// the last, and its links join all ranks.
  std::optional<int64_t> ranks;
  /// The bandwidth of one rank, one way, in 1e9 bytes per second.
  std::optional<double> bandwidth;
  /// The time of one message, and that of each further message at the same time, in microseconds.
  std::optional<double> latency, gap;
  bool operator==(const ClusterLevel &) const = default;
};

/// Figures of the machines for the cost model. Each of them may be absent.
struct Cluster {
  /// The profile's name. If empty, the profile of the library's target is used.
  std::string profile;
  /// Levels, the innermost first. If empty, the profile's levels are used.
  std::vector<ClusterLevel> levels;
  /// Figures of one rank's device. `tflops`: 1e12 operations per second on matrices. `memory`: 1e9 bytes per
  /// second. `capacity`: 1e9 bytes. `launch`: microseconds. `threads`: how many share a launch.
  std::optional<double> tflops, memory, capacity, launch;
  std::optional<int64_t> threads;

  /// Whether all figures of a cost::Cluster are present, so that none comes from a profile.
  bool isComplete() const;
  /// The cluster in the units of the cost model. Absent figures come from the profile `profile`. If that name
  /// is empty, they come from `base`.
  cost::Cluster resolve(const cost::Cluster &base) const;
  /// The last level, whose domain holds all ranks. Nothing if neither `levels` nor `profile` is set.
  std::optional<cost::Level> lastLevel() const;
  bool operator==(const Cluster &) const = default;
};

/// Reads the cluster `value`, which stands at `pointer` of the JSON text. Reports errors to `json`.
Cluster readCluster(JsonText &json, const llvm::json::Value &value, const std::string &pointer);
/// Reads only the `device` of a cluster into `cluster`.
void readDevice(JsonText &json, const llvm::json::Value &value, const std::string &pointer,
                Cluster &cluster);
/// Reads a file that holds one cluster, and checks that the cluster has the ranks of `meshes`. Returns
/// nothing if there was an error; all errors of the text are in `errors`.
std::optional<Cluster> readCluster(llvm::StringRef text, llvm::StringRef file,
                                   llvm::ArrayRef<plan::Mesh> meshes, ErrorList &errors);
/// Writes the keys of a cluster. Absent figures are left out.
void writeCluster(llvm::json::OStream &out, const Cluster &cluster);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_MANIFESTCLUSTER_H
