#include "frontends/manifest/Buckets.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>
#include <numeric>

namespace json = llvm::json;

namespace stepc::manifest {
namespace {

constexpr int64_t kMaxRank = std::numeric_limits<int32_t>::max();

/// Turns JSON into structs. A part with a bad value is not checked further, so that one mistake gives one
/// error. Everything else is checked.
class ManifestReader {
public:
  ManifestReader(llvm::StringRef text, llvm::StringRef file, ErrorList &errors)
      : errors(errors), json(text, file, errors) {}

  std::optional<Manifest> read() {
    if (!json.read([&](const json::Value &root) { readRoot(root); }))
      return std::nullopt;
    return std::move(manifest);
  }

private:
  using Pointer = std::string;

  void readRoot(const json::Value &root);
  void readMesh(const json::Value &value, const Pointer &at);
  void checkClusterRanks(const json::Object &root);
  void readParameter(const json::Value &value, const Pointer &at);
  void readNames(const json::Value *value, const Pointer &at, std::vector<std::string> &names);
  void readDType(const json::Value *value, const Pointer &at, DType &dtype);
  void readBlocks(const json::Value *value, const Pointer &at, bool shapeIsGood,
                  Parameter &parameter);
  void readPlacements(const json::Value *value, const Pointer &at, bool ofGradient,
                      std::vector<Placement> &placements);

  CheckReport reportAt(const Pointer &at) {
    return [this, at](const std::string &pointer, const std::string &message) {
      json.error(at + pointer, message);
    };
  }

