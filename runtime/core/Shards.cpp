//===- Shards.cpp - Which elements a rank's shard holds ---------------------===//
#include "runtime/core/Instance.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/BlockStates.h"
#include "runtime/text/Text.h"

#include <algorithm>

namespace stepc::runtime {

int32_t shardRuns(stepc_instance *self, int64_t parameter, int32_t of, stepc_run *runs,
                  int64_t capacity, int64_t *count) {
  if (!self)
    return STEPC_ERROR_ARGUMENT;
  const Library &lib = self->library;
  const plan::Plan &plan = lib.plan;
  if (!count || capacity < 0 || (capacity && !runs))
    return self->refuse(STEPC_ERROR_ARGUMENT,
                        "shard_runs: expected a count, and runs for a capacity");
  if (parameter < 0 || parameter >= int64_t(plan.parameters.size()))
    return self->refuse(STEPC_ERROR_ARGUMENT,
                        format("shard_runs: expected a parameter from 0 to %zu, found %lld",
                               plan.parameters.size() - 1, (long long)parameter));
  int64_t index = lib.parameter(parameter).group;
  const plan::Group &group = plan.groups[index];
  const auto &states = lib.groups[index].states, &metrics = lib.groups[index].metrics,
             &inputs = lib.groups[index].inputs;
  auto metric = int64_t(STEPC_METRIC) - of, input = of - int64_t(STEPC_INPUT);
  bool isInput = input >= 0 && input < int64_t(inputs.size());
  if ((of >= int32_t(states.size()) && !isInput) || metric >= int64_t(metrics.size())) {
    std::string text = metrics.empty()
                           ? format(" or one of the %zu states", states.size())
                           : format(", one of the %zu states or of the %zu metrics (from %d down)",
                                    states.size(), metrics.size(), STEPC_METRIC);
    return self->refuse(
        STEPC_ERROR_ARGUMENT,
        format("shard_runs: expected the parameter (%d), its gradient (%d)%s of '%s', found %d",
               STEPC_PARAMETER, STEPC_GRADIENT, text.c_str(), lib.parameter(parameter).name.c_str(),
               of));
  }
  const StateText *state = isInput       ? &inputs[size_t(input)]
                           : of >= 0     ? &states[size_t(of)]
                           : metric >= 0 ? &metrics[size_t(metric)]
                                         : nullptr;
  *count = 0;
  const LocalGroup &local = self->prepared.groups[index];
  if (!local.member)
    return STEPC_OK;
  plan::ValueKind kind = state ? state->value : plan::ValueKind::Full;
  plan::ShardsKind list = of == STEPC_PARAMETER  ? plan::ShardsKind::Parameter
                          : of == STEPC_GRADIENT ? plan::ShardsKind::Gradient
                                                 : plan::ShardsKind::State;
  plan::Group whole = geometry::whole(group);
  bool ofBlocks = state && group.staysWithBlocks(state->index);
  geometry::View view = geometry::view(ofBlocks ? group : whole, kind);
  std::vector<stepc_run> rows;
  for (const geometry::Rect &rect :
       ofBlocks
           ? plan::blockStateRects(group, kind,
                                   plan::blocksWithin(group, self->prepared.tables.computed[index],
                                                      lib.parameter(parameter).indexInGroup))
           : geometry::rectangles(whole, plan.meshes[group.mesh], local.position, kind, list)) {
    // Whole rows without gaps are one run.
    bool isOne = rect.cols == view.cols && rect.stride == view.cols;
    for (int64_t row = 0; row < (isOne ? 1 : rect.rows); ++row)
      rows.push_back({((rect.block * view.rows) + rect.row + row) * view.cols + rect.col,
                      rect.offset + row * rect.stride, (isOne ? rect.rows : 1) * rect.cols});
  }
  // Rectangles come in the order of blocks; runs must be in the order of the shard.
  std::sort(rows.begin(), rows.end(),
            [](const stepc_run &a, const stepc_run &b) { return a.local < b.local; });
  std::vector<stepc_run> merged;
  for (const stepc_run &run : rows) {
    if (!merged.empty() && merged.back().global + merged.back().length == run.global &&
        merged.back().local + merged.back().length == run.local)
      merged.back().length += run.length;
    else if (run.length)
      merged.push_back(run);
  }
  *count = int64_t(merged.size());
  std::copy_n(merged.begin(), std::min(*count, capacity), runs);
  return STEPC_OK;
}

} // namespace stepc::runtime
