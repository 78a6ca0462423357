//===- ProductLaunches.cpp - Times of launches of products ------------------===//

#include "passes/cost/ProductLaunches.h"

#include "runtime/plan/Kernel.h"

#include <algorithm>

namespace stepc::cost {

int64_t ProductLaunches::lists(bool besideMessages) const {
  auto blocks = static_cast<int64_t>(device.threads);
  if (besideMessages)
    blocks -= plan::kMessageBlocks;
  return std::max<int64_t>(1, blocks / plan::kTileBlocks);
}

plan::ListTimes ProductLaunches::times(const Products &products, bool besideMessages) {
  // Equal products share an entry. plan::ListTimer says that order makes no difference to times.
  std::map<BlockProduct, int64_t> blocks;
  for (const LaunchedProduct &each : products)
    blocks[each.shape] += each.blocks;
  std::pair<bool, Products> key{besideMessages, {}};
  for (auto [shape, count] : blocks)
    if (count > 0)
      key.second.push_back({shape, count, 0});
  auto [found, isNew] = known.try_emplace(std::move(key));
  if (isNew) {
    std::vector<plan::TiledProduct> tiled;
    for (const auto &[shape, count, bytes] : found->first.second)
      tiled.push_back({count, shape.m, shape.n, shape.k, shape.isSymmetric, shape.hasAddend});
    found->second = timer.times(tiled, lists(besideMessages));
  }
  return found->second;
}

double ProductLaunches::work(const Products &products) const {
  double seconds = 0;
  for (const LaunchedProduct &each : products)
    seconds += static_cast<double>(each.blocks) * device.operations(each.shape) / device.flops;
  return seconds;
}

double ProductLaunches::seconds(const LaunchedProduct &product) const {
  auto blocks = static_cast<double>(product.blocks);
  return device.seconds(blocks * device.operations(product.shape),
                        blocks * static_cast<double>(product.blockBytes));
}

double ProductLaunches::seconds(const Products &products, bool besideMessages) {
  double sum = overhead(products, besideMessages);
  for (const LaunchedProduct &each : products)
    sum += seconds(each);
  return sum;
}

double ProductLaunches::overhead(const Products &products, bool besideMessages) {
  if (!std::all_of(products.begin(), products.end(),
                   [&](const LaunchedProduct &each) { return canJoin(each.shape); })) {
    double most = 0;
    for (const LaunchedProduct &each : products)
      most = std::max(most, device.once(each.shape));
    return most;
  }
  plan::ListTimes listed = times(products, besideMessages);
  if (listed.tiles == 0)
    return 0;
  // All lists together have the device's rate. Fewer lists have a part of it.
  double share = listed.wholeShare * static_cast<double>(lists(besideMessages)) /
                 static_cast<double>(lists(false));
  return device.launch + work(products) * (listed.longest / share - 1);
}

std::vector<PlannedLaunch> plannedLaunches(const plan::Plan &plan) {
  std::vector<PlannedLaunch> launches;
  int64_t underWay = 0;
  for (size_t at = 0; at < plan.commands.size(); ++at) {
    const plan::Command &command = plan.commands[at];
    underWay += std::holds_alternative<plan::Start>(command);
    underWay -= std::holds_alternative<plan::Await>(command);
    if (const auto *product = std::get_if<plan::Product>(&command)) {
      if (!product->joins || launches.empty())
        launches.push_back({{}, underWay > 0});
      launches.back().commands.push_back(at);
    }
  }
  return launches;
}

BlockProduct blockProductOf(const plan::Product &product) {
  auto [m, n, k] = product.sizes();
  return {m,
          n,
          k,
          product.symmetric,
          product.addend.has_value(),
          product.accumulation == plan::Accumulation::TensorCore,
          plan::checkTiles(plan::tiledOperands(product)).empty()};
}

LaunchedProduct launchedProduct(const plan::Product &product, int64_t blocks) {
  int64_t bytes = 0;
  for (const plan::Operand *operand : product.operands())
    bytes += operand->blockBytes();
  return {blockProductOf(product), blocks, bytes};
}

} // namespace stepc::cost
