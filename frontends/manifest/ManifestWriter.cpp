#include "frontends/manifest/Buckets.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <numeric>

namespace json = llvm::json;

namespace stepc::manifest {
namespace {

/// Writes a list on one line. json::OStream alone would give each number of a
/// shape a line.
void writeList(json::OStream &out, llvm::StringRef key, const json::Array &items) {
  out.attributeBegin(key);
  out.rawValue([&](llvm::raw_ostream &os) {
    os << '[';
    for (size_t i = 0; i < items.size(); ++i)
      os << (i ? ", " : "") << items[i];
    os << ']';
  });
  out.attributeEnd();
}

json::Array placementTexts(std::vector<Placement> placements, bool isInBucket) {
  json::Array texts;
  for (Placement &placement : placements) {
    if (isInBucket)
      placement.cuts.clear(); // the bucket determines them
    texts.push_back(toString(placement));
  }
  return texts;
}

void writeBucket(json::OStream &out, const Bucket &bucket) {
  out.attribute("name", bucket.name);
  out.attribute("size", bucket.size);
  if (bucket.alignment != 1)
    out.attribute("alignment", bucket.alignment);
  out.attributeArray("parameters", [&] {
    for (const Bucket::Range &member : bucket.parameters)
      out.rawValue([&](llvm::raw_ostream &os) {
        os << "{\"name\": " << json::Value(member.name) << ", \"offset\": " << member.offset << "}";
      });
  });
}

void writeMesh(json::OStream &out, const Mesh &mesh) {
  out.attribute("name", mesh.name);
  out.attributeArray("axes", [&] {
    for (auto [name, size] : llvm::zip_equal(mesh.axes, mesh.sizes))
      out.rawValue([&](llvm::raw_ostream &os) {
        os << "{\"name\": " << json::Value(name) << ", \"size\": " << size << "}";
      });
  });
  std::vector<int64_t> implied(mesh.ranks.size());
  std::iota(implied.begin(), implied.end(), 0);
  if (mesh.ranks != implied)
    writeList(out, "ranks", json::Array(mesh.ranks));
}

void writeParameter(json::OStream &out, const Parameter &parameter, bool isInBucket) {
  out.attribute("name", parameter.name);
  if (!parameter.aliases.empty())
    writeList(out, "aliases", json::Array(parameter.aliases));
  writeList(out, "shape", json::Array(parameter.shape));
  out.attribute("dtype", llvm::StringRef(plan::name(parameter.dtype)));
  if (parameter.gradDType != parameter.dtype)
    out.attribute("grad_dtype", llvm::StringRef(plan::name(parameter.gradDType)));
  out.attribute("mesh", parameter.mesh);
  writeList(out, "placements", placementTexts(parameter.placements, isInBucket));
  if (parameter.gradPlacements != parameter.placements)
    writeList(out, "grad_placements", placementTexts(parameter.gradPlacements, isInBucket));
  if (parameter.statePlacements != parameter.placements)
    writeList(out, "state_placements", placementTexts(parameter.statePlacements, isInBucket));
  if (parameter.batchAxes)
    out.attribute("batch_axes", parameter.batchAxes);
  if (parameter.flatten)
    out.attribute("flatten", parameter.flatten);
  if (!parameter.blocks.parts.empty())
    out.attributeObject("blocks", [&] {
      out.attribute("axis", llvm::StringRef(plan::name(parameter.blocks.axis)));
      json::Array parts;
      for (const std::vector<plan::Span> &part : parameter.blocks.parts) {
        json::Array spans;
        for (const plan::Span &span : part)
          spans.push_back(json::Array{span.begin, span.end});
        parts.push_back(std::move(spans));
      }
      writeList(out, "runs", parts);
    });
  if (!parameter.requiresGrad)
    out.attribute("requires_grad", false);
}

} // namespace

std::string writeManifest(const Manifest &manifest) {
  std::string text;
  llvm::raw_string_ostream os(text);
  json::OStream out(os, 2);
  out.object([&] {
    out.attribute("version", manifest.version);
    out.attributeArray("meshes", [&] {
      for (const Mesh &mesh : manifest.meshes)
        out.object([&] { writeMesh(out, mesh); });
    });
    if (!manifest.buckets.empty())
      out.attributeArray("buckets", [&] {
        for (const Bucket &bucket : manifest.buckets)
          out.object([&] { writeBucket(out, bucket); });
      });
    if (manifest.cluster)
      out.attributeObject("cluster", [&] { writeCluster(out, *manifest.cluster); });
    out.attributeArray("parameters", [&] {
      BucketIndex buckets(manifest.buckets, [](auto &, auto &) {});
      for (const Parameter &parameter : manifest.parameters)
        out.object([&] { writeParameter(out, parameter, buckets.has(parameter.name)); });
    });
  });
  os << '\n';
  return text;
}

} // namespace stepc::manifest
