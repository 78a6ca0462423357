//===- Runs.cpp - Which elements of a tensor a shard has --------------------===//
#include "runtime/core/Runs.h"

#include <algorithm>

namespace stepc::runtime {

bool sameRuns(const Runs &one, const Runs &other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const stepc_run &left, const stepc_run &right) {
                      return left.global == right.global && left.local == right.local &&
                             left.length == right.length;
                    });
}

bool StridedRuns::take(const stepc_run &run) {
  StridedRuns longer = *this;
  if (count == 1)
    longer = {first, 1, run.global - first.global, run.local - first.local};
  stepc_run next = longer.at(count);
  if (next.global != run.global || next.local != run.local || next.length != run.length)
    return false;
  longer.count = count + 1;
  *this = longer;
  return true;
}

std::vector<StridedRuns> stridedRunsOf(const Runs &runs) {
  std::vector<StridedRuns> strideds;
  for (const stepc_run &run : runs)
    if (strideds.empty() || !strideds.back().take(run))
      strideds.push_back({run, 1, 0, 0});
  return strideds;
}

Runs runsOf(const StridedRuns *strideds, int64_t count) {
  Runs runs;
  for (const StridedRuns *strided = strideds; strided != strideds + count; ++strided)
    for (int64_t i = 0; i < strided->count; ++i)
      runs.push_back(strided->at(i));
  std::sort(runs.begin(), runs.end(),
            [](const stepc_run &one, const stepc_run &other) { return one.global < other.global; });
  return runs;
}

std::vector<Part> take(Runs &wanted, const Runs &held) {
  std::vector<Part> parts;
  Runs left;
  auto begin = held.begin();
  for (stepc_run run : wanted) {
    while (begin != held.end() && begin->global + begin->length <= run.global)
      ++begin;
    for (auto each = begin; run.length > 0; ++each) {
      int64_t gap = each == held.end()
                        ? run.length
                        : std::clamp(each->global - run.global, int64_t(0), run.length);
      if (gap)
        left.push_back({run.global, run.local, gap});
      run = {run.global + gap, run.local + gap, run.length - gap};
      if (!run.length)
        break;
      int64_t skipped = run.global - each->global;
      int64_t length = std::min(each->length - skipped, run.length);
      parts.push_back({each->local + skipped, run.local, length});
      run = {run.global + length, run.local + length, run.length - length};
    }
  }
  wanted = std::move(left);
  return parts;
}

bool mayMeet(const Runs &one, const Runs &other) {
  return !one.empty() && !other.empty() &&
         one.front().global < other.back().global + other.back().length &&
         other.front().global < one.back().global + one.back().length;
}

} // namespace stepc::runtime