  ErrorList &errors;
  JsonText json;
  Manifest manifest;
  std::optional<BucketIndex> buckets;
  /// By index of the mesh: whether the mesh was read and checked without errors.
  std::vector<bool> meshIsGood;
};

void ManifestReader::readRoot(const json::Value &root) {
  // The version is checked first: another version has other keys, whose errors
  // would mislead.
  if (const json::Object *raw = root.getAsObject()) {
    const json::Value *version = json.required(*raw, "version", "");
    if (version && version->getAsInteger() != kManifestVersion)
      return json.mismatch(
          "/version", "version " + llvm::Twine(kManifestVersion) + ", the one this stepc reads",
          *version);
  }
  const json::Object *object = json.object(
      root, "", "a manifest", {"version", "meshes", "buckets", "cluster", "parameters"});
  if (!object)
    return;
  if (const json::Value *value = json.required(*object, "meshes", ""))
    if (const json::Array *meshes = json.array(*value, "/meshes", "an array of meshes"))
      for (auto [i, mesh] : llvm::enumerate(*meshes))
        readMesh(mesh, "/meshes/" + std::to_string(i));
  if (const json::Value *value = object->get("buckets"))
    readBuckets(*value, json, manifest.buckets);
  buckets.emplace(manifest.buckets, reportAt(""));
  size_t before = errors.size();
  if (const json::Value *value = object->get("cluster"))
    manifest.cluster = readCluster(json, *value, "/cluster");
  if (errors.size() == before) // levels with errors have no known number of ranks
    checkClusterRanks(*object);
  if (const json::Value *value = json.required(*object, "parameters", "")) {
    if (const json::Array *list = json.array(*value, "/parameters", "an array of parameters")) {
      if (list->empty())
        json.error("/parameters", "expected at least one parameter, found none");
      manifest.parameters.reserve(list->size());
      for (auto [i, parameter] : llvm::enumerate(*list))
        readParameter(parameter, "/parameters/" + std::to_string(i));
    }
  }
  // After an error a bucket may name a parameter that could not be read.
  if (errors.empty())
    buckets->check(manifest);
  checkNames(manifest,
             [&](const Pointer &at, const std::string &message, const std::string &parameter) {
               json.setParameter(parameter);
               json.error(at, message);
               json.setParameter("");
             });
}

void ManifestReader::readMesh(const json::Value &value, const Pointer &at) {
  size_t before = errors.size();
  // A mesh with errors gets an entry, too, so that indices agree with the JSON text.
  Mesh &mesh = manifest.meshes.emplace_back();
  if (const json::Object *object = json.object(value, at, "a mesh", {"name", "axes", "ranks"})) {
    if (const json::Value *name = json.required(*object, "name", at))
      mesh.name = json.name(*name, at + "/name", "a name").value_or("");
    const json::Value *axesValue = json.required(*object, "axes", at);
    const json::Array *axes =
        axesValue ? json.array(*axesValue, at + "/axes", "an array of axes") : nullptr;
    for (size_t i = 0; axes && i < axes->size(); ++i) {
      Pointer axisAt = at + "/axes/" + std::to_string(i);
      std::string &axis = mesh.axes.emplace_back();
      int64_t &extent = mesh.sizes.emplace_back(1);
      const json::Object *axisObject =
          json.object((*axes)[i], axisAt, "a mesh axis", {"name", "size"});
      if (!axisObject)
        continue;
      if (const json::Value *name = json.required(*axisObject, "name", axisAt))
        axis = json.name(*name, axisAt + "/name", "a name").value_or("");
      if (const json::Value *size = json.required(*axisObject, "size", axisAt))
        extent = json.integer(*size, axisAt + "/size", "a size from 1 to 1048576", 1, kMaxMeshRanks)
                     .value_or(1);
    }
    if (const json::Value *ranks = object->get("ranks")) {
      if (const json::Array *list = json.array(*ranks, at + "/ranks", "an array of ranks"))
        for (auto [i, rank] : llvm::enumerate(*list))
          mesh.ranks.push_back(json.integer(rank, at + "/ranks/" + std::to_string(i),
                                            "a rank from 0 to 2147483647", 0, kMaxRank)
                                   .value_or(0));
    } else if (errors.size() == before) {
      // checkMesh below reports too many axes or ranks. Here they must only not
      // overflow or fill the memory.
      int64_t ranks = 1;
      for (int64_t size : mesh.sizes)
        ranks = ranks > kMaxMeshRanks ? ranks : ranks * size;
      mesh.ranks.resize(ranks > kMaxMeshRanks ? 0 : ranks);
      std::iota(mesh.ranks.begin(), mesh.ranks.end(), 0);
    }
  }
  if (errors.size() == before)
    checkMesh(mesh, reportAt(at));
  meshIsGood.push_back(errors.size() == before);
}

void ManifestReader::checkClusterRanks(const json::Object &root) {
  std::optional<cost::Level> last = manifest.cluster ? manifest.cluster->lastLevel() : std::nullopt;
  if (!last)
    return;
  for (auto [i, mesh] : llvm::enumerate(manifest.meshes)) {
    auto beyond = llvm::find_if(mesh.ranks, [&](int64_t rank) { return rank >= last->ranks; });
    if (beyond == mesh.ranks.end())
      continue;
    // A mesh without a list of ranks has ranks from 0 on, whose number follows from its axes.
    bool isListed = (*root.getArray("meshes"))[i].getAsObject()->get("ranks");
    int64_t found = isListed ? *beyond : int64_t(mesh.ranks.size()) - 1;
    json.error("/meshes/" + std::to_string(i) +
                   (isListed ? "/ranks/" + std::to_string(beyond - mesh.ranks.begin()) : "/axes"),
               (isListed ? "expected a rank below " : "expected ranks below ") +
                   llvm::Twine(last->ranks) + ", because the cluster's level '" + last->name +
                   "' has " + count(last->ranks, "rank") + ", found " +
                   (isListed ? "" : "ranks 0 to ") + llvm::Twine(found));
  }
}

void ManifestReader::readNames(const json::Value *value, const Pointer &at,
                               std::vector<std::string> &names) {
  const json::Array *list = value ? json.array(*value, at, "an array of names") : nullptr;
  for (size_t i = 0; list && i < list->size(); ++i)
    names.push_back(json.name((*list)[i], at + "/" + std::to_string(i), "a name").value_or(""));
}

void ManifestReader::readDType(const json::Value *value, const Pointer &at, DType &dtype) {
  if (!value)
    return;
  std::optional<DType> read = parseDType(value->getAsString().value_or(""));
  if (read)
    dtype = *read;
  else
    json.mismatch(at, "f32, bf16 or f16", *value);
}

void ManifestReader::readPlacements(const json::Value *value, const Pointer &at, bool ofGradient,
                                    std::vector<Placement> &placements) {
  const json::Array *list = value ? json.array(*value, at, "an array of placements") : nullptr;
  if (list)
    placements.clear();
  for (size_t i = 0; list && i < list->size(); ++i) {
    Pointer itemAt = at + "/" + std::to_string(i);
    std::optional<llvm::StringRef> text = (*list)[i].getAsString();
    std::string error;
    if (!text)
      json.mismatch(itemAt, placementForms(ofGradient) + " as a string", (*list)[i]);
    else if (std::optional<Placement> placement = parsePlacement(*text, ofGradient, error))
      placements.push_back(*placement);
    else
      json.error(itemAt, error);
  }
}

void ManifestReader::readBlocks(const json::Value *value, const Pointer &at, bool shapeIsGood,
                                Parameter &parameter) {
  plan::Division &blocks = parameter.blocks;
  const json::Object *object =
      value ? json.object(*value, at, "blocks", {"axis", "runs", "sizes", "repeat"}) : nullptr;
  if (!object)
    return;
  if (const json::Value *axis = json.required(*object, "axis", at)) {
    if (auto named = plan::parse<plan::Division::Axis>(axis->getAsString().value_or("")))
      blocks.axis = *named;
    else
      json.mismatch(at + "/axis", plan::oneOf(plan::kNames<plan::Division::Axis>), *axis);
  }
  const json::Value *runs = object->get("runs"), *sizes = object->get("sizes");
  size_t before = errors.size();
  if (!runs == !sizes || (runs && object->get("repeat")))
    return json.error(at, std::string("expected runs, or sizes with or without repeat, found ") +
                              (!runs   ? "neither"
                               : sizes ? "runs and sizes"
                                       : "runs with repeat"));
  auto number = [&](const json::Value &value, const Pointer &at, int64_t low) {
    return json
        .integer(value, at, low ? "a size from 1 to 2^40" : "an index from 0 to 2^40", low,
                 kMaxElements)
        .value_or(0);
  };
  Pointer listAt = at + (runs ? "/runs" : "/sizes");
  const json::Array *list = json.array(runs ? *runs : *sizes, listAt, "an array of blocks");
  if (list && list->empty())
    json.error(listAt, "expected at least one block, found none");
  int64_t repeat = 1, end = 0;
  if (const json::Value *times = object->get("repeat"))
    repeat =
        json.integer(*times, at + "/repeat", "a number from 1 to 65536", 1, 1 << 16).value_or(1);
  for (size_t i = 0; list && i < list->size(); ++i) {
    Pointer partAt = listAt + "/" + std::to_string(i);
    std::vector<plan::Span> &part = blocks.parts.emplace_back();
    if (!runs) {
      int64_t begin = end;
      end += number((*list)[i], partAt, 1);
      part.push_back({begin, end});
      if (end > kMaxElements / repeat)
        return json.error(listAt, "expected at most 2^40 rows or columns, found more");
      continue;
    }
    const json::Array *spans = json.array((*list)[i], partAt, "an array of runs");
    for (size_t j = 0; spans && j < spans->size(); ++j) {
      Pointer spanAt = partAt + "/" + std::to_string(j);
      const json::Array *span = (*spans)[j].getAsArray();
      if (span && span->size() == 2)
        part.push_back(
            {number((*span)[0], spanAt + "/0", 0), number((*span)[1], spanAt + "/1", 0)});
      else
        json.mismatch(spanAt, "a run [begin, end]", (*spans)[j]);
    }
  }
  // The sum of sizes is checked before runs are repeated: a few bytes of text must not become a million runs.
  bool isRows = blocks.axis == plan::Division::Rows;
  size_t rank = parameter.shape.size();
  bool isMatrix =
      shapeIsGood &&
      (parameter.flatten == 0
           ? rank >= 2
           : parameter.batchAxes < int64_t(rank) &&
                 plan::checkFlatten(rank, parameter.batchAxes, parameter.flatten).empty());
  plan::View matrix =
      isMatrix
          ? plan::matrixView(parameter.shape, parameter.flatten ? parameter.batchAxes : rank - 2,
                             parameter.flatten)
          : plan::View();
  if (sizes && errors.size() == before && isMatrix)
    if (int64_t axis = isRows ? matrix.rows : matrix.cols; end * repeat != axis)
      return json.error(listAt, "expected sizes that add up to " + std::to_string(axis) +
                                    (isRows ? " rows" : " columns") + ", found " +
                                    std::to_string(end * repeat));
  for (std::vector<plan::Span> &part : blocks.parts)
    for (int64_t i = 1; i < repeat; ++i)
      part.push_back({part[0].begin + i * end, part[0].end + i * end});
}

void ManifestReader::readParameter(const json::Value &value, const Pointer &at) {
  Parameter &parameter = manifest.parameters.emplace_back();
  if (const json::Object *raw = value.getAsObject())
    json.setParameter(raw->getString("name").value_or(""));
  const json::Object *object = json.object(
      value, at, "a parameter",
      {"name", "aliases", "shape", "dtype", "grad_dtype", "mesh", "placements", "grad_placements",
       "state_placements", "batch_axes", "flatten", "blocks", "requires_grad"});
  if (!object)
    return json.setParameter("");

  if (const json::Value *name = json.required(*object, "name", at))
    parameter.name = json.name(*name, at + "/name", "a name").value_or("");
  readNames(object->get("aliases"), at + "/aliases", parameter.aliases);
  readDType(json.required(*object, "dtype", at), at + "/dtype", parameter.dtype);
  parameter.gradDType = parameter.dtype;
  readDType(object->get("grad_dtype"), at + "/grad_dtype", parameter.gradDType);
  if (const json::Value *flag = object->get("requires_grad")) {
    if (std::optional<bool> read = flag->getAsBoolean())
      parameter.requiresGrad = *read;
    else
      json.mismatch(at + "/requires_grad", "true or false", *flag);
  }

  size_t before = errors.size();
  const json::Value *shapeValue = json.required(*object, "shape", at);
  const json::Array *shape =
      shapeValue ? json.array(*shapeValue, at + "/shape", "an array of sizes") : nullptr;
  for (size_t i = 0; shape && i < shape->size(); ++i)
    parameter.shape.push_back(json.integer((*shape)[i], at + "/shape/" + std::to_string(i),
                                           "a size from 1 to 2^40", 1, kMaxElements)
                                  .value_or(1));
  if (const json::Value *batch = object->get("batch_axes"))
    parameter.batchAxes =
        json.integer(*batch, at + "/batch_axes", "a number of axes", 0, kMaxElements).value_or(0);
  if (const json::Value *flatten = object->get("flatten"))
    parameter.flatten = json.integer(*flatten, at + "/flatten",
                                     "the axis where columns begin, 1 or more", 1, kMaxElements)
                            .value_or(0);
  bool shapeIsGood = errors.size() == before && checkElements(parameter, reportAt(at));
  readBlocks(object->get("blocks"), at + "/blocks", shapeIsGood, parameter);
  if (errors.size() == before)
    checkShape(parameter, reportAt(at));

  const Mesh *mesh = nullptr;
  if (const json::Value *meshValue = json.required(*object, "mesh", at)) {
    parameter.mesh = json.name(*meshValue, at + "/mesh", "the name of a mesh").value_or("");
    mesh = manifest.findMesh(parameter.mesh);
    std::vector<llvm::StringRef> names;
    for (const Mesh &known : manifest.meshes)
      names.push_back(known.name);
    // If the name of a mesh could not be read, the parameter may mean that mesh.
    if (!mesh && !parameter.mesh.empty() && !llvm::is_contained(names, ""))
      json.mismatch(at + "/mesh", "the name of a mesh (" + llvm::join(names, ", ") + ")",
                    *meshValue);
  }
  readPlacements(json.required(*object, "placements", at), at + "/placements",
                 /*ofGradient=*/false, parameter.placements);
  parameter.gradPlacements = parameter.statePlacements = parameter.placements;
  readPlacements(object->get("grad_placements"), at + "/grad_placements", /*ofGradient=*/true,
                 parameter.gradPlacements);
  readPlacements(object->get("state_placements"), at + "/state_placements", /*ofGradient=*/false,
                 parameter.statePlacements);
  if (errors.size() == before && mesh && meshIsGood[mesh - manifest.meshes.data()])
    checkPlacements(parameter, *mesh, &*buckets, reportAt(at));
  json.setParameter("");
}

} // namespace

std::optional<Manifest> readManifest(llvm::StringRef text, llvm::StringRef file,
                                     ErrorList &errors) {
  return ManifestReader(text::withoutByteOrderMark(text), file, errors).read();
}

} // namespace stepc::manifest
