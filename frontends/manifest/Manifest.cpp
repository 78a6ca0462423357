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

namespace {

/// A kind of placement, and how many numbers stand behind its name.
struct PlacementForm {
  const char *name;
  PlacementKind kind;
  size_t numbers;
};
constexpr size_t kAnyNumbers = ~size_t(0);
constexpr PlacementForm kForms[] = {
    {"R", PlacementKind::Replicate, 0},       {"S", PlacementKind::Shard, 1},
    {"_S", PlacementKind::StridedShard, 2},   {"IS", PlacementKind::InterleavedShard, 2},
    {"owned", PlacementKind::Owned, 1},       {"flat", PlacementKind::Flat, kAnyNumbers},
    {"P(sum)", PlacementKind::PartialSum, 0}, {"P(avg)", PlacementKind::PartialAverage, 0},
};

} // namespace

std::optional<Placement> parsePlacement(llvm::StringRef text, std::string &error) {
  llvm::StringRef whole = text.trim(" ");
  auto fail = [&](const llvm::Twine &reason = "") -> std::optional<Placement> {
    error = ("expected " + llvm::Twine(kPlacementForms) + ", found '" + text + "'" + reason).str();
    return std::nullopt;
  };
  llvm::StringRef name =
      whole.starts_with("P(") ? whole : whole.take_until([](char c) { return c == '('; });
  llvm::StringRef inside = whole.drop_front(name.size());
  const PlacementForm *form =
      llvm::find_if(kForms, [&](const PlacementForm &each) { return name == each.name; });
  std::vector<int64_t> numbers;
  if (!inside.empty()) {
    if (!inside.consume_front("(") || !inside.consume_back(")"))
      return fail();
    llvm::SmallVector<llvm::StringRef> parts;
    inside.split(parts, ',');
    for (llvm::StringRef part : parts)
      if (part.trim(" ").getAsInteger(10, numbers.emplace_back()))
        return fail();
  }
  if (form == std::end(kForms) || (form->numbers != kAnyNumbers && form->numbers != numbers.size()))
    return fail();
  Placement placement{form->kind};
  if (placement.kind == PlacementKind::Flat)
    placement.cuts = numbers;
  else if (placement.kind == PlacementKind::Owned)
    placement.owner = numbers[0];
  else if (placement.isShard())
    placement.dim = numbers[0];
  if (form->numbers == 2)
    placement.factor = numbers[1];
  if (placement.factor < 1) {
    error =
        (llvm::Twine(placement.kind == PlacementKind::StridedShard ? "expected a split factor of"
                                                                   : "expected stripes of") +
         " at least 1, found '" + text + "'")
            .str();
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

static plan::Group withGradient(const std::vector<Placement> &placements) {
  plan::Group group;
  group.gradientPlacements = placements;
  return group;
}

plan::Contributions Parameter::contributions(const Mesh &mesh) const {
  return plan::contributions(withGradient(gradPlacements), mesh);
}

int64_t Parameter::contributionOf(const Mesh &mesh, int64_t position) const {
  return plan::contributionOf(withGradient(gradPlacements), mesh, position);
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
