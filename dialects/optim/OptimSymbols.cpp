//===- OptimSymbols.cpp - Meshes, rules, routes, parameters -----------------===//

#include "dialects/optim/Optim.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include "runtime/geometry/Geometry.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

/// The operation of type Op with this name in the module around `op`, or null.
template <typename Op> static Op lookupNamed(Operation *op, FlatSymbolRefAttr name) {
  auto module = op->getParentOfType<ModuleOp>();
  if (module && name)
    for (auto candidate : module.getOps<Op>())
      if (candidate.getSymNameAttr() == name.getAttr())
        return candidate;
  return {};
}
MeshOp optim::lookupMesh(Operation *op, FlatSymbolRefAttr name) {
  return lookupNamed<MeshOp>(op, name);
}
RouteOp optim::lookupRoute(Operation *op, FlatSymbolRefAttr name) {
  return lookupNamed<RouteOp>(op, name);
}
ParameterOp optim::lookupParameter(Operation *op, FlatSymbolRefAttr name) {
  return lookupNamed<ParameterOp>(op, name);
}

RuleOp optim::ruleOf(ParameterOp parameter) {
  RouteOp route =
      parameter.getRoute() ? lookupRoute(parameter, parameter.getRouteAttr()) : RouteOp();
  auto rule =
      route ? SymbolTable::lookupNearestSymbolFrom<RuleOp>(route, route.getRuleAttr()) : RuleOp();
  if (!rule || !rule.getTall())
    return rule;
  plan::Group group = parameter.toPlan();
  if (!group.division.parts.empty())
    group.parts = {0};
  if (group.rows() <= group.cols())
    return rule;
  return SymbolTable::lookupNearestSymbolFrom<RuleOp>(rule, rule.getTallAttr());
}

LogicalResult ClusterOp::verify() {
  for (auto other : getOperation()->getParentOfType<ModuleOp>().getOps<ClusterOp>())
    if (other != *this) {
      auto diag = emitOpError("expected one per module, found another");
      diag.attachNote(other.getLoc()) << "the other is here";
      return diag;
    }
  if (getLevels().empty())
    return emitOpError("expected at least one level, found none");
  ClusterLevelAttr inner;
  llvm::StringSet<> names;
  for (auto level : getLevels().getAsRange<ClusterLevelAttr>()) {
    if (!names.insert(level.getName()).second)
      return emitOpError("expected levels of different names, found two of name '")
             << level.getName() << "'";
    if (inner && inner.getRanks() == ClusterLevelAttr::kAll)
      return emitOpError("expected ranks of level '")
             << inner.getName() << "', which is not the last, found none";
    if (inner && level.getRanks() != ClusterLevelAttr::kAll &&
        (level.getRanks() == inner.getRanks() || level.getRanks() % inner.getRanks() != 0))
      return emitOpError("expected a larger multiple of level '")
             << inner.getName() << "', " << inner.getRanks() << ", as ranks of level '"
             << level.getName() << "', found " << level.getRanks();
    inner = level;
  }
  for (auto mesh : getOperation()->getParentOfType<ModuleOp>().getOps<MeshOp>())
    for (int64_t rank : mesh.getRanks())
      if (rank >= inner.getRanks())
        return emitOpError("expected ranks below the ")
               << inner.getRanks() << " of level '" << inner.getName() << "', found rank " << rank
               << " in mesh '" << mesh.getSymName() << "'";
  return success();
}

