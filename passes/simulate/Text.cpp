//===- Text.cpp - A simulated step as tables --------------------------------===//

#include "passes/explain/MoveTable.h"
#include "passes/explain/TextTable.h"
#include "passes/simulate/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace stepc;
using namespace stepc::simulate;
using namespace stepc::explain;

static Traffic sum(const std::vector<Traffic> &levels) {
  Traffic total;
  for (const Traffic &level : levels) {
    total.messages += level.messages;
    total.bytes += level.bytes;
  }
  return total;
}

namespace {

/// One figure of all ranks: the least, the mean, the most, and the rank that has most.
void addFigure(TextTable &table, const Result &result, std::string name,
               llvm::function_ref<double(size_t)> valueOf,
               llvm::function_ref<std::string(double)> spell) {
  double least = valueOf(0), most = least, all = 0;
  size_t slowest = 0;
  for (size_t rank = 0; rank < result.ranks.size(); ++rank) {
    double value = valueOf(rank);
    all += value;
    least = std::min(least, value);
    if (value > most) {
      most = value;
      slowest = rank;
    }
  }
  table.add({std::move(name), spell(least), spell(all / double(result.ranks.size())), spell(most),
             least == most ? "" : count(result.world[slowest])});
}

void printRanks(const Report &report, llvm::raw_ostream &os) {
  const Result &result = report.result;
  const std::vector<RankResult> &ranks = result.ranks;
  auto integer = [](auto spell) {
    return [spell](double value) { return spell(int64_t(value + 0.5)); };
  };
  TextTable table({"each rank", "least", "mean", "most", "rank"}, "<>>>>");
  auto add = [&](std::string name, auto valueOf, auto spell) {
    addFigure(table, result, std::move(name), valueOf, spell);
  };
  add("its step ends", [&](size_t r) { return ranks[r].end; }, seconds);
  add("computes", [&](size_t r) { return ranks[r].compute; }, seconds);
  add("waits for messages", [&](size_t r) { return ranks[r].exposed; }, seconds);
  add("idle", [&](size_t r) { return result.idle(r); }, seconds);
  add("products", [&](size_t r) { return ranks[r].products; }, seconds);
  add("  launches", [&](size_t r) { return double(ranks[r].productLaunches); }, integer(count));
  add("FLOPs", [&](size_t r) { return ranks[r].flops; }, integer(flops));
  add("  of whole results", [&](size_t r) { return ranks[r].fullFlops; }, integer(flops));
  add("bytes touched", [&](size_t r) { return ranks[r].touched; }, integer(bytes));
  add(
      "messages sent", [&](size_t r) { return double(sum(ranks[r].sent).messages); },
      integer(count));
  add("bytes sent", [&](size_t r) { return double(sum(ranks[r].sent).bytes); }, integer(bytes));
  if (result.levels.size() > 1)
    for (auto [level, name] : llvm::enumerate(result.levels))
      add(
          "  on " + name,
          [&, level = level](size_t r) { return double(ranks[r].sent[level].bytes); },
          integer(bytes));
  add("shards and states", [&](size_t r) { return double(ranks[r].shardBytes); }, integer(bytes));
  table.print(os);
}

void printGroups(const Report &report, llvm::raw_ostream &os) {
  const plan::Plan &plan = report.plan;
  std::vector<std::string> header = {"group", "strategy", "waves"};
  header.insert(header.end(), report.result.levels.begin(), report.result.levels.end());
  TextTable table(header, "<<>" + std::string(report.result.levels.size(), '>'));
  for (auto [index, group] : llvm::enumerate(plan.groups)) {
    int64_t waves = llvm::count_if(plan.segments, [&, index = index](const plan::Segment &segment) {
      return segment.group == int64_t(index);
    });
    std::vector<std::string> row = {group.name, group.strategy, count(waves)};
    for (int64_t sent : report.result.groupBytes[index])
      row.push_back(bytes(sent));
    table.add(std::move(row));
  }
  table.print(os);
}

} // namespace

std::string simulate::toText(const Report &report) {
  const Result &result = report.result;
  const plan::Plan &plan = report.plan;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << plan.name << ": " << plural(plan.countOfParameters(), "parameter") << " in "
     << plural(plan.countOfGroups(), "group") << " on "
     << plural(int64_t(result.ranks.size()), "rank") << ", a modelled step of "
     << seconds(result.latency)
     << (plan.numerics == "exact" ? "" : ", in " + plan.numerics + " numerics") << "\n\n";
  printRanks(report, os);
  os << "\nBytes that all ranks send, by the level of their links\n";
  printGroups(report, os);
  std::vector<std::pair<std::string, plan::BytesByKind>> kinds;
  for (auto [group, bytes] : llvm::zip(plan.groups, result.groupKinds))
    kinds.emplace_back(group.name, bytes);
  printMoveKinds(kinds, os);
  int64_t most = 0;
  for (const RankResult &rank : result.ranks)
    most = std::max(most, rank.shardBytes);
  os << "\nThe workspace is " << bytes(plan.workspaceBytes()) << " on each rank ("
     << bytes(plan.scratchBytes) << " of it scratch); with shards and states a rank has at most "
     << bytes(plan.workspaceBytes() + most) << ".\n";
  os << (report.options.progress == Progress::Streams
             ? "Messages travel while ranks compute.\n"
             : "Messages are taken in by ranks that wait.\n");
  if (report.options.ranksPerMachine > 1)
    os << plural(report.options.ranksPerMachine, "rank") << " share "
       << llvm::format("%g", report.options.devices)
       << (report.options.devices == 1 ? " device.\n" : " devices.\n");
  return text;
}
