//===- KeptOwners.cpp - The owners of the plan of before -------------------===//

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
    const std::vector<int64_t> &ranks = plan->meshes[group.mesh].ranks;
    auto base = std::find_if(group.hops.begin(), group.hops.end(),
                             [](const plan::Hop &hop) { return !hop.base.empty(); });
    if (base == group.hops.end()) // all ranks that compute a block have its states
      continue;
    auto next = base->base.begin();
    for (int64_t parameter : group.parameters) {
      std::vector<int64_t> of;
      for (int64_t block = 0; block < group.blocksPerParameter(); ++block)
        of.push_back(ranks[static_cast<size_t>(*next++)]);
      owners.set(plan->parameters[static_cast<size_t>(parameter)].name,
                 builder.getDenseI64ArrayAttr(of));
    }
  }
  module->setAttr(optim::kKeptOwnersAttr, owners.getDictionary(module.getContext()));
  return true;
}
