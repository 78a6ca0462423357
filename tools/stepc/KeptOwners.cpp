//===- KeptOwners.cpp - The owners of the previous plan --------------------===//

#include "tools/stepc/KeptOwners.h"

#include "dialects/optim/Optim.h"
#include "tools/stepc/LibraryFile.h"

using namespace stepc;
using namespace stepc::driver;

bool driver::setKeptOwners(mlir::ModuleOp module, const std::string &library, Report &report) {
  std::unique_ptr<LibraryFile> file = LibraryFile::open(library, report);
  if (!file)
    return false;
  // Owners are chosen before targets are looked at, so all plans of a library have the same.
  std::optional<plan::Plan> plan = file->planOf(*file->table, report);
  if (!plan)
    return false;
  mlir::Builder builder(module.getContext());
  mlir::NamedAttrList owners;
  for (const plan::Group &group : plan->groups) {
    if (group.blockStates.empty())
      continue;
    const plan::Mesh &mesh = plan->meshes[group.mesh];
    // A hop says a base along the factors that it owns. Together they are a position in the mesh.
    std::vector<int64_t> positions;
    for (const plan::Hop &hop : group.hops) {
      positions.resize(std::max(positions.size(), hop.base.size()));
      for (size_t block = 0; block < hop.base.size(); ++block)
        positions[block] += plan::along(mesh, hop.owned, hop.base[block]);
    }
    if (positions.empty()) // all ranks that compute a block have its states
      continue;
    auto next = positions.begin();
    for (int64_t parameter : group.parameters) {
      std::vector<int64_t> of;
      for (int64_t block = 0; block < group.blocksPerParameter(); ++block)
        of.push_back(mesh.ranks[static_cast<size_t>(*next++)]);
      owners.set(plan->parameters[static_cast<size_t>(parameter)].name,
                 builder.getDenseI64ArrayAttr(of));
    }
  }
  module->setAttr(optim::kKeptOwnersAttr, owners.getDictionary(module.getContext()));
  return true;
}
