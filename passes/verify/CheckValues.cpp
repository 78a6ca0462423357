//===- CheckValues.cpp - The step computes what the rules say --------------===//
//
// Runs the step on terms: each buffer and each version of the shards is the
// expression that it was computed by. At the end the shards of every block must
// hold what the group's rule yields of what they held before. A stage that comes too
// early or too late, reads another version, or is missing, gives another expression.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/Terms.h"
#include "passes/verify/Verify.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

namespace {

/// What shards of a segment's blocks hold, and who wrote it.
struct Version {
  Term term;
  Operation *writer = nullptr;
};

class ValueCheck {
public:
  ValueCheck(const ProgramPlan &program, ModuleOp module)
      : program(program), plan(program.plan), terms(module.getContext()) {
    SmallVector<optim::RuleOp> rules(module.getOps<optim::RuleOp>());
    for (const plan::Group &group : plan.groups) {
      rulesOf.push_back(rules[group.rule]);
      expected.push_back(ruleTerms(terms, rules[group.rule], group, plan.rules[group.rule]));
    }
    for (const plan::Segment &segment : plan.segments) {
      std::vector<Version> &before = versions.emplace_back();
      for (Term term : expected[segment.group].before)
        before.push_back({term});
      before.push_back({expected[segment.group].gradient});
    }
  }

  LogicalResult run(func::FuncOp step) {
    for (Operation &op : step.getBody().front()) {
      bool fine = llvm::TypeSwitch<Operation *, bool>(&op)
                      .Case([&](comm::ScalarsOp op) { return scalars(op); })
                      .Case([&](comm::StageOp op) { return stage(op); })
                      .Case([&](comm::CopyOp op) { return copy(op); })
                      .Case([&](comm::StartOp op) { return start(op); })
                      .Case([&](optim::ProductOp op) { return product(op); })
                      .Case([&](optim::BlockReduceOp op) { return reduce(op); })
                      .Default([](Operation *) { return true; });
      if (!fine)
        return failure();
    }
    bool fine = true;
    for (size_t segment = 0; segment < plan.segments.size(); ++segment)
      fine &= checkSegment(segment);
    return success(fine);
  }

private:
  //===--- Shards -----------------------------------------------------------===//

  int64_t segmentOf(FlatSymbolRefAttr name) { return ProgramPlan::find(program.segments, name); }

  /// What a segment's shards hold: of the parameter, the states and the gradient. Segments hold
  /// each block once, so that no two share a version.
  Version &versionOf(int64_t segment, Value value) {
    auto shards = value.getDefiningOp<comm::ShardsOp>();
    const plan::Rule &rule = plan.rules[plan.groups[plan.segments[segment].group].rule];
    size_t target = 0;
    if (shards.getKind() == comm::ShardsKind::Gradient)
      target = rule.states.size() + 1;
    if (shards.getKind() == comm::ShardsKind::State)
      for (auto [i, state] : llvm::enumerate(rule.states))
        if (shards.getState() == StringRef(state.name))
          target = 1 + i;
    return versions[segment][target];
  }

  std::string describeTarget(int64_t group, size_t target) {
    const plan::Rule &rule = plan.rules[plan.groups[group].rule];
    if (target == 0)
      return "the parameter";
    return target > rule.states.size() ? "the gradient"
                                       : "state \"" + rule.states[target - 1].name + "\"";
  }

  static Type elementOf(Value value) {
    if (auto shards = dyn_cast<comm::ShardsType>(value.getType()))
      return shards.getElementType();
    return cast<ShapedType>(value.getType()).getElementType();
  }

  //===--- Operations -------------------------------------------------------===//

  /// The terms of what a region yields.
  SmallVector<Term> evaluate(Block &body, ArrayRef<Term> arguments) {
    llvm::DenseMap<Value, Term> of;
    for (auto [argument, term] : llvm::zip_equal(body.getArguments(), arguments))
      of[argument] = term;
    for (Operation &op : body.without_terminator()) {
      SmallVector<Term> operands;
      for (Value operand : op.getOperands())
        operands.push_back(of.lookup(operand));
      for (Value result : op.getResults())
        of[result] = op.getNumResults() == 1 ? terms.elementwise(&op, operands)
                                             : terms.unknown(result.getType());
    }
    SmallVector<Term> yields;
    for (Value value : body.getTerminator()->getOperands())
      yields.push_back(of.lookup(value));
    return yields;
  }

  bool scalars(comm::ScalarsOp op) {
    optim::RuleOp rule = rulesOf[ProgramPlan::find(program.groups, op.getGroupAttr())];
    Block &body = op.getBody().front();
    SmallVector<Term> arguments;
    for (unsigned i = 0; i < body.getNumArguments(); ++i)
      arguments.push_back(scalarArgument(terms, rule, i));
    SmallVector<Term> &table = columns[op.getInit()];
    table.clear();
    for (Term term : evaluate(body, arguments)) // rounded once
      table.push_back(terms.convert(term, Float32Type::get(op.getContext())));
    return true;
  }

