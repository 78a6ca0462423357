//===- PlanAttributes.cpp - Tables, exchanges, launches as text ------------===//

#include "passes/kernels/PlanAttributes.h"
#include "passes/kernels/TargetShape.h"
#include "runtime/plan/Tables.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

constexpr StringLiteral kTables = "stepc.tables", kExchanges = "stepc.exchanges",
                        kLaunches = "stepc.launches", kScratch = "stepc.scratch_bytes";
// In the order of plan::TableKind and plan::LaunchKind.
constexpr StringLiteral kTableKinds[] = {"shard_chunks", "block_chunks", "copy", "message"};
constexpr StringLiteral kLaunchKinds[] = {"chunks", "group", "blocks", "copy"};

/// Builds a dictionary, leaving out what is at its default.
class Fields {
public:
  explicit Fields(MLIRContext *context) : builder(context) {}
  void text(StringRef name, StringRef value) { add(name, builder.getStringAttr(value)); }
  void symbol(StringRef name, StringRef value) {
    add(name, FlatSymbolRefAttr::get(builder.getContext(), value));
  }
  void number(StringRef name, int64_t value, int64_t usual) {
    if (value != usual)
      add(name, builder.getI64IntegerAttr(value));
  }
  Attribute get() { return builder.getDictionaryAttr(list); }

private:
  void add(StringRef name, Attribute value) { list.push_back(builder.getNamedAttr(name, value)); }
  Builder builder;
  SmallVector<NamedAttribute> list;
};

/// Reads a dictionary back; the first thing that is not as expected is kept in `error`.
class Reader {
public:
  Reader(Attribute attribute, std::string &error)
      : fields(dyn_cast<DictionaryAttr>(attribute)), error(error) {
    if (!fields)
      fail("a dictionary");
  }
  int64_t number(StringRef name, int64_t usual) {
    auto value = fields ? fields.getAs<IntegerAttr>(name) : IntegerAttr();
    return value ? value.getInt() : usual;
  }
  int64_t symbol(StringRef name, const ProgramPlan::Index &index, int64_t usual) {
    auto value = fields ? fields.getAs<FlatSymbolRefAttr>(name) : FlatSymbolRefAttr();
    if (!value)
      return usual;
    int64_t found = ProgramPlan::find(index, value);
    if (found < 0)
      fail(("a symbol for " + name + ", none is named " + value.getValue()).str());
    return found;
  }
  /// The position of a name among `names`.
  int64_t word(StringRef name, ArrayRef<StringLiteral> names) {
    auto value = fields ? fields.getAs<StringAttr>(name) : StringAttr();
    for (auto [i, known] : llvm::enumerate(names))
      if (value && value.getValue() == known)
        return int64_t(i);
    fail(("a known " + name).str());
    return 0;
  }
  /// An enumeration of a dialect; 0 when it is left out.
  template <typename Symbolize> int64_t keyword(StringRef name, Symbolize symbolize) {
    auto value = fields ? fields.getAs<StringAttr>(name) : StringAttr();
    if (!value)
      return 0;
    auto found = symbolize(value.getValue());
    if (!found)
      fail(("a known " + name).str());
    return found ? int64_t(*found) : 0;
  }
  void fail(const Twine &what) {
    if (error.empty())
      error = what.str();
  }

private:
  DictionaryAttr fields;
  std::string &error;
};

Attribute toAttribute(MLIRContext *context, const plan::Plan &plan, const plan::Table &table) {
  Fields fields(context);
  fields.text("kind", kTableKinds[int64_t(table.kind)]);
  fields.symbol("segment", plan.segments[table.segment].name);
  if (table.direction != plan::Direction::ToMatrix)
    fields.text("direction", comm::stringifyDirection(comm::Direction(table.direction)));
  if (table.value != plan::ValueKind::Full)
    fields.text("value", optim::stringifyValueKind(optim::ValueKind(table.value)));
  if (table.from != plan::Layout::None)
    fields.text("from", comm::stringifyLayout(comm::Layout(table.from)));
  if (table.to != plan::Layout::None)
    fields.text("to", comm::stringifyLayout(comm::Layout(table.to)));
  if (table.receiveSegment >= 0)
    fields.symbol("receive_segment", plan.segments[table.receiveSegment].name);
  fields.number("element_bytes", table.elementBytes, 0);
  return fields.get();
}

