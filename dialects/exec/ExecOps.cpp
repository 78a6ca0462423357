//===- ExecOps.cpp - Verifies commands, and makes the plan's form of them ---===//

#include "dialects/exec/Exec.h"
#include "runtime/plan/Pinned.h"
#include "runtime/sums/Parts.h"

#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::exec;

/// Prints and parses a list of at least one batch, each without `#exec.batch` in front.
static void printBatches(OpAsmPrinter &printer, Operation *, ArrayAttr batches) {
  llvm::interleaveComma(batches.getAsRange<BatchAttr>(), printer,
                        [&](BatchAttr batch) { printer.printStrippedAttrOrType(batch); });
}
static ParseResult parseBatches(OpAsmParser &parser, ArrayAttr &batches) {
  SmallVector<Attribute> parsed;
  auto parseOne = [&]() -> ParseResult {
    BatchAttr batch;
    if (parser.parseCustomAttributeWithFallback(batch, Type()))
      return failure();
    parsed.push_back(batch);
    return success();
  };
  if (parser.parseCommaSeparatedList(parseOne))
    return failure();
  batches = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

#include "dialects/exec/ExecOpInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/exec/ExecOps.cpp.inc"

LogicalResult ProgramOp::verifyRegions() {
  for (Operation &op : getBody().front()) {
    if (!isa<CommandOpInterface>(op)) {
      auto diag = op.emitOpError("expected commands in a program, found an operation that is none");
      diag.attachNote(getLoc()) << "the program is here";
      return diag;
    }
    // MLIR keeps attributes that an operation does not define, and no pass would read them.
    for (NamedAttribute each : op.getDiscardableAttrs())
      if (!each.getNameDialect())
        return op.emitOpError("expected attributes that the command has, found '")
               << each.getName().strref() << "'";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

static LogicalResult verifySegment(Operation *op, SymbolTableCollection &symbols,
                                   FlatSymbolRefAttr name) {
  if (!name || symbols.lookupNearestSymbolFrom<comm::SegmentOp>(op, name))
    return success();
  return op->emitOpError("expected a segment, found no comm.segment named ") << name;
}

static LogicalResult verifyTable(Operation *op, SymbolTableCollection &symbols, TableAttr table) {
  for (comm::PlaceAttr place : {table.getFrom(), table.getTo()})
    if (place && failed(verifySegment(op, symbols, place.getSymbol())))
      return failure();
  return success();
}

static LogicalResult verifyKind(Operation *op, TableAttr table, ArrayRef<TableKind> kinds) {
  if (llvm::is_contained(kinds, table.getKind()))
    return success();
  auto diag = op->emitOpError("expected a table of kind ");
  llvm::interleave(kinds, diag, [&](TableKind kind) { diag << plan::name(kind); }, " or ");
  return diag << ", found " << plan::name(table.getKind());
}

static LogicalResult verifyKernel(Operation *op, SymbolTableCollection &symbols,
                                  FlatSymbolRefAttr name) {
  if (symbols.lookupNearestSymbolFrom<FunctionOpInterface>(op, name))
    return success();
  return op->emitOpError("expected a kernel, found no function named ") << name;
}

LogicalResult DispatchChunksOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (TableAttr table : getTables().getAsRange<TableAttr>())
    if (failed(verifyTable(*this, symbols, table)))
      return failure();
  return verifyKernel(*this, symbols, getKernelAttr());
}

template <typename Op> static LogicalResult verifyBatch(Op op, SymbolTableCollection &symbols) {
  if (failed(verifyKind(op, op.getTable(), {TableKind::BlockChunks})) ||
      failed(verifyTable(op, symbols, op.getTable())))
    return failure();
  if (ArrayAttr kernels = op.getKernelsAttr())
    for (auto kernel : kernels.getAsRange<KernelAttr>())
      if (failed(verifyKernel(op, symbols, kernel.getSymbol())))
        return failure();
  return success();
}

LogicalResult ProductOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyBatch(*this, symbols);
}
LogicalResult ApplyOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyBatch(*this, symbols);
}

