//===- ShardVersions.cpp - What shards hold as a step goes on --------------===//

#include "passes/verify/ShardVersions.h"
#include "passes/verify/ShardRuns.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

/// Counts without plan::contributions, because that function gave the sums under proof their divisors.
static plan::Contributions countContributions(const plan::Group &group, const plan::Mesh &mesh) {
  plan::Contributions result;
  for (auto [placement, size] :
       llvm::zip_equal(group.placementsOf(plan::ShardsKind::Gradient), mesh.sizes)) {
    bool averages = placement.kind == plan::PlacementKind::PartialAverage;
    if (averages || placement.kind == plan::PlacementKind::PartialSum)
      result.count *= size;
    if (averages)
      result.divisor *= size;
  }
  return result;
}

ShardVersions::ShardVersions(const plan::Plan &plan, ModuleOp module)
    : terms(module.getContext()), plan(plan) {
  SmallVector<optim::RuleOp> rules;
  for (auto rule : module.getOps<optim::RuleOp>())
    if (!rule.getWrittenAttr()) // a copy is held against the rule that the user wrote
      rules.push_back(rule);
  SmallVector<GroupStart> starts;
  for (const plan::Group &group : plan.groups) {
    rulesOf.push_back(rules[group.rule]);
    starts.push_back({rules[group.rule], &group, &plan.rules[group.rule],
                      countContributions(group, plan.meshes[group.mesh])});
  }
  ModelTerms known;
  if (optim::ModelOp model = optim::findModel(module); model && !starts.empty())
    known = modelTerms(terms, model, plan, starts);
  skips = known.skipped;
  for (const auto &[rule, group, planned, contributions] : starts) {
    RuleTerms &made = expected.emplace_back(
        ruleTerms(terms, rule, *group, *planned, contributions, known.numbers));
    if (plan.isOfModel(*group)) // held against the model, from which the rule was made
      llvm::copy(known.states, made.after.begin() + 1);
  }
  for (const plan::Segment &segment : plan.segments) {
    std::vector<Version> &before = versions.emplace_back();
    for (Term term : expected[segment.group].before)
      before.push_back({term});
    before.push_back({expected[segment.group].gradient});
  }
}

std::string ShardVersions::describeTarget(int64_t group, size_t target) {
  const plan::Rule &rule = plan.rules[plan.groups[group].rule];
  if (target == 0)
    return "";
  return target > rule.states.size() ? "the gradient of "
                                     : "state \"" + rule.states[target - 1].name + "\" of ";
}

SmallVector<Term> ShardVersions::evaluate(Block &body, ArrayRef<Term> arguments) {
  llvm::DenseMap<Value, Term> of;
  for (auto [argument, term] : llvm::zip_equal(body.getArguments(), arguments))
    of[argument] = term;
  // A region may use values from outside of it. Their terms are unknown.
  auto termOf = [&](Value value) {
    auto known = of.find(value);
    return known == of.end() ? terms.unknown(value.getType()) : known->second;
  };
  for (Operation &op : body.without_terminator()) {
    SmallVector<Term> operands;
    for (Value operand : op.getOperands())
      operands.push_back(termOf(operand));
    for (Value result : op.getResults())
      of[result] = op.getNumResults() == 1 ? terms.elementwise(&op, operands)
                                           : terms.unknown(result.getType());
  }
  SmallVector<Term> yields;
  for (Value value : body.getTerminator()->getOperands())
    yields.push_back(termOf(value));
  return yields;
}

SmallVector<Term> ShardVersions::scalars(int64_t group, Block &body, ArrayRef<Term> numbers) {
  SmallVector<Term> arguments;
  for (unsigned i = 0; i < body.getNumArguments() - numbers.size(); ++i)
    arguments.push_back(scalarArgument(terms, rulesOf[group], plan.groups[group], i));
  for (Term number : numbers)
    arguments.push_back(terms.convert(number, Float64Type::get(body.getParentOp()->getContext())));
  SmallVector<Term> columns = evaluate(body, arguments);
  for (Term &term : columns) // rounded once
    term = terms.convert(term, Float32Type::get(body.getParentOp()->getContext()));
  return columns;
}

LogicalResult ShardVersions::check() {
  bool fine = true;
  for (size_t segment = 0; segment < plan.segments.size(); ++segment)
    fine &= checkSegment(segment);
  return success(fine);
}

LogicalResult ShardVersions::checkAllBlocks(ModuleOp module) {
  std::vector<int64_t> counts(plan.groups.size());
  for (const plan::Segment &segment : plan.segments)
    counts[segment.group] +=
        segment.all ? blockCountOf(plan.groups[segment.group]) : int64_t(segment.blocks.size());
  for (auto [index, op] : llvm::enumerate(module.getOps<optim::GroupOp>()))
    if (int64_t all = blockCountOf(plan.groups[index]);
        counts[index] != all && expected[index].before != expected[index].after)
      return op.emitOpError("expected each of its ")
             << all << " blocks in a segment, found " << counts[index];
  return success();
}

bool ShardVersions::checkSegment(size_t index) {
  const plan::Segment &segment = plan.segments[index];
  const plan::Group &group = plan.groups[segment.group];
  if (!segment.all && segment.blocks.empty())
    return true;
  const RuleTerms &rule = expected[segment.group];
  for (auto [target, version] : llvm::enumerate(versions[index])) {
    bool isGradient = target == rule.after.size();
    if (target > 0 && !isGradient &&
        !plan::stateExists(group, plan.rules[group.rule].states[target - 1]))
      continue;
    Term wanted = isGradient ? rule.gradient : rule.after[target];
    if (version.term != wanted)
      return refuse(segment, target, version, wanted);
  }
  return true;
}

bool ShardVersions::refuse(const plan::Segment &segment, size_t target, const Version &version,
                           Term wanted) {
  const plan::Group &group = plan.groups[segment.group];
  optim::RuleOp rule = rulesOf[segment.group];
  Operation *yield = rule.getBody().front().getTerminator();
  int64_t parameter =
      segment.all ? 0 : segment.blocks[0] / viewOf(group, plan::ValueKind::Full).blocks;
  auto [inRule, inStep] = terms.findDifference(wanted, version.term);
  auto diag = (version.writer ? version.writer : yield)->emitOpError("expected what rule @")
              << rule.getSymName() << " makes of " << describeTarget(segment.group, target)
              << "parameter '" << plan.parameters[group.parameters[parameter]].name << "', with "
              << terms.describe(inRule) << ", found " << terms.describe(inStep) << " in its place";
  diag.attachNote(yield->getLoc()) << "the rule yields it here";
  return false;
}
