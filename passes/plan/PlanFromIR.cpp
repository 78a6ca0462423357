//===- PlanFromIR.cpp - Symbols and operations to a plan -------------------===//

#include "passes/plan/PlanFromIR.h"
#include "dialects/optim/Saturate.h"
#include "passes/plan/Definition.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <map>

using namespace mlir;
using namespace stepc;

namespace {

class PlanBuilder {
public:
  LogicalResult build(ModuleOp module) {
    plan().name = module.getSymName().value_or("").str();
    if (Attribute given = module->getAttr(optim::kNumericsAttr)) {
      auto numerics = dyn_cast<StringAttr>(given);
      if (!numerics || (numerics.getValue() != "exact" && numerics.getValue() != "fast"))
        return module.emitError("expected stepc.numerics to be \"exact\" or \"fast\", found ")
               << given;
      plan().numerics = numerics.str();
    }
    collect(module);
    for (optim::MeshOp op : meshes)
      addMesh(op);
    for (optim::RuleOp op : rules)
      addRule(op);
    for (optim::RuleOp op : rules)
      if (op.getTall() && !op.getWritten())
        plan().rules[result.rules[op.getSymNameAttr()]].tall =
            ProgramPlan::find(result.rules, op.getTallAttr());
    for (optim::RouteOp op : routes)
      if (failed(addRoute(op)))
        return failure();
    for (optim::GroupOp op : groups)
      if (failed(addGroup(op)))
        return failure();
    for (optim::ParameterOp op : parameters)
      if (!result.parameters.contains(op.getSymNameAttr()))
        return op.emitOpError("expected a group that lists the parameter, found none");
    if (optim::ModelOp model = optim::findModel(module))
      if (failed(addModel(model)))
        return failure();
    for (comm::SegmentOp op : segments)
      if (failed(addSegment(op)))
        return failure();
    return step ? addProgram() : success();
  }

  ProgramPlan result;

private:
  plan::Plan &plan() { return result.plan; }

  /// Walks over the module's operations once, so that later look-ups by name are fast.
  void collect(ModuleOp module) {
    for (Operation &op : *module.getBody()) {
      llvm::TypeSwitch<Operation *>(&op)
          .Case([&](optim::MeshOp op) { meshes.push_back(op); })
          .Case([&](optim::RuleOp op) { rules.push_back(op); })
          .Case([&](optim::RouteOp op) { routes.push_back(op); })
          .Case([&](optim::ParameterOp op) {
            parameters.push_back(op);
            parameterOps[op.getSymNameAttr()] = op;
          })
          .Case([&](optim::GroupOp op) { groups.push_back(op); })
          .Case([&](comm::SegmentOp op) { segments.push_back(op); })
          .Case([&](FunctionOpInterface op) {
            if (op.getName() == "step")
              step = op;
          });
    }
  }

  /// The index of a symbol. Emits an error at `op` if it is not in `index`.
  FailureOr<int64_t> find(Operation *op, const ProgramPlan::Index &index, FlatSymbolRefAttr name,
                          StringRef what) {
    int64_t found = ProgramPlan::find(index, name);
    if (found >= 0)
      return found;
    op->emitOpError("expected ") << what << ", found none named " << name;
    return failure();
  }

  void addMesh(optim::MeshOp op) {
    result.meshes[op.getSymNameAttr()] = plan().meshes.size();
    plan().meshes.push_back(optim::toPlan(op));
  }

  void addRule(optim::RuleOp op) {
    // Groups that take a copy of a rule are groups of the rule that the user wrote.
    if (FlatSymbolRefAttr written = op.getWrittenAttr()) {
      result.rules[op.getSymNameAttr()] = ProgramPlan::find(result.rules, written);
      return;
    }
    plan::Rule rule = optim::toPlan(op);
    optim::ModelOp model = optim::findModel(op);
    bool isOfModel = model && op.getSymName() == optim::kModelName;
    rule.definition = isOfModel ? definitionHash(model) : definitionHash(op);
    result.rules[op.getSymNameAttr()] = plan().rules.size();
    plan().rules.push_back(std::move(rule));
  }

