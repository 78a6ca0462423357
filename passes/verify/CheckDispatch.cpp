//===- CheckDispatch.cpp - What kernels compute from operands -------------===//

#include "passes/verify/CheckProgram.h"

#include "dialects/comm/Comm.h"
#include "runtime/geometry/Geometry.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;
using plan::OperandKind;

func::FuncOp ProgramCheck::kernelOf(int64_t number) {
  auto kernel = symbols.lookup<func::FuncOp>(plan.kernels[number].name);
  if (kernel && !kernel.isExternal() && kernel.getBody().hasOneBlock())
    return kernel;
  user->emitOpError("expected a kernel that says what it computes, a func.func of one block, found "
                    "none named @")
      << plan.kernels[number].name;
  return {};
}

bool ProgramCheck::execute(const plan::DispatchParameters &command) {
  func::FuncOp kernel = kernelOf(command.kernel);
  if (!kernel)
    return false;
  Type f32 = Float32Type::get(kernel.getContext()), f64 = Float64Type::get(kernel.getContext());
  for (auto [i, run] : llvm::enumerate(command.runs)) {
    const plan::Group &of = plan.groups[run.group];
    std::optional<SmallVector<Term>> numbers = readNumbers(run, int64_t(i));
    if (!numbers)
      return false;
    size_t given = plan.rules[of.rule].hyperparameters.size() + 4 + numbers->size();
    int64_t columns = kernel.getNumResults(), count = int64_t(of.parameters.size());
    if (run.operands.empty() || kernel.getNumArguments() != given ||
        run.operands[0].bytes != columns * 4 ||
        llvm::any_of(kernel.getArgumentTypes(), [&](Type type) { return type != f64; }) ||
        llvm::any_of(kernel.getResultTypes(), [&](Type type) { return type != f32; })) {
      user->emitOpError("expected one table of the scalars that its kernel makes of the ")
          << given << " numbers of group @" << of.name;
      return false;
    }
    if (columns == 0 || count == 0)
      continue;
    const plan::Operand &scalars = run.operands[0];
    Site site{scalars.value, columns * 4 * count, {}, {0, 0}, run.group, columns, f32};
    if (!write(scalars, {site, versions.scalars(run.group, kernel.getBody().front(), *numbers)},
               int64_t(i)))
      return false;
  }
  return true;
}

std::optional<SmallVector<Term>> ProgramCheck::readNumbers(const plan::DispatchParameters::Run &run,
                                                           int64_t index) {
  SmallVector<Term> numbers;
  Type f32 = Float32Type::get(module.getContext());
  for (const plan::Operand &operand : ArrayRef(run.operands).drop_front()) {
    Site site = operand.kind == OperandKind::Scalars
                    ? Site{operand.value,       operand.bytes,     {}, {0, 0},
                           plan.groupOfModel(), operand.bytes / 4, f32}
                    : siteOfModel(operand, plan::Distribution::Shards, f32);
    Held *value = read(operand, site, index, /*along=*/false);
    if (!value)
      return std::nullopt;
    numbers.append(value->terms.begin(), value->terms.end());
  }
  return numbers;
}

int64_t ProgramCheck::segmentOfModel() const {
  for (auto [index, segment] : llvm::enumerate(plan.segments))
    if (plan.isOfModel(plan.groups[segment.group]))
      return int64_t(index);
  return -1;
}

bool ProgramCheck::execute(const plan::DispatchChunks &command) {
  func::FuncOp kernel = kernelOf(command.kernel);
  if (!kernel)
    return false;
  auto [known, isNew] = forms.try_emplace(kernel);
  if (isNew)
    known->second = readChunkKernel(kernel);
  if (failed(known->second))
    return false;
  const ChunkForm &form = *known->second;
  if (size_t each = command.runs[0].operands.size(); form.arguments != each) {
    user->emitOpError("expected as many operands per table as the kernel has arguments, ")
        << form.arguments << ", found " << each;
    return false;
  }
  // The tables of a dispatch run side by side, so all reads are evaluated before anything is written.
  std::vector<Writes> writes(command.runs.size());
  touched.clear();
  for (auto [i, run] : llvm::enumerate(command.runs))
    if (!evaluateChunks(form, run, int64_t(i), writes[i]))
      return false;
  for (auto [i, each] : llvm::enumerate(writes)) {
    for (auto &[operand, value] : each.staged)
      if (!write(*operand, std::move(value), int64_t(i)))
        return false;
    for (auto [version, term] : each.shards) {
      Touch &touch = touched[version];
      if (touch.table != int64_t(i) || touch.isWritten) {
        user->emitOpError("expected shards that one table of a dispatch alone reads or writes, and "
                          "that it writes once");
        return false;
      }
      touch.isWritten = true;
      *version = {term, user};
    }
  }
  return true;
}

/// Remembers that a table of the dispatch reads or writes shards.
void ProgramCheck::touch(Version *version, int64_t table) {
  auto [known, isNew] = touched.try_emplace(version, Touch{table, false});
  if (known->second.table != table)
    known->second.table = -1;
}

