//===- Json.cpp - The report as JSON -----------------------------------------===//

#include "passes/explain/Explain.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace stepc;
using namespace stepc::explain;

static llvm::json::Object toJson(explain::Range value) {
  return llvm::json::Object{{"min", value.least}, {"max", value.most}};
}

static llvm::json::Object toJson(const Cost &cost) {
  return llvm::json::Object{{"bytes_sent", toJson(cost.bytesSent)},
                            {"messages_sent", toJson(cost.messagesSent)},
                            {"bytes_received", toJson(cost.bytesReceived)},
                            {"messages_received", toJson(cost.messagesReceived)},
                            {"flops", toJson(cost.flops)},
                            {"full_flops", toJson(cost.fullFlops)},
                            {"balance", cost.balance}};
}

static llvm::json::Array toJson(const std::vector<OrthogonalizeReport> &orthogonalizations) {
  llvm::json::Array list;
  for (const OrthogonalizeReport &one : orthogonalizations)
    list.push_back(llvm::json::Object{{"asked", llvm::StringRef(plan::name(one.asked))},
                                      {"form", one.form()},
                                      {"steps", one.steps},
                                      {"restarts", llvm::json::Array(one.restarts)},
                                      {"why", one.why}});
  return list;
}

static llvm::json::Object toJson(const GroupReport &group) {
  llvm::json::Array strategies;
  for (const Alternative &item : group.strategies) {
    llvm::json::Object object{
        {"strategy", item.strategy}, {"chosen", item.chosen}, {"legal", item.cost.has_value()}};
    if (!item.why.empty())
      object["why"] = item.why;
    if (item.cost) {
      object["cost"] = toJson(*item.cost);
      object["modelled_seconds"] = item.seconds;
    }
    strategies.push_back(std::move(object));
  }
  llvm::json::Object bytesFor;
  for (auto [key, sent] : llvm::zip(plan::kMoveKeys, group.bytesFor))
    bytesFor[key] = sent;
  const Alternative &chosen = group.strategies.front();
  return llvm::json::Object{{"name", group.name},
                            {"rule", group.rule},
                            {"routes", llvm::json::Array(group.routes)},
                            {"parameters", llvm::json::Array(group.parameters)},
                            {"shape", llvm::json::Array(group.shape)},
                            {"part", group.part},
                            {"batch_axes", group.batchAxes},
                            {"flatten", group.flatten},
                            {"blocks", group.blocks},
                            {"dtype", group.type},
                            {"grad_dtype", group.gradientType},
                            {"placements", group.placements},
                            {"mesh", group.mesh},
                            {"orthogonalize", ::toJson(group.orthogonalizations)},
                            {"strategy", chosen.strategy},
                            {"why", chosen.why},
                            {"waves", group.waves},
                            {"bytes_sent_for", std::move(bytesFor)},
                            {"state_bytes", ::toJson(group.stateBytes)},
                            {"block_states", llvm::json::Array(group.blockStates)},
                            {"block_state_bytes", ::toJson(group.blockStateBytes)},
                            {"strategies", std::move(strategies)}};
}

/// The cluster, in the form and units of a manifest.
static llvm::json::Object toJson(const cost::Cluster &cluster) {
  llvm::json::Array levels;
  for (const cost::Level &level : cluster.levels) {
    llvm::json::Object object{{"name", level.name},
                              {"gb_per_s", level.link.bandwidth / 1e9},
                              {"latency_us", level.link.latency * 1e6},
                              {"gap_us", level.link.gap * 1e6}};
    if (level.ranks != cost::Level::kAll)
      object["ranks"] = level.ranks;
    levels.push_back(std::move(object));
  }
  const cost::Device &device = cluster.device;
  llvm::json::Object object{{"levels", std::move(levels)},
                            {"device", llvm::json::Object{{"tflop_per_s", device.flops / 1e12},
                                                          {"memory_gb_per_s", device.memory / 1e9},
                                                          {"memory_gb", device.capacity / 1e9},
                                                          {"launch_us", device.launch * 1e6},
                                                          {"threads", int64_t(device.threads)}}}};
  if (!cluster.profile.empty())
    object["profile"] = cluster.profile;
  return object;
}

static llvm::json::Object toJson(const ProductReport &one, const cost::Device &device,
                                 bool hasTable) {
  llvm::json::Array groups;
  for (const auto &[name, times] : one.groups)
    groups.push_back(llvm::json::Object{{"name", name}, {"times", times}});
  const kernels::ProductTile &tile = one.tile;
  llvm::json::Object object{{"m", one.shape.m},
                            {"n", one.shape.n},
                            {"k", one.shape.k},
                            {"lhs", one.lhs},
                            {"rhs", one.rhs},
                            {"out", one.out},
                            {"symmetric", one.shape.isSymmetric},
                            {"flops", cost::executedFlops(one.shape)},
                            {"full_flops", cost::fullFlops(one.shape)},
                            {"tflop_per_s", device.rate(one.shape) / 1e12},
                            {"groups", std::move(groups)},
                            {"accumulation", llvm::StringRef(plan::name(one.accumulation))},
                            {"kernel", one.kernel()},
                            {"tile", llvm::json::Array{tile.rows, tile.columns, tile.steps}},
                            {"stages", tile.stages}};
  if (!one.notOnWarpgroups.empty())
    object["not_on_warpgroups"] = one.notOnWarpgroups;
  object["addend"] = one.addend.empty() ? llvm::json::Value(nullptr) : one.addend;
  if (!hasTable)
    return object;
  llvm::json::Array pinned;
  for (const plan::PinnedAlgorithm &each : one.pinned)
    pinned.push_back(llvm::json::Object{{"cublaslt", each.cublasLt},
                                        {"chip", "sm_" + std::to_string(each.chip)},
                                        {"multiprocessors", each.multiprocessors},
                                        {"algorithm", each.algorithm},
                                        {"tile", each.tile},
                                        {"stages", each.stages},
                                        {"workspace", each.workspaceBytes}});
  object["pinned"] = std::move(pinned);
  if (!one.notPinned.empty())
    object["not_pinned"] = one.notPinned;
  return object;
}

