// What a manifest, or a file by itself, says of the machines.

#ifndef STEPC_FRONTENDS_MANIFEST_MANIFESTCLUSTER_H
#define STEPC_FRONTENDS_MANIFEST_MANIFESTCLUSTER_H

#include "frontends/manifest/JsonText.h"
#include "passes/cost/Cluster.h"
#include "runtime/plan/Plan.h"
#include "llvm/ADT/ArrayRef.h"

namespace stepc::manifest {

/// Links of one kind, in the units of the text. What is absent is that of the profile's level of this name.
struct ClusterLevel {
  std::string name;
  /// Ranks of a domain; those of the last level may be all.
  std::optional<int64_t> ranks;
  /// Of one rank, one way, in 1e9 bytes per second.
  std::optional<double> bandwidth;
  /// Of one message, and of each further one at the same time, in microseconds.
  std::optional<double> latency, gap;
  bool operator==(const ClusterLevel &) const = default;
};

/// What the cost model knows about the machines; all of it may be absent.
struct Cluster {
  /// Empty: that of what the library is made for.
  std::string profile;
  /// Innermost first; none: the profile's.
  std::vector<ClusterLevel> levels;
  /// Of one rank's device: 1e12 operations per second on matrices, 1e9 bytes of memory per second, 1e9
  /// bytes of it, microseconds of a launch, and how many threads share it.
  std::optional<double> tflops, memory, capacity, launch;
  std::optional<int64_t> threads;

  /// Whether all that a cost::Cluster has is here, and no profile's.
  bool isComplete() const;
  /// In the units of the cost model; what is absent comes from `base`, or the profile that is named.
  cost::Cluster resolve(const cost::Cluster &base) const;
  /// The last level, which says how many ranks there are, if it or a profile that is named does.
  std::optional<cost::Level> lastLevel() const;
  bool operator==(const Cluster &) const = default;
};

/// The cluster at `pointer` of a text that is being read.
Cluster readCluster(JsonText &json, const llvm::json::Value &value, const std::string &pointer);
/// The same of its `device` alone.
void readDevice(JsonText &json, const llvm::json::Value &value, const std::string &pointer,
                Cluster &cluster);
/// A file that is a cluster, which has the ranks of these meshes. Returns nothing if there was an
/// error; all errors of the text are in `errors`.
std::optional<Cluster> readCluster(llvm::StringRef text, llvm::StringRef file,
                                   llvm::ArrayRef<plan::Mesh> meshes, ErrorList &errors);
/// Its keys; defaults are left out.
void writeCluster(llvm::json::OStream &out, const Cluster &cluster);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_MANIFESTCLUSTER_H
