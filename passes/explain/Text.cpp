//===- Text.cpp - The report as tables --------------------------------------===//

#include "passes/cost/Profiles.h"
#include "passes/explain/Explain.h"
#include "passes/explain/MoveTable.h"
#include "passes/explain/TextTable.h"
#include "runtime/plan/Pinned.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace stepc;
using namespace stepc::explain;
using llvm::StringRef;

namespace {

std::string milliseconds(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(value < 0.1 ? "%.3g" : "%.0f", value * 1e3);
  return text;
}

std::string span(explain::Range value, std::string (*spell)(int64_t)) {
  return explain::range(value.least, value.most, spell);
}

/// "1 rank", "2–4 ranks".
std::string counted(explain::Range value, const char *what) {
  return value.least == value.most ? plural(value.most, what)
                                   : span(value, count) + " " + what + "s";
}

std::string shapeOf(const GroupReport &group) {
  std::string text = group.part;
  int64_t axes = group.shape.size();
  for (int64_t axis = 0; axis < axes; ++axis) {
    // Parentheses around several axes that are the rows, or the columns, of a flattened matrix.
    bool opens = false, closes = false;
    for (auto [begin, end] :
         {std::pair(group.batchAxes, group.flatten), std::pair(group.flatten, axes)}) {
      opens |= group.flatten > 0 && end - begin > 1 && axis == begin;
      closes |= group.flatten > 0 && end - begin > 1 && axis == end - 1;
    }
    text += axis == 0 ? "" : axis == group.batchAxes ? " × " : "×";
    text += (opens ? "(" : "") + std::to_string(group.shape[axis]) + (closes ? ")" : "");
  }
  return text.empty() ? "scalar" : text;
}

/// Placements as text. If a flat placement has more than 5 cuts, only the first two and the last are shown.
std::string withFewCuts(StringRef text) {
  constexpr StringRef kFlat = "flat(";
  std::string result;
  while (true) {
    auto [before, after] = text.split(kFlat);
    result += before;
    if (before.size() == text.size())
      return result;
    auto [list, rest] = after.split(')');
    llvm::SmallVector<StringRef> cuts;
    list.split(cuts, ", ");
    bool isLong = cuts.size() > 5;
    result += kFlat.str() +
              (isLong ? (cuts[0] + ", " + cuts[1] + ", …, " + cuts.back()).str() : list.str()) +
              ")";
    text = rest;
  }
}

/// One pattern for all names, with `*` for what differs in their dotted parts. If names have nothing in
/// common, the first name and "…".
std::string patternOf(llvm::ArrayRef<std::string> names) {
  llvm::SmallVector<StringRef> first;
  StringRef(names[0]).split(first, '.');
  // Per dotted part: the lengths of the prefix and of the suffix that all names share.
  llvm::SmallVector<size_t> prefix, suffix;
  llvm::SmallVector<bool> equal(first.size(), true);
  for (StringRef part : first) {
    prefix.push_back(part.size());
    suffix.push_back(part.size());
  }
  for (StringRef name : names) {
    llvm::SmallVector<StringRef> parts;
    name.split(parts, '.');
    if (parts.size() != first.size())
      return names[0] + ", …";
    for (size_t i = 0; i < parts.size(); ++i) {
      size_t length = std::min(parts[i].size(), first[i].size()), same = 0;
      equal[i] = equal[i] && parts[i] == first[i];
      while (same < std::min(length, prefix[i]) && parts[i][same] == first[i][same])
        ++same;
      prefix[i] = same;
      same = 0;
      while (same < std::min(length - prefix[i], suffix[i]) &&
             parts[i][parts[i].size() - 1 - same] == first[i][first[i].size() - 1 - same])
        ++same;
      suffix[i] = same;
    }
  }
  std::string pattern;
  bool anything = false;
  for (size_t i = 0; i < first.size(); ++i) {
    pattern += i ? "." : "";
    pattern += equal[i]
                   ? first[i].str()
                   : (first[i].take_front(prefix[i]) + "*" + first[i].take_back(suffix[i])).str();
    anything |= equal[i] || prefix[i] + suffix[i] > 0;
  }
  return anything ? pattern : names[0] + ", …";
}

/// A name for the parameters of each group: their pattern if no other group has it, otherwise their first
/// names.
std::vector<std::string> namesOf(llvm::ArrayRef<GroupReport> groups) {
  std::vector<std::string> result;
  for (const GroupReport &group : groups)
    result.push_back(patternOf(group.parameters));
  llvm::StringMap<int> uses;
  for (StringRef name : result)
    ++uses[name];
  for (auto [group, name] : llvm::zip(groups, result))
    if (uses.lookup(name) > 1 && group.parameters.size() > 1)
      name = group.parameters[0] + ", " +
             (group.parameters.size() == 2 ? group.parameters[1] : std::string("…"));
  return result;
}

/// "48×16".
std::string edges(auto... extents) {
  std::string text;
  ((text += (text.empty() ? "" : "×") + std::to_string(extents)), ...);
  return text;
}

void printLines(StringRef text, llvm::raw_ostream &os) {
  while (!text.empty())
    os << takeLine(text, kPageWidth) << '\n';
}

/// Prints the figures of the cluster on which times are modelled, over as many lines as they take.
void printCluster(const cost::Cluster &cluster, llvm::raw_ostream &os) {
  const cost::Cluster *profile = cost::findProfile(cluster.profile);
  cost::Cluster given = cluster;
  given.device.products = cost::ProductKernel::Stated;
  std::string text = "Milliseconds are modelled on ";
  text += !profile            ? "the cluster that is given"
          : *profile == given ? "the profile " + cluster.profile
                              : "the profile " + cluster.profile + " with what is given";
  for (const cost::Level &level : cluster.levels) {
    const cost::Link &link = level.link;
    text += &level == &cluster.levels[0] ? ": " : ", ";
    text += level.name + " of " +
            (level.ranks == cost::Level::kAll ? "all ranks" : plural(level.ranks, "rank")) +
            " at " + perSecond(link.bandwidth, "B") + " and " + seconds(link.latency);
  }
  const cost::Device &device = cluster.device;
  text += "; devices of " + perSecond(device.flops, "FLOP") + ", " + perSecond(device.memory, "B") +
          " and " + capacity(device.capacity);
  if (device.products != cost::ProductKernel::Stated)
    text += "; products at the rates of " + std::string(plan::name(device.products)) + " kernels";
  text += ".";
  printLines(text, os);
}

void printPinned(const Report &report, llvm::raw_ostream &os) {
  os << "\nProducts by cuBLASLt on the GPUs that are named, by the kernels above elsewhere\n";
  for (const ProductReport &one : report.products) {
    std::string product = edges(one.shape.m, one.shape.n) + " " + one.out + " of " + one.lhs +
                          " · " + one.rhs + ", k " + count(one.shape.k) + ": ";
    if (one.pinned.empty())
      os << product << "the kernel: " << one.notPinned << '\n';
    for (const plan::PinnedAlgorithm &each : one.pinned)
      os << product << plan::cublasLtVersion(each.cublasLt) << " on sm_" << each.chip << " of "
         << each.multiprocessors << " multiprocessors, algorithm " << each.algorithm << ", tile "
         << each.tile << ", stages " << each.stages << '\n';
  }
}

/// "256×1022 k 256 symmetric".
std::string nameOf(const cost::BlockProduct &shape) {
  return edges(shape.m, shape.n) + " k " + count(shape.k) + (shape.isSymmetric ? " symmetric" : "");
}

/// Prints how each group's blocks are orthogonalized, if a rule says a form.
void printForms(llvm::ArrayRef<GroupReport> groups, llvm::raw_ostream &os) {
  TextTable table({"group", "form", "steps", "restarts", "why"}, "<<><<");
  bool isSaid = false;
  for (const GroupReport &group : groups)
    for (const OrthogonalizeReport &one : group.orthogonalizations) {
      isSaid |= one.asked != optim::Form::Standard;
      std::string restarts;
      for (int64_t restart : one.restarts)
        restarts += (restarts.empty() ? "behind step " : ", ") + std::to_string(restart);
      table.add({group.name, one.form().str(), count(one.steps),
                 restarts.empty() ? "none" : restarts, one.why});
    }
  if (!isSaid)
    return;
  os << "\nForms of orthogonalize\n";
  table.print(os);
}

/// Prints which states stay with blocks, and their bytes.
void printBlockStates(llvm::ArrayRef<GroupReport> groups, llvm::raw_ostream &os) {
  TextTable table({"group", "states", "bytes"}, "<<>");
  for (const GroupReport &group : groups)
    if (!group.blockStates.empty())
      table.add(
          {group.name, llvm::join(group.blockStates, ", "), span(group.blockStateBytes, bytes)});
  if (llvm::all_of(groups, [](const GroupReport &group) { return group.blockStates.empty(); }))
    return;
  os << "\nStates that stay, whole, on the ranks that compute their blocks\n";
  table.print(os);
}

void printProducts(const Report &report, llvm::raw_ostream &os) {
  os << "\nProducts of a block, by kernels of " << report.target << '\n';
  TextTable table({"result", "k", "operands", "", "kernel and tile", "stages", "FLOPs", "full",
                   "per s", "groups"},
                  "><<<<>>>><");
  for (const ProductReport &one : report.products) {
    const kernels::ProductTile &tile = one.tile;
    std::vector<std::string> groups;
    for (const auto &[name, times] : one.groups)
      groups.push_back(name + " " + std::to_string(times) + "×");
    const cost::BlockProduct &shape = one.shape;
    table.add({edges(shape.m, shape.n) + " " + one.out, count(shape.k), one.lhs + " · " + one.rhs,
               shape.isSymmetric ? "symmetric" : "",
               one.kernel().str() + " " + edges(tile.rows, tile.columns, tile.steps),
               count(tile.stages), flops(cost::executedFlops(shape)), flops(cost::fullFlops(shape)),
               flops(int64_t(report.cluster.device.rate(shape))), llvm::join(groups, ", ")});
  }
  table.print(os);
  bool isChain = llvm::any_of(report.products, [](const ProductReport &one) {
    return one.tile.stages > 0 && StringRef(one.lhs).starts_with("f32");
  });
  if (isChain && StringRef(report.target).starts_with("cuda"))
    os << "Tensor cores do not multiply f32. 'fine(a, b)' of stepc/linalg.optim multiplies them by "
          "three products of bf16 with 16 bits of precision, and 'cast(a, bf16) @ cast(b, bf16)' "
          "by one with 8.\n";
}

void printLaunches(const LaunchesReport &report, llvm::raw_ostream &os) {
  os << "\nLaunches of products on rank " << report.globalRank << ": "
     << plural(report.count(), "launch", "launches") << " of " << plural(report.products, "product")
     << ", " << flops(report.flops()) << " FLOPs, modelled to take "
     << milliseconds(report.seconds()) << " ms\n";
  auto stages = [](double value) {
    return value < 10 ? fixed(value) : count(int64_t(std::round(value)));
  };
  TextTable table(
      {"times", "ms", "tiles", "clusters", "longest list", "even share", "products of blocks"},
      ">>>>>><");
  for (const LaunchReport &launch : report.launches) {
    std::vector<std::string> products;
    for (const auto &[each, groups] : launch.products)
      products.push_back((each.blocks == 1 ? "" : count(each.blocks) + " · ") + nameOf(each.shape));
    bool hasLists = launch.lists > 0;
    auto ofLists = [&](const std::string &text) { return hasLists ? text : std::string("–"); };
    table.add({count(launch.times) + "×", milliseconds(launch.seconds),
               ofLists(count(launch.tiles.tiles)), ofLists(count(launch.lists)),
               ofLists(stages(launch.tiles.longest)), ofLists(stages(launch.tiles.evenShare)),
               llvm::join(products, ", ")});
  }
  table.print(os);
  bool leaves = llvm::any_of(report.launches,
                             [](const LaunchReport &launch) { return launch.besideMessages; });
  std::string text =
      "Each of the " + count(report.lists) + " clusters of two multiprocessors has a list of tiles";
  if (leaves)
    text += ". While messages travel, " + count(report.listsBesideMessages) +
            " have one, and NCCL has the others";
  text += ". The longest list and the even share are in stages of 64 steps of k";
  if (llvm::any_of(report.launches, [](const LaunchReport &launch) { return launch.lists == 0; }))
    text += ". Launches of mma.sync and of chains have no lists (–)";
  printLines(text + ".", os);
}

/// As many names as there is room for, and the number of the other names.
std::string someOf(llvm::ArrayRef<std::string> names) {
  constexpr size_t kRoom = 50;
  std::string text = names[0];
  for (size_t i = 1; i < names.size(); ++i) {
    std::string more = " and " + std::to_string(names.size() - i) + " more";
    if (text.size() + names[i].size() + more.size() + 2 > kRoom)
      return text + more;
    text += ", " + names[i];
  }
  return text;
}

/// Prints why products of a GPU with warpgroups have other kernels.
void printOtherKernels(const Report &report, llvm::raw_ostream &os) {
  llvm::StringMap<std::string> parameters;
  for (auto [group, name] : llvm::zip(report.groups, namesOf(report.groups)))
    parameters[group.name] = name;
  // Products by their groups and reason, in the order in which they come.
  struct Kept {
    std::vector<std::string> groups;
    std::string products, why;
  };
  std::vector<Kept> found;
  for (const ProductReport &one : report.products) {
    if (one.notOnWarpgroups.empty())
      continue;
    std::vector<std::string> groups;
    for (const auto &[name, times] : one.groups)
      groups.push_back(name + " (" + cut(parameters[name], 40) + ")");
    std::string product = nameOf(one.shape);
    auto known = llvm::find_if(found, [&](const Kept &kept) {
      return kept.groups == groups && kept.why == one.notOnWarpgroups;
    });
    if (known == found.end())
      found.push_back({groups, product, one.notOnWarpgroups});
    else
      known->products += ", " + product;
  }
  if (found.empty())
    return;
  os << "\nNot on warpgroups\n";
  TextTable table({"for", "products and why"}, "<<");
  for (const Kept &kept : found)
    table.add({someOf(kept.groups), kept.products + ": " + kept.why});
  table.print(os);
}

/// Prints the strategies that are not legal, with the groups for which each reason holds.
void printRefusals(const Report &report, llvm::raw_ostream &os) {
  // Strategies, and reasons of each, in the order in which they come.
  llvm::MapVector<StringRef, llvm::MapVector<StringRef, std::vector<std::string>>> refused;
  for (const GroupReport &group : report.groups)
    for (const Alternative &item : group.strategies)
      if (!item.cost)
        refused[item.strategy][item.why].push_back(group.name);
  if (refused.empty())
    return;
  os << "\nNot legal\n";
  TextTable table({"strategy", "for", "why"}, "<<<");
  for (const auto &[strategy, reasons] : refused)
    for (const auto &[why, groups] : reasons)
      table.add({strategy.str(), someOf(groups), withFewCuts(why)});
  table.print(os);
}

} // namespace

