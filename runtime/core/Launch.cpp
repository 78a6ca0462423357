//===- Launch.cpp - What the program asks for while it steps ----------------===//
#include "runtime/core/FloatModes.h"
#include "runtime/core/Instance.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <cstring>

namespace stepc::runtime {
namespace {

/// Elements that are worth a piece of their own: a few microseconds of work.
constexpr int64_t kPieceElements = 8192;

const char *nameOf(plan::LaunchKind kind) {
  switch (kind) {
  case plan::LaunchKind::Chunks:
    return "chunks of table";
  case plan::LaunchKind::Group:
    return "group";
  case plan::LaunchKind::Blocks:
    return "blocks of table";
  case plan::LaunchKind::Copy:
    return "copy of table";
  }
  return "?";
}

/// Items of a launch on this rank.
int64_t itemsOf(const stepc_instance &instance, const plan::Launch &launch) {
  switch (launch.kind) {
  case plan::LaunchKind::Chunks:
    return int64_t(instance.tables.tables[launch.index].chunks.size());
  case plan::LaunchKind::Group:
    return int64_t(instance.library.plan.groups[launch.index].parameters.size());
  case plan::LaunchKind::Blocks:
    return instance.tables.tables[launch.index].blocks * launch.itemsPerBlock;
  case plan::LaunchKind::Copy:
    return int64_t(instance.tables.tables[launch.index].copies.size());
  }
  return 0;
}

/// Counts a launch against the plan, before it writes anything. False: refused.
bool admit(stepc_instance &instance, plan::LaunchKind kind, int64_t index, int64_t itemsPerBlock) {
  if (instance.failure)
    return false;
  const auto &planned = instance.library.plan.launches;
  int64_t at = instance.launchIndex++;
  auto made = [&] { return format("%s %lld", nameOf(kind), (long long)index); };
  if (at >= int64_t(planned.size())) {
    instance.fail(STEPC_ERROR_COUNTS,
                  format("the program launches %s, the plan has only %zu launches", made().c_str(),
                         planned.size()));
    return false;
  }
  const plan::Launch &launch = planned[at];
  if (launch.kind != kind || launch.index != index ||
      (kind == plan::LaunchKind::Blocks && launch.itemsPerBlock != itemsPerBlock)) {
    instance.fail(STEPC_ERROR_COUNTS,
                  format("launch %lld of the program is %s (%lld items per block), planned is %s "
                         "%lld (%lld)",
                         (long long)at, made().c_str(), (long long)itemsPerBlock,
                         nameOf(launch.kind), (long long)launch.index,
                         (long long)launch.itemsPerBlock));
    return false;
  }
  ++instance.executed.launches;
  instance.executed.chunks += itemsOf(instance, launch);
  instance.launched[at] = 1;
  return true;
}

struct Task {
  stepc_kernel kernel;
  void *const *arguments;
  const stepc_instance *instance;
  const plan::Chunk *chunks; // to leave out inactive parameters
  const int64_t *parameters;
};

/// The trainer's threads come with modes of their own; ours have them set, at little cost here.
void runKernel(void *arguments, int64_t first, int64_t last) {
  FloatModes modes;
  const Task &task = *static_cast<Task *>(arguments);
  task.kernel(task.arguments, first, last);
}

/// The same without the items of parameters that this step skips.
void runActive(void *arguments, int64_t first, int64_t last) {
  FloatModes modes;
  const Task &task = *static_cast<Task *>(arguments);
  auto active = [&](int64_t item) {
    int64_t parameter = task.chunks ? task.chunks[item].parameter : task.parameters[item];
    return task.instance->records[parameter].active != 0;
  };
  while (first < last) {
    int64_t end = first;
    while (end < last && active(end))
      ++end;
    if (end > first)
      task.kernel(task.arguments, first, end);
    first = end + 1;
  }
}

int64_t grainFor(int64_t rows, int64_t elements, int64_t threads) {
  // Long pieces keep the chip's prefetching going; enough of them, that no thread waits long for
  // the last one.
  constexpr int64_t kPiecesPerThread = 64;
  int64_t piece = std::max(kPieceElements, elements / (kPiecesPerThread * threads));
  return std::max<int64_t>(1, rows * piece / std::max<int64_t>(1, elements));
}

struct CopyTask {
  const stepc_instance *instance;
  const plan::CopyRow *rows;
  const char *from;
  char *to;
  void *const *fromShards, *const *toShards; // where a side is the bound shards
  int64_t elementBytes;
};

void runCopy(void *arguments, int64_t first, int64_t last) {
  const CopyTask &task = *static_cast<CopyTask *>(arguments);
  for (int64_t i = first; i < last; ++i) {
    const plan::CopyRow &row = task.rows[i];
    if (task.toShards && !task.instance->records[row.parameter].active)
      continue;
    const char *from =
        task.fromShards ? static_cast<char *>(task.fromShards[row.parameter]) : task.from;
    char *to = task.toShards ? static_cast<char *>(task.toShards[row.parameter]) : task.to;
    from += row.source * task.elementBytes;
    to += row.target * task.elementBytes;
    for (int64_t r = 0; r < row.rows; ++r)
      std::memcpy(to + r * row.targetStride * task.elementBytes,
                  from + r * row.sourceStride * task.elementBytes, row.cols * task.elementBytes);
  }
}

} // namespace

void countPlanned(stepc_instance &instance) {
  const plan::Plan &plan = instance.library.plan;
  stepc_counters &planned = instance.planned;
  for (const plan::RankTable &table : instance.tables.tables) {
    int64_t elements = 0;
    for (const plan::Chunk &chunk : table.chunks)
      elements += chunk.rows * chunk.cols;
    for (const plan::CopyRow &row : table.copies)
      elements += row.rows * row.cols;
    instance.tableElements.push_back(elements);
  }
  planned.launches = int64_t(plan.launches.size());
  for (const plan::Launch &launch : plan.launches)
    planned.chunks += itemsOf(instance, launch);
  planned.exchanges = int64_t(plan.exchanges.size());
  for (const plan::Exchange &exchange : plan.exchanges)
    for (int64_t table : exchange.tables)
      for (const plan::Message &message : instance.tables.tables[table].messages) {
        if (message.peer == instance.rank)
          continue;
        planned.messages_sent += message.sendCount > 0;
        planned.messages_received += message.receiveCount > 0;
        planned.bytes_sent += message.sendCount * plan.tables[table].elementBytes;
        planned.bytes_received += message.receiveCount * plan.tables[table].elementBytes;
      }
}

} // namespace stepc::runtime