LogicalResult DispatchParametersOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto group : getGroups().getAsRange<FlatSymbolRefAttr>())
    if (!symbols.lookupNearestSymbolFrom<optim::GroupOp>(*this, group))
      return emitOpError("expected a group, found no optim.group named ") << group;
  return verifyKernel(*this, symbols, getKernelAttr());
}

/// Verifies the kernel of a command that needs a kernel on some devices only.
template <typename Op>
static LogicalResult verifyOptionalKernel(Op op, SymbolTableCollection &symbols) {
  FlatSymbolRefAttr kernel = op.getKernelAttr();
  return kernel ? verifyKernel(op, symbols, kernel) : success();
}

LogicalResult CopyOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyOptionalKernel(*this, symbols)))
    return failure();
  return verifyTable(*this, symbols, getTable());
}

LogicalResult SumOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyOptionalKernel(*this, symbols)))
    return failure();
  return verifyTable(*this, symbols, getTable());
}

LogicalResult CollectOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (TableAttr table : getTables().getAsRange<TableAttr>())
    if (failed(verifyTable(*this, symbols, table)))
      return failure();
  return verifyOptionalKernel(*this, symbols);
}

LogicalResult SkipOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyOptionalKernel(*this, symbols);
}

LogicalResult StartOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getCommunicator() && failed(comm::verifyRanks(*this, *getCommunicator(), symbols)))
    return failure();
  for (TableAttr table : getTables().getAsRange<TableAttr>())
    if (failed(verifyTable(*this, symbols, table)))
      return failure();
  return verifyOptionalKernel(*this, symbols);
}

LogicalResult AwaitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyOptionalKernel(*this, symbols);
}
LogicalResult AdvanceStepsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyOptionalKernel(*this, symbols);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static LogicalResult verifyShare(Operation *op, size_t args, size_t of, StringRef what) {
  if (of == 0)
    return op->emitOpError("expected at least one ") << what;
  if (args % of)
    return op->emitOpError("expected as many operands for each of ")
           << of << " " << what << "s, found " << args << " in all";
  return success();
}

/// Verifies that the operands of all runs of a dispatch are of the same kinds.
static LogicalResult verifyAlike(Operation *op, ArrayAttr args, size_t each, StringRef what) {
  for (auto [index, operand] : llvm::enumerate(args)) {
    Attribute other = args[index % each];
    if (!areAlike(operand, other))
      return op->emitOpError("expected operands of the same kinds for each ")
             << what << ", found " << other << " and " << operand;
  }
  return success();
}

LogicalResult DispatchChunksOp::verify() {
  if (failed(verifyShare(*this, getArgs().size(), getTables().size(), "table")))
    return failure();
  auto first = cast<TableAttr>(getTables()[0]);
  for (TableAttr table : getTables().getAsRange<TableAttr>()) {
    if (failed(verifyKind(*this, table,
                          {TableKind::ShardChunks, TableKind::LineChunks,
                           TableKind::RectangleChunks, TableKind::WholeRows,
                           TableKind::WholeColumns, TableKind::PartRows, TableKind::PartColumns,
                           TableKind::PartBlocks, TableKind::PartModel, TableKind::BlockChunks})))
      return failure();
    if (table.getKind() != first.getKind())
      return emitOpError("expected tables of one kind, found ")
             << plan::name(first.getKind()) << " and " << plan::name(table.getKind());
  }
  return verifyAlike(*this, getArgs(), getArgs().size() / getTables().size(), "table");
}