  /// Finds what stands for the model, whose rule was made of it.
  LogicalResult addModel(optim::ModelOp op) {
    plan().model = ProgramPlan::find(result.parameters,
                                     FlatSymbolRefAttr::get(op.getContext(), optim::kModelName));
    if (plan().model < 0)
      return groups.empty() ? success()
                            : op.emitError("expected a group of the parameter that stands for the "
                                           "model, found none");
    optim::GroupOp group = groups[size_t(plan().groupOfModel())];
    auto rule = SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(group, group.getRuleAttr());
    if (rule.getStates() == op.getStates())
      return success();
    auto diag = rule.emitOpError("expected the states of the model, ")
                << op.getStates() << ", found " << rule.getStates();
    diag.attachNote(op.getLoc()) << "the model is here";
    return diag;
  }

  LogicalResult addRoute(optim::RouteOp op) {
    FailureOr<int64_t> rule = find(op, result.rules, op.getRuleAttr(), "a rule");
    if (failed(rule))
      return failure();
    result.routes[op.getSymNameAttr()] = plan().routes.size();
    plan().routes.push_back(
        {op.getSymName().str(), *rule, op.getDefaults().vec(), op.getMissingGrad()});
    return success();
  }

  LogicalResult addGroup(optim::GroupOp op) {
    FailureOr<int64_t> rule = find(op, result.rules, op.getRuleAttr(), "a rule");
    if (failed(rule))
      return failure();
    auto index = int64_t(plan().groups.size());
    plan::Group group;
    for (Attribute attr : op.getParameters())
      if (failed(addParameter(op, cast<FlatSymbolRefAttr>(attr), index, group)))
        return failure();
    group.name = op.getSymName().str();
    group.rule = *rule;
    group.computes = bool(op.getHops());
    group.strategy = group.computes ? op.getStrategy()->name().str() : "elementwise";
    group.hops = op.getPlanHops();
    group.blockStates = op.toPlan().blockStates;
    group.sizes = op.toPlan().sizes;
    result.groups[op.getSymNameAttr()] = index;
    plan().groups.push_back(std::move(group));
    return success();
  }

  LogicalResult addParameter(optim::GroupOp op, FlatSymbolRefAttr name, int64_t index,
                             plan::Group &group) {
    optim::ParameterOp parameter = parameterOps.lookup(name.getAttr());
    if (!parameter)
      return op.emitOpError("expected a parameter, found none named ") << name;
    auto [known, isNew] =
        result.parameters.try_emplace(name.getAttr(), int64_t(plan().parameters.size()));
    if (!isNew && !op.getParts()) {
      auto diag = op.emitOpError("expected parameters of no other group, found ") << name;
      diag.attachNote(parameter.getLoc()) << "the parameter is here";
      return diag;
    }
    if (!parameter.getRoute())
      return parameter.emitOpError("expected a route, found none");
    FailureOr<int64_t> route = find(parameter, result.routes, parameter.getRouteAttr(), "a route");
    FailureOr<int64_t> mesh = find(parameter, result.meshes, parameter.getMeshAttr(), "a mesh");
    if (failed(route) || failed(mesh))
      return failure();
    if (group.parameters.empty()) {
      group = parameter.toPlan();
      if (auto parts = op.getParts())
        group.parts = parts->vec();
      group.joined = op.getJoined().value_or(0);
      if (ArrayAttr reduced = op.getReducedAttr())
        group.reducedPlacements = optim::toPlan(reduced);
      if (std::optional<optim::SlabShapeAttr> slabs = op.getSlabs())
        group.slabs = slabs->toPlan();
      group.mesh = *mesh;
    }
    // A divided parameter may be in several groups. plan::validate checks that each of its parts is in one
    // group.
    if (isNew)
      plan().parameters.push_back(
          {name.getValue().str(), *route, index, int64_t(group.parameters.size())});
    group.parameters.push_back(known->second);
    return success();
  }