LogicalResult MeshOp::verify() {
  if (getAxes().size() != getSizes().size())
    return emitOpError("expected one size per axis, found ")
           << getAxes().size() << " axes and " << getSizes().size() << " sizes";
  int64_t ranks = 1;
  bool overflows = false;
  for (int64_t size : getSizes()) {
    if (size <= 0)
      return emitOpError("expected positive axis sizes, found ") << size;
    overflows |= bool(llvm::MulOverflow(ranks, size, ranks));
  }
  if (overflows || ranks != int64_t(getRanks().size()))
    return emitOpError("expected as many ranks as the axes [")
           << getSizes() << "] span, found " << getRanks().size();
  SmallVector<int64_t> sorted(getRanks());
  llvm::sort(sorted);
  if (sorted.front() < 0)
    return emitOpError("expected ranks that are not negative, found ") << sorted.front();
  if (auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return emitOpError("expected distinct ranks, found ") << *twice << " twice";
  return success();
}

LogicalResult RuleOp::verify() {
  llvm::StringSet<> names;
  for (Attribute name : getHyperparameters())
    if (!names.insert(cast<StringAttr>(name).getValue()).second)
      return emitOpError("expected distinct names, found ") << name << " twice";
  bool master = false;
  llvm::StringSet<> stored;
  for (Attribute attr : getStates()) {
    auto state = cast<StateAttr>(attr);
    // Nothing reads a metric by its name, so it may have that of a hyperparameter. Stores name it, so it may
    // not have that of a state.
    StringRef name = state.getName().getValue();
    if (!stored.insert(name).second || (!state.getMetric() && !names.insert(name).second))
      return emitOpError("expected distinct names, found ") << state.getName() << " twice";
    if (!toPlan(state.getType()) || state.getType().isF64())
      return emitOpError("expected a state of f32, bf16 or f16, found ") << state.getType();
    bool loses;
    APFloat init = state.getInit().getValue();
    init.convert(cast<FloatType>(state.getType()).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &loses);
    if (!init.isFinite() && !(state.getInput() && init.isNaN()))
      return emitOpError("expected an initial value that ")
             << state.getType() << " can hold, found " << state.getInit() << " for "
             << state.getName();
    if (!state.getMaster())
      continue;
    if (master)
      return emitOpError("expected at most one master state");
    master = true;
    if (state.getKind() != ValueKind::Full || !state.getType().isF32())
      return emitOpError("expected a master state that is full and f32, found ") << state;
  }
  if (ArrayAttr stay = getBlockStatesAttr()) {
    names.clear();
    for (StringRef name : stay.getAsValueRange<StringAttr>()) {
      auto states = getStates().getAsRange<StateAttr>();
      auto state =
          llvm::find_if(states, [&](StateAttr each) { return each.getName().getValue() == name; });
      if (state == states.end())
        return emitOpError("expected block states among the rule's states, found '") << name << "'";
      if (!names.insert(name).second)
        return emitOpError("expected distinct block states, found '") << name << "' twice";
      if ((*state).getMaster() || (*state).getKind() != ValueKind::Full)
        return emitOpError("expected block states that are full and no masters, found ") << *state;
    }
  }
  return success();
}

bool RuleOp::isBlockState(unsigned i) {
  ArrayAttr names = getBlockStatesAttr();
  return !getState(i).getKind().isStored() ||
         (names && llvm::is_contained(names, getState(i).getName()));
}

bool RuleOp::hasStatesOfOtherSizes() {
  return llvm::any_of(getStates().getAsRange<StateAttr>(),
                      [](StateAttr state) { return !state.getKind().isStored(); });
}

std::optional<unsigned> RuleOp::findState(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getArgNumber() < 2 ||
      argument.getArgNumber() >= getFirstScalarArgument())
    return std::nullopt;
  return argument.getArgNumber() - 2;
}

std::optional<unsigned> RuleOp::findBlockState(Value value) {
  std::optional<unsigned> state = findState(value);
  return state && isBlockState(*state) ? state : std::nullopt;
}

bool RuleOp::isTall() { return getWrittenName().ends_with(kTallSuffix); }

StringRef RuleOp::getUserName() {
  StringRef name = getWrittenName();
  name.consume_back(kTallSuffix);
  return name;
}

