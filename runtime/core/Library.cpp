#include "runtime/core/Library.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Fnv1a.h"
#include "runtime/plan/Tables.h"
#include "runtime/text/Text.h"
#include "stepc/kernel_abi.h"

#include <algorithm>
#include <cstddef>
#include <exception>

// Generated code reads rows of the plan's tables by these layouts.
static_assert(sizeof(stepc::plan::Chunk) == sizeof(stepc_chunk));
static_assert(sizeof(stepc_chunk) == 18 * sizeof(int64_t));
static_assert(offsetof(stepc::plan::Chunk, local) == offsetof(stepc_chunk, local));
static_assert(offsetof(stepc::plan::Chunk, staged) == offsetof(stepc_chunk, staged));
static_assert(offsetof(stepc::plan::Chunk, stagedStride) == offsetof(stepc_chunk, staged_stride));
static_assert(offsetof(stepc::plan::Chunk, perBlock) == offsetof(stepc_chunk, per_block));
static_assert(offsetof(stepc::plan::Chunk, element) == offsetof(stepc_chunk, element));
static_assert(sizeof(stepc_parameter_record) == 8 * 8);

namespace stepc::runtime {
namespace {

/// The parts of the group's matrices as a manifest writes them, and whether the specification gave them.
std::string divisionText(const plan::Group &group) {
  const plan::Division &division = group.division;
  std::string text;
  for (const std::vector<plan::Span> &part : division.parts) {
    text += text.empty() ? "[" : ", [";
    for (size_t i = 0; i < part.size(); ++i)
      text += (i ? ", [" : "[") + std::to_string(part[i].begin) + ", " +
              std::to_string(part[i].end) + "]";
    text += "]";
  }
  if (text.empty())
    return text;
  const char *axis = division.axis == plan::Division::Rows ? "rows" : "columns";
  return std::string("{\"axis\": \"") + axis + "\", \"runs\": [" + text + "]" +
         (group.specified ? ", \"specified\": true}" : "}");
}

/// The placements of a state that lacks axes of its parameter. A mesh axis that split a missing axis
/// replicates. In states of kind Cols column axes move up by the missing row axes, less an axis that counts
/// parts.
std::vector<plan::Placement> statePlacements(const plan::Group &group, plan::ValueKind kind) {
  bool partsForRows = !group.division.parts.empty() && group.division.axis == plan::Division::Rows;
  plan::KeptAxes full = plan::keptAxes(group, plan::ValueKind::Full);
  int64_t lost = kind == plan::ValueKind::Cols ? int64_t(full.rows.size()) - partsForRows : 0;
  auto firstColumn = int64_t(full.leading.size() + full.rows.size());
  std::vector<bool> replicated = geometry::replicatedAxes(group, kind, plan::ShardsKind::State);
  std::vector<plan::Placement> placements = group.placementsOf(plan::ShardsKind::State);
  for (size_t i = 0; i < placements.size(); ++i) {
    if (replicated[i])
      placements[i] = plan::Placement();
    else if (placements[i].isShard() && placements[i].dim >= firstColumn)
      placements[i].dim -= lost;
  }
  return placements;
}

/// The placements' text of a state that stays with blocks, such as "[blocks, blocks]" for two axes.
std::string withBlocks(const plan::Group &group) {
  std::string text;
  for (size_t axis = 0; axis < group.placements.size(); ++axis)
    text += axis ? ", blocks" : "[blocks";
  return text + "]";
}

GroupText describe(const plan::Plan &plan, const plan::Group &group) {
  GroupText text;
  text.dtype = plan::name(group.parameterType);
  text.gradientType = plan::name(group.gradientType);
  text.placements = plan::toString(group.placements);
  text.gradientPlacements = plan::toString(group.placementsOf(plan::ShardsKind::Gradient));
  text.mesh = plan.meshes[group.mesh].name;
  text.blocks = divisionText(group);
  const plan::Rule &rule = plan.rules[group.rule];
  for (size_t i = 0; i < rule.states.size(); ++i) {
    const plan::State &state = rule.states[i];
    if (!plan::stateExists(group, state))
      continue;
    StateText &out = (state.metric  ? text.metrics
                      : state.input ? text.inputs
                                    : text.states)
                         .emplace_back();
    out.name = state.name;
    out.dtype = plan::name(state.dtype);
    out.kind = plan::name(group, state.kind);
    out.placements = group.staysWithBlocks(int64_t(i))
                         ? withBlocks(group)
                         : plan::toString(statePlacements(group, state.kind));
    out.shape = geometry::stateShape(group, state.kind);
    out.index = i;
    out.value = state.kind;
    out.elementBytes = plan::byteSize(state.dtype);
    out.init = state.init;
    out.master = state.master;
  }
  return text;
}

void markUnusable(Library &library, int32_t status, std::string problem) {
  library.status = status;
  library.problem = std::move(problem);
}

std::string damaged(const char *what, uint64_t expected, uint64_t found) {
  return format(
      "the library is damaged: expected %s with hash %016llx, as the compiler wrote it, found "
      "%016llx; compile the library again",
      what, (unsigned long long)expected, (unsigned long long)found);
}

void read(Library &library) {
  // Checked before anything else of the program, because another version may lay that out otherwise.
  const stepc_program &program = library.program;
  if (program.abi_version != STEPC_KERNEL_ABI_VERSION)
    return markUnusable(library, STEPC_ERROR_ABI,
                        format("the program was compiled for kernel ABI %lld, expected %d",
                               (long long)program.abi_version, STEPC_KERNEL_ABI_VERSION));
  // Checked before a byte of the plan is read or believed. The compiler has proven what it wrote, so equal
  // bytes need no further check, and any difference is damage.
  uint64_t numbers = plan::fnv1a({uint64_t(program.plan_bytes), program.plan_hash});
  if (numbers != program.numbers_hash)
    return markUnusable(library, STEPC_ERROR_PLAN,
                        damaged("the length of its plan", program.numbers_hash, numbers));
  uint64_t hash = plan::fnv1a({}, program.plan, program.plan_bytes);
  if (hash != program.plan_hash)
    return markUnusable(library, STEPC_ERROR_PLAN, damaged("its plan", program.plan_hash, hash));
  std::string error;
  auto plan = plan::deserialize(program.plan, size_t(program.plan_bytes), error);
  if (!plan)
    return markUnusable(library, STEPC_ERROR_PLAN, "the library's plan cannot be read: " + error);
  library.plan = std::move(*plan);
  library.world = library.plan.world();
  // Equals plan::hash, because each plan has one serialized form.
  library.hash = hash;
  for (const plan::Group &group : library.plan.groups)
    library.groups.push_back(describe(library.plan, group));
  for (const plan::Mesh &mesh : library.plan.meshes) {
    auto &names = library.meshAxes.emplace_back();
    for (const std::string &axis : mesh.axes)
      names.push_back(axis.c_str());
  }
  for (const plan::Rule &rule : library.plan.rules)
    library.ruleStates = std::max<int64_t>(library.ruleStates, rule.states.size());
}

} // namespace

const Library *readLibrary(const stepc_program &program) {
  auto *made = new Library(program);
  try {
    read(*made);
  } catch (const std::exception &exception) {
    markUnusable(*made, STEPC_ERROR_MEMORY,
                 std::string("the library's plan cannot be read: ") + exception.what());
    made->plan = {};
    made->world.clear();
  }
  return made;
}

std::string rankName(const Library &library, int64_t worldRank) {
  if (worldRank < 0 || worldRank >= int64_t(library.world.size()) ||
      library.world[worldRank] == worldRank)
    return format("rank %lld", (long long)worldRank);
  return format("rank %lld (global rank %lld)", (long long)worldRank,
                (long long)library.world[worldRank]);
}

} // namespace stepc::runtime
