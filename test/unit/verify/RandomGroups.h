//===- RandomGroups.h - Meshes and groups drawn at random -------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_VERIFY_RANDOMGROUPS_H
#define STEPC_TEST_UNIT_VERIFY_RANDOMGROUPS_H

#include "RandomProgram.h"

#include "runtime/plan/Plan.h"

namespace stepc::test {

/// A group with what the text says of it. The parts of divided parameters are groups one after the
/// other, of the first one's rule, route and parameters.
struct DrawnGroup {
  plan::Group group;
  size_t source = 0; // the first of them; of parameters that are not divided the group itself
  std::string strategy, stateKind; // stateKind: of the second state, or empty
  std::vector<int64_t> owners;     // positions in the mesh, for strategy owner
  int64_t meshIndex = 0, parameterCount = 1, waves = 1;
  std::vector<std::vector<int64_t>> segments; // per wave: its blocks, in any order
};

struct DrawnGroups {
  std::vector<plan::Mesh> meshes;
  std::vector<DrawnGroup> groups;
};

/// A list of placements as the IR says it.
std::string attributeText(const std::vector<plan::Placement> &placements);

/// Placements that can be, of all kinds but partial ones, that shard the first `axes` axes alone.
std::vector<plan::Placement> drawPlacements(Random &random, const std::vector<int64_t> &shape,
                                            const plan::Mesh &mesh, int64_t axes);
/// Those of a gradient to which some ranks contribute; none where they cannot be.
std::vector<plan::Placement> drawPartial(Random &random, const std::vector<int64_t> &shape,
                                         const plan::Mesh &mesh);

/// One or two meshes, one to three groups. What was drawn is counted in `histogram`.
DrawnGroups drawGroups(Random &random, std::map<std::string, int> &histogram);

} // namespace stepc::test

#endif