static llvm::json::Object toJson(const LaunchesReport &report) {
  llvm::json::Array launches;
  for (const LaunchReport &launch : report.launches) {
    llvm::json::Array products;
    for (const auto &[each, groups] : launch.products)
      products.push_back(llvm::json::Object{{"m", each.shape.m},
                                            {"n", each.shape.n},
                                            {"k", each.shape.k},
                                            {"symmetric", each.shape.isSymmetric},
                                            {"blocks", each.blocks},
                                            {"groups", llvm::json::Array(groups)}});
    launches.push_back(llvm::json::Object{{"times", launch.times},
                                          {"products", std::move(products)},
                                          {"beside_messages", launch.besideMessages},
                                          {"clusters", launch.lists},
                                          {"tiles", launch.tiles.tiles},
                                          {"longest_list", launch.tiles.longest},
                                          {"even_share", launch.tiles.evenShare},
                                          {"flops", launch.flops()},
                                          {"modelled_seconds", launch.seconds}});
  }
  return llvm::json::Object{{"global_rank", report.globalRank},
                            {"count", report.count()},
                            {"products", report.products},
                            {"flops", report.flops()},
                            {"modelled_seconds", report.seconds()},
                            {"clusters", report.lists},
                            {"clusters_beside_messages", report.listsBesideMessages},
                            {"list", std::move(launches)}};
}

std::string explain::toJson(const Report &report) {
  llvm::json::Array groups, ranks, meshes, communicators;
  for (const CommunicatorReport &one : report.communicators) {
    llvm::json::Object object{{"ranks", one.ranks}, {"exchanges", one.exchanges}};
    if (one.communicator.mesh >= 0) {
      const plan::Mesh &mesh = report.meshes[one.communicator.mesh];
      llvm::json::Array factors;
      for (const plan::Factor &factor : one.communicator.factors)
        factors.push_back(llvm::json::Object{
            {"axis", mesh.axes[factor.axis]}, {"stride", factor.stride}, {"size", factor.size}});
      object["mesh"] = mesh.name;
      object["factors"] = std::move(factors);
    }
    communicators.push_back(std::move(object));
  }
  for (const GroupReport &group : report.groups)
    groups.push_back(::toJson(group));
  for (auto [index, cost, memory] : llvm::enumerate(report.ranks, report.memory))
    ranks.push_back(llvm::json::Object{{"rank", int64_t(index)},
                                       {"global_rank", report.world[index]},
                                       {"parameter_bytes", memory.parameters},
                                       {"gradient_bytes", memory.gradients},
                                       {"state_bytes", memory.states},
                                       {"messages_sent", cost.messagesSent},
                                       {"bytes_sent", cost.bytesSent},
                                       {"messages_received", cost.messagesReceived},
                                       {"bytes_received", cost.bytesReceived},
                                       {"flops", cost.flops.executed},
                                       {"full_flops", cost.flops.full}});
  for (const plan::Mesh &mesh : report.meshes) {
    llvm::json::Object object{{"name", mesh.name},
                              {"axes", llvm::json::Array(mesh.axes)},
                              {"sizes", llvm::json::Array(mesh.sizes)},
                              {"ranks", llvm::json::Array(mesh.ranks)}};
    if (auto found = report.busiestOfMesh.find(mesh.name); found != report.busiestOfMesh.end()) {
      object["busiest_seconds"] = found->second.first;
      object["busiest_seconds_at_least"] = found->second.second;
    }
    meshes.push_back(std::move(object));
  }
  llvm::json::Object object{{"name", report.name},
                            {"numerics", report.numerics},
                            {"cluster", ::toJson(report.cluster)},
                            {"busiest_seconds", report.busiest},
                            {"busiest_seconds_at_least", report.leastBusiest},
                            {"meshes", std::move(meshes)},
                            {"world", llvm::json::Array(report.world)},
                            {"arena_bytes", report.arena},
                            {"scratch_bytes_at_most", report.scratch},
                            {"workspace_bytes_at_most", report.workspaceAtMost()},
                            {"reduces_again", report.reducesAgain},
                            {"exchanges", report.exchanges},
                            {"communicators", std::move(communicators)},
                            {"blocks_overridden", llvm::json::Array(report.overridden)},
                            {"groups", std::move(groups)},
                            {"ranks", std::move(ranks)},
                            {"total", ::toJson(summarize(report.ranks))}};
  if (report.limit > 0)
    object["workspace_limit"] = report.limit;
  if (report.stateLimit > 0)
    object["state_limit"] = report.stateLimit;
  if (!report.target.empty()) {
    llvm::json::Array products;
    for (const ProductReport &one : report.products)
      products.push_back(::toJson(one, report.cluster.device, report.hasTable));
    object["target"] = report.target;
    object["products"] = std::move(products);
  }
  if (report.gpu) {
    object["gpu"] = report.gpu->chip.name;
    object["ptx"] = report.gpu->ptx;
  }
  if (report.launches)
    object["launches"] = ::toJson(*report.launches);
  if (report.nccl)
    object["nccl_bytes_about"] = llvm::json::Object{{"min", report.nccl->bytes().least},
                                                    {"max", report.nccl->bytes().most},
                                                    {"connections", report.nccl->connections}};
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}", llvm::json::Value(std::move(object)))
                                 << '\n';
  return text;
}
