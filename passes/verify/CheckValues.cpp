//===- CheckValues.cpp - The step computes what the rules say --------------===//
//
// Runs the step on terms: each buffer and each version of the shards is the
// expression that it was computed by. At the end the shards of every block must
// hold what the group's rule yields of what they held before. A stage that comes too
// early or too late, reads another version, or is missing, gives another expression.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/ShardVersions.h"
#include "passes/verify/Verify.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

namespace {

class ValueCheck {
public:
  ValueCheck(const ProgramPlan &program, ModuleOp module)
      : program(program), plan(program.plan), versions(plan, module), terms(versions.terms) {}

  LogicalResult run(func::FuncOp step) {
    for (Operation &op : step.getBody().front()) {
      bool fine = llvm::TypeSwitch<Operation *, bool>(&op)
                      .Case([&](comm::ScalarsOp op) { return scalars(op); })
                      .Case([&](comm::StageOp op) { return stage(op); })
                      .Case([&](comm::CopyOp op) { return copy(op); })
                      .Case([&](comm::SumOp op) {
                        buffers[op.getInit()] =
                            terms.sum(buffers.lookup(op.getSource()), op.getDivisor());
                        return true;
                      })
                      .Case([&](comm::StartOp op) { return start(op); })
                      .Case([&](optim::ProductOp op) { return product(op); })
                      .Case([&](optim::BlockReduceOp op) { return reduce(op); })
                      .Default([](Operation *) { return true; });
      if (!fine)
        return failure();
    }
    return versions.check();
  }

private:
  //===--- Shards -----------------------------------------------------------===//

  int64_t segmentOf(FlatSymbolRefAttr name) { return ProgramPlan::find(program.segments, name); }

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
    return versions.at(segment, target);
  }

  //===--- Operations -------------------------------------------------------===//

  bool scalars(comm::ScalarsOp op) {
    int64_t group = ProgramPlan::find(program.groups, op.getGroupAttr());
    columns[op.getInit()] = versions.scalars(group, op.getBody().front());
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
    SmallVector<Term> yields = versions.evaluate(op.getBody().front(), arguments);
    for (auto [value, term] : llvm::zip(op.getWrites(), yields))
      versionOf(segment, value) = {term, op};
    for (auto [value, term] :
         llvm::zip(op.getOuts(), ArrayRef<Term>(yields).drop_front(op.getWrites().size())))
      write(op, value, term);
    return true;
  }

  bool copy(comm::CopyOp op) {
    int64_t segment = segmentOf(op.getSegmentAttr());
    bool fromShards = isa<comm::ShardsType>(op.getSource().getType());
    Term term =
        fromShards ? versionOf(segment, op.getSource()).term : buffers.lookup(op.getSource());
    if (op.getTarget())
      versionOf(segment, op.getTarget()) = {term, op};
    else
      write(op, op.getInit(), term);
    return true;
  }

  /// What an operation makes of a buffer.
  void write(Operation *op, Value buffer, Term term) {
    bool onZeros = leavesZeros(plan, plan.tables[program.table(op)]);
    buffers[buffer] = onZeros ? terms.written(term, buffers.lookup(buffer)) : term;
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
    Term term = terms.product(product, comm::elementOf(out));
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
    buffers[out] = terms.convert(term, comm::elementOf(out));
    return true;
  }

  const ProgramPlan &program;
  const plan::Plan &plan;
  ShardVersions versions;
  Terms &terms;
  llvm::DenseMap<Value, Term> buffers;
  llvm::DenseMap<Value, SmallVector<Term>> columns;
};

} // namespace

LogicalResult verify::checkValues(const ProgramPlan &program, ModuleOp module, func::FuncOp step) {
  return ValueCheck(program, module).run(step);
}