/// Verifies that the `tall` rule is this one of the transposed matrix, as far as declarations tell.
LogicalResult RuleOp::verifyTall(SymbolTableCollection &symbols) {
  auto tall = symbols.lookupNearestSymbolFrom<RuleOp>(*this, getTallAttr());
  if (!tall)
    return emitOpError("expected a rule of tall matrices, found no optim.rule named ")
           << getTallAttr();
  auto isTransposed = [](Attribute one, Attribute other) {
    auto state = cast<StateAttr>(one), of = cast<StateAttr>(other);
    return state == StateAttr::get(of.getContext(), of.getName(), of.getType(),
                                   of.getKind().ofTransposed(), of.getInit(), of.getMaster(),
                                   of.getStart(), of.getMetric(), of.getInput());
  };
  if (!tall.getTall() && tall.getHyperparameters() == getHyperparameters() &&
      llvm::equal(tall.getStates(), getStates(), isTransposed))
    return success();
  return emitOpError("expected a rule of tall matrices with the same hyperparameters, and the same "
                     "states with rows and columns exchanged, found ")
         << getTallAttr();
}

LogicalResult RuleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getTall() && failed(verifyTall(symbols)))
    return failure();
  if (!getWrittenAttr())
    return success();
  auto written = symbols.lookupNearestSymbolFrom<RuleOp>(*this, getWrittenAttr());
  if (written && !written.getWrittenAttr() && written->isBeforeInBlock(*this) &&
      written.getHyperparameters() == getHyperparameters() && written.getStates() == getStates())
    return success();
  return emitOpError("expected an optim.rule before it that the user wrote, with the same "
                     "hyperparameters and states, found ")
         << getWrittenAttr();
}

