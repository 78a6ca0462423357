#include "frontends/manifest/Manifest.h"
#include "frontends/manifest/Names.h"
#include <set>

namespace stepc::manifest {

std::optional<DType> parseDType(llvm::StringRef text) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    if (text == llvm::StringRef(plan::name(dtype)))
      return dtype;
  return std::nullopt;
}

std::optional<Placement> parsePlacement(llvm::StringRef text, std::string &error) {
  llvm::StringRef whole = text.trim(" ");
  auto fail = [&](const llvm::Twine &reason) -> std::optional<Placement> {
    error = ("expected R, S(dim) or _S(dim, split_factor), found '" + text + "'" + reason).str();
    return std::nullopt;
  };
  if (whole == "R")
    return Placement();
  if (whole == "flat")
    return fail(": placements of kind flat are not supported yet");

  llvm::StringRef kind = whole.take_until([](char c) { return c == '('; });
  llvm::StringRef inside = whole.drop_front(kind.size());
  if (!inside.consume_front("(") || !inside.consume_back(")"))
    return fail("");
  for (llvm::StringRef later : {"P", "IS", "owned"})
    if (kind == later)
      return fail(": placements of kind " + later + " are not supported yet");

  auto [first, second] = inside.split(',');
  bool strided = kind == "_S";
  if ((kind != "S" && !strided) || strided != inside.contains(','))
    return fail("");
  Placement placement{strided ? PlacementKind::StridedShard : PlacementKind::Shard};
  if (first.trim(" ").getAsInteger(10, placement.dim) ||
      (strided && second.trim(" ").getAsInteger(10, placement.factor)))
    return fail("");
  if (placement.factor < 1) {
    error = ("expected a split factor of at least 1, found '" + text + "'").str();
    return std::nullopt;
  }
  return placement;
}

std::vector<std::string> splitPlacements(llvm::StringRef text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

int64_t Parameter::numElements() const {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

const Mesh *Manifest::findMesh(llvm::StringRef name) const {
  for (const Mesh &mesh : meshes)
    if (mesh.name == name)
      return &mesh;
  return nullptr;
}

std::vector<int64_t> Manifest::worldRanks() const {
  std::set<int64_t> ranks;
  std::set<std::string> seen;
  for (const Parameter &parameter : parameters)
    if (const Mesh *mesh = findMesh(parameter.mesh); mesh && seen.insert(mesh->name).second)
      ranks.insert(mesh->ranks.begin(), mesh->ranks.end());
  return {ranks.begin(), ranks.end()};
}

} // namespace stepc::manifest