  LogicalResult addSegment(comm::SegmentOp op) {
    FailureOr<int64_t> group = find(op, result.groups, op.getGroupAttr(), "a group");
    if (failed(group))
      return failure();
    plan::Segment segment{op.getSymName().str(), *group, {}, op.getAll()};
    if (auto blocks = op.getBlocks())
      segment.blocks = blocks->vec();
    result.segments[op.getSymNameAttr()] = plan().segments.size();
    plan().segments.push_back(std::move(segment));
    return success();
  }

  //===------------------------------------------------------------------===//
  // The program
  //===------------------------------------------------------------------===//

  LogicalResult addProgram() {
    if (auto arena = step->getAttrOfType<IntegerAttr>(comm::kArenaAttr))
      plan().arenaBytes = arena.getInt();
    WalkResult walk = step->walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
      return llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case([&](comm::ShardsOp op) { return checkShards(op); })
          .Case([&](comm::StageOp op) { return addStage(op); })
          .Case([&](comm::CopyOp op) { return addCopy(op); })
          .Case([&](comm::SumOp op) { return addSum(op); })
          .Case([&](comm::CollectOp op) { return addCollect(op); })
          .Case([&](comm::StartOp op) { return addExchange(op); })
          .Case([&](comm::BufferOp op) { return op.isPool() ? addPool(op) : success(); })
          .Case<optim::ProductOp, optim::ApplyOp>([&](auto op) { return addBatch(op); })
          .Default([](Operation *) { return success(); });
    });
    return failure(walk.wasInterrupted());
  }

  /// Verifies that the type of shards has the distribution of their placements (plan::shardsOf). Equal
  /// placements have one distribution.
  LogicalResult checkShards(comm::ShardsOp op) {
    FailureOr<int64_t> group = find(op, result.groups, op.getGroupAttr(), "a group");
    if (failed(group))
      return failure();
    plan::ShardsKind kind = op.getKind();
    const plan::Group &of = plan().groups[*group];
    if (op.getState())
      for (auto [index, state] : llvm::enumerate(plan().rules[of.rule].states))
        if (state.name == *op.getState())
          kind = of.shardsOfState(int64_t(index));
    plan::Distribution stands = plan::shardsOf(of, kind);
    if (op.getType().getDistribution() == stands)
      return success();
    return op.emitOpError("expected shards that stand in ")
           << plan::name(stands) << ", as the placements of the " << plan::describe(kind)
           << " say, found " << op.getType();
  }

  LogicalResult addTable(Operation *op, const plan::Table &table) {
    for (const plan::Place &place : {table.from, table.to})
      if (std::string wrong = plan::checkShards(plan(), place); !wrong.empty())
        return op->emitOpError(wrong);
    // Equal tables have one number.
    auto [found, added] = numbers.try_emplace(table, plan().tables.size());
    if (added)
      plan().tables.push_back(table);
    result.tables[op].push_back(found->second);
    return success();
  }

  FailureOr<int64_t> findSegment(Operation *op, FlatSymbolRefAttr name) {
    return find(op, result.segments, name, "a segment");
  }

  LogicalResult addBatch(Operation *op) {
    FlatSymbolRefAttr name = comm::segmentOfBatch(op);
    if (!name)
      return op->emitOpError("expected operands with a place in computed blocks, found ")
             << op->getOperandTypes();
    FailureOr<int64_t> segment = findSegment(op, name);
    if (failed(segment))
      return failure();
    return addTable(op, blockChunks(*segment, plan::ValueKind::Full));
  }

  static plan::Table blockChunks(int64_t segment, plan::ValueKind kind) {
    auto walked = plan::Place::resting(segment, kind, plan::Distribution::Blocks);
    return {plan::TableKind::BlockChunks, walked, walked, 0};
  }

  LogicalResult addStage(comm::StageOp op) {
    FailureOr<int64_t> segment = findSegment(op, op.getSegmentAttr());
    if (failed(segment))
      return failure();
    if (op.getIteration() == plan::Distribution::Blocks) {
      const plan::Group &group = plan().groups[plan().segments[*segment].group];
      return addTable(op, blockChunks(*segment, iteratedKind(op, group)));
    }
    auto walked = plan::Place::resting(*segment, op.getKind(), op.getVisited());
    plan::Place staged = walked;
    for (Value value : op.getStaged()) {
      plan::Place place = comm::placeOf(value).toPlan(*segment);
      if (staged != walked && staged != place)
        return op.emitOpError("expected staged operands in one place, because a row of its table "
                              "leads to one, found ")
               << comm::placeOf(op.getStaged().front()) << " and " << comm::placeOf(value);
      staged = place;
    }
    if (op.getReduction()) {
      comm::PlaceAttr line = comm::placeOf(op.getOuts().front());
      bool isPart = line.getFrom() == plan::Distribution::LineParts;
      plan::TableKind kind = plan::TableKind::PartBlocks;
      if (line.getFrom() == plan::Distribution::ModelParts)
        kind = plan::TableKind::PartModel;
      else if (line.getValue() == plan::ValueKind::Rows)
        kind = isPart ? plan::TableKind::PartRows : plan::TableKind::WholeRows;
      else if (line.getValue() == plan::ValueKind::Cols)
        kind = isPart ? plan::TableKind::PartColumns : plan::TableKind::WholeColumns;
      return addTable(op, {kind, walked, staged, 0});
    }
    plan::TableKind kind = plan::TableKind::ShardChunks;
    if (llvm::any_of(op.getIns(), [&](Value value) { return op.isLine(value); }))
      kind = plan::TableKind::LineChunks;
    else if (llvm::any_of(op.getBody().front(),
                          [](Operation &each) { return optim::dependsOnPlace(&each); }))
      kind = plan::TableKind::RectangleChunks;
    return addTable(op, {kind, walked, staged, 0});
  }

  static int64_t elementBytes(Value value) {
    return comm::elementOf(value).getIntOrFloatBitWidth() / 8;
  }

  LogicalResult addCopy(comm::CopyOp op) {
    FailureOr<int64_t> segment = findSegment(op, op.getSegmentAttr());
    if (failed(segment))
      return failure();
    auto [from, to] = op.getPlaces(*segment);
    return addTable(op, {plan::TableKind::Copy, from, to, elementBytes(op.getSource())});
  }

  LogicalResult addSum(comm::SumOp op) {
    FailureOr<int64_t> segment = findSegment(op, op.getSegmentAttr());
    if (failed(segment))
      return failure();
    plan::Place from = comm::placeOf(op.getSource()).toPlan(*segment);
    plan::Place to = comm::placeOf(op.getInit()).toPlan(*segment);
    if (!from.sumsTo(plan(), to))
      return op.emitOpError(
                 "expected contributions to a partial gradient, or parts of a line or of a "
                 "value of blocks, that arrive where the group adds them up, found ")
             << comm::placeOf(op.getSource()) << " and " << comm::placeOf(op.getInit());
    return addTable(op, {plan::TableKind::Sum, from, to, elementBytes(op.getSource())});
  }

  LogicalResult addCollect(comm::CollectOp op) {
    for (Value source : op.getSources()) {
      FailureOr<int64_t> segment = findSegment(op, comm::placeOf(source).getSymbol());
      if (failed(segment))
        return failure();
      plan::Place place = comm::placeOf(source).toPlan(*segment);
      if (failed(addTable(op, {plan::TableKind::Collect, place, place, elementBytes(source)})))
        return failure();
    }
    return success();
  }

  /// Emits the error that a start has the wrong order, with a note at the start that has the right one. If
  /// ranks start collectives of two communicators in different orders, they wait for each other forever.
  static LogicalResult refuseOrder(comm::StartOp op, int64_t order) {
    auto diag = op.emitOpError("expected order ")
                << order << ", because all ranks start collectives in program order, found "
                << op.getOrder();
    for (auto other : op->getBlock()->getOps<comm::StartOp>()) {
      if (int64_t(other.getOrder()) != order)
        continue;
      Diagnostic &note = diag.attachNote(other.getLoc());
      note << "the collective of order " << order << " is here";
      if (other.getCommunicator() != op.getCommunicator())
        note << ", on another communicator: a rank of both would wait in the one for ranks that "
                "wait in the other";
      break;
    }
    return diag;
  }

  LogicalResult addExchange(comm::StartOp op) {
    if (op.getOrder() != plan().commands.size())
      return refuseOrder(op, int64_t(plan().commands.size()));
    std::optional<comm::CommunicatorAttr> ranks = comm::ranksOf(op.getCommunicator());
    if (!ranks)
      return op.emitOpError("expected a communicator of comm.communicator or comm.world, found ")
             << op.getCommunicator();
    plan::Start start;
    if (*ranks) {
      FailureOr<int64_t> mesh = find(op, result.meshes, ranks->getMesh(), "a mesh");
      if (failed(mesh))
        return failure();
      if (llvm::none_of(plan().groups, [&](auto &group) { return group.mesh == *mesh; }))
        return op.emitOpError("expected a communicator of a mesh that some group uses, found ")
               << ranks->getMesh();
      start.communicator = ranks->toPlan(*mesh);
    }
    start.collective = op.getKind();
    result.tables[op];
    for (auto [send, receive] : llvm::zip(op.getSends(), op.getReceives())) {
      comm::PlaceAttr from = comm::placeOf(send), to = comm::placeOf(receive);
      FailureOr<int64_t> source = findSegment(op, from.getSymbol());
      FailureOr<int64_t> target = findSegment(op, to.getSymbol());
      if (failed(source) || failed(target))
        return failure();
      if (failed(addTable(op, {plan::TableKind::Message, from.toPlan(*source), to.toPlan(*target),
                               elementBytes(send)})))
        return failure();
      start.tables.push_back(result.tables[op].back());
    }
    plan().commands.push_back(std::move(start));
    return success();
  }

  LogicalResult addPool(comm::BufferOp op) {
    plan::Pool pool{int64_t(op.getOffset()), int64_t(op.getBytes()), {}};
    for (Value view : op.getViews()) {
      FailureOr<int64_t> segment = findSegment(op, comm::placeOf(view).getSymbol());
      if (failed(segment))
        return failure();
      int64_t bytes = elementBytes(view);
      for (int64_t size : cast<MemRefType>(view.getType()).getShape().drop_front())
        bytes = saturatingMul(bytes, size);
      pool.members.push_back({*segment, bytes});
    }
    result.pools[op] = plan().pools.size();
    plan().pools.push_back(std::move(pool));
    return success();
  }

  SmallVector<optim::MeshOp> meshes;
  SmallVector<optim::RuleOp> rules;
  SmallVector<optim::RouteOp> routes;
  SmallVector<optim::ParameterOp> parameters;
  SmallVector<optim::GroupOp> groups;
  SmallVector<comm::SegmentOp> segments;
  llvm::DenseMap<StringAttr, optim::ParameterOp> parameterOps;
  std::map<plan::Table, int64_t> numbers;
  FunctionOpInterface step;
};

} // namespace