LogicalResult optim::verifyInRule(Operation *op) {
  // A rule is computed exactly as written: operations in its order, and each with its own rounding.
  WalkResult walk = op->walk([](arith::ArithFastMathInterface math) {
    auto flags = math.getFastMathFlagsAttr();
    if (!flags || flags.getValue() == arith::FastMathFlags::none)
      return WalkResult::advance();
    math->emitOpError("expected no fast-math flags in a rule or model, found ") << flags;
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      continue;
    if (tensor.getRank() != 2)
      return op->emitOpError("expected values of two axes in a rule, found ") << type;
    if (Type known = tensorType(*kindOf(type), tensor.getElementType()); type != known)
      return op->emitOpError("expected ") << known << " for values of that kind, found " << type;
  }
  Attribute value;
  if (matchPattern(op, m_Constant(&value)) && isa<ElementsAttr>(value) &&
      !isa<SplatElementsAttr>(value))
    return op->emitOpError("expected one number for all elements, found ") << value;
  return success();
}

LogicalResult optim::verifyBodyTypes(Operation *op, TypeRange arguments, TypeRange yields) {
  Block &block = op->getRegion(0).front();
  if (TypeRange(block.getArgumentTypes()) != arguments)
    return op->emitOpError("expected body arguments ")
           << arguments << ", found " << block.getArgumentTypes();
  Operation *yield = block.getTerminator();
  if (TypeRange(yield->getOperandTypes()) != yields)
    return yield->emitOpError("expected values ")
           << yields << ", found " << yield->getOperandTypes();
  return success();
}

LogicalResult RuleOp::verifyRegions() {
  Block &block = getBody().front();
  auto checkMetrics = [&]() -> LogicalResult {
    for (unsigned i = 0; i < getNumStates(); ++i)
      if (getState(i).getMetric() && !getStateArgument(i).use_empty())
        return emitOpError("expected no operation to read metric ")
               << getState(i).getName() << ", found one";
    return success();
  };
  Builder b(getContext());
  SmallVector<Type> expected(2, tensorType(ValueKind::Full, b.getF32Type()));
  for (Attribute state : getStates())
    expected.push_back(tensorType(cast<StateAttr>(state).getKind(), b.getF32Type()));
  SmallVector<Type> yields(ArrayRef<Type>(expected).drop_front());
  expected.append(getNumHyperparameters() + 4, b.getF64Type());
  if (failed(verifyBodyTypes(*this, expected, yields)) || failed(checkMetrics()))
    return failure();
  for (unsigned i = 0; i < getNumStates(); ++i)
    if (getState(i).getInput() && block.getTerminator()->getOperand(i + 1) != getStateArgument(i))
      return emitOpError("expected input ")
             << getState(i).getName() << " to be yielded as it is, found another value";
  int64_t sizes = 0;
  for (auto size : block.getOps<SizeOp>())
    if (int64_t(size.getNumber()) != sizes++ || sizes > ValueKind::kMostSizes)
      return size.emitOpError("expected sizes numbered in order from 0, at most ")
             << ValueKind::kMostSizes << ", found number " << size.getNumber();
  auto isKnown = [&](Type type) {
    ValueKind kind = kindOf(type).value_or(ValueKind::One);
    return std::min(kind.rows, kind.cols) > ValueKind::ofSize(sizes);
  };
  for (Type type : expected)
    if (!isKnown(type))
      return emitOpError("expected states of the rule's ") << sizes << " sizes, found " << type;
  for (Operation &op : block.without_terminator()) {
    if (failed(verifyInRule(&op)))
      return failure();
    for (Type type : op.getResultTypes())
      if (!isKnown(type))
        return op.emitOpError("expected values of the rule's ")
               << sizes << " sizes, found " << type;
  }
  return success();
}

bool RuleOp::isElementwise() {
  for (unsigned i = 0; i < getNumStates(); ++i)
    if (getState(i).getKind() != ValueKind::Full)
      return false;
  return llvm::none_of(getBody().getOps(),
                       [](Operation &op) { return isa<MatrixOpInterface, PositionOp>(op); });
}

bool RuleOp::seesBlocks() {
  auto sizes = getBody().front().getArguments().take_back(3);
  return !isElementwise() || countsElements() || getTall() || isTall() ||
         llvm::any_of(sizes, [](Value size) { return !size.use_empty(); });
}

bool RuleOp::countsLines() { return !getBody().getOps<PositionOp>().empty(); }

bool RuleOp::countsElements() {
  return llvm::any_of(getBody().front(), [](Operation &op) { return dependsOnPlace(&op); });
}

StochasticOp RuleOp::getParameterRounding() {
  for (auto rounding : getBody().getOps<StochasticOp>())
    if (rounding.getOfParameter())
      return rounding;
  return {};
}

/// Verifies that all patterns are well-formed, and that each optional pattern is in one of the two lists.
template <typename Op> static LogicalResult verifyPatterns(Op op) {
  for (ArrayAttr list : {op.getPatterns(), op.getExcept()})
    for (StringRef text : list.template getAsValueRange<StringAttr>()) {
      NamePatternError error;
      if (NamePattern::parse(text, error))
        continue;
      auto diag = op.emitOpError("expected a pattern, found \"") << text << "\": " << error.message;
      diag.attachNote() << error.hint;
      return diag;
    }
  if (ArrayAttr optional = op.getOptionalAttr())
    for (Attribute pattern : optional)
      if (!llvm::is_contained(op.getPatterns(), pattern) &&
          !llvm::is_contained(op.getExcept(), pattern))
        return op.emitOpError("expected optional patterns that are among the patterns ")
               << op.getPatterns() << " and " << op.getExcept() << ", found " << pattern;
  return success();
}

LogicalResult RouteOp::verify() {
  if (getRest() && !getPatterns().empty())
    return emitOpError("expected no patterns beside rest");
  if (!getWhere().empty() && !getMatrix())
    return emitOpError("expected matrix beside where, found none");
  return verifyPatterns(*this);
}

LogicalResult RouteOp::verifyRegions() {
  if (getWhere().empty())
    return success();
  Block &body = getWhere().front();
  Type f64 = Float64Type::get(getContext());
  if (body.getNumArguments() != 3 ||
      llvm::any_of(body.getArgumentTypes(), [&](Type type) { return type != f64; }))
    return emitOpError("expected the arguments rows, cols and numel of where, of f64, found ")
           << body.getArgumentTypes();
  auto yield = dyn_cast_if_present<YieldOp>(body.empty() ? nullptr : &body.back());
  if (!yield || yield.getNumOperands() != 1 || !yield.getOperand(0).getType().isInteger(1))
    return emitOpError("expected where to yield one condition of i1");
  for (Operation &op : body.without_terminator())
    if (op.getNumRegions() || !isPure(&op))
      return op.emitOpError("expected no operation with regions or effects in where");
  return success();
}

LogicalResult DivideOp::verify() {
  if (getPatterns().empty())
    return emitOpError("expected at least one pattern, found none");
  if (!getNumbers() && !getFlatten())
    return emitOpError("expected axes to flatten or blocks, found neither");
  if (getFlatten().value_or(1) < 1)
    return emitOpError("expected columns from axis 1 or a later one on, found ") << *getFlatten();
  if (getNumbers() && (getNumbers()->empty() ||
                       (getSizes() != plan::BlockSizes::Listed && getNumbers()->size() != 1)))
    return emitOpError("expected ")
           << (getSizes() == plan::BlockSizes::Listed ? "sizes" : "one number")
           << " of blocks, found " << getNumbers()->size();
  for (int64_t number : getNumbers().value_or(ArrayRef<int64_t>()))
    if (number < 1)
      return emitOpError("expected numbers of 1 or more, found ") << number;
  if (int64_t repeat = getRepeat(); repeat < 1)
    return emitOpError("expected a repeat of 1 or more, found ") << repeat;
  return verifyPatterns(*this);
}

LogicalResult RouteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto rule = symbols.lookupNearestSymbolFrom<RuleOp>(*this, getRuleAttr());
  if (!rule)
    return emitOpError("expected a rule, found no optim.rule named ") << getRuleAttr();
  if (getDefaults().size() != rule.getNumHyperparameters()) {
    auto diag = emitOpError("expected ")
                << rule.getNumHyperparameters() << " defaults, found " << getDefaults().size();
    diag.attachNote(rule.getLoc()) << "the rule is here";
    return diag;
  }
  RouteOp first = lookupRoute(*this, FlatSymbolRefAttr::get(getSymNameAttr()));
  if (first && first != *this) {
    auto diag = emitOpError("expected routes of different names, found another one named ")
                << getSymName();
    diag.attachNote(first.getLoc()) << "the first is here";
    return diag;
  }
  return success();
}

