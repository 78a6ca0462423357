//===- GroupParameters.cpp - Collect equal parameters ----------------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "passes/decide/Forces.h"
#include "passes/decide/GroupGeometry.h"
#include "runtime/text/Plural.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace stepc::optim;
using stepc::plan::ShardsKind;

namespace stepc::decide {
#define GEN_PASS_DEF_GROUPPARAMETERS
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

namespace {

class GroupParameters : public stepc::decide::impl::GroupParametersBase<GroupParameters> {
public:
  using GroupParametersBase::GroupParametersBase;

private:
  /// For each size of parts, the numbers of the parts of that size. Sizes are in the order of their first
  /// parts. The result is kept in `known`, because every layer of a model has the same division.
  const SmallVector<Attribute> &equalParts(BlocksAttr blocks) {
    auto [found, isNew] = known.try_emplace(blocks);
    if (!isNew)
      return found->second;
    llvm::MapVector<int64_t, SmallVector<int64_t>> bySize;
    for (auto [number, part] : llvm::enumerate(blocks.toPlan().parts))
      bySize[stepc::plan::extentOf(part)].push_back(int64_t(number));
    for (auto &[size, numbers] : bySize)
      found->second.push_back(DenseI64ArrayAttr::get(&getContext(), numbers));
    return found->second;
  }
  llvm::DenseMap<BlocksAttr, SmallVector<Attribute>> known;

  /// If no result depends on the matrices of a parameter, each parameter is joined into one matrix. Returns
  /// the axis at which its columns begin, or 0 if nothing is joined. With one matrix the description of a
  /// shard does not grow with the number of matrices.
  static int64_t joinedColumns(GroupOp group, RuleOp rule) {
    stepc::plan::Group layout = group.toPlan();
    int64_t matrices = layout.blocksPerParameter();
    // Moves between shards run in waves of whole blocks. For a small workspace these blocks must be small.
    // With more than kMostBlocks of them the later passes take seconds.
    constexpr int64_t kMostBlocks = int64_t(1) << 18;
    bool runsInWaves = group.getExemplar().standsApart() && matrices <= kMostBlocks;
    if (matrices <= 1 || runsInWaves || rule.countsLines() || stepc::decide::hasMatrixSpace(rule))
      return 0;
    layout.joined = stepc::plan::bestJoined(layout);
    return stepc::plan::checkJoined(layout, toPlan(rule).states).empty() ? layout.joined : 0;
  }

  /// Verifies that the numbers of blocks and of pieces in a shard are within bounds. Each block has an owner
  /// and a wave, and each block and each piece is proven by itself.
  static LogicalResult checkPieces(GroupOp group) {
    constexpr int64_t kMost = int64_t(1) << 20; // so many take about a minute and 2 GB
    stepc::plan::Group layout = group.toPlan();
    int64_t each = layout.blocksPerParameter(), count = group.getParameters().size();
    auto error = [&] {
      return group.getExemplar().emitError("parameter '")
             << group.getExemplar().getSymName() << "': expected at most " << kMost << " ";
    };
    if (each > kMost / count)
      return error() << "matrices of parameters that are stepped alike, found "
                     << stepc::saturatingMul(each, count) << " in "
                     << stepc::plural(count, "parameter");
    int64_t pieces = stepc::geometry::mostRectangles(layout, int64_t(1) << 40);
    if (pieces > kMost)
      return error() << "pieces of matrices that stand apart in a shard by placements "
                     << describe(group.getExemplar().getPlacements()) << ", found " << pieces;
    // Values that move between shards that cut columns are copied row by row.
    constexpr int64_t kMostRows = int64_t(1) << 24;
    stepc::plan::KeptAxes kept = stepc::plan::keptAxes(layout, stepc::plan::ValueKind::Full);
    auto cutsColumns = [&](const stepc::plan::Placement &placement) {
      return placement.isShard() && llvm::is_contained(kept.cols, size_t(placement.dim));
    };
    bool cuts = false;
    for (auto *list : {&layout.placements, &layout.gradientPlacements, &layout.statePlacements})
      cuts |= llvm::any_of(*list, cutsColumns);
    stepc::plan::View view = stepc::plan::view(layout, stepc::plan::ValueKind::Full);
    int64_t rows = stepc::saturatingMul(view.blocks, view.rows);
    if (group.getExemplar().standsApart() && cuts && rows > kMostRows)
      return group.getExemplar().emitError("parameter '")
             << group.getExemplar().getSymName() << "': expected at most " << kMostRows
             << " rows where lists of placements differ and cut columns, found " << rows;
    return success();
  }

