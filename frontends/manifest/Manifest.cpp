#include "frontends/manifest/Manifest.h"
#include "frontends/manifest/Names.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

namespace stepc::manifest {

std::optional<DType> parseDType(llvm::StringRef text) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    if (text == llvm::StringRef(plan::name(dtype)))
      return dtype;
  return std::nullopt;
}

namespace {

/// A kind of placement: its name, and how many numbers follow the name in parentheses.
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

/// Reads a placement that has a form of `kForms`. Returns nothing for other texts.
std::optional<Placement> readForm(llvm::StringRef whole) {
  llvm::StringRef name =
      whole.starts_with("P(") ? whole : whole.take_until([](char c) { return c == '('; });
  llvm::StringRef inside = whole.drop_front(name.size());
  const PlacementForm *form =
      llvm::find_if(kForms, [&](const PlacementForm &each) { return name == each.name; });
  std::vector<int64_t> numbers;
  if (!inside.empty()) {
    if (!inside.consume_front("(") || !inside.consume_back(")"))
      return std::nullopt;
    llvm::SmallVector<llvm::StringRef> parts;
    inside.split(parts, ',');
    for (llvm::StringRef part : parts)
      if (part.trim(" ").getAsInteger(10, numbers.emplace_back()))
        return std::nullopt;
  }
  if (form == std::end(kForms) || (form->numbers != kAnyNumbers && form->numbers != numbers.size()))
    return std::nullopt;
  Placement placement{form->kind};
  if (placement.kind == PlacementKind::Flat)
    placement.cuts = numbers;
  else if (placement.kind == PlacementKind::Owned)
    placement.owner = numbers[0];
  else if (placement.isShard())
    placement.dim = numbers[0];
  if (form->numbers == 2)
    placement.factor = numbers[1];
  return placement;
}

/// Names in lower case that people may write for a form, and the form's name. They include torch's classes.
constexpr std::pair<const char *, const char *> kOtherNames[] = {
    {"r", "R"},         {"replicate", "R"},      {"s", "S"},   {"shard", "S"},
    {"_s", "_S"},       {"_stridedshard", "_S"}, {"is", "IS"}, {"interleavedshard", "IS"},
    {"owned", "owned"}, {"flat", "flat"},        {"p", "P"},   {"partial", "P"},
};

/// The placement that the author of a wrong text probably meant, or nothing. It knows torch's names, misspelt
/// names, names in another case, and numbers with names as in "Shard(dim=0)".
std::optional<Placement> nearestForm(llvm::StringRef text) {
  auto [name, inside] = text.split('(');
  std::vector<llvm::StringRef> known;
  for (const auto &[other, form] : kOtherNames)
    known.push_back(other);
  std::string lower = name.trim().lower();
  auto found = llvm::find(known, lower);
  if (found == known.end())
    found = llvm::find(known, text::nearestName(lower, known));
  if (found == known.end())
    return std::nullopt;
  std::string form = kOtherNames[found - known.begin()].second, numbers;
  llvm::SmallVector<llvm::StringRef> parts;
  inside.take_until([](char c) { return c == ')'; }).split(parts, ',', -1, /*KeepEmpty=*/false);
  // The dimension comes first, as in "_StridedShard(sf=2, dim=0)".
  if (parts.size() == 2 && parts[1].trim().starts_with("dim="))
    std::swap(parts[0], parts[1]);
  for (llvm::StringRef part : parts)
    numbers += (numbers.empty() ? "" : ", ") + part.substr(part.find('=') + 1).trim(" '\"").str();
  if (form == "P")
    numbers = numbers.empty()     ? "sum"
              : numbers == "mean" ? "avg"
                                  : llvm::StringRef(numbers).lower();
  return readForm(numbers.empty() ? form : form + "(" + numbers + ")");
}

} // namespace

std::string placementForms(bool mayBePartial) {
  return std::string("R, S(dim), _S(dim, split_factor), IS(dim, stripes), owned(rank), flat") +
         (mayBePartial ? ", flat(begin, …, end), P(sum) or P(avg)" : " or flat(begin, …, end)");
}

std::optional<Placement> parsePlacement(llvm::StringRef text, bool mayBePartial,
                                        std::string &error) {
  std::optional<Placement> placement = readForm(text.trim(" "));
  if (!placement) {
    error = "expected " + placementForms(mayBePartial) + ", found '" + text.str() + "'";
    if (std::optional<Placement> near = nearestForm(text))
      error += near->isPartial() && !mayBePartial
                   ? "; partial sums are of gradients alone"
                   : ", did you mean '" + std::string(toString(*near)) + "'?";
    return std::nullopt;
  }
  if (placement->factor < 1) {
    error =
        std::string(placement->kind == PlacementKind::StridedShard ? "expected a split factor of"
                                                                   : "expected stripes of") +
        " at least 1, found '" + text.str() + "'";
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
