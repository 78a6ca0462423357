#include "frontends/manifest/Buckets.h"
#include "runtime/geometry/Geometry.h"
#include "llvm/ADT/STLExtras.h"

namespace json = llvm::json;

namespace stepc::manifest {
namespace {

std::string pointerOf(size_t bucket, size_t member) {
  return "/buckets/" + number(bucket) + "/parameters/" + number(member);
}

} // namespace

void readBuckets(const json::Value &value, JsonText &json, std::vector<Bucket> &buckets) {
  const json::Array *list = json.array(value, "/buckets", "an array of buckets");
  for (size_t i = 0; list && i < list->size(); ++i) {
    std::string at = "/buckets/" + number(i);
    Bucket &bucket = buckets.emplace_back();
    const json::Object *object =
        json.object((*list)[i], at, "a bucket", {"name", "size", "alignment", "parameters"});
    if (!object)
      continue;
    auto elements = [&](const json::Value &value, const std::string &at, int64_t least) {
      return json.integer(value, at, "a number of elements from " + number(least) + " to 2^40",
                          least, kMaxElements);
    };
    if (const json::Value *name = json.required(*object, "name", at))
      bucket.name = json.name(*name, at + "/name", "a name").value_or("");
    if (const json::Value *size = json.required(*object, "size", at))
      bucket.size = elements(*size, at + "/size", 1).value_or(0);
    if (const json::Value *alignment = object->get("alignment"))
      bucket.alignment = elements(*alignment, at + "/alignment", 1).value_or(1);
    const json::Value *members = json.required(*object, "parameters", at);
    const json::Array *each =
        members ? json.array(*members, at + "/parameters", "an array of parameters") : nullptr;
    if (each && each->empty())
      json.error(at + "/parameters", "expected at least one parameter in the bucket, found none");
    for (size_t j = 0; each && j < each->size(); ++j) {
      std::string memberAt = pointerOf(i, j);
      Bucket::Range &member = bucket.parameters.emplace_back();
      const json::Object *fields =
          json.object((*each)[j], memberAt, "a parameter of a bucket", {"name", "offset"});
      if (!fields)
        continue;
      if (const json::Value *name = json.required(*fields, "name", memberAt))
        member.name = json.name(*name, memberAt + "/name", "the name of a parameter").value_or("");
      if (const json::Value *offset = json.required(*fields, "offset", memberAt))
        member.offset = elements(*offset, memberAt + "/offset", 0).value_or(0);
    }
  }
}

BucketIndex::BucketIndex(const std::vector<Bucket> &buckets, const CheckReport &report)
    : buckets(buckets), report(report) {
  llvm::StringMap<size_t> names;
  for (auto [i, bucket] : llvm::enumerate(buckets)) {
    auto [found, isNew] = names.try_emplace(bucket.name, i);
    if (!isNew && !bucket.name.empty())
      report("/buckets/" + number(i) + "/name",
             "expected a name that no other bucket has, found '" + bucket.name +
                 "', also at /buckets/" + number(found->second) + "/name");
    for (auto [j, member] : llvm::enumerate(bucket.parameters)) {
      auto [other, isFirst] = members.try_emplace(member.name, BucketMember{i, j, -1, ""});
      if (!isFirst && !member.name.empty())
        report(pointerOf(i, j) + "/name", "expected each parameter in one bucket once, found '" +
                                              member.name + "', also at " +
                                              pointerOf(other->second.bucket, other->second.index));
    }
  }
}

void BucketIndex::cut(const Parameter &parameter, std::vector<Placement> &list, const Mesh &mesh,
                      const std::string &where, const CheckReport &atParameter) {
  auto found = members.find(parameter.name);
  auto cut = llvm::find_if(list, [](const Placement &each) { return !each.cuts.empty(); });
  if (found == members.end()) {
    if (cut == list.end())
      atParameter(where, "expected a bucket that holds '" + parameter.name +
                             "', which says where its ranges begin, found none");
    return;
  }
  BucketMember &member = found->second;
  const Bucket &bucket = buckets[member.bucket];
  int64_t ranks = 1;
  std::vector<Placement> others = list;
  std::string sharing;
  Placement *first = nullptr;
  for (auto [axis, placement] : llvm::enumerate(others))
    if (placement.kind == PlacementKind::Flat) {
      first = first ? first : &list[axis];
      placement = Placement();
      ranks *= mesh.sizes[axis];
      sharing += (sharing.empty() ? "" : ", ") + mesh.axes[axis];
    }
  int64_t elements = geometry::mostElements(parameter.shape, others, mesh);
  int64_t offset = bucket.parameters[member.index].offset;
  member.elements = std::max(member.elements, elements);
  member.ranks = "axis " + sharing + " of mesh '" + mesh.name + "'";
  auto reportOnce = [&](const std::string &at, const std::string &message) {
    if (reported.insert(at).second)
      report(at, message);
  };
  if (bucket.size == 0) // the size could not be read
    return;
  if (bucket.size % (ranks * bucket.alignment))
    reportOnce("/buckets/" + number(member.bucket) + "/size",
               "expected a multiple of " + number(ranks) + " ranks × " + number(bucket.alignment) +
                   " elements of alignment, found " + number(bucket.size));
  else if (offset > bucket.size - elements)
    reportOnce(pointerOf(member.bucket, member.index) + "/offset",
               "expected '" + parameter.name + "' inside of bucket '" + bucket.name + "' of " +
                   number(bucket.size) + " elements, found elements " + number(offset) + " to " +
                   number(offset + elements));
  Placement derived{PlacementKind::Flat};
  for (int64_t rank = 0; rank <= ranks; ++rank)
    derived.cuts.push_back(std::clamp<int64_t>(bucket.size / ranks * rank - offset, 0, elements));
  // Ranges in the manifest come from the trainer's shards. If they differ, the bucket's figures are wrong.
  if (cut != list.end() && (&*cut != first || *cut != derived))
    atParameter(where, "expected " + std::string(toString(derived)) + ", since bucket '" +
                           bucket.name + "' has '" + parameter.name + "' at " + number(offset) +
                           ", found '" + toString(*cut) + "'");
  *first = std::move(derived);
}

void BucketIndex::check(const Manifest &manifest) const {
  llvm::StringMap<char> known;
  for (const Parameter &parameter : manifest.parameters)
    known[parameter.name] = 0;
  for (auto [i, bucket] : llvm::enumerate(buckets)) {
    std::vector<std::pair<int64_t, size_t>> order; // offsets and indices of the members
    const BucketMember *first = nullptr;
    for (auto [j, each] : llvm::enumerate(bucket.parameters)) {
      auto found = members.find(each.name);
      if (each.name.empty() || found == members.end() || found->second.bucket != i ||
          found->second.index != j)
        continue;
      const BucketMember &member = found->second;
      if (!known.contains(each.name)) {
        report(pointerOf(i, j) + "/name",
               "expected the name of a parameter, found '" + each.name + "'");
        continue;
      }
      if (member.elements < 0) {
        report(pointerOf(i, j),
               "expected a parameter with a flat placement, found '" + each.name + "' without one");
        continue;
      }
      first = first ? first : &member;
      if (member.ranks != first->ranks)
        report(pointerOf(i, j), "expected all parameters of bucket '" + bucket.name + "' flat on " +
                                    first->ranks + ", found '" + each.name + "' on " +
                                    member.ranks);
      order.push_back({each.offset, j});
    }
    llvm::sort(order);
    for (size_t k = 1; k < order.size(); ++k) {
      const Bucket::Range &before = bucket.parameters[order[k - 1].second];
      int64_t end = before.offset + members.find(before.name)->second.elements;
      if (order[k].first < end)
        report(pointerOf(i, order[k].second) + "/offset",
               "expected parameters that do not overlap, found '" +
                   bucket.parameters[order[k].second].name + "' at " + number(order[k].first) +
                   " inside of '" + before.name + "', which ends at " + number(end));
    }
  }
}

} // namespace stepc::manifest