namespace plan = stepc::plan;
using namespace stepc::runtime;

// No exception may reach generated code, which does not unwind.
extern "C" {

void *stepc_rt_arena(stepc_context *context) { return instanceOf(context).arena.data(); }

const void *stepc_rt_chunks(stepc_context *context, int64_t table) {
  return instanceOf(context).tables.tables[table].chunks.data();
}

const void *stepc_rt_parameters(stepc_context *context) {
  return instanceOf(context).parameters.data();
}

const void *stepc_rt_gradients(stepc_context *context) {
  return instanceOf(context).gradients.data();
}

const void *stepc_rt_states(stepc_context *context, int64_t state) {
  return instanceOf(context).states[state].data();
}

const void *stepc_rt_records(stepc_context *context) { return instanceOf(context).records.data(); }

const void *stepc_rt_group_parameters(stepc_context *context, int64_t group) {
  return instanceOf(context).library.plan.groups[group].parameters.data();
}

int32_t stepc_rt_failed(stepc_context *context) { return instanceOf(context).failure != 0; }

void stepc_rt_launch_chunks(stepc_context *context, stepc_kernel kernel, void *const *arguments,
                            int64_t table) try {
  stepc_instance &instance = instanceOf(context);
  if (!admit(instance, plan::LaunchKind::Chunks, table, 1))
    return;
  const std::vector<plan::Chunk> &chunks = instance.tables.tables[table].chunks;
  Task task{kernel, arguments, &instance, chunks.data(), nullptr};
  int64_t rows = int64_t(chunks.size());
  instance.parallel.run(instance.someInactive ? runActive : runKernel, &task, rows,
                        grainFor(rows, instance.tableElements[table], instance.parallel.threads()));
} catch (...) {
  instanceOf(context).failWithoutText();
}

void stepc_rt_launch_group(stepc_context *context, stepc_kernel kernel, void *const *arguments,
                           int64_t group) try {
  stepc_instance &instance = instanceOf(context);
  if (!admit(instance, plan::LaunchKind::Group, group, 1))
    return;
  const std::vector<int64_t> &parameters = instance.library.plan.groups[group].parameters;
  Task task{kernel, arguments, &instance, nullptr, parameters.data()};
  // A scalar stage is a few operations per parameter.
  constexpr int64_t kGrain = 256;
  instance.parallel.run(instance.someInactive ? runActive : runKernel, &task,
                        int64_t(parameters.size()), kGrain);
} catch (...) {
  instanceOf(context).failWithoutText();
}

void stepc_rt_launch_blocks(stepc_context *context, stepc_kernel kernel, void *const *arguments,
                            int64_t table, int64_t itemsPerBlock) try {
  stepc_instance &instance = instanceOf(context);
  if (!admit(instance, plan::LaunchKind::Blocks, table, itemsPerBlock))
    return;
  Task task{kernel, arguments, &instance, nullptr, nullptr};
  instance.parallel.run(runKernel, &task, instance.tables.tables[table].blocks * itemsPerBlock, 1);
} catch (...) {
  instanceOf(context).failWithoutText();
}

void stepc_rt_copy(stepc_context *context, int64_t table, void *from, void *to, int64_t state) try {
  stepc_instance &instance = instanceOf(context);
  if (!admit(instance, plan::LaunchKind::Copy, table, 1))
    return;
  const plan::Table &planned = instance.library.plan.tables[table];
  const std::vector<plan::CopyRow> &rows = instance.tables.tables[table].copies;
  auto shards = [&](const plan::Place &place) -> void *const * {
    return place.isResting(plan::Distribution::Shards) ? instance.states[state].data() : nullptr;
  };
  CopyTask task{&instance,
                rows.data(),
                static_cast<const char *>(from),
                static_cast<char *>(to),
                shards(planned.from),
                shards(planned.to),
                planned.elementBytes};
  int64_t count = int64_t(rows.size());
  instance.parallel.run(
      runCopy, &task, count,
      grainFor(count, instance.tableElements[table], instance.parallel.threads()));
} catch (...) {
  instanceOf(context).failWithoutText();
}

} // extern "C"