plan::Table readTable(Reader reader, const ProgramPlan &program) {
  plan::Table table;
  table.kind = plan::TableKind(reader.word("kind", kTableKinds));
  table.segment = reader.symbol("segment", program.segments, -1);
  if (table.segment < 0)
    reader.fail("a segment");
  table.direction = plan::Direction(
      reader.keyword("direction", [](StringRef s) { return comm::symbolizeDirection(s); }));
  table.value = plan::ValueKind(
      reader.keyword("value", [](StringRef s) { return optim::symbolizeValueKind(s); }));
  table.from =
      plan::Layout(reader.keyword("from", [](StringRef s) { return comm::symbolizeLayout(s); }));
  table.to =
      plan::Layout(reader.keyword("to", [](StringRef s) { return comm::symbolizeLayout(s); }));
  table.receiveSegment = reader.symbol("receive_segment", program.segments, -1);
  table.elementBytes = reader.number("element_bytes", 0);
  return table;
}

} // namespace

void attachProgram(Operation *step, const plan::Plan &plan) {
  MLIRContext *context = step->getContext();
  Builder builder(context);
  SmallVector<Attribute> tables, exchanges, launches;
  for (const plan::Table &table : plan.tables)
    tables.push_back(toAttribute(context, plan, table));
  for (const plan::Exchange &exchange : plan.exchanges)
    exchanges.push_back(builder.getDenseI64ArrayAttr(exchange.tables));
  for (const plan::Launch &launch : plan.launches) {
    Fields fields(context);
    fields.text("kind", kLaunchKinds[int64_t(launch.kind)]);
    fields.number("index", launch.index, -1);
    fields.number("items_per_block", launch.itemsPerBlock, 1);
    launches.push_back(fields.get());
  }
  step->setAttr(comm::kArenaAttr, builder.getI64IntegerAttr(plan.arenaBytes));
  step->setAttr(kScratch, builder.getI64IntegerAttr(plan.scratchBytes));
  step->setAttr(kTables, builder.getArrayAttr(tables));
  step->setAttr(kExchanges, builder.getArrayAttr(exchanges));
  step->setAttr(kLaunches, builder.getArrayAttr(launches));
}

FailureOr<plan::Plan> planOfKernels(ModuleOp module) {
  Operation *step = module.lookupSymbol(kStepFunction);
  if (!step)
    return module.emitOpError("expected a step function named ") << kStepFunction << ", found none";
  FailureOr<ProgramPlan> program = planFromModule(module);
  if (failed(program))
    return failure();
  plan::Plan &plan = program->plan;
  auto list = [&](StringRef name) { return step->getAttrOfType<ArrayAttr>(name); };
  for (StringRef name : {kTables, kExchanges, kLaunches})
    if (!list(name))
      return step->emitError("expected the attribute ")
             << name << " on the step function, found none";

  auto scratch = step->getAttrOfType<IntegerAttr>(kScratch);
  if (!scratch)
    return step->emitError("expected the attribute ")
           << kScratch << " on the step function, found none";
  plan.scratchBytes = scratch.getInt();

  std::string error;
  for (Attribute attribute : list(kTables))
    plan.tables.push_back(readTable(Reader(attribute, error), *program));
  for (Attribute attribute : list(kExchanges)) {
    auto tables = dyn_cast<DenseI64ArrayAttr>(attribute);
    if (!tables && error.empty())
      error = "table numbers of an exchange";
    if (tables)
      plan.exchanges.push_back({tables.asArrayRef().vec()});
  }
  for (Attribute attribute : list(kLaunches)) {
    Reader reader(attribute, error);
    plan.launches.push_back({plan::LaunchKind(reader.word("kind", kLaunchKinds)),
                             reader.number("index", -1), reader.number("items_per_block", 1)});
  }
  if (!error.empty())
    return step->emitError("expected ")
           << error << " in the program's tables, exchanges and launches";
  if (auto chip = module->getAttrOfType<StringAttr>(kChipAttr))
    plan.chip = chip.str();
  // Indices, kinds and layouts only: what the tables route is proven at level scheduled.
  if (std::string wrong = plan::validate(plan); !wrong.empty())
    return step->emitError("expected consistent tables, exchanges and launches, found that ")
           << wrong;
  return std::move(plan);
}

} // namespace stepc::kernels
