//===- Matrix.cpp - Products and functions of computed blocks ----------------===//
#include "runtime/core/Instance.h"
#include "runtime/plan/TileLists.h"

#include <cstring>

namespace stepc::runtime {
namespace {

class PreparedMatrix : public PreparedCommand {
public:
  using PreparedCommand::PreparedCommand;

  void enqueue() override {
    instance.device().compute(instance.deviceContext, Stream::Compute, batch);
  }
  void count(stepc_counters &counters) const override {
    ++counters.launches;
    counters.chunks += batch.blocks;
  }
  void lend(std::vector<HostList> &lists) const override {
    if (!tiles)
      return;
    lendList(lists, tiles->problems);
    lendList(lists, tiles->lists.tiles);
    lendList(lists, tiles->lists.lists);
  }
  std::string place(const AddressOf &addressOf) override {
    for (void *&argument : tileArguments)
      argument = const_cast<void *>(addressOf(argument));
    batch.arguments = arguments.data();
    for (Launch &kernel : batch.kernels)
      if (std::string wrong = checkLaunch(instance, kernel, tiles ? tileArguments : arguments);
          !wrong.empty())
        return wrong;
    return instance.device().prepare ? instance.device().prepare(instance.deviceContext, batch)
                                     : std::string();
  }

  /// The lists that a kernel of tiles reads.
  struct Tiles {
    std::vector<stepc_product_problem> problems;
    std::vector<plan::TiledProduct> products; ///< the shapes of `problems`
    plan::TileLists lists;
  };

  std::vector<void *> arguments;     ///< the scratch, the operands and the factors
  std::vector<void *> tileArguments; ///< of a kernel of tiles
  std::unique_ptr<Tiles> tiles;      ///< null if the kernels take no lists
  BatchWork batch;
};

/// Makes the record by which a kernel of tiles finds the operands of a product. `addresses` are the scratch
/// and the operands. Returns why the device cannot; empty if it can.
std::string describe(stepc_instance &instance, const plan::Product &product, int64_t blocks,
                     const std::vector<void *> &addresses, stepc_product_problem &problem) {
  problem.alpha = float(product.alpha);
  problem.beta = float(product.beta);
  problem.shift = float(product.shift);
  std::vector<const plan::Operand *> operands = product.operands();
  bool hasAddend = product.addend.has_value();
  // A kernel fences all four maps. Without an addend, that map is the result's, and no tile reads it.
  stepc_tensor_map *maps[] = {&problem.lhs, &problem.rhs, &problem.addend, &problem.out};
  for (size_t i = 0; i < std::size(maps); ++i) {
    size_t operand = i < 2 ? i : operands.size() - 1 - (hasAddend && i == 2);
    const plan::Operand &batch = *operands[operand];
    int64_t boxRows =
        i == 0 && !product.transposeLhs ? plan::kTileRows : plan::boxColumns(batch.type);
    MatrixStack stack{addresses[operand + 1], blocks, batch.rows, batch.cols, batch.type, boxRows};
    if (std::string wrong = instance.device().mapMatrices(instance.deviceContext, stack, *maps[i]);
        !wrong.empty())
      return wrong;
  }
  return {};
}

/// Adds a product to the launch of `first`, whose kernel takes lists of tiles. `blocks` and `addresses` are
/// the product's.
std::string addProduct(PreparedMatrix &first, const plan::Product &product, int64_t blocks,
                       const std::vector<void *> &addresses) {
  if (blocks == 0)
    return {};
  auto [m, n, k] = product.sizes();
  first.tiles->products.push_back(
      {blocks, m, n, k, product.symmetric, product.addend.has_value(), product.shift != 0});
  return describe(first.instance, product, blocks, addresses, first.tiles->problems.emplace_back());
}

/// Shares out the tiles of all products of a launch.
void shareOutTiles(PreparedMatrix &first, bool besideMessages) {
  stepc_instance &instance = first.instance;
  Launch &launch = first.batch.kernels.front();
  PreparedMatrix::Tiles &tiles = *first.tiles;
  launch.besideMessages = besideMessages;
  launch.items =
      tiles.products.empty() ? 0 : instance.device().lists(instance.deviceContext, launch);
  tiles.lists = plan::tileLists(tiles.products, launch.items, launch.shape->cluster);
  first.tileArguments = {tiles.problems.data(), tiles.lists.tiles.data(), tiles.lists.lists.data()};
}

} // namespace

std::unique_ptr<PreparedCommand>
Preparer::prepareMatrix(const plan::MatrixCommand &command,
                        const std::vector<const plan::Operand *> &operands,
                        const plan::Product *product) {
  auto made = std::make_unique<PreparedMatrix>(instance, number);
  made->arguments = {arena() + plan.scratchOffset()};
  for (const plan::Operand *operand : operands)
    made->arguments.push_back(arena() + beginOf(instance, *operand));
  if (product) {
    stepc_factors factors = {float(product->alpha), float(product->beta)};
    std::memcpy(&made->arguments.emplace_back(), &factors, sizeof(factors));
    if (product->shift != 0) {
      stepc_shift shift = {float(product->shift), 0};
      std::memcpy(&made->arguments.emplace_back(), &shift, sizeof(shift));
    }
  }
  made->batch.planned = product;
  made->batch.blocks = tables[command.table].blocks;
  for (const plan::BlockKernel &kernel : command.kernels) {
    Launch &launch = made->batch.kernels.emplace_back(instance.library.launch(kernel.kernel));
    launch.items = made->batch.blocks * kernel.items;
    launch.grain = 1;
  }
  if (!product || !plan::takesLists(plan, command))
    return made;
  if (!instance.device().lists || !instance.device().mapMatrices) {
    failure = "expected a device that works off lists of tiles, found '" +
              std::string(instance.device().name) + "'";
    return made;
  }
  if (product->joins) {
    // The launch of the first product serves this one too.
    made->batch.kernels.clear();
  } else {
    made->tiles = std::make_unique<PreparedMatrix::Tiles>();
    joined = made.get();
  }
  auto &first = static_cast<PreparedMatrix &>(*joined);
  failure = addProduct(first, *product, made->batch.blocks, made->arguments);
  size_t next = size_t(number) + 1;
  const auto *after =
      next < plan.commands.size() ? std::get_if<plan::Product>(&plan.commands[next]) : nullptr;
  if (failure.empty() && !(after && after->joins))
    shareOutTiles(first, underWay > 0);
  return made;
}

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::Product &command) {
  return prepareMatrix(command, command.operands(), &command);
}

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::Apply &command) {
  return prepareMatrix(command, command.operands(), nullptr);
}

} // namespace stepc::runtime
