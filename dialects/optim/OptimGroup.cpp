//===- OptimGroup.cpp - Groups ------------------------------------------------===//

#include "dialects/optim/Optim.h"

#include "runtime/geometry/Geometry.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

ParameterOp GroupOp::getExemplar() {
  return lookupParameter(*this, cast<FlatSymbolRefAttr>(getParameters()[0]));
}
bool GroupOp::isOfModel() {
  return getParameters().size() == 1 &&
         cast<FlatSymbolRefAttr>(getParameters()[0]).getValue() == kModelName && findModel(*this);
}
plan::Group GroupOp::toPlan() {
  plan::Group group = getExemplar().toPlan();
  if (auto parts = getParts())
    group.parts = parts->vec();
  group.joined = getJoined().value_or(0);
  if (ArrayAttr reduced = getReducedAttr())
    group.reducedPlacements = optim::toPlan(reduced);
  if (std::optional<SlabShapeAttr> slabs = getSlabs())
    group.slabs = slabs->toPlan();
  auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(*this, getRuleAttr());
  for (unsigned i = 0; rule && i < rule.getNumStates(); ++i)
    if (rule.isBlockState(i))
      group.blockStates.push_back(i);
  return group;
}
int64_t GroupOp::getBlocksPerParameter() {
  if (getJoined())
    return 1;
  return getExemplar().getMatrix().blocks * int64_t(getParts() ? getParts()->size() : 1);
}
int64_t GroupOp::getRows() { return toPlan().rows(); }
int64_t GroupOp::getCols() { return toPlan().cols(); }
bool GroupOp::lacksBases() {
  return getHops() && llvm::any_of(getHops()->getAsRange<HopAttr>(), [&](HopAttr hop) {
           return !hop.getOwned().empty() && hop.getBase().empty() && getBlocksPerParameter() > 0;
         });
}
void GroupOp::setPlanHops(ArrayRef<plan::Hop> hops) {
  SmallVector<Attribute> attributes;
  for (const plan::Hop &hop : hops)
    attributes.push_back(HopAttr::get(getContext(), hop));
  setHopsAttr(ArrayAttr::get(getContext(), attributes));
}
std::vector<plan::Hop> GroupOp::getPlanHops() {
  std::vector<plan::Hop> hops;
  if (getHops())
    for (auto hop : getHops()->getAsRange<HopAttr>())
      hops.push_back(hop.toPlan());
  return hops;
}

LogicalResult GroupOp::verify() {
  if (getParameters().empty())
    return emitOpError("expected at least one parameter, found none");
  if (bool(getStrategy()) != bool(getHops()))
    return emitOpError("expected hops with a strategy, found ")
           << (getHops() ? "no strategy" : "no hops");
  return success();
}

LogicalResult GroupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto rule = symbols.lookupNearestSymbolFrom<RuleOp>(*this, getRuleAttr());
  if (!rule)
    return emitOpError("expected a rule, found no optim.rule named ") << getRuleAttr();
  auto module = (*this)->getParentOfType<ModuleOp>();
  // A few parameters are looked up one by one. For many parameters this would be quadratic, so a map is
  // built.
  bool few = getParameters().size() < 8;
  llvm::DenseMap<StringAttr, ParameterOp> parameters;
  if (!few)
    for (auto parameter : module.getOps<ParameterOp>())
      parameters[parameter.getSymNameAttr()] = parameter;
  ParameterOp first;
  for (Attribute attr : getParameters()) {
    auto ref = dyn_cast<FlatSymbolRefAttr>(attr);
    ParameterOp p;
    if (ref)
      p = few ? lookupParameter(*this, ref) : parameters.lookup(ref.getAttr());
    if (!p)
      return emitOpError("expected a parameter, found no optim.parameter named ") << attr;
    if (!first)
      first = p;
    if (p.getShape() != first.getShape() || p.getBatch() != first.getBatch() ||
        p.getFlatten() != first.getFlatten() ||
        p.getFlattenSpecified() != first.getFlattenSpecified() || p.getType() != first.getType() ||
        p.getGradient() != first.getGradient() || p.getMesh() != first.getMesh() ||
        p.getPlacements() != first.getPlacements() ||
        p.getGradientPlacements() != first.getGradientPlacements() ||
        p.getStatePlacements() != first.getStatePlacements() ||
        p.getBlocks() != first.getBlocks() || p.getSpecified() != first.getSpecified() ||
        p.getSizes() != first.getSizes()) {
      auto diag =
          emitOpError(
              "expected parameters of equal shape, types, mesh, placements and blocks, found ")
          << attr << " that differs";
      diag.attachNote(p.getLoc()) << "the parameter is here";
      return diag;
    }
  }
  if (size_t wanted = llvm::range_size(rule.getBody().getOps<SizeOp>()),
      found = first.getSizes().value_or(ArrayRef<int64_t>()).size();
      wanted != found)
    return emitOpError("expected ") << wanted << " sizes of the parameters, as rule "
                                    << getRuleAttr() << " has, found " << found;
  if (failed(verifyParts(first)))
    return failure();
  if (!getParts() && first.getBlocks() && rule.seesBlocks())
    return emitOpError("expected parts of the divided parameters, because rule ")
           << getRuleAttr() << " sees blocks, found none";
  if (getJoined()) {
    if (rule.countsLines())
      return emitOpError("expected no joined axes, because rule ")
             << getRuleAttr() << " counts rows or columns";
    plan::Group group = toPlan();
    group.computes = bool(getStrategy());
    if (std::string wrong = plan::checkJoined(group, optim::toPlan(rule).states); !wrong.empty())
      return emitOpError(wrong);
  }
  if (failed(verifyReduced(first)))
    return failure();
  if (getSlabs() && failed(verifySlabs(first, rule)))
    return failure();
  if (rule.getBlockStates() && (!getHops() || getHops()->empty() || getParts()))
    return emitOpError("expected hops by which whole and undivided blocks come together, because "
                       "states of rule ")
           << getRuleAttr() << " stay with blocks, found " << (getParts() ? "parts" : "none");
  if (getSlabs() && rule.hasStatesOfOtherSizes())
    return emitOpError("expected no slabs, because states of rule ")
           << getRuleAttr() << " have sizes other than the parameter's";
  int64_t blocks = getBlocksPerParameter() * int64_t(getParameters().size());
  if (getHops() && failed(verifyHops(first, blocks)))
    return failure();
  return getWaves() ? verifyWaves(first, blocks) : success();
}

