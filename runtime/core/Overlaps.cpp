//===- Overlaps.cpp - Whether the trainer lends one piece of memory twice ---===//
//
// A step writes parameters, states and step counts in place, in any order. If two of them shared memory, the
// last write would win. A step only reads gradients, so two gradients may be the same memory. A gradient must
// not overlap what a step writes, and must not begin inside another gradient.
//
// Ranges are sorted by address. Trainers bind new gradients in every step, but mostly in the order of the
// last check, and between the same written ranges. In this case one comparison per gradient suffices.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <cstdint>

namespace stepc::runtime {
namespace {

// Values of LentRange::what for ranges that are no state.
constexpr int64_t kParameter = -1, kGradient = -2, kStepCounts = -3;

std::string nameOf(const stepc_instance &instance, const LentRange &range) {
  if (range.what == kStepCounts)
    return "the step counts";
  const Library &lib = instance.library;
  std::string name = "parameter '" + lib.parameter(range.parameter).name + "'";
  if (range.what == kParameter)
    return name;
  if (range.what == kGradient)
    return "the gradient of " + name;
  const plan::State &state =
      lib.plan.rules[lib.group(range.parameter).rule].states[size_t(range.what)];
  return (state.input ? "input '" : "state '") + state.name + "' of " + name;
}

const void *addressOf(const stepc_instance &instance, const LentRange &range) {
  switch (range.what) {
  case kParameter:
    return instance.bound.parameters[range.parameter];
  case kGradient:
    return instance.bound.givenGradients[range.parameter];
  case kStepCounts:
    return instance.bound.steps;
  default:
    // The library's own defaults are nothing that the trainer lends.
    return instance.bound.stateBound[range.what][range.parameter] == Bound::Given
               ? instance.bound.states[range.what][range.parameter]
               : nullptr;
  }
}

/// Looks up where ranges begin now, and sorts them if their order has changed.
void update(const stepc_instance &instance, std::vector<LentRange> &ranges) {
  bool isSorted = true;
  uintptr_t before = 0;
  for (LentRange &range : ranges) {
    range.begin = reinterpret_cast<uintptr_t>(addressOf(instance, range));
    range.end = range.begin ? range.begin + uintptr_t(range.bytes) : 0;
    isSorted &= before <= range.begin;
    before = range.begin;
  }
  if (!isSorted)
    std::sort(ranges.begin(), ranges.end(),
              [](const LentRange &a, const LentRange &b) { return a.begin < b.begin; });
}

int32_t refuseOverlap(const stepc_instance &instance, const LentRange &one,
                      const LentRange &other) {
  uintptr_t begin = std::max(one.begin, other.begin), end = std::min(one.end, other.end);
  return instance.refuse(
      STEPC_ERROR_ARGUMENT,
      format("expected memory of its own for each parameter, state and gradient, "
             "found that %s and %s share %llu bytes from %p on",
             nameOf(instance, one).c_str(), nameOf(instance, other).c_str(),
             (unsigned long long)(end - begin), reinterpret_cast<void *>(begin)));
}

/// Refuses a range that begins inside the range before it. The ranges are sorted.
int32_t checkWritten(const stepc_instance &instance) {
  const LentRange *last = nullptr;
  for (const LentRange &range : instance.bound.writtenRanges) {
    if (last && range.begin < last->end)
      return refuseOverlap(instance, *last, range);
    if (range.begin)
      last = &range;
  }
  return STEPC_OK;
}

/// Whether each gradient begins after the end of the gradient before it, in a gap between written ranges.
bool areApart(const stepc_instance &instance, std::vector<LentRange> &gradients) {
  uintptr_t before = 0;
  for (LentRange &range : gradients) {
    auto begin = reinterpret_cast<uintptr_t>(addressOf(instance, range));
    uintptr_t end = begin + uintptr_t(range.bytes);
    if (!begin)
      continue;
    if (begin < before || begin < range.freeBegin || end > range.freeEnd)
      return false;
    before = end;
  }
  return true;
}

int32_t checkGradients(stepc_instance &instance) {
  if (areApart(instance, instance.bound.gradientRanges))
    return STEPC_OK;
  update(instance, instance.bound.gradientRanges);
  const LentRange *longest = nullptr; // the longest gradient with the last begin
  auto written = instance.bound.writtenRanges.begin(), end = instance.bound.writtenRanges.end();
  for (LentRange &range : instance.bound.gradientRanges) {
    if (!range.begin)
      continue;
    if (longest && range.begin != longest->begin && range.begin < longest->end)
      return refuseOverlap(instance, *longest, range);
    if (!longest || range.begin != longest->begin || range.end > longest->end)
      longest = &range;
    while (written != end && written->end <= range.begin)
      ++written;
    if (written != end && written->begin < range.end)
      return refuseOverlap(instance, *written, range);
    range.freeBegin = written == instance.bound.writtenRanges.begin() ? 0 : (written - 1)->end;
    range.freeEnd = written == end ? UINTPTR_MAX : written->begin;
  }
  return STEPC_OK;
}

} // namespace

void prepareOverlaps(stepc_instance &instance) {
  const Library &lib = instance.library;
  auto count = int64_t(lib.plan.parameters.size());
  auto add = [](std::vector<LentRange> &ranges, int64_t bytes, int64_t parameter, int64_t what) {
    if (bytes > 0)
      ranges.push_back({0, 0, bytes, parameter, what, 0, 0});
  };
  for (int64_t p = 0; p < count; ++p) {
    int64_t index = lib.parameter(p).group;
    const LocalGroup &local = instance.prepared.groups[index];
    add(instance.bound.writtenRanges, local.parameter.bytes, p, kParameter);
    for (size_t i = 0; i < local.states.size(); ++i)
      add(instance.bound.writtenRanges, local.state(i, lib.parameter(p).indexInGroup).bytes, p,
          lib.groups[index].states[i].index);
    add(instance.bound.gradientRanges, local.gradient.bytes, p, kGradient);
    for (size_t i = 0; i < local.inputs.size(); ++i)
      add(instance.bound.gradientRanges, local.inputs[i].bytes, p,
          lib.groups[index].inputs[i].index);
  }
  add(instance.bound.writtenRanges, count * int64_t(sizeof(int64_t)), -1, kStepCounts);
}

int32_t checkOverlaps(stepc_instance &instance) {
  if (!instance.bound.writtenDisjoint) {
    update(instance, instance.bound.writtenRanges);
    if (int32_t status = checkWritten(instance))
      return status;
    for (LentRange &range : instance.bound.gradientRanges)
      range.freeBegin = range.freeEnd = 0;
    instance.bound.writtenDisjoint = true;
    instance.bound.gradientsDisjoint = false;
  }
  if (!instance.bound.gradientsDisjoint) {
    if (int32_t status = checkGradients(instance))
      return status;
    instance.bound.gradientsDisjoint = true;
  }
  return STEPC_OK;
}

} // namespace stepc::runtime