  /// Verifies that there are not too many pairs of a group and a rank of its mesh. A plan is proven for each.
  static LogicalResult checkSize(ModuleOp module) {
    constexpr int64_t kMost = int64_t(1) << 23; // so many take some two minutes
    int64_t pairs = 0;
    llvm::MapVector<Operation *, int64_t> groups; // per mesh
    for (auto group : module.getOps<GroupOp>())
      ++groups[lookupMesh(group, group.getExemplar().getMeshAttr())];
    for (auto [mesh, count] : groups)
      pairs += count * int64_t(cast<MeshOp>(mesh).getRanks().size());
    if (pairs <= kMost)
      return success();
    Operation *largest =
        llvm::max_element(groups, [](const auto &a, const auto &b) {
          auto size = [](const auto &each) {
            return each.second * int64_t(cast<MeshOp>(each.first).getRanks().size());
          };
          return size(a) < size(b);
        })->first;
    auto mesh = cast<MeshOp>(largest);
    return mesh.emitError("expected at most ")
           << kMost
           << " pairs of a group and a rank of its mesh, because a plan is proven for each, found "
           << pairs << ": mesh '" << mesh.getSymName() << "' has " << mesh.getRanks().size()
           << " ranks and parameters of " << groups[largest]
           << " groups; parameters of equal shape, types, placements and rule are one group";
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // The placements in which contributions to a partial gradient are added up. Null if there are none.
    auto placeReduced = [](GroupOp group, Builder &builder) -> ArrayAttr {
      auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
      stepc::plan::Group layout = group.toPlan();
      SmallVector<Attribute> placements;
      for (const stepc::plan::Placement &each : stepc::geometry::reducedPlacements(
               layout, toPlan(lookupMesh(group, group.getExemplar().getMeshAttr())),
               stepc::plan::home(layout, toPlan(rule)).whose()))
        placements.push_back(toAttribute(builder.getContext(), each));
      return placements.empty() ? ArrayAttr() : builder.getArrayAttr(placements);
    };
    if (!module.getOps<GroupOp>().empty())
      return; // grouped already
    FailureOr<std::vector<stepc::decide::Force>> forces =
        stepc::decide::parseForces(module, SmallVector<std::string>(force.begin(), force.end()));
    if (failed(forces))
      return signalPassFailure();
    llvm::StringMap<FlatSymbolRefAttr>
        rules; // of routes whose parameters have one, because ruleOf is slow
    llvm::StringSet<>
        exchanging, // routes whose rule has a matrix space: parameters with different forces need own groups
        dividing; // routes whose rule sees blocks
    for (auto route : module.getOps<RouteOp>()) {
      auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(route, route.getRuleAttr());
      if (rule && stepc::decide::hasMatrixSpace(rule))
        exchanging.insert(route.getSymName());
      if (rule && rule.seesBlocks())
        dividing.insert(route.getSymName());
      if (rule && !rule.getTall())
        rules[route.getSymName()] = route.getRuleAttr();
    }
    llvm::MapVector<Attribute, SmallVector<Attribute>> groups;
    Builder builder(&getContext());
    for (auto parameter : module.getOps<ParameterOp>()) {
      if (!parameter.getRoute()) {
        parameter.emitError("expected a route, found none: run optim-route-parameters first");
        return signalPassFailure();
      }
      Attribute forced = builder.getUnitAttr();
      if (exchanging.contains(*parameter.getRoute()))
        if (stepc::decide::Force *last = stepc::decide::lastMatch(*forces, parameter, true))
          forced = last->strategy;
      FlatSymbolRefAttr rule = rules.lookup(*parameter.getRoute());
      if (!rule)
        rule = FlatSymbolRefAttr::get(optim::ruleOf(parameter).getSymNameAttr());
      Attribute none = builder.getUnitAttr();
      auto blocks = parameter.getBlocksAttr();
      auto add = [&](Attribute parts) {
        Attribute key = builder.getArrayAttr(
            {rule, parts, parameter.getShapeAttr(), parameter.getBatchAttr(),
             parameter.getFlatten() ? parameter.getFlattenAttr() : none,
             builder.getBoolAttr(parameter.getFlattenSpecified()), parameter.getTypeAttr(),
             parameter.getGradientAttr(), parameter.getMeshAttr(), parameter.getPlacementsAttr(),
             parameter.getPlacementsOf(ShardsKind::Gradient),
             parameter.getPlacementsOf(ShardsKind::State), blocks ? blocks : none,
             builder.getBoolAttr(parameter.getSpecified()), forced});
        groups[key].push_back(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
      };
      if (!blocks || !dividing.contains(*parameter.getRoute()))
        add(none);
      else
        for (Attribute parts : equalParts(blocks))
          add(parts);
    }
    OpBuilder at = OpBuilder::atBlockEnd(module.getBody());
    for (auto [index, entry] : llvm::enumerate(groups)) {
      auto group = GroupOp::create(
          at, module.getLoc(), builder.getStringAttr("group." + Twine(index)),
          cast<FlatSymbolRefAttr>(cast<ArrayAttr>(entry.first)[0]),
          builder.getArrayAttr(entry.second),
          dyn_cast<DenseI64ArrayAttr>(cast<ArrayAttr>(entry.first)[1]), /*joined=*/IntegerAttr(),
          /*reduced=*/ArrayAttr(), StrategyAttrInterface(), ArrayAttr(), SlabShapeAttr(),
          DenseI64ArrayAttr(), StringAttr());
      if (group.isOfModel())
        group.setSymNameAttr(builder.getStringAttr("group." + Twine(kModelName)));
      group.setReducedAttr(placeReduced(group, builder));
      auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
      if (int64_t columns = joinedColumns(group, rule))
        group.setJoined(columns);
      if (failed(checkPieces(group)))
        return signalPassFailure();
    }
    if (failed(checkSize(module)))
      return signalPassFailure();
    int64_t parameters = llvm::range_size(module.getOps<ParameterOp>());
    remark::passed(
        module.getLoc(),
        remark::RemarkOpts::name("parameters-grouped").category("optim-group-parameters"))
        << remark::metric("parameters", parameters) << remark::metric("groups", groups.size());
  }
};

} // namespace
