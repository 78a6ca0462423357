// Flat buckets: reads them, and computes the ranges of the parameters in them.

#ifndef STEPC_FRONTENDS_MANIFEST_BUCKETS_H
#define STEPC_FRONTENDS_MANIFEST_BUCKETS_H

#include "frontends/manifest/JsonText.h"
#include "frontends/manifest/ManifestCheck.h"
#include "llvm/ADT/StringMap.h"
#include <set>

namespace stepc::manifest {

/// Reads the key `buckets` of a manifest. A bucket with errors gets an entry in `buckets`, too.
void readBuckets(const llvm::json::Value &value, JsonText &json, std::vector<Bucket> &buckets);

/// The buckets of a manifest by the names of the parameters in them.
class BucketIndex {
public:
  /// Reports two buckets of one name, and parameters that buckets list twice. JSON pointers in reports start
  /// at the manifest's root.
  BucketIndex(const std::vector<Bucket> &buckets, const CheckReport &report);

  /// Computes a parameter's ranges from its bucket and stores them in the first flat placement of `list`. If
  /// the list has ranges already, they must be equal. The caller must have checked the rest of the list.
  /// `where` is the first flat placement's JSON pointer, for `atParameter`. A bucket whose figures cannot be
  /// right is reported once, at the bucket.
  void cut(const Parameter &parameter, std::vector<Placement> &list, const Mesh &mesh,
           const std::string &where, const CheckReport &atParameter);
  /// Call after cut() of all parameters. Reports members that do not exist, that are not flat, that overlap,
  /// or that lie on other ranks than the first member of their bucket.
  void check(const Manifest &manifest) const;
  /// Whether a bucket says where this parameter's ranges are.
  bool has(llvm::StringRef parameter) const { return members.contains(parameter); }

private:
  struct BucketMember {
    size_t bucket, index;
    int64_t elements = -1; // the most elements that flat axes divide; -1: none seen yet
    std::string ranks;     // the axes and the mesh that divide the bucket, for messages
  };
  const std::vector<Bucket> &buckets;
  CheckReport report;
  std::set<std::string> reported; // JSON pointers of the figures that were reported as wrong
  llvm::StringMap<BucketMember> members;
};

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_BUCKETS_H