LogicalResult DispatchParametersOp::verify() {
  if (failed(verifyShare(*this, getArgs().size(), getGroups().size(), "group")))
    return failure();
  size_t each = getArgs().size() / getGroups().size();
  if (each == 0)
    return emitOpError("expected a table of scalars for each group, found no operands");
  for (auto [index, operand] : llvm::enumerate(getArgs()))
    if (!isa<ScalarsAttr>(operand) && (index % each == 0 || !isa<LineAttr>(operand)))
      return emitOpError("expected scalars, and numbers of the model behind them, found ")
             << operand;
  return verifyAlike(*this, getArgs(), each, "group");
}

//===----------------------------------------------------------------------===//
// Matrix space
//===----------------------------------------------------------------------===//

SmallVector<Attribute> ProductOp::getBatches() {
  SmallVector<Attribute> batches = {getLhs(), getRhs()};
  if (getAddend())
    batches.push_back(*getAddend());
  batches.push_back(getOut());
  return batches;
}

SmallVector<Attribute> ApplyOp::getBatches() {
  SmallVector<Attribute> batches(getSources().getValue());
  batches.push_back(getOut());
  return batches;
}

std::array<int64_t, 3> ProductOp::getSizes() {
  return {getOut().getRows(), getOut().getCols(),
          getTransposeLhs() ? getLhs().getRows() : getLhs().getCols()};
}

LogicalResult ProductOp::verify() {
  auto [m, n, k] = getSizes();
  auto check = [&](BatchAttr batch, int64_t rows, int64_t cols, StringRef what) -> LogicalResult {
    if (batch.getRows() == rows && batch.getCols() == cols)
      return success();
    return emitOpError("expected ")
           << what << " of " << rows << " x " << cols << ", found " << batch.getBlock();
  };
  if (failed(check(getLhs(), getTransposeLhs() ? k : m, getTransposeLhs() ? m : k,
                   "a left operand")) ||
      failed(check(getRhs(), getTransposeRhs() ? n : k, getTransposeRhs() ? k : n,
                   "a right operand")) ||
      (getAddend() && failed(check(*getAddend(), m, n, "an addend"))))
    return failure();
  if (getSymmetric() && m != n)
    return emitOpError("expected a square out of a symmetric product, found ")
           << getOut().getBlock();
  if (failed(optim::checkShift(*this)))
    return failure();
  if (getAccumulation() == Accumulation::TensorCore &&
      !tensorCoresTake(getLhs().getType(), getRhs().getType()))
    return emitOpError("expected operands that are both bf16 or both f16 of the accumulation "
                       "tensorcore, found ")
           << getLhs().getType() << " and " << getRhs().getType();
  return getPinned() ? verifyPinned() : success();
}

LogicalResult ProductOp::verifyPinned() {
  std::optional<plan::DType> addend;
  if (getAddend())
    addend = optim::toPlan(getAddend()->getType());
  if (std::string wrong = plan::checkMultiplies(*optim::toPlan(getLhs().getType()),
                                                *optim::toPlan(getRhs().getType()), addend,
                                                *optim::toPlan(getOut().getType()), getSymmetric());
      !wrong.empty())
    return emitOpError("expected no algorithm of cuBLASLt, found one of ") << wrong;
  llvm::SmallDenseSet<std::tuple<int64_t, int64_t, int64_t>> seen;
  for (auto each : getPinnedAttr().getAsRange<PinnedAlgorithmAttr>()) {
    plan::PinnedAlgorithm algorithm = each.getValue();
    if (algorithm.alignment > comm::kAlignment)
      return emitOpError("expected algorithms for operands at multiples of ")
             << comm::kAlignment << " bytes, found " << each;
    if (!seen.insert({algorithm.cublasLt, algorithm.chip, algorithm.multiprocessors}).second)
      return emitOpError("expected one algorithm for each library and GPU, found another: ")
             << each;
  }
  return success();
}

bool ProductOp::tensorCoresTake(Type lhs, Type rhs) {
  return lhs == rhs && lhs.getIntOrFloatBitWidth() == 16;
}