LogicalResult ParameterOp::verify() {
  auto mesh = lookupMesh(*this, getMeshAttr());
  if (!mesh)
    return emitOpError("expected a mesh, found no optim.mesh named ") << getMeshAttr();
  for (int64_t size : getShape())
    if (size < 1)
      return emitOpError("expected sizes of 1 or more, found ") << size;
  int64_t elements = 1;
  for (int64_t size : getShape()) {
    if (size > kMostElements / elements)
      return emitOpError("expected at most 2^40 elements, found shape [") << getShape() << "]";
    elements *= size;
  }
  for (Type type : {getType(), getGradient()})
    if (!optim::toPlan(type) || type.isF64())
      return emitOpError("expected a type of f32, bf16 or f16, found ") << type;
  int64_t rank = getShape().size(), batch = getBatch();
  if (std::optional<int64_t> flatten = getFlatten()) {
    std::string wrong = batch < 0 || batch > rank
                            ? "expected batch axes that leave axes to flatten, found " +
                                  std::to_string(batch) + " of " + std::to_string(rank)
                            : plan::checkFlatten(rank, batch, *flatten);
    if (!wrong.empty())
      return emitOpError(wrong);
  } else if (batch < 0 || (batch != 0 && batch != rank - 2)) {
    return emitOpError("expected batch axes that leave a matrix, found ")
           << batch << " of " << rank << " axes";
  }
  if (getFlattenSpecified() && !getFlatten())
    return emitOpError("expected axes to flatten that are specified, found none");
  if (getFlattenOverridden() && !getFlattenSpecified())
    return emitOpError("expected specified axes to flatten over others, found some that are not");
  // Gradient and states may have equal placements. Only placements of a gradient may be partial.
  for (plan::ShardsKind kind :
       {plan::ShardsKind::Parameter, plan::ShardsKind::Gradient, plan::ShardsKind::State}) {
    bool isGradient = kind == plan::ShardsKind::Gradient;
    ArrayAttr placements = kind == plan::ShardsKind::Parameter ? getPlacements()
                           : isGradient                        ? getGradientPlacementsAttr()
                                                               : getStatePlacementsAttr();
    StringRef whose = kind == plan::ShardsKind::Parameter ? ""
                      : isGradient                        ? "gradient's "
                                                          : "states' ";
    if (!placements)
      continue;
    if (placements.size() != mesh.getSizes().size()) {
      auto diag = emitOpError("expected ")
                  << mesh.getSizes().size() << " placements, one per mesh axis, found "
                  << placements.size();
      diag.attachNote(mesh.getLoc()) << "the mesh is here";
      return diag;
    }
    if (auto wrong = geometry::checkPlacements(getShape().vec(), optim::toPlan(placements),
                                               optim::toPlan(mesh), isGradient))
      return emitOpError(whose) << "placement " << wrong->axis << ": " << wrong->reason;
  }
  for (auto [axis, placement] :
       llvm::enumerate(optim::toPlan(getPlacementsOf(plan::ShardsKind::Gradient))))
    if (placement.isPartial() && mesh.getSizes()[axis] == 1)
      return emitOpError("gradient's placement ")
             << axis << ": expected R along an axis of one rank, found '" << toString(placement)
             << "'";
  if (auto blocks = getBlocks()) {
    if (!getFlatten() && (rank < 2 || batch != rank - 2))
      return emitOpError("expected blocks of matrices, found ")
             << rank << " axes, " << batch << " of them batch axes";
    plan::View matrix = getMatrix();
    std::string wrong = plan::checkDivision(
        blocks->toPlan(), blocks->getAxis() == plan::Division::Rows ? matrix.rows : matrix.cols);
    if (!wrong.empty())
      return emitOpError(wrong);
  }
  if (getSpecified() && !getBlocks())
    return emitOpError("expected blocks that are specified, found none");
  if (getOverridden() && !getSpecified())
    return emitOpError("expected specified blocks over others, found blocks that are not");
  for (Attribute placements : {getGradientPlacementsAttr(), getStatePlacementsAttr()})
    if (placements == getPlacements())
      return emitOpError("expected gradient_placements and state_placements only where they differ "
                         "from the parameter's, found ")
             << describe(getPlacements());
  return success();
}