  bool stage(comm::StageOp op) {
    int64_t segment = segmentOf(op.getSegmentAttr());
    SmallVector<Term> arguments;
    for (Value value : op.getIns())
      arguments.push_back(isa<comm::ShardsType>(value.getType()) ? versionOf(segment, value).term
                                                                 : buffers.lookup(value));
    if (op.getScalars())
      llvm::append_range(arguments, columns[op.getScalars()]);
    SmallVector<Term> yields = evaluate(op.getBody().front(), arguments);
    for (auto [value, term] : llvm::zip(op.getWrites(), yields))
      versionOf(segment, value) = {term, op};
    for (auto [value, term] :
         llvm::zip(op.getOuts(), ArrayRef<Term>(yields).drop_front(op.getWrites().size())))
      buffers[value] = term;
    return true;
  }

  bool copy(comm::CopyOp op) {
    int64_t segment = segmentOf(op.getSegmentAttr());
    bool fromShards = op.getFrom() == comm::Layout::Shard;
    Term term =
        fromShards ? versionOf(segment, op.getSource()).term : buffers.lookup(op.getSource());
    if (op.getTo() == comm::Layout::Shard)
      versionOf(segment, op.getTarget()) = {term, op};
    else
      buffers[op.getInit()] = term;
    return true;
  }

  bool start(comm::StartOp op) {
    for (auto [send, receive] : llvm::zip(op.getSends(), op.getReceives()))
      buffers[receive] = buffers.lookup(send);
    return true;
  }

  static Extents extentsOf(Value value) {
    auto type = cast<ShapedType>(value.getType());
    return {type.getDimSize(1), type.getDimSize(2)};
  }

  bool product(optim::ProductOp op) {
    auto [m, n, k] = op.getSizes();
    Terms::Product product{buffers.lookup(op.getLhs()),
                           buffers.lookup(op.getRhs()),
                           std::nullopt,
                           op.getTransposeLhs(),
                           op.getTransposeRhs(),
                           m,
                           n,
                           k,
                           op.getAlpha().convertToDouble(),
                           op.getBeta().convertToDouble()};
    if (op.getAddend())
      product.addend = buffers.lookup(op.getAddend());
    Value out = op.getInit();
    Term term = terms.product(product, elementOf(out));
    buffers[out] = term;
    if (!op.getSymmetric() || terms.isSymmetric(term))
      return true;
    op.emitOpError("expected a product that equals its transpose, because half of it is "
                   "mirrored, found one of other matrices");
    return false;
  }

  bool reduce(optim::BlockReduceOp op) {
    Value out = op.getInit();
    Term term = terms.reduce(op.getKind(), buffers.lookup(op.getSource()),
                             extentsOf(op.getSource()), extentsOf(out), int64_t(op.getExponent()));
    buffers[out] = terms.convert(term, elementOf(out));
    return true;
  }

  //===--- The end ----------------------------------------------------------===//

  bool checkSegment(size_t index) {
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

  bool refuse(const plan::Segment &segment, size_t target, const Version &version, Term wanted) {
    const plan::Group &group = plan.groups[segment.group];
    optim::RuleOp rule = rulesOf[segment.group];
    Operation *yield = rule.getBody().front().getTerminator();
    int64_t parameter = segment.all ? 0 : segment.blocks[0] / group.blocksPerParameter();
    auto [inRule, inStep] = terms.findDifference(wanted, version.term);
    auto diag = (version.writer ? version.writer : yield)->emitOpError("expected what rule @")
                << rule.getSymName() << " makes of " << describeTarget(segment.group, target)
                << " of parameter '" << plan.parameters[group.parameters[parameter]].name
                << "', with " << terms.describe(inRule) << ", found " << terms.describe(inStep)
                << " in its place";
    diag.attachNote(yield->getLoc()) << "the rule yields it here";
    return false;
  }

  const ProgramPlan &program;
  const plan::Plan &plan;
  Terms terms;
  SmallVector<optim::RuleOp> rulesOf;         // per group
  std::vector<RuleTerms> expected;            // per group
  std::vector<std::vector<Version>> versions; // per segment: parameter, states, gradient
  llvm::DenseMap<Value, Term> buffers;
  llvm::DenseMap<Value, SmallVector<Term>> columns;
};

} // namespace

LogicalResult verify::checkValues(const ProgramPlan &program, ModuleOp module, func::FuncOp step) {
  return ValueCheck(program, module).run(step);
}