SmallVector<RankedTensorType> ApplyOp::getSourceBlocks() {
  return llvm::map_to_vector(getSources().getAsRange<BatchAttr>(),
                             [](BatchAttr source) { return source.getBlock(); });
}

LogicalResult ApplyOp::verify() {
  return getFunction().verifyBlocks([&] { return emitOpError(); }, getSourceBlocks(),
                                    getOut().getBlock());
}

//===----------------------------------------------------------------------===//
// Memory and messages
//===----------------------------------------------------------------------===//

LogicalResult CopyOp::verify() {
  if (failed(verifyKind(*this, getTable(), TableKind::Copy)))
    return failure();
  for (auto [operand, place] :
       {std::pair(getSource(), getTable().getFrom()), std::pair(getTarget(), getTable().getTo())}) {
    auto shards = dyn_cast<ShardsAttr>(operand);
    bool ofShards = place && !place.isPacked() && place.getFrom().isShards();
    bool fits = ofShards ? bool(shards) : isa<WorkspaceAttr>(operand);
    if (!fits)
      return emitOpError("expected ") << (ofShards ? "shards" : "a part of the workspace")
                                      << " for " << place << ", found " << operand;
  }
  return success();
}

LogicalResult SumOp::verify() {
  if (failed(verifyKind(*this, getTable(), TableKind::Sum)))
    return failure();
  if (getReduction().has_value() !=
      (getTable().getFrom().getFrom() == comm::Distribution::LineParts))
    return emitOpError("expected a reduction where parts of lines are added up, and there alone");
  if (getReduction()) {
    int64_t bytes = sums::bytesOf(*getReduction()), found = getTable().getElementBytes();
    if (!getType().isF32() || found < bytes || found % bytes != 0)
      return emitOpError("expected sums of ")
             << bytes << " bytes that become f32, found " << found << " bytes and " << getType();
  } else if (int64_t bytes = getType().getIntOrFloatBitWidth() / 8;
             getTable().getElementBytes() != bytes)
    return emitOpError("expected a table of elements of ")
           << bytes << " bytes, found " << getTable().getElementBytes();
  if (int64_t(getDivisor()) < 1)
    return emitOpError("expected a divisor of 1 or more, found ") << getDivisor();
  return success();
}

LogicalResult CollectOp::verify() {
  if (getTables().size() != getSources().size())
    return emitOpError("expected a table for each source, ")
           << getSources().size() << ", found " << getTables().size();
  for (TableAttr table : getTables().getAsRange<TableAttr>()) {
    if (failed(verifyKind(*this, table, TableKind::Collect)))
      return failure();
    if (int64_t bytes = sums::bytesOf(getReduction()), found = table.getElementBytes();
        found != bytes)
      return emitOpError("expected sums of ") << bytes << " bytes, found " << found;
  }
  for (Attribute source : getSources())
    if (!isa<LineAttr>(source))
      return emitOpError("expected lines as sources, found ") << source;
  return success();
}

LogicalResult StartOp::verify() {
  if (getTables().empty())
    return emitOpError("expected at least one table of what travels, found none");
  for (TableAttr table : getTables().getAsRange<TableAttr>())
    if (failed(verifyKind(*this, table, TableKind::Message)))
      return failure();
  return success();
}

LogicalResult AwaitOp::verify() {
  auto start = getToken().getDefiningOp<StartOp>();
  if (!start)
    return emitOpError("expected the token of an exec.start");
  if (bool(start.getKernelAttr()) != bool(getKernelAttr()))
    return emitOpError("expected a kernel exactly where the exec.start has one, found ")
           << (getKernelAttr() ? "one here alone" : "none here");
  if (getToken().hasOneUse())
    return success();
  auto diag = emitOpError("expected one exec.await of its collective, found another");
  diag.attachNote(getToken().getLoc()) << "the collective is here";
  return diag;
}

