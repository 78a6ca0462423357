//===- PlanFromIR.cpp - Symbols and operations to a plan
//-------------------===//

#include "passes/plan/PlanFromIR.h"
#include "passes/plan/Definition.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <map>

using namespace mlir;
using namespace stepc;

static_assert(int64_t(comm::Direction::ToShards) == int64_t(plan::Direction::ToShards));
static_assert(int64_t(comm::Layout::Send) == int64_t(plan::Layout::Send) &&
              int64_t(comm::Layout::Receive) == int64_t(plan::Layout::Receive) &&
              int64_t(comm::Layout::Blocks) == int64_t(plan::Layout::Blocks) &&
              int64_t(comm::Layout::Shard) == int64_t(plan::Layout::Shard));

namespace {

class PlanBuilder {
public:
  LogicalResult build(ModuleOp module) {
    plan().name = module.getSymName().value_or("").str();
    if (Attribute given = module->getAttr("stepc.numerics")) {
      auto numerics = dyn_cast<StringAttr>(given);
      if (!numerics || numerics.getValue() != "exact")
        return module.emitError("expected stepc.numerics to be \"exact\", found ") << given;
      plan().numerics = numerics.str();
    }
    collect(module);
    for (optim::MeshOp op : meshes)
      addMesh(op);
    for (optim::RuleOp op : rules)
      addRule(op);
    for (optim::RouteOp op : routes)
      if (failed(addRoute(op)))
        return failure();
    for (optim::GroupOp op : groups)
      if (failed(addGroup(op)))
        return failure();
    for (optim::ParameterOp op : parameters)
      if (!result.parameters.contains(op.getSymNameAttr()))
        return op.emitOpError("expected a group that lists the parameter, found none");
    for (comm::SegmentOp op : segments)
      if (failed(addSegment(op)))
        return failure();
    return step ? addProgram() : success();
  }

  ProgramPlan result;

private:
  plan::Plan &plan() { return result.plan; }

  /// One walk over the module's operations: look-ups by name afterwards are
  /// hashed.
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

  /// The index of a symbol, or an error at `op`.
  FailureOr<int64_t> find(Operation *op, const ProgramPlan::Index &index, FlatSymbolRefAttr name,
                          StringRef what) {
    int64_t found = ProgramPlan::find(index, name);
    if (found >= 0)
      return found;
    op->emitOpError("expected ") << what << ", found none named " << name;
    return failure();
  }

  void addMesh(optim::MeshOp op) {
    plan::Mesh mesh;
    mesh.name = op.getSymName().str();
    for (Attribute axis : op.getAxes())
      mesh.axes.push_back(cast<StringAttr>(axis).str());
    mesh.sizes = op.getSizes().vec();
    mesh.ranks = op.getRanks().vec();
    result.meshes[op.getSymNameAttr()] = plan().meshes.size();
    plan().meshes.push_back(std::move(mesh));
  }

  void addRule(optim::RuleOp op) {
    plan::Rule rule;
    rule.name = op.getSymName().str();
    for (Attribute name : op.getHyperparameters())
      rule.hyperparameters.push_back(cast<StringAttr>(name).str());
    for (Attribute attr : op.getStates()) {
      auto state = cast<optim::StateAttr>(attr);
      rule.states.push_back({state.getName().str(), *optim::toPlan(state.getType()),
                             plan::ValueKind(state.getKind()), state.getInit().getValueAsDouble(),
                             state.getMaster()});
    }
    rule.definition = definitionHash(op);
    result.rules[op.getSymNameAttr()] = plan().rules.size();
    plan().rules.push_back(std::move(rule));
  }

  LogicalResult addRoute(optim::RouteOp op) {
    FailureOr<int64_t> rule = find(op, result.rules, op.getRuleAttr(), "a rule");
    if (failed(rule))
      return failure();
    result.routes[op.getSymNameAttr()] = plan().routes.size();
    plan().routes.push_back({op.getSymName().str(), *rule, op.getDefaults().vec(),
                             plan::MissingGrad(op.getMissingGrad())});
    return success();
  }

  LogicalResult addGroup(optim::GroupOp op) {
    FailureOr<int64_t> rule = find(op, result.rules, op.getRuleAttr(), "a rule");
    if (failed(rule))
      return failure();
    plan::Group group;
    group.name = op.getSymName().str();
    group.rule = *rule;
    if (auto strategy = op.getStrategy())
      group.strategy = plan::Strategy(*strategy);
    if (auto owners = op.getOwners())
      group.owners = owners->vec();
    auto index = int64_t(plan().groups.size());
    for (Attribute attr : op.getParameters())
      if (failed(addParameter(op, cast<FlatSymbolRefAttr>(attr), index, group)))
        return failure();
    result.groups[op.getSymNameAttr()] = index;
    plan().groups.push_back(std::move(group));
    return success();
  }

  LogicalResult addParameter(optim::GroupOp op, FlatSymbolRefAttr name, int64_t index,
                             plan::Group &group) {
    optim::ParameterOp parameter = parameterOps.lookup(name.getAttr());
    if (!parameter)
      return op.emitOpError("expected a parameter, found none named ") << name;
    if (!result.parameters.try_emplace(name.getAttr(), plan().parameters.size()).second) {
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
    auto indexInGroup = int64_t(group.parameters.size());
    if (indexInGroup == 0) {
      group.mesh = *mesh;
      group.shape = parameter.getShape().vec();
      group.batchAxes = parameter.getBatch();
      group.parameterType = *optim::toPlan(parameter.getType());
      group.gradientType = *optim::toPlan(parameter.getGradient());
      group.placements = optim::toPlan(parameter.getPlacements());
    }
    group.parameters.push_back(plan().parameters.size());
    plan().parameters.push_back({name.getValue().str(), *route, index, indexInGroup});
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
          .Case([&](comm::StageOp op) { return addStage(op); })
          .Case([&](comm::CopyOp op) { return addCopy(op); })
          .Case([&](comm::StartOp op) { return addExchange(op); })
          .Case<optim::ProductOp, optim::BlockReduceOp>([&](auto op) {
            plan::Table table;
            table.kind = plan::TableKind::BlockChunks;
            return addTable(op, op.getSegmentAttr(), table);
          })
          .Default([](Operation *) { return success(); });
    });
    return failure(walk.wasInterrupted());
  }