LogicalResult GroupOp::verifyParts(ParameterOp exemplar) {
  if (!getPartsAttr())
    return success();
  ArrayRef<int64_t> parts = getPartsAttr().asArrayRef();
  if (parts.empty())
    return emitOpError("expected at least one part of the parameters, found none");
  std::vector<std::vector<plan::Span>> all;
  if (auto blocks = exemplar.getBlocks())
    all = blocks->toPlan().parts;
  int64_t last = -1, extent = 0;
  for (int64_t part : parts) {
    if (part < 0 || part >= int64_t(all.size()))
      return emitOpError("expected some of the ")
             << all.size() << " parts of the parameters, found " << part;
    if (part <= last)
      return emitOpError("expected parts in their order, found ") << part << " behind " << last;
    int64_t size = plan::extentOf(all[part]);
    if (last >= 0 && size != extent)
      return emitOpError("expected parts of equal size, found one of ")
             << size << " behind those of " << extent;
    last = part;
    extent = size;
  }
  return success();
}

LogicalResult GroupOp::verifyReduced(ParameterOp exemplar) {
  bool isPartial = llvm::any_of(optim::toPlan(exemplar.getPlacementsOf(plan::ShardsKind::Gradient)),
                                [](const plan::Placement &each) { return each.isPartial(); });
  if (isPartial != bool(getReducedAttr()))
    return emitOpError("expected reduced placements exactly where the gradient is partial, found ")
           << describe(exemplar.getPlacementsOf(plan::ShardsKind::Gradient)) << " and "
           << (isPartial ? "none" : describe(getReducedAttr()));
  MeshOp mesh = lookupMesh(*this, exemplar.getMeshAttr());
  if (!isPartial || !mesh)
    return success();
  std::vector<plan::Placement> reduced = optim::toPlan(getReducedAttr());
  if (reduced.size() != mesh.getSizes().size())
    return emitOpError("expected ")
           << mesh.getSizes().size() << " reduced placements, one per mesh axis, found "
           << reduced.size();
  if (auto wrong =
          geometry::checkPlacements(exemplar.getShape().vec(), reduced, optim::toPlan(mesh)))
    return emitOpError("reduced placement ") << wrong->axis << ": " << wrong->reason;
  return success();
}

LogicalResult GroupOp::verifySlabs(ParameterOp exemplar, RuleOp rule) {
  if (!getHops() || !getHops()->empty())
    return emitOpError("expected slabs with hops, of which there are none, found ")
           << (getHops() ? "some" : "no hops");
  MeshOp mesh = lookupMesh(*this, exemplar.getMeshAttr());
  if (!mesh)
    return success(); // the parameter's verifier emits the error
  plan::Group group = toPlan();
  plan::ShardsKind home = plan::home(group, optim::toPlan(rule)).whose();
  if (std::string wrong = geometry::checkSlabs(group, optim::toPlan(mesh), group.slabs, home);
      !wrong.empty())
    return emitOpError(wrong);
  return success();
}

LogicalResult GroupOp::verifyHops(ParameterOp exemplar, int64_t blocks) {
  MeshOp mesh = lookupMesh(*this, exemplar.getMeshAttr());
  if (!mesh)
    return success(); // the parameter's verifier emits the error
  std::vector<plan::Hop> hops = getPlanHops();
  std::vector<plan::Factor> factors = plan::resolvedFactors(hops, hops.size());
  for (auto hop : getHops()->getAsRange<HopAttr>()) {
    ArrayRef<int64_t> base = hop.getBase();
    if (!base.empty() && int64_t(base.size()) != blocks)
      return emitOpError("expected one base per block, ") << blocks << ", found " << base.size();
    for (int64_t position : base)
      if (position < 0 || position >= int64_t(mesh.getRanks().size()))
        return emitOpError("expected bases that are mesh positions below ")
               << mesh.getRanks().size() << ", found " << position;
  }
  if (std::string wrong = plan::checkFactors(optim::toPlan(mesh), factors); !wrong.empty())
    return emitOpError(wrong);
  return success();
}

LogicalResult GroupOp::verifyWaves(ParameterOp exemplar, int64_t blocks) {
  ArrayRef<int64_t> waves = *getWaves();
  if (!getHops() && !exemplar.standsApart())
    return emitOpError("expected no waves without hops or shards that stand apart, found ")
           << waves.size();
  if (int64_t(waves.size()) != blocks)
    return emitOpError("expected one wave per block, ") << blocks << ", found " << waves.size();
  for (int64_t wave : waves)
    if (wave < 0 || wave >= kMostWaves)
      return emitOpError("expected waves between 0 and ") << kMostWaves - 1 << ", found " << wave;
  return success();
}