LogicalResult AdvanceStepsOp::verify() {
  if (!(*this)->getNextNode())
    return success();
  auto diag = emitOpError("expected to be the last command, so that no failure follows it");
  diag.attachNote((*this)->getNextNode()->getLoc()) << "this command follows";
  return diag;
}

//===----------------------------------------------------------------------===//
// Commands of the plan
//===----------------------------------------------------------------------===//

FailureOr<plan::Command> DispatchChunksOp::lower(Numbering &numbering) {
  plan::DispatchChunks command;
  command.kernel = numbering.kernel(getKernelAttr());
  size_t each = getArgs().size() / getTables().size();
  for (auto [index, attribute] : llvm::enumerate(getTables().getAsRange<TableAttr>())) {
    FailureOr<int64_t> table = numbering.table(*this, attribute);
    plan::DispatchChunks::Run &run = command.runs.emplace_back();
    if (failed(table) ||
        failed(numbering.operands(*this, getArgs().getValue().slice(index * each, each),
                                  numbering.groupOf(*table), run.operands)))
      return failure();
    run.table = *table;
  }
  return plan::Command(command);
}

FailureOr<plan::Command> DispatchParametersOp::lower(Numbering &numbering) {
  plan::DispatchParameters command;
  command.kernel = numbering.kernel(getKernelAttr());
  size_t each = getArgs().size() / getGroups().size();
  for (auto [index, name] : llvm::enumerate(getGroups().getAsRange<FlatSymbolRefAttr>())) {
    FailureOr<int64_t> group = numbering.group(*this, name);
    plan::DispatchParameters::Run &run = command.runs.emplace_back();
    if (failed(group) ||
        failed(numbering.operands(*this, getArgs().getValue().slice(index * each, each), *group,
                                  run.operands)))
      return failure();
    run.group = *group;
  }
  return plan::Command(command);
}

/// Fills in the fields that all commands on computed blocks have, and returns the index of their group.
template <typename Op>
static FailureOr<int64_t> lowerMatrix(Op op, Numbering &numbering, plan::MatrixCommand &command) {
  FailureOr<int64_t> table = numbering.table(op, op.getTable());
  if (failed(table))
    return failure();
  command.table = *table;
  if (op.getKernels())
    for (auto kernel : op.getKernelsAttr().template getAsRange<KernelAttr>())
      command.kernels.push_back({numbering.kernel(kernel.getSymbol()), kernel.getItems()});
  command.scratchBytes = op.getScratch();
  return numbering.groupOf(*table);
}

FailureOr<plan::Command> ProductOp::lower(Numbering &numbering) {
  plan::Product command;
  FailureOr<int64_t> group = lowerMatrix(*this, numbering, command);
  if (failed(group) || failed(numbering.operand(*this, getLhs(), *group, command.lhs)) ||
      failed(numbering.operand(*this, getRhs(), *group, command.rhs)) ||
      (getAddend() &&
       failed(numbering.operand(*this, *getAddend(), *group, command.addend.emplace()))) ||
      failed(numbering.operand(*this, getOut(), *group, command.out)))
    return failure();
  command.accumulation = getAccumulation();
  command.alpha = getAlpha().convertToDouble();
  command.beta = getBeta().convertToDouble();
  command.shift = getShift().convertToDouble();
  command.transposeLhs = getTransposeLhs();
  command.transposeRhs = getTransposeRhs();
  command.symmetric = getSymmetric();
  command.joins = getJoins();
  if (getPinned())
    for (auto each : getPinnedAttr().getAsRange<PinnedAlgorithmAttr>())
      command.pinned.push_back(each.getValue());
  return plan::Command(command);
}