plan::Mesh optim::toPlan(MeshOp mesh) {
  plan::Mesh result;
  result.name = mesh.getSymName().str();
  for (auto axis : mesh.getAxes().getAsValueRange<StringAttr>())
    result.axes.push_back(axis.str());
  result.sizes = mesh.getSizes().vec();
  result.ranks = mesh.getRanks().vec();
  return result;
}

plan::Rule optim::toPlan(RuleOp op) {
  plan::Rule rule;
  rule.name = op.getSymName().str();
  for (auto name : op.getHyperparameters().getAsValueRange<StringAttr>())
    rule.hyperparameters.push_back(name.str());
  for (auto state : op.getStates().getAsRange<StateAttr>())
    rule.states.push_back({state.getName().str(), *optim::toPlan(state.getType()), state.getKind(),
                           state.getInit().getValueAsDouble(), state.getMaster(), state.getMetric(),
                           state.getInput()});
  return rule;
}

ArrayAttr ParameterOp::getPlacementsOf(plan::ShardsKind kind) {
  ArrayAttr own = kind == plan::ShardsKind::Gradient ? getGradientPlacementsAttr()
                  : kind == plan::ShardsKind::State  ? getStatePlacementsAttr()
                                                     : ArrayAttr();
  return own ? own : getPlacements();
}

plan::Group ParameterOp::toPlan() {
  plan::Group group;
  group.shape = getShape().vec();
  group.batchAxes = getBatch();
  group.flatten = getFlatten().value_or(0);
  group.flattenSpecified = getFlattenSpecified();
  group.parameterType = *optim::toPlan(getType());
  group.gradientType = *optim::toPlan(getGradient());
  group.placements = optim::toPlan(getPlacements());
  if (ArrayAttr own = getGradientPlacementsAttr())
    group.gradientPlacements = optim::toPlan(own);
  if (ArrayAttr own = getStatePlacementsAttr())
    group.statePlacements = optim::toPlan(own);
  if (auto blocks = getBlocks())
    group.division = blocks->toPlan();
  group.specified = getSpecified();
  if (auto sizes = getSizes())
    group.sizes = sizes->vec();
  return group;
}
