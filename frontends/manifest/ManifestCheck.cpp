#include "frontends/manifest/ManifestCheck.h"
#include "frontends/manifest/Buckets.h"
#include "frontends/manifest/Names.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/text/Plural.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

namespace stepc::manifest {

std::string count(int64_t value, llvm::StringRef noun) { return plural(value, noun); }

namespace {

/// Checks the length and the dimensions of one list of placements, and makes
/// its dimensions positive. Returns false after an error.
bool checkDims(std::vector<Placement> &placements, const Parameter &parameter, const Mesh &mesh,
               const std::string &pointer, const CheckReport &report) {
  if (placements.size() != mesh.axes.size()) {
    report(pointer, "expected one placement for each of the " +
                        plural(mesh.axes.size(), "axis", "axes") + " of mesh '" + mesh.name +
                        "', found " + number(placements.size()));
    return false;
  }
  bool good = true;
  int64_t rank = parameter.shape.size();
  for (auto [i, placement] : llvm::enumerate(placements)) {
    if (!placement.isShard() || rank == 0)
      continue;
    if (placement.dim < -rank || placement.dim >= rank) {
      report(pointer + "/" + number(i), "expected a dimension from " + number(-rank) + " to " +
                                            number(rank - 1) + ", found '" + toString(placement) +
                                            "'");
      good = false;
    } else if (placement.dim < 0) {
      placement.dim += rank;
    }
  }
  return good;
}

} // namespace

void checkMesh(const Mesh &mesh, const CheckReport &report) {
  if (mesh.axes.empty() || mesh.axes.size() > kMaxMeshAxes) {
    report("/axes",
           "expected 1 to " + number(kMaxMeshAxes) + " axes, found " + number(mesh.axes.size()));
    return;
  }
  std::map<std::string, size_t> axisAt;
  for (auto [i, axis] : llvm::enumerate(mesh.axes)) {
    auto [it, inserted] = axisAt.try_emplace(axis, i);
    if (!inserted)
      report("/axes/" + number(i) + "/name", "expected a name that no other axis of the mesh has, "
                                             "found '" +
                                                 axis + "', also axis " + number(it->second));
  }
  int64_t ranks = 1;
  for (int64_t size : mesh.sizes) {
    // Each size is at most kMaxMeshRanks, so the product of two cannot
    // overflow.
    ranks *= size;
    if (ranks > kMaxMeshRanks) {
      report("/axes", "expected at most " + number(kMaxMeshRanks) +
                          " ranks, found a product of "
                          "sizes beyond that");
      return;
    }
  }
  if (int64_t(mesh.ranks.size()) != ranks) {
    report("/ranks", "expected " + count(ranks, "rank") +
                         ", the product of the axes' sizes, found " + number(mesh.ranks.size()));
    return;
  }
  std::map<int64_t, size_t> rankAt;
  for (auto [i, rank] : llvm::enumerate(mesh.ranks)) {
    auto [it, inserted] = rankAt.try_emplace(rank, i);
    if (!inserted)
      report("/ranks/" + number(i), "expected each rank once, found " + number(rank) +
                                        ", also at index " + number(it->second));
  }
}

bool checkElements(const Parameter &parameter, const CheckReport &report) {
  int64_t elements = 1;
  for (int64_t size : parameter.shape) {
    if (size > kMaxElements / elements) {
      report("/shape", "expected at most 2^40 elements, found a product of "
                       "sizes beyond that");
      return false;
    }
    elements *= size;
  }
  return true;
}

void checkShape(const Parameter &parameter, const CheckReport &report) {
  if (!checkElements(parameter, report))
    return;
  int64_t rank = parameter.shape.size();
  if (parameter.flatten != 0) {
    if (parameter.batchAxes >= rank)
      return report("/batch_axes", "expected batch axes that leave axes to flatten, found " +
                                       number(parameter.batchAxes) + " of " +
                                       count(rank, "dimension"));
    std::string wrong = plan::checkFlatten(rank, parameter.batchAxes, parameter.flatten);
    if (!wrong.empty())
      return report("/flatten", wrong);
  } else if (parameter.batchAxes != 0 && parameter.batchAxes != rank - 2) {
    return report("/batch_axes",
                  rank < 3
                      ? "expected 0 for a parameter of fewer than 3 dimensions, found " +
                            number(parameter.batchAxes)
                      : "expected 0 or " + number(rank - 2) + ", which leaves two matrix axes of " +
                            number(rank) + " dimensions, found " + number(parameter.batchAxes));
  }
  if (parameter.blocks.parts.empty())
    return;
  if (parameter.flatten == 0 && (rank < 2 || parameter.batchAxes != rank - 2))
    return report("/blocks", "expected blocks of matrices, found " + count(rank, "dimension") +
                                 ", " + number(parameter.batchAxes) + " of them batch axes");
  plan::View matrix = plan::matrixView(parameter.shape, parameter.batchAxes, parameter.flatten);
  std::string wrong = plan::checkDivision(
      parameter.blocks, parameter.blocks.axis == plan::Division::Rows ? matrix.rows : matrix.cols);
  if (!wrong.empty())
    report("/blocks", wrong);
}

void checkPlacements(Parameter &parameter, const Mesh &mesh, BucketIndex *buckets,
                     const CheckReport &report) {
  auto check = [&](std::vector<Placement> &list, const std::string &at) {
    if (!checkDims(list, parameter, mesh, at, report))
      return false;
    if (auto wrong = geometry::checkPlacements(parameter.shape, list, mesh,
                                               &list == &parameter.gradPlacements)) {
      report(at + "/" + number(wrong->axis), wrong->reason);
      return true;
    }
    auto flat =
        llvm::find_if(list, [](const Placement &each) { return each.kind == PlacementKind::Flat; });
    if (flat == list.end())
      return true;
    std::string where = at + "/" + number(flat - list.begin());
    if (buckets)
      buckets->cut(parameter, list, mesh, where, report);
    else if (llvm::all_of(list, [](const Placement &each) { return each.cuts.empty(); }))
      report(where, "expected ranges, flat(0, …), of a parameter that no bucket holds, found '" +
                        toString(*flat) + "'");
    return true;
  };
  // A list that equals the parameter's gets the same ranges. Its mistakes were reported with the parameter's.
  const std::vector<Placement> given = parameter.placements;
  if (!check(parameter.placements, "/placements"))
    return;
  for (auto [own, at] : {std::pair(&parameter.gradPlacements, "/grad_placements"),
                         std::pair(&parameter.statePlacements, "/state_placements")})
    if (*own == given)
      *own = parameter.placements;
    else
      check(*own, at);
  // On an axis of one rank the rank's contribution is the whole gradient, so the placement becomes R.
  if (parameter.gradPlacements.size() == mesh.sizes.size())
    for (auto [placement, size] : llvm::zip(parameter.gradPlacements, mesh.sizes))
      if (placement.isPartial() && size == 1)
        placement = {};
}

void checkNames(const Manifest &manifest,
                const std::function<void(const std::string &, const std::string &,
                                         const std::string &)> &report) {
  std::map<std::string, std::string> meshAt, nameAt;
  for (auto [i, mesh] : llvm::enumerate(manifest.meshes)) {
    std::string at = "/meshes/" + number(i) + "/name";
    auto [it, inserted] = meshAt.try_emplace(mesh.name, at);
    if (!inserted && !mesh.name.empty())
      report(at,
             "expected a name that no other mesh has, found '" + mesh.name + "', also at " +
                 it->second,
             "");
  }
  for (auto [i, parameter] : llvm::enumerate(manifest.parameters)) {
    auto check = [&](const std::string &name, const std::string &at) {
      std::string canonical = canonicalName(name);
      auto [it, inserted] = nameAt.try_emplace(canonical, at);
      if (!inserted && !name.empty())
        report(at,
               "expected a name that no other parameter or alias has" +
                   std::string(canonical == name ? "" : " without wrappers' prefixes") +
                   ", found '" + name + "', also at " + it->second,
               parameter.name);
    };
    std::string at = "/parameters/" + number(i);
    check(parameter.name, at + "/name");
    for (auto [j, alias] : llvm::enumerate(parameter.aliases))
      check(alias, at + "/aliases/" + number(j));
  }
}

} // namespace stepc::manifest