/// The kind of a value that a kernel reads by this reach.
static plan::ValueKind kindOf(ChunkForm::Reach reach) {
  switch (reach) {
  case ChunkForm::Reach::Row:
    return plan::ValueKind::Rows;
  case ChunkForm::Reach::Column:
    return plan::ValueKind::Cols;
  case ChunkForm::Reach::Block:
    return plan::ValueKind::One;
  case ChunkForm::Reach::Element:
    break;
  }
  return plan::ValueKind::Full;
}

/// Whether the rows of a table say what the operation asks for: where an element stands. Rows over slabs
/// count in the slab, and a value per row has no columns.
static bool saysWhere(const plan::Table &table, const plan::Group &group, Operation &op) {
  bool isRectangle = table.hasRectangles() ||
                     (table.kind == plan::TableKind::BlockChunks && group.slabs.factors.empty());
  auto position = dyn_cast<optim::PositionOp>(op);
  plan::ValueKind walked = table.from.value;
  if (!position || !isRectangle)
    return isRectangle && !walked.isLine();
  return (position.getAxis() == plan::Division::Rows ? walked.rows : walked.cols) != 1;
}

bool ProgramCheck::evaluateChunks(const ChunkForm &form, const plan::DispatchChunks::Run &run,
                                  int64_t index, Writes &writes) {
  int64_t table = run.table, segment = plan.tables[table].from.segment;
  if (isEmpty(segment))
    return true;
  for (Operation &op : form.body->without_terminator())
    if (optim::dependsOnPlace(&op) && !saysWhere(plan.tables[table], groupOf(segment), op)) {
      user->emitOpError("expected rows that say where an element stands for ")
          << op.getName() << ", found " << plan::name(plan.tables[table].kind) << " of "
          << plan::name(plan.tables[table].from.value) << " values";
      return false;
    }
  ArrayRef<plan::Operand> operands = run.operands;
  SmallVector<Term> arguments;
  TableUse &uses = use(table);
  for (const ChunkForm::Operand &read : form.reads) {
    const plan::Operand &operand = operands[read.argument];
    if (operand.kind != OperandKind::Workspace && operand.kind != OperandKind::Line) {
      Version *version = chunkShards(read, operand, table, /*writes=*/false);
      if (!version)
        return false;
      touch(version, index);
      arguments.push_back(version->term);
      continue;
    }
    std::optional<Site> site = chunkSite(read, operand, table);
    Held *value =
        site ? this->read(operand, *site, index, read.reach == ChunkForm::Reach::Element) : nullptr;
    if (!value)
      return false;
    uses.reads |= operand.kind == OperandKind::Workspace;
    complete(*value, table);
    arguments.push_back(value->terms[0]);
  }
  if (!form.columns.empty() && !scalars(form, operands[0], segment, index, arguments))
    return false;
  for (const ChunkForm::Operand &write : form.writes)
    arguments.push_back(versions.terms.unknown(write.element));
  SmallVector<Term> yields = versions.evaluate(*form.body, arguments);
  if (bool(form.reduction) != plan.tables[table].reduces()) {
    user->emitOpError("expected tables of whole or of parts of lines for kernels that reduce, and "
                      "for these alone, "
                      "found ")
        << plan::name(plan.tables[table].kind);
    return false;
  }
  if (form.reduction)
    return reduceLines(form, operands[form.writes[0].argument], table, yields[0], writes);
  for (auto [write, term] : llvm::zip_equal(form.writes, yields)) {
    const plan::Operand &operand = operands[write.argument];
    if (operand.kind != OperandKind::Workspace) {
      Version *version = chunkShards(write, operand, table, /*writes=*/true);
      if (!version)
        return false;
      touch(version, index);
      writes.shards.push_back({version, term});
      continue;
    }
    std::optional<Site> site = chunkSite(write, operand, table);
    if (!site)
      return false;
    if (leavesZeros(plan, plan.tables[table])) {
      Held *before = workspace.read(*site, index, /*along=*/true);
      if (!before)
        return false;
      term = versions.terms.written(term, before->terms[0]);
    }
    uses.writes = true;
    writes.staged.push_back({&operand, {*site, {term}, nullptr, table}});
  }
  return true;
}