  LogicalResult addTable(Operation *op, FlatSymbolRefAttr segment, plan::Table table) {
    FailureOr<int64_t> index = find(op, result.segments, segment, "a segment");
    if (failed(index))
      return failure();
    table.segment = *index;
    result.tables[op].push_back(number(table));
    return success();
  }

  /// The number of a table; equal tables have one.
  int64_t number(const plan::Table &table) {
    std::array<int64_t, 8> key = {
        int64_t(table.kind), table.segment,     int64_t(table.direction), int64_t(table.value),
        int64_t(table.from), int64_t(table.to), table.receiveSegment,     table.elementBytes};
    auto [found, added] = numbers.try_emplace(key, plan().tables.size());
    if (added)
      plan().tables.push_back(table);
    return found->second;
  }

  LogicalResult addStage(comm::StageOp op) {
    plan::Table table;
    if (op.getIteration() == comm::Iteration::Blocks) {
      FailureOr<int64_t> segment = find(op, result.segments, op.getSegmentAttr(), "a segment");
      if (failed(segment))
        return failure();
      const plan::Group &group = plan().groups[plan().segments[*segment].group];
      table.kind = plan::TableKind::BlockChunks;
      table.value = iteratedKind(op, group.rows(), group.cols());
      return addTable(op, op.getSegmentAttr(), table);
    }
    table.kind = plan::TableKind::ShardChunks;
    table.from = plan::Layout(op.getLayout());
    // Without a packed operand the direction means nothing: stages there and
    // back share a table.
    if (table.from == plan::Layout::Send || table.from == plan::Layout::Receive)
      table.direction = plan::Direction(op.getDirection());
    return addTable(op, op.getSegmentAttr(), table);
  }

  static int64_t elementBytes(Value value) {
    Type type = value.getType();
    if (auto shards = dyn_cast<comm::ShardsType>(type))
      type = shards.getElementType();
    else
      type = cast<ShapedType>(type).getElementType();
    return type.getIntOrFloatBitWidth() / 8;
  }

  LogicalResult addCopy(comm::CopyOp op) {
    plan::Table table;
    table.kind = plan::TableKind::Copy;
    table.direction = plan::Direction(op.getDirection());
    table.value = plan::ValueKind(op.getValue());
    table.from = plan::Layout(op.getFrom());
    table.to = plan::Layout(op.getTo());
    table.elementBytes = elementBytes(op.getSource());
    return addTable(op, op.getSegmentAttr(), table);
  }

  LogicalResult addExchange(comm::StartOp op) {
    if (op.getOrder() != plan().commands.size())
      return op.emitOpError("expected order ")
             << plan().commands.size()
             << ", because all ranks start exchanges in program order, found " << op.getOrder();
    plan::Command start;
    start.kind = plan::CommandKind::Start;
    result.tables[op];
    for (auto [i, send] : llvm::enumerate(op.getSends())) {
      auto receiveName = cast<FlatSymbolRefAttr>(op.getReceiveSegments()[i]);
      FailureOr<int64_t> receive = find(op, result.segments, receiveName, "a segment");
      if (failed(receive))
        return failure();
      plan::Table table;
      table.kind = plan::TableKind::Message;
      table.direction = plan::Direction(op.getDirection());
      table.value = plan::ValueKind(op.getKinds()[i]);
      table.receiveSegment = *receive;
      table.elementBytes = elementBytes(send);
      if (failed(addTable(op, cast<FlatSymbolRefAttr>(op.getSendSegments()[i]), table)))
        return failure();
      start.tables.push_back(result.tables[op].back());
    }
    plan().commands.push_back(std::move(start));
    return success();
  }

  SmallVector<optim::MeshOp> meshes;
  SmallVector<optim::RuleOp> rules;
  SmallVector<optim::RouteOp> routes;
  SmallVector<optim::ParameterOp> parameters;
  SmallVector<optim::GroupOp> groups;
  SmallVector<comm::SegmentOp> segments;
  llvm::DenseMap<StringAttr, optim::ParameterOp> parameterOps;
  std::map<std::array<int64_t, 8>, int64_t> numbers;
  FunctionOpInterface step;
};

} // namespace

plan::ValueKind stepc::iteratedKind(comm::StageOp stage, int64_t rows, int64_t cols) {
  // A block with one row (column) has no narrower kind along that axis.
  bool byRow = rows == 1, byCol = cols == 1;
  for (Value operand : stage->getOperands()) {
    if (operand == stage.getScalars())
      continue;
    auto type = dyn_cast<ShapedType>(operand.getType());
    if (!type || type.getRank() != 3)
      continue;
    byRow |= type.getDimSize(1) != 1;
    byCol |= type.getDimSize(2) != 1;
  }
  return byRow ? (byCol ? plan::ValueKind::Full : plan::ValueKind::Rows)
               : (byCol ? plan::ValueKind::Cols : plan::ValueKind::One);
}

FailureOr<ProgramPlan> stepc::planFromModule(ModuleOp module) {
  PlanBuilder builder;
  if (failed(builder.build(module)))
    return failure();
  return std::move(builder.result);
}
