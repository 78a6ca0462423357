// Flat buckets: how they read, and the ranges of the parameters in them.

#ifndef STEPC_FRONTENDS_MANIFEST_BUCKETS_H
#define STEPC_FRONTENDS_MANIFEST_BUCKETS_H

#include "frontends/manifest/JsonText.h"
#include "frontends/manifest/ManifestCheck.h"
#include "llvm/ADT/StringMap.h"
#include <set>

namespace stepc::manifest {

/// Reads `buckets` of a manifest; each gets an entry, whatever it holds.
void readBuckets(const llvm::json::Value &value, JsonText &json, std::vector<Bucket> &buckets);

/// The buckets of a manifest by the names of the parameters in them.
class BucketIndex {
public:
  /// Reports names that stand in two places. Pointers start at the manifest's root.
  BucketIndex(const std::vector<Bucket> &buckets, const CheckReport &report);

  /// Gives a list of a parameter's placements the ranges that follow from its bucket, or compares them with
  /// those that it says. The list is checked in all else. Its first flat placement is at `where` for
  /// `atParameter`. If the bucket's figures cannot be right, that is reported at the bucket, once.
  void cut(const Parameter &parameter, std::vector<Placement> &list, const Mesh &mesh,
           const std::string &where, const CheckReport &atParameter);
  /// After all parameters: reports members that do not exist, that are not flat, that overlap, and those
  /// of one bucket on different ranks.
  void check(const Manifest &manifest) const;
  /// Whether a bucket says where this parameter's ranges are.
  bool has(llvm::StringRef parameter) const { return members.contains(parameter); }

private:
  struct BucketMember {
    size_t bucket, index;
    int64_t elements = -1; // of its largest shard; -1: it is not flat, or was not seen
    std::string ranks;     // which share the bucket
  };
  const std::vector<Bucket> &buckets;
  CheckReport report;
  std::set<std::string> reported; // where errors of figures stand that are said already
  llvm::StringMap<BucketMember> members;
};

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_BUCKETS_H
