//===- Json.cpp - A simulated step as JSON ----------------------------------===//

#include "passes/simulate/Report.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace stepc;
using namespace stepc::simulate;
using llvm::json::Array;
using llvm::json::Object;

static Array toArray(const Report &report, const std::vector<Traffic> &traffic) {
  Array levels;
  for (auto [name, level] : llvm::zip(report.result.levels, traffic))
    levels.push_back(Object{{"level", name}, {"messages", level.messages}, {"bytes", level.bytes}});
  return levels;
}

static Object toObject(const Report &report, size_t rank) {
  const RankResult &one = report.result.ranks[rank];
  Traffic sent, received;
  for (auto [total, levels] : {std::pair(&sent, &one.sent), std::pair(&received, &one.received)})
    for (const Traffic &level : *levels) {
      total->messages += level.messages;
      total->bytes += level.bytes;
    }
  return Object{{"rank", int64_t(rank)},
                {"global_rank", report.result.world[rank]},
                {"end_seconds", one.end},
                {"compute_seconds", one.compute},
                {"exposed_seconds", one.exposed},
                {"idle_seconds", report.result.idle(rank)},
                {"work_seconds", one.work},
                {"product_seconds", one.products},
                {"product_launches", one.productLaunches},
                {"flops", one.flops},
                {"full_flops", one.fullFlops},
                {"bytes_touched", one.touched},
                {"shard_bytes", one.shardBytes},
                {"messages_sent", sent.messages},
                {"bytes_sent", sent.bytes},
                {"messages_received", received.messages},
                {"bytes_received", received.bytes},
                {"sent", toArray(report, one.sent)},
                {"received", toArray(report, one.received)}};
}

Object simulate::toObject(const Report &report) {
  const plan::Plan &plan = report.plan;
  const Result &result = report.result;
  Array groups, strategies, ranks;
  llvm::MapVector<llvm::StringRef, std::vector<int64_t>> byStrategy;
  for (auto [group, bytes, kinds] : llvm::zip(plan.groups, result.groupBytes, result.groupKinds)) {
    Object byKind;
    for (auto [key, sent] : llvm::zip(plan::kMoveKeys, kinds))
      byKind[key] = sent;
    int64_t index = &group - plan.groups.data();
    int64_t waves = llvm::count_if(
        plan.segments, [&](const plan::Segment &segment) { return segment.group == index; });
    groups.push_back(Object{{"name", group.name},
                            {"strategy", group.strategy},
                            {"waves", waves},
                            {"bytes_sent", Array(bytes)},
                            {"bytes_sent_for", std::move(byKind)}});
    std::vector<int64_t> &sum = byStrategy[group.strategy];
    sum.resize(bytes.size());
    for (size_t level = 0; level < bytes.size(); ++level)
      sum[level] += bytes[level];
  }
  for (auto &[strategy, bytes] : byStrategy)
    strategies.push_back(Object{{"strategy", strategy}, {"bytes_sent", Array(bytes)}});
  int64_t shards = 0;
  for (size_t rank = 0; rank < result.ranks.size(); ++rank) {
    shards = std::max(shards, result.ranks[rank].shardBytes);
    ranks.push_back(::toObject(report, rank));
  }
  Object object{{"name", plan.name},
                {"numerics", plan.numerics},
                {"progress", nameOf(report.options.progress)},
                {"ranks_per_machine", report.options.ranksPerMachine},
                {"devices_per_machine", report.options.devices},
                {"latency_seconds", result.latency},
                {"arena_bytes", plan.arenaBytes},
                {"scratch_bytes", plan.scratchBytes},
                {"workspace_bytes", plan.workspaceBytes()},
                {"peak_bytes", plan.workspaceBytes() + shards},
                {"levels", Array(result.levels)},
                {"groups", std::move(groups)},
                {"strategies", std::move(strategies)},
                {"ranks", std::move(ranks)}};
  if (!report.target.empty())
    object["target"] = report.target;
  return object;
}

std::string simulate::toJson(const Report &report) {
  return llvm::formatv("{0:2}\n", llvm::json::Value(toObject(report)));
}
