//===- Plan.cpp - Any bytes as a library's plan -----------------------------===//
//
// A plan or an error; what validation lets pass expands into tables on any rank.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Plan.h"
#include "Fault.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Tables.h"

using namespace stepc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  plantedFault(data, size);
  std::string error;
  std::optional<plan::Plan> plan = plan::deserialize(data, size, error);
  if (plan.has_value() != error.empty())
    __builtin_trap();
  if (!plan)
    return 0;
  std::vector<uint8_t> bytes = plan::serialize(*plan);
  if (!std::equal(bytes.begin(), bytes.end(), data, data + size))
    __builtin_trap();
  if (!plan::validate(*plan).empty())
    return 0;
  bool isProgram = plan::validateProgram(*plan).empty();
  // What passes may be large, as a model may; here time is short.
  int64_t work = 0;
  for (const plan::Group &group : plan->groups)
    work += geometry::elements(group.shape) / 1000 + group.blockCount() * 100;
  if (work * static_cast<int64_t>(plan->tables.size()) > 100000)
    return 0;
  plan::Expander expander(*plan);
  auto ranks = static_cast<int64_t>(plan->world().size());
  for (int64_t rank = -1; rank <= std::min<int64_t>(ranks, 3); ++rank) {
    plan::RankTables tables = expander.tables(rank);
    if (tables.tables.size() != plan->tables.size())
      __builtin_trap();
  }
  // What passes names tables, groups and pools that are there.
  for (const plan::Command &command : plan->commands)
    if (isProgram)
      plan::effects(*plan, command);
  return 0;
}
