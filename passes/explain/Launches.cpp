//===- Launches.cpp - Which products share a launch -------------------------===//

#include "passes/explain/Explain.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/TargetShape.h"
#include "passes/plan/PlanOfProgram.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::explain;

int64_t LaunchReport::flops() const {
  int64_t sum = 0;
  for (const Product &each : products)
    sum = saturatingAdd(
        sum, saturatingMul(each.product.blocks, cost::executedFlops(each.product.shape)));
  return sum;
}

int64_t LaunchesReport::count() const {
  int64_t sum = 0;
  for (const LaunchReport &launch : launches)
    sum += launch.times;
  return sum;
}

double LaunchesReport::seconds() const {
  double sum = 0;
  for (const LaunchReport &launch : launches)
    sum += double(launch.times) * launch.seconds;
  return sum;
}

int64_t LaunchesReport::flops() const {
  int64_t sum = 0;
  for (const LaunchReport &launch : launches)
    sum = saturatingAdd(sum, saturatingMul(launch.times, launch.flops()));
  return sum;
}

namespace {

class Launches {
public:
  Launches(const plan::Plan &plan, const cost::Device &device)
      : plan(plan), expander(plan), launches(device), planned(cost::plannedLaunches(plan)) {}

  LaunchesReport report() {
    LaunchesReport made;
    int64_t rank = busiest();
    made.globalRank = plan.world()[size_t(rank)];
    made.lists = launches.lists(/*besideMessages=*/false);
    made.listsBesideMessages = launches.lists(/*besideMessages=*/true);
    for (const cost::PlannedLaunch &launch : planned) {
      LaunchReport one{1, {}, launch.besideMessages, 0, {}, 0};
      cost::ProductLaunches::Products products;
      for (size_t command : launch.commands) {
        cost::LaunchedProduct product = productOf(command, rank);
        if (product.blocks == 0)
          continue;
        ++made.products;
        products.push_back(product);
        add(one, product, groupOf(command));
      }
      if (products.empty())
        continue;
      one.seconds = launches.seconds(products, launch.besideMessages);
      if (launches.canJoin(products.front().shape)) {
        one.lists = launches.lists(launch.besideMessages);
        one.tiles = launches.times(products, launch.besideMessages);
      }
      // Products with an addend take more time, and look alike.
      auto same = llvm::find_if(made.launches, [&](const LaunchReport &other) {
        return other.besideMessages == one.besideMessages && other.seconds == one.seconds &&
               llvm::equal(other.products, one.products, [](const auto &a, const auto &b) {
                 return a.product == b.product && a.groups == b.groups;
               });
      });
      if (same == made.launches.end())
        made.launches.push_back(std::move(one));
      else
        ++same->times;
    }
    return made;
  }

private:
  const plan::Product &productAt(size_t command) const {
    return std::get<plan::Product>(plan.commands[command]);
  }
  const std::string &groupOf(size_t command) const {
    const plan::Place &place = plan.tables[size_t(productAt(command).table.value)].from;
    return plan.groups[size_t(plan.segments[size_t(place.segment)].group)].name;
  }
  cost::LaunchedProduct productOf(size_t command, int64_t rank) {
    const plan::Product &product = productAt(command);
    auto [blocks, isNew] = known.try_emplace({product.table.value, rank}, 0);
    if (isNew)
      blocks->second =
          expander.computedBlocks(plan.tables[size_t(product.table.value)].from.segment, rank);
    return cost::launchedProduct(product, blocks->second);
  }

  /// The first of the ranks whose products take longest beside their launches.
  int64_t busiest() {
    int64_t most = 0;
    double longest = -1;
    for (int64_t rank = 0, ranks = int64_t(plan.world().size()); rank < ranks; ++rank) {
      double seconds = 0;
      for (const cost::PlannedLaunch &launch : planned)
        for (size_t command : launch.commands)
          seconds += launches.seconds(productOf(command, rank));
      if (seconds > longest) {
        longest = seconds;
        most = rank;
      }
    }
    return most;
  }

  /// Adds a product to those of its shape, with or without an addend.
  static void add(LaunchReport &launch, cost::LaunchedProduct product, const std::string &group) {
    product.shape.hasAddend = false;
    product.blockBytes = 0; // it has the addend
    auto known = llvm::find_if(launch.products, [&](const LaunchReport::Product &other) {
      return other.product.shape == product.shape;
    });
    if (known == launch.products.end()) {
      launch.products.push_back({product, {group}});
      return;
    }
    known->product.blocks += product.blocks;
    if (!llvm::is_contained(known->groups, group))
      known->groups.push_back(group);
  }

  const plan::Plan &plan;
  plan::Expander expander;
  cost::ProductLaunches launches;
  std::vector<cost::PlannedLaunch> planned;
  std::map<std::pair<int64_t, int64_t>, int64_t> known; // blocks by table and rank
};

} // namespace

FailureOr<LaunchesReport> explain::launchesOf(ModuleOp module, const kernels::Target &target,
                                              const cost::Device &device) {
  OwningOpRef<ModuleOp> program = module.clone();
  PassManager manager(module.getContext());
  kernels::buildCommandPipeline(manager, {gpuTargetOfChip(target.chip())});
  if (failed(manager.run(*program)))
    return failure();
  FailureOr<plan::Plan> plan = planOfProgram(*program);
  if (failed(plan))
    return failure();
  return Launches(*plan, device).report();
}