FailureOr<plan::Command> ApplyOp::lower(Numbering &numbering) {
  plan::Apply command;
  FailureOr<int64_t> group = lowerMatrix(*this, numbering, command);
  if (failed(group) ||
      failed(numbering.operands(*this, getSources().getValue(), *group, command.sources)) ||
      failed(numbering.operand(*this, getOut(), *group, command.out)))
    return failure();
  command.function = getFunction().describe();
  command.flops = getFunction().flops(getSourceBlocks(), getOut().getBlock());
  return plan::Command(command);
}

/// Fills in the fields that copies and sums have in common.
template <typename Op, typename Command>
static LogicalResult lowerMove(Op op, Numbering &numbering, Command &command) {
  FailureOr<int64_t> table = numbering.table(op, op.getTable());
  if (failed(table))
    return failure();
  command.table = *table;
  command.kernel = numbering.kernel(op.getKernelAttr());
  int64_t group = numbering.groupOf(*table);
  return success(succeeded(numbering.operand(op, op.getSource(), group, command.source)) &&
                 succeeded(numbering.operand(op, op.getTarget(), group, command.target)));
}

FailureOr<plan::Command> CopyOp::lower(Numbering &numbering) {
  plan::Copy command;
  if (failed(lowerMove(*this, numbering, command)))
    return failure();
  return plan::Command(command);
}

FailureOr<plan::Command> SumOp::lower(Numbering &numbering) {
  plan::Sum command;
  if (failed(lowerMove(*this, numbering, command)))
    return failure();
  command.type = *optim::toPlan(getType());
  command.divisor = getDivisor();
  command.reduction = getReduction();
  return plan::Command(command);
}

FailureOr<plan::Command> CollectOp::lower(Numbering &numbering) {
  plan::Collect command;
  command.reduction = getReduction();
  command.kernel = numbering.kernel(getKernelAttr());
  for (auto [attribute, source] : llvm::zip(getTables().getAsRange<TableAttr>(), getSources())) {
    FailureOr<int64_t> table = numbering.table(*this, attribute);
    plan::Collect::Run &run = command.runs.emplace_back();
    if (failed(table) ||
        failed(numbering.operand(*this, source, numbering.groupOf(*table), run.source)))
      return failure();
    run.table = *table;
  }
  if (failed(numbering.operand(*this, getTarget(), /*group=*/-1, command.target)))
    return failure();
  return plan::Command(command);
}

FailureOr<plan::Command> SkipOp::lower(Numbering &numbering) {
  plan::Skip command;
  command.kernel = numbering.kernel(getKernelAttr());
  if (failed(numbering.operand(*this, getValue(), /*group=*/-1, command.value)))
    return failure();
  return plan::Command(command);
}

FailureOr<plan::Command> StartOp::lower(Numbering &numbering) {
  plan::Start command;
  command.collective = getKind();
  numbering.start(getToken());
  if (getCommunicator()) {
    FailureOr<plan::Communicator> ranks = numbering.communicator(*this, *getCommunicator());
    if (failed(ranks))
      return failure();
    command.communicator = *ranks;
  }
  for (TableAttr attribute : getTables().getAsRange<TableAttr>()) {
    FailureOr<int64_t> table = numbering.table(*this, attribute);
    if (failed(table))
      return failure();
    command.tables.push_back(*table);
  }
  if (failed(numbering.operand(*this, getSource(), /*group=*/-1, command.sent)) ||
      failed(numbering.operand(*this, getTarget(), /*group=*/-1, command.received)))
    return failure();
  command.kernel = numbering.kernel(getKernelAttr());
  return plan::Command(command);
}

FailureOr<plan::Command> AwaitOp::lower(Numbering &numbering) {
  FailureOr<int64_t> start = numbering.token(*this, getToken());
  if (failed(start))
    return failure();
  plan::KernelNumber kernel = numbering.kernel(getKernelAttr());
  return plan::Command(plan::Await{*start, kernel});
}

FailureOr<plan::Command> AdvanceStepsOp::lower(Numbering &numbering) {
  return plan::Command(plan::AdvanceSteps{numbering.kernel(getKernelAttr())});
}