plan::ValueKind stepc::iteratedKind(comm::StageOp stage, const plan::Group &group) {
  for (Value out : stage.getOuts())
    if (plan::ValueKind kind = comm::placeOf(out).getValue(); !kind.isStored())
      return kind;
  // A block with one row (column) has no narrower kind along that axis.
  bool isCut = !group.slabs.factors.empty();
  bool byRow = group.rows() == 1 && !isCut, byCol = group.cols() == 1 && !isCut;
  for (Value operand : stage->getOperands()) {
    if (operand == stage.getScalars())
      continue;
    auto type = dyn_cast<ShapedType>(operand.getType());
    if (!type || type.getRank() != 3)
      continue;
    byRow |= type.getDimSize(1) != 1;
    byCol |= type.getDimSize(2) != 1;
  }
  // Values of slabs are full or one, never per row or column.
  if (isCut)
    byRow = byCol = byRow || byCol;
  return byRow ? (byCol ? plan::ValueKind::Full : plan::ValueKind::Rows)
               : (byCol ? plan::ValueKind::Cols : plan::ValueKind::One);
}

FailureOr<ProgramPlan> stepc::planFromModule(ModuleOp module) {
  PlanBuilder builder;
  if (failed(builder.build(module)))
    return failure();
  return std::move(builder.result);
}
