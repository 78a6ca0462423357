//===- ModelNumbers.cpp - What a step computes before its rules ------------===//

#include "passes/distribute/ModelNumbers.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using namespace stepc::distribute;

void KnownNumbers::add(Value value, ArrayRef<int64_t> numbers) {
  values.push_back(value);
  for (int64_t number : numbers)
    indices.try_emplace(number, unsigned(indices.size()));
}

/// Begins a comm.scalars and its region, which has the arguments of a group of this rule, then the known
/// numbers. The builder then stands in the region.
static ScalarsOp beginScalars(OpBuilder &builder, const StepHandles &handles, optim::GroupOp group,
                              optim::RuleOp rule, size_t columns, const KnownNumbers &known) {
  Location loc = group.getLoc();
  SmallVector<int64_t> shape = {int64_t(group.getParameters().size()), int64_t(columns)};
  auto place = PlaceAttr::scalars(FlatSymbolRefAttr::get(group.getSymNameAttr()));
  Value init =
      tensor::EmptyOp::create(builder, loc, shape, builder.getF32Type(), ValueRange(), place);
  auto scalars = ScalarsOp::create(builder, loc, init.getType(), handles.hyperparameters,
                                   handles.steps, handles.active, known.values, init);
  size_t count = rule.getNumHyperparameters() + 4 + known.indices.size();
  builder.createBlock(&scalars.getBody(), {}, SmallVector<Type>(count, builder.getF64Type()),
                      SmallVector<Location>(count, loc));
  return scalars;
}

Value distribute::createScalars(OpBuilder &builder, const StepHandles &handles,
                                optim::GroupOp group, optim::RuleOp rule,
                                const ScalarColumns &columns, const KnownNumbers &known) {
  // Numbers that no column reads would keep kernels apart that are equal.
  llvm::SetVector<Operation *> ops;
  for (Value column : columns.values)
    if (Operation *op = column.getDefiningOp())
      ops.insert(op);
  for (size_t i = 0; i < ops.size(); ++i)
    for (Value operand : ops[i]->getOperands())
      if (Operation *op = operand.getDefiningOp())
        ops.insert(op);
  bool reads = llvm::any_of(ops, llvm::IsaPred<optim::ModelNumberOp>);
  const KnownNumbers none;
  OpBuilder::InsertionGuard guard(builder);
  ScalarsOp scalars =
      beginScalars(builder, handles, group, rule, columns.values.size(), reads ? known : none);
  Block &body = scalars.getBody().front();
  unsigned given = rule.getNumHyperparameters() + 4;
  IRMapping mapping;
  for (unsigned i = 0; i < given; ++i)
    mapping.map(rule.getBody().getArgument(rule.getFirstScalarArgument() + i), body.getArgument(i));
  for (Operation *op : ops)
    if (auto number = dyn_cast<optim::ModelNumberOp>(op))
      mapping.map(number.getResult(),
                  body.getArgument(given + known.indices.lookup(int64_t(number.getNumber()))));
  SmallVector<Value> yields;
  for (Value value : columns.values)
    yields.push_back(cloneScalar(builder, value, mapping));
  comm::YieldOp::create(builder, group.getLoc(), yields);
  return scalars.getResult();
}

namespace {

class NumbersBuilder {
public:
  NumbersBuilder(OpBuilder &builder, const StepHandles &handles, optim::ModelOp model,
                 ArrayRef<ChainOfGroup> chains)
      : builder(builder), handles(handles), model(model), numbers(model.getNumbers()) {
    for (ChainOfGroup each : chains)
      if (each.group.isOfModel())
        own = each;
      else
        others.push_back(each);
    makeScratch();
  }
  ~NumbersBuilder() { scratch.erase(); }

  KnownNumbers build() {
    addTable();
    addStates();
    unsigned last = 0;
    for (size_t number = 0; number < numbers.size(); ++number)
      last = std::max(last, phaseOf(int64_t(number)));
    for (unsigned phase = 1; phase <= last; ++phase)
      addPhase(phase);
    changeStates();
    known.active = skip();
    return std::move(known);
  }

private:
  /// A rule that computes what the model computes of a parameter. It is in no module.
  void makeScratch() {
    OpBuilder b(builder.getContext());
    scratch = optim::RuleOp::create(b, model.getLoc(), b.getStringAttr(optim::kModelName),
                                    b.getStrArrayAttr({}), b.getArrayAttr({}), UnitAttr(),
                                    FlatSymbolRefAttr(), FlatSymbolRefAttr(), ArrayAttr());
    Type full = optim::tensorType(optim::ValueKind::Full, b.getF32Type());
    Block *body =
        b.createBlock(&scratch.getBody(), {}, {full, full}, {model.getLoc(), model.getLoc()});
    inlined = model.inlineFor(b, body->getArgument(0), body->getArgument(1));
  }

  Value sourceOf(int64_t number) {
    return inlined.lookup(cast<optim::ReduceOp>(numbers[size_t(number)]).getSource());
  }

  /// Numbers of phase 0 are scalars and states. A reduction is one phase behind the numbers from which its
  /// terms follow.
  unsigned phaseOf(int64_t number) {
    if (!isa<optim::ReduceOp>(numbers[size_t(number)]))
      return 0;
    if (auto found = phases.find(number); found != phases.end())
      return found->second;
    unsigned phase = 1;
    for (Value column : columnsFor(sourceOf(number)).values)
      if (auto read = column.getDefiningOp<optim::ModelNumberOp>())
        phase = std::max(phase, 1 + phaseOf(int64_t(read.getNumber())));
    phases[number] = phase;
    return phase;
  }