bool ProgramCheck::reduceLines(const ChunkForm &form, const plan::Operand &operand, int64_t table,
                               Term terms, Writes &writes) {
  const plan::Table &rows = plan.tables[table];
  const ChunkForm::Operand &write = form.writes[0];
  plan::ValueKind lines = kindOf(write.reach);
  if (lines != rows.reducesTo() || operand.kind != OperandKind::Line || !write.element.isF32()) {
    user->emitOpError("expected a kernel that reduces all terms of each row or column of a table, "
                      "and writes a value of f32 for each of them");
    return false;
  }
  const plan::Group &group = groupOf(rows.from.segment);
  bool ofModel = rows.kind == plan::TableKind::PartModel;
  int64_t sums = ofModel ? 1
                 : rows.reducesParts()
                     ? geometry::sumsPerValue(group, plan.meshes[group.mesh], lines)
                     : 0;
  if (form.sums != sums) {
    user->emitOpError("expected a kernel that writes as many exact sums for each line as its table "
                      "leads to, ")
        << sums << ", found " << form.sums;
    return false;
  }
  Type element =
      sums ? comm::lineSumsType(user->getContext(), *form.reduction, sums) : write.element;
  Site site{.offset = operand.value, .bytes = operand.bytes, .place = rows.reduced()};
  site.element = element;
  plan::View block = viewOf(group, plan::ValueKind::Full), line = viewOf(group, lines);
  Extents from{block.rows, block.cols}, to{line.rows, line.cols};
  Term result = ofModel ? versions.terms.modelPart(*form.reduction, terms, element)
                : sums  ? versions.terms.linePart(*form.reduction, terms, from, to, element)
                        : versions.terms.reduce(*form.reduction, terms, from, to);
  need(Need::To, table, operand.bytes, 0, element.getIntOrFloatBitWidth() / 8);
  writes.staged.push_back({&operand, {site, {result}, nullptr, table}});
  return true;
}

Version *ProgramCheck::chunkShards(const ChunkForm::Operand &view, const plan::Operand &operand,
                                   int64_t table, bool writes) {
  const plan::Table &rows = plan.tables[table];
  bool isShards = operand.kind == OperandKind::Parameters ||
                  operand.kind == OperandKind::Gradients || operand.kind == OperandKind::State;
  if (isShards && rows.isOverShards() && view.reach == ChunkForm::Reach::Element)
    return shards(operand, rows.from, view.element, writes);
  user->emitOpError("expected a view that its dispatch has, found argument ") << view.argument;
  return nullptr;
}

/// The site of a kernel's view of the workspace: where the rows of its table lead (kernel_abi.h). Returns
/// nullopt after an error.
std::optional<Site> ProgramCheck::chunkSite(const ChunkForm::Operand &view,
                                            const plan::Operand &operand, int64_t table) {
  using Reach = ChunkForm::Reach;
  const plan::Table &rows = plan.tables[table];
  std::optional<Site> site;
  if (operand.kind == OperandKind::Line) {
    // The copy that wrote the line needs as many bytes, so nothing more is needed here.
    if (view.reach != Reach::Element && rows.leadsTo(kindOf(view.reach))) {
      plan::Place place = rows.line(kindOf(view.reach));
      site = Site{.offset = operand.value, .bytes = operand.bytes, .place = place};
      site->element = view.element;
    }
  } else if (rows.isOverShards()) {
    if (view.reach == Reach::Element && rows.to != rows.from)
      site = staged(operand, rows.to, view.element, Need::From, table);
  } else {
    plan::View walked = computedOf(groupOf(rows.from.segment), rows.from.value);
    Extents block{1, 1};
    if (view.reach == Reach::Element || view.reach == Reach::Row)
      block.rows = walked.rows;
    if (view.reach == Reach::Element || view.reach == Reach::Column)
      block.cols = walked.cols;
    site = blocks(operand, rows.from.segment, block, view.element);
  }
  if (!site) {
    user->emitOpError("expected rows that lead to operand ")
        << view.argument << " in the workspace, found a table that does not";
    return std::nullopt;
  }
  // Only the kernel says which types its operands have. So the plan's checks could not compare the bytes per
  // block of a pool's member.
  if (operand.pool < 0)
    return site;
  int64_t has = plan.pools[operand.pool].members[operand.member].blockBytes;
  int64_t wants = site->block.rows * site->block.cols * view.element.getIntOrFloatBitWidth() / 8;
  if (has == wants)
    return site;
  user->emitOpError("expected a member of ")
      << wants << " bytes per block, found member " << operand.member << " of pool "
      << operand.pool.value << " with " << has;
  return std::nullopt;
}

bool ProgramCheck::scalars(const ChunkForm &form, const plan::Operand &operand, int64_t segment,
                           int64_t index, SmallVector<Term> &arguments) {
  int64_t group = plan.segments[segment].group, columns = operand.bytes / 4;
  int64_t most = *llvm::max_element(form.columns);
  if (operand.kind != OperandKind::Scalars || most >= columns ||
      *llvm::min_element(form.columns) < 0) {
    user->emitOpError("expected scalars with column ") << most << " as the first operand";
    return false;
  }
  int64_t bytes = operand.bytes * int64_t(plan.groups[group].parameters.size());
  Site site{
      operand.value, bytes, {}, {0, 0}, group, columns, Float32Type::get(module.getContext())};
  Held *value = read(operand, site, index, /*along=*/false);
  if (!value)
    return false;
  for (int64_t column : form.columns)
    arguments.push_back(value->terms[column]);
  return true;
}
