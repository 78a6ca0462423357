// What a manifest, or a file by itself, says of the machines.

#ifndef STEPC_FRONTENDS_MANIFEST_MANIFESTCLUSTER_H
#define STEPC_FRONTENDS_MANIFEST_MANIFESTCLUSTER_H

#include "frontends/manifest/JsonText.h"
#include "passes/cost/Cluster.h"
#include "runtime/plan/Plan.h"
#include "llvm/ADT/ArrayRef.h"

namespace stepc::manifest {

/// Links of one kind, in the units of the text. Absent figures are those of the profile's level of this name.
struct ClusterLevel {
  std::string name;
  /// The number of ranks of a domain; those of the last level may be all.
  std::optional<int64_t> ranks;
  /// The bandwidth of one rank, one way, in 1e9 bytes per second.
  std::optional<double> bandwidth;
  /// Microseconds of one message, and of each further one at the same time.
  std::optional<double> latency, gap;
  bool operator==(const ClusterLevel &) const = default;
};

/// What the cost model knows about the machines; all of it may be absent.
struct Cluster {
  /// The profile's name. Empty: the profile of what the library is made for.
  std::string profile;
  /// Innermost first; none: the profile's.
  std::vector<ClusterLevel> levels;
  /// Figures of one rank's device: 1e12 operations per second on matrices, 1e9 bytes per second of memory,
  /// 1e9 bytes of it, microseconds of a launch, and how many threads share it.
  std::optional<double> tflops, memory, capacity, launch;
  std::optional<int64_t> threads;

  /// Whether it has all that a cost::Cluster has, so that no profile's figures are needed.
  bool isComplete() const;
  /// The cluster in the units of the cost model. Absent figures come from the profile that is named,
  /// otherwise from `base`.
  cost::Cluster resolve(const cost::Cluster &base) const;
  /// The last level, which says how many ranks there are, if it or a profile that is named does.
  std::optional<cost::Level> lastLevel() const;
  bool operator==(const Cluster &) const = default;
};

/// The cluster at `pointer` of a text that is being read.
Cluster readCluster(JsonText &json, const llvm::json::Value &value, const std::string &pointer);
/// Reads only the `device` of a cluster into `cluster`.
void readDevice(JsonText &json, const llvm::json::Value &value, const std::string &pointer,
                Cluster &cluster);
/// Reads a file that is a cluster with the ranks of these meshes. Returns nothing if there was an error; all
/// errors of the text are in `errors`.
std::optional<Cluster> readCluster(llvm::StringRef text, llvm::StringRef file,
                                   llvm::ArrayRef<plan::Mesh> meshes, ErrorList &errors);
/// Writes the keys of a cluster; defaults are left out.
void writeCluster(llvm::json::OStream &out, const Cluster &cluster);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_MANIFESTCLUSTER_H
