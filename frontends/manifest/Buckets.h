// Flat buckets: how they read, and the ranges of the parameters in them.

#ifndef STEPC_FRONTENDS_MANIFEST_BUCKETS_H
#define STEPC_FRONTENDS_MANIFEST_BUCKETS_H

#include "frontends/manifest/JsonText.h"
#include "frontends/manifest/ManifestCheck.h"
#include "llvm/ADT/StringMap.h"

namespace stepc::manifest {

/// Reads `buckets` of a manifest; each gets an entry, whatever it holds.
void readBuckets(const llvm::json::Value &value, JsonText &json, std::vector<Bucket> &buckets);

/// The buckets of a manifest by the names of the parameters in them.
class BucketIndex {
public:
  /// Reports names that stand in two places.
  BucketIndex(const std::vector<Bucket> &buckets, const CheckReport &report);

  /// Gives the parameter's flat placements, of which the manifest gives no ranges, those that follow from
  /// its bucket. Reports what does not fit at the parameter.
  void cut(Parameter &parameter, const Mesh &mesh, const CheckReport &report);
  /// After all parameters: reports members that do not exist, that are not flat, that overlap, and those
  /// of one bucket on different ranks.
  void check(const Manifest &manifest, const CheckReport &report) const;
  /// Whether a bucket says where this parameter's ranges are.
  bool has(llvm::StringRef parameter) const { return members.contains(parameter); }

private:
  struct Member {
    size_t bucket, index;
    int64_t elements = -1; // of its largest shard; -1: it is not flat, or was not seen
    std::string ranks;     // which share the bucket
  };
  const std::vector<Bucket> &buckets;
  llvm::StringMap<Member> members;
};

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_BUCKETS_H