std::string explain::toText(const Report &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << report.name << ": " << plural(report.parameters, "parameter") << " in "
     << plural(llvm::count_if(report.groups, std::not_fn(&GroupReport::isOfModel)), "group")
     << " on " << plural(report.world.size(), "rank");
  for (const plan::Mesh &mesh : report.meshes) {
    if (mesh.name == report.meshOfModel)
      continue; // it has the ranks of all other meshes
    os << (&mesh == &report.meshes[0] ? " (" : "; ") << mesh.name << ":";
    for (auto [axis, size] : llvm::zip(mesh.axes, mesh.sizes))
      os << ' ' << axis << "=" << size;
  }
  os << ")\n\n";

  if (report.numerics != "exact")
    os << "Numerics are " << report.numerics
       << ": bits may depend on the ranks, within the tolerances of each strategy.\n\n";
  TextTable groups(
      {"group", "parameters", "count", "shape", "type", "states", "placements", "route"},
      "<<><<><<");
  for (auto [group, name] : llvm::zip(report.groups, namesOf(report.groups))) {
    if (group.isOfModel)
      continue;
    groups.add({group.name, cut(name, 40), count(int64_t(group.parameters.size())), shapeOf(group),
                group.type + (group.type == group.gradientType ? "" : "/" + group.gradientType),
                span(group.stateBytes, bytes), withFewCuts(group.placements),
                llvm::join(group.routes, ", ")});
  }
  groups.print(os);
  if (!report.overridden.empty())
    os << "\nBlocks of the specification hold instead of the manifest's for "
       << plural(report.overridden.size(), "parameter") << ": "
       << cut(patternOf(report.overridden), 60) << ".\n";

  printForms(report.groups, os);
  printBlockStates(report.groups, os);

  os << "\nEach rank, each step (* chosen; least–most over the ranks of the mesh)\n";
  TextTable costs({"group", "strategy", "bytes sent", "messages", "FLOPs", "balance", "modelled ms",
                   "waves", "why"},
                  "<<>>>>>><");
  for (const GroupReport &group : report.groups)
    for (const Alternative &item : group.strategies) {
      std::string name = (item.chosen ? "* " : "  ") + item.strategy;
      std::string label = item.chosen ? group.name : "";
      if (!item.cost)
        continue;
      const Cost &cost = *item.cost;
      bool computes = cost.flops.most > 0;
      costs.add({label, name, span(cost.bytesSent, bytes), span(cost.messagesSent, count),
                 computes ? flops(cost.flops.most) : "", computes ? fixed(cost.balance) : "",
                 item.seconds > 0 ? milliseconds(item.seconds) : "",
                 item.chosen && group.strategies.size() > 1 ? count(group.waves) : "", item.why});
    }
  costs.print(os);
  printRefusals(report, os);
  std::vector<std::pair<std::string, plan::BytesByKind>> moves;
  for (const GroupReport &group : report.groups)
    moves.emplace_back(group.name, group.bytesFor);
  printMoveKinds(moves, os);
  os << '\n';
  printCluster(report.cluster, os);

  if (!report.products.empty())
    printProducts(report, os);
  printOtherKernels(report, os);
  if (report.hasTable && !report.products.empty())
    printPinned(report, os);
  if (report.launches)
    printLaunches(*report.launches, os);

  Cost total = summarize(report.ranks);
  os << "\nIn all each rank sends " << span(total.bytesSent, bytes) << " in "
     << counted(total.messagesSent, "message") << " and receives "
     << span(total.bytesReceived, bytes) << " in " << span(total.messagesReceived, count) << ", in "
     << plural(report.exchanges, "exchange") << ".\n";
  if (!report.communicators.empty()) {
    explain::Range meeting{INT64_MAX, 0};
    for (const CommunicatorReport &one : report.communicators)
      meeting = {std::min(meeting.least, one.ranks), std::max(meeting.most, one.ranks)};
    os << "They are on " << plural(report.communicators.size(), "communicator") << " of "
       << counted(meeting, "rank") << ".\n";
  }
  if (total.flops.most > 0)
    os << "The most FLOPs on a rank are " << flops(total.flops.most) << ", " << fixed(total.balance)
       << " times the mean; " << flops(total.fullFlops.most)
       << " if symmetric results are whole.\n";
  if (report.busiest > 0)
    os << "The busiest rank's blocks are modelled to take " << milliseconds(report.busiest)
       << " ms; no owners can make that less than " << milliseconds(report.leastBusiest)
       << " ms.\n";
  if (report.busiestOfMesh.size() > 1)
    for (const auto &[mesh, seconds] : report.busiestOfMesh)
      os << "  Of mesh " << mesh << " that is " << milliseconds(seconds.first)
         << " ms, and no less than " << milliseconds(seconds.second) << " ms.\n";
  auto held = [&](int64_t RankMemory::*kind) { return span(rangeOf(report.memory, kind), bytes); };
  printLines("Between steps a rank holds " + held(&RankMemory::parameters) + " of parameters, " +
                 held(&RankMemory::gradients) + " of gradients and " + held(&RankMemory::states) +
                 " of states.",
             os);
  std::string workspace = "The workspace is at most " + bytes(report.workspaceAtMost()) +
                          " on each rank: an arena of " + bytes(report.arena) + " and at most " +
                          bytes(report.scratch) + " of scratch";
  if (report.limit > 0)
    workspace += "; its limit is " + bytes(report.limit);
  if (double(report.arena) > report.cluster.device.capacity)
    workspace += ", and a device has " + capacity(report.cluster.device.capacity);
  printLines(workspace + ".", os);
  if (report.reducesAgain)
    printLines(
        "To keep to the limit, gradients to which several ranks contribute are reduced for the "
        "model's numbers and again for the rules.",
        os);
  if (report.gpu) {
    os << "The library has machine code for " << report.gpu->chip.name;
    if (report.gpu->ptx)
      os << ", and PTX, of which the driver makes code for later chips when an instance is made";
    os << ".\n";
  }
  if (report.nccl)
    os << "NCCL takes memory beside it, about " << span(report.nccl->bytes(), bytes)
       << " on a rank: " << plural(report.nccl->connections, "connection") << " of "
       << NcclMemory::kLeastChannels << " to " << NcclMemory::kMostChannels << " channels of "
       << bytes(NcclMemory::kConnectionBytes) << ".\n";
  os << "This is the plan. It is proven when the library is compiled.\n";
  return text;
}