  /// Adds the table of the numbers that are scalars.
  void addTable() {
    SmallVector<int64_t> scalars;
    for (auto [number, op] : llvm::enumerate(numbers))
      if (isa<optim::SplatOp>(op))
        scalars.push_back(int64_t(number));
    if (scalars.empty())
      return;
    OpBuilder::InsertionGuard guard(builder);
    ScalarsOp table =
        beginScalars(builder, handles, own.group, own.rule, scalars.size(), KnownNumbers());
    Block &body = table.getBody().front();
    IRMapping mapping;
    for (unsigned i = 0; i <= model.getNumHyperparameters(); ++i) // and the step
      mapping.map(model.getBody().getArgument(optim::ModelOp::kFirstScalarArgument + i),
                  body.getArgument(i));
    SmallVector<Value> yields;
    for (int64_t number : scalars)
      yields.push_back(
          cloneScalar(builder, cast<optim::SplatOp>(numbers[size_t(number)]).getScalar(), mapping));
    comm::YieldOp::create(builder, model.getLoc(), yields);
    known.add(table.getResult(), scalars);
  }

  /// Adds copies of the states that the model reads.
  void addStates() {
    for (auto [number, op] : llvm::enumerate(numbers))
      if (auto state = dyn_cast<optim::ModelStateOp>(op); state && state.isRead())
        known.add(own.chain->stateOfModel(own.segments.front(), unsigned(state.getIndex())),
                  int64_t(number));
  }

  void addPhase(unsigned phase) {
    SmallVector<int64_t> made;
    SmallVector<Value> sources;
    SmallVector<plan::Reduction> kinds;
    for (auto [number, op] : llvm::enumerate(numbers))
      if (phaseOf(int64_t(number)) == phase) {
        made.push_back(int64_t(number));
        sources.push_back(sourceOf(int64_t(number)));
        kinds.push_back(cast<optim::ReduceOp>(op).getKind());
      }
    std::vector<ScalarColumns> columns;
    size_t waves = 0;
    int64_t terms = 0;
    for (ChainOfGroup &each : others) {
      ScalarColumns &table = columns.emplace_back(columnsFor(sources));
      if (!table.values.empty())
        table.table = createScalars(builder, handles, each.group, each.rule, table, known);
      waves = std::max(waves, each.segments.size());
      plan::Group layout = each.group.toPlan();
      plan::View view = plan::view(layout, plan::ValueKind::Full);
      terms += int64_t(each.group.getParameters().size()) * layout.blocksPerParameter() *
               view.rows * view.cols;
    }
    std::vector<SmallVector<Value>> parts(made.size());
    for (size_t wave = 0; wave < waves; ++wave)
      for (auto [each, table] : llvm::zip_equal(others, columns)) {
        if (wave >= each.segments.size() || !each.segments[wave])
          continue;
        SmallVector<Value> found =
            each.chain->partsOfModel(each.segments[wave], scratch, kinds, sources, table);
        for (auto [all, part] : llvm::zip_equal(parts, found))
          all.push_back(part);
      }
    SmallVector<Value> lines =
        own.chain->addUpModel(own.segments.front(), kinds, parts, std::max<int64_t>(terms, 1));
    for (auto [number, line] : llvm::zip_equal(made, lines))
      known.add(line, number);
  }

  /// Gives the states their new values, which a skipped step also has.
  void changeStates() {
    if (own.rule.getNumStates() == 0)
      return;
    if (!own.columns->values.empty())
      own.columns->table =
          createScalars(builder, handles, own.group, own.rule, *own.columns, known);
    own.chain->build(own.segments.front());
  }

  /// Skips the rest of the step if the model says so. Returns the flags of what is left in it.
  Value skip() {
    Value skipped = model.getSkipped();
    if (!skipped)
      return handles.active;
    Value source = inlined.lookup(skipped);
    ScalarColumns table = columnsFor(source);
    if (!table.values.empty())
      table.table = createScalars(builder, handles, own.group, own.rule, table, known);
    Value value = own.chain->valueOfModel(own.segments.front(), source, table);
    return SkipOp::create(builder, model.getLoc(), builder.getType<ActiveType>(), handles.active,
                          value);
  }

  OpBuilder &builder;
  const StepHandles &handles;
  optim::ModelOp model;
  SmallVector<Operation *> numbers;
  ChainOfGroup own; ///< the group that stands for the model
  SmallVector<ChainOfGroup> others;
  optim::RuleOp scratch;
  IRMapping inlined;                        ///< values of the model → of the scratch rule
  llvm::DenseMap<int64_t, unsigned> phases; ///< of reductions that were asked for
  KnownNumbers known;
};

} // namespace

KnownNumbers distribute::buildModelNumbers(OpBuilder &builder, const StepHandles &handles,
                                           optim::ModelOp model, ArrayRef<ChainOfGroup> chains) {
  Block *step = builder.getInsertionBlock();
  Operation *before = step->empty() ? nullptr : &step->back();
  KnownNumbers known = NumbersBuilder(builder, handles, model, chains).build();
  for (Operation *op = before ? before->getNextNode() : &step->front(); op; op = op->getNextNode())
    if (isa<ScalarsOp, StageOp, CopyOp, SumOp, CollectOp, SkipOp, CollectiveOpInterface>(op))
      op->setAttr(kOfModelAttr, builder.getUnitAttr());
  return known;
}
