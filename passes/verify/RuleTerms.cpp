//===- RuleTerms.cpp - What a rule computes, as terms ---------------------===//
//
// Reads only what the user wrote. The spaces and writes that the passes of `decide` added are ignored.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/ShardRuns.h"
#include "passes/verify/Terms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

Term verify::scalarArgument(Terms &terms, optim::RuleOp rule, const plan::Group &group,
                            unsigned index) {
  unsigned named = rule.getNumHyperparameters();
  constexpr StringLiteral kGiven[] = {"step", "rows", "cols", "numel"};
  if (index > named) {
    double sizes[] = {double(group.rows()), double(group.cols()), group.numel()};
    return terms.size(kGiven[index - named], sizes[index - named - 1]);
  }
  bool ofModel = optim::findModel(rule) && rule.getSymName() == optim::kModelName;
  StringRef name = index < named ? cast<StringAttr>(rule.getHyperparameters()[index]).getValue()
                                 : StringRef(kGiven[index - named]);
  // The prefix tells a hyperparameter from the four scalars that every rule has.
  return terms.leaf(((index < named ? "hyperparameter '" : "the scalar '") + name + "'" +
                     (ofModel ? " of the model" : ""))
                        .str(),
                    Float64Type::get(rule.getContext()));
}

Term Terms::scaled(optim::OrthogonalizeOp op, Term source, Term norm) {
  Type f32 = Float32Type::get(context);
  int64_t exponent = optim::kNormExponent;
  SmallVector<Term> limits = {norm, leastNorm(op)};
  llvm::sort(limits);
  Term divisor = add(arith::MaximumFOp::getOperationName(), {}, f32, limits);
  Term quotient = add(arith::DivFOp::getOperationName(), {}, f32, {convert(source, f32), divisor});
  SmallVector<Term> factors = {quotient, number(f32, std::ldexp(1.0, exponent))};
  llvm::sort(factors);
  return convert(add(arith::MulFOp::getOperationName(), {}, f32, factors),
                 op.getType().getElementType());
}

Term Terms::leastNorm(optim::OrthogonalizeOp op) {
  double eps = op.getEps().convertToDouble();
  return number(Float32Type::get(context), float(std::ldexp(eps, optim::kNormExponent)));
}

/// The norm of a block from the norms of its slabs. The norms are added up first, as a bound. Then the
/// squares of norm / bound can be added up without overflow.
Term Terms::normOfSlabs(optim::OrthogonalizeOp op, Term norm) {
  Type f32 = Float32Type::get(context);
  auto of = [&](StringRef name, SmallVector<Term> operands, bool commutes) {
    if (commutes)
      llvm::sort(operands);
    return add(name, {}, f32, operands);
  };
  Term bound = of(arith::MaximumFOp::getOperationName(), {sum(norm, 1), leastNorm(op)}, true);
  Term ratio = of(arith::DivFOp::getOperationName(), {norm, bound}, false);
  Term squares = sum(of(arith::MulFOp::getOperationName(), {ratio, ratio}, true), 1);
  Term root = of(math::SqrtOp::getOperationName(), {squares}, false);
  return of(arith::MulFOp::getOperationName(), {bound, root}, true);
}

Term Terms::orthogonalize(optim::OrthogonalizeOp op, Term source, Extents extents,
                          const plan::Slabs &slabs) {
  Type f32 = Float32Type::get(context), element = op.getType().getElementType();
  auto [rows, cols] = extents;
  // Written again here, and not shared with the pass that expands the operation, because that pass is under
  // proof.
  bool cut = !slabs.factors.empty(), byRows = slabs.axis == plan::Division::Rows;
  // For a tall matrix X the smaller Gram matrix is Xᵀ X, and X is multiplied by it from the right.
  bool tall = cut ? byRows : rows > cols;
  int64_t small = std::min(rows, cols), wholeSide = std::max(rows, cols);
  if (int64_t &extent = byRows ? rows : cols; cut) {
    if (slabs.shortest < slabs.longest)
      source = padded(source);
    extent = slabs.longest;
  }
  int64_t large = tall ? rows : cols;
  Term norm = reduce(optim::Reduction::Norm, source, {rows, cols}, {1, 1}, optim::kNormExponent);
  Term x = scaled(op, source, cut ? normOfSlabs(op, norm) : norm);
  auto form = op.getForm().value_or(optim::Form::Standard);
  if (form == optim::Form::Gram || (form == optim::Form::Auto && 2 * wholeSide >= 3 * small))
    return gramForm(op, x, {rows, cols}, small, tall, cut);
  for (auto [a, b, c] : op.getSteps()) {
    // If c is 0, the Gram matrix is not squared, and its product gets the factor b.
    double factor = c == 0.0 ? b : 1.0;
    Term gram = product({x, x, {}, tall, !tall, small, small, large, factor}, cut ? f32 : element);
    if (cut)
      gram = convert(sum(gram, 1), element);
    Term poly = gram;
    if (c != 0.0)
      poly = product({gram, gram, gram, false, false, small, small, small, c, b}, element);
    Term left = tall ? x : poly, right = tall ? poly : x;
    x = product({left, right, x, false, false, rows, cols, small, 1.0, a}, element);
  }
  return x;
}

Term Terms::gramForm(optim::OrthogonalizeOp op, Term x, Extents extents, int64_t small, bool tall,
                     bool cut) {
  Type element = op.getType().getElementType();
  auto [rows, cols] = extents;
  int64_t large = tall ? rows : cols;
  auto steps = op.getSteps();
  auto square = [&](double alpha, Term lhs, Term rhs, std::optional<Term> addend, double beta,
                    double shift) {
    return product({lhs, rhs, addend, false, false, small, small, small, alpha, beta, shift, true},
                   element);
  };
  auto restarts = op.getRestarts().value_or(ArrayRef<int64_t>());
  Term r = 0, z = 0, q = 0;
  size_t begin = 0; // the first step of the run
  for (size_t i = 0; i < steps.size(); ++i) {
    auto [a, b, c] = steps[i];
    if (i == begin) {
      r = product({x, x, {}, tall, !tall, small, small, large},
                  cut ? Type(Float32Type::get(context)) : element);
      if (cut)
        r = convert(sum(r, 1), element);
    }
    bool isLast = i + 1 == steps.size() || llvm::is_contained(restarts, int64_t(i + 1));
    if (i == begin + 1) {
      // (Z + a' I) (Z' + a I) of the first two steps, of which the left factor is never stored.
      auto [a0, b0, c0] = steps[begin];
      Term p = square(c, r, r, r, b, a);
      q = square(c0 == 0.0 ? b0 : 1.0, z, p, p, a0, 0);
      if (!isLast)
        r = square(1.0, p, square(1.0, r, p, {}, 0, 0), {}, 0, 0);
    } else {
      // If c is 0, z stands for R, and b is a factor of each product with it.
      double factor = c == 0.0 ? b : 1.0;
      z = c == 0.0 ? r : square(c, r, r, r, b, 0);
      if (i > begin)
        q = square(factor, q, z, q, a, 0);
      if (!isLast) {
        Term w = square(factor, r, z, r, a, 0);
        r = square(factor, z, w, w, a, 0);
      }
    }
    if (!isLast)
      continue;
    bool isAlone = i == begin;
    Term left = isAlone ? z : q;
    x = product({tall ? x : left, tall ? left : x, isAlone ? std::optional(x) : std::nullopt, false,
                 false, rows, cols, small, isAlone && c == 0.0 ? b : 1.0, isAlone ? a : 0.0},
                element);
    begin = i + 1;
  }
  return x;
}

namespace {

/// The terms of one rule's body.
class RuleReader {
public:
  RuleReader(Terms &terms, const plan::Group &group, ArrayRef<Term> numbers)
      : terms(terms), group(group), numbers(numbers) {}

  void read(Operation *op) {
    if (op->getNumResults() != 1)
      return;
    SmallVector<Term> operands;
    for (Value operand : op->getOperands())
      operands.push_back(of.lookup(operand));
    Value result = op->getResult(0);
    of[result] =
        llvm::TypeSwitch<Operation *, Term>(op)
            .Case([&](optim::SplatOp op) {
              return terms.convert(operands[0], op.getResult().getType().getElementType());
            })
            .Case([&](optim::BroadcastOp) { return operands[0]; })
            .Case([&](optim::PositionOp op) {
              // Rows and columns of joined matrices are none of the rule's.
              return group.joined ? terms.unknown(Float32Type::get(op.getContext()))
                                  : terms.elementwise(op, {});
            })
            .Case([&](optim::ModelNumberOp op) {
              uint64_t number = op.getNumber();
              return number < numbers.size() ? terms.convert(numbers[number], op.getType())
                                             : terms.unknown(op.getType());
            })
            .Case([&](optim::ReduceOp op) {
              return terms.reduce(op.getKind(), operands[0], extents(op.getSource()),
                                  extents(op.getResult()));
            })
            .Case([&](optim::MatmulOp op) {
              auto [m, k] = extents(op.getLhs());
              auto [l, n] = extents(op.getRhs());
              if (op.getTransposeLhs())
                std::swap(m, k);
              return terms.product({operands[0],
                                    operands[1],
                                    {},
                                    op.getTransposeLhs(),
                                    op.getTransposeRhs(),
                                    m,
                                    op.getTransposeRhs() ? l : n,
                                    k},
                                   op.getType().getElementType());
            })
            .Case([&](optim::TransposeOp op) {
              return terms.apply(optim::BlockTransposeAttr::get(op.getContext()), operands[0],
                                 extents(op.getSource()), extents(op.getResult()),
                                 op.getType().getElementType());
            })
            .Case([&](optim::OrthogonalizeOp op) {
              return terms.orthogonalize(op, operands[0], extents(op.getSource()), group.slabs);
            })
            .Default([&](Operation *op) { return terms.elementwise(op, operands); });
  }

  llvm::DenseMap<Value, Term> of;

private:
  Extents extents(Value value) {
    auto kind = optim::kindOf(value.getType()).value_or(optim::ValueKind::Full);
    plan::View view = viewOf(group, kind);
    return {view.rows, view.cols};
  }

  Terms &terms;
  const plan::Group &group;
  ArrayRef<Term> numbers;
};

/// The terms of a rule's parameter, gradient and states before the step: of the shards, and as the rule reads
/// them.
struct Start {
  Term parameterShards, gradientShards, parameter, gradient;
  std::vector<Term> states;
  int64_t master = -1; ///< the number of the master state, if the group has it
};

Start startOf(Terms &terms, optim::RuleOp rule, const plan::Group &group, const plan::Rule &planned,
              const plan::Contributions &contributions) {
  MLIRContext *context = rule.getContext();
  Type f32 = Float32Type::get(context);
  Start start;
  bool isPartial = contributions.count > 1;
  start.gradientShards = terms.leaf(isPartial ? "a contribution to the gradient" : "the gradient",
                                    optim::toType(context, group.gradientType));
  start.gradient = terms.convert(isPartial ? terms.sum(start.gradientShards, contributions.divisor)
                                           : start.gradientShards,
                                 f32);
  start.parameterShards =
      terms.leaf("the old parameter", optim::toType(context, group.parameterType));
  start.parameter = terms.convert(start.parameterShards, f32);
  for (auto [i, state] : llvm::enumerate(planned.states)) {
    std::string of = rule.getSymName() == optim::kModelName ? " of the model" : "";
    Term old = terms.leaf("the old state \"" + state.name + "\"" + of,
                          optim::toType(context, state.dtype));
    start.states.push_back(old);
    if (state.master && plan::stateExists(group, state)) {
      start.master = int64_t(i);
      start.parameter = old;
    }
  }
  return start;
}

} // namespace

ModelTerms verify::modelTerms(Terms &terms, optim::ModelOp model, const plan::Plan &plan,
                              ArrayRef<GroupStart> groups) {
  Block &body = model.getBody().front();
  std::vector<RuleReader> readers;
  ModelTerms result;
  std::vector<Term> &numbers = result.numbers;
  numbers.resize(model.getNumbers().size());
  SmallVector<int64_t> segments;
  std::vector<Term> states; // of the model, before the step
  int64_t elements = 0;
  for (const GroupStart &each : groups) {
    RuleReader &reader = readers.emplace_back(terms, *each.group, ArrayRef<Term>());
    Start start = startOf(terms, each.rule, *each.group, *each.planned, each.contributions);
    reader.of[model.getParameterArgument()] = start.parameter;
    reader.of[model.getGradientArgument()] = start.gradient;
    for (unsigned i = 0; i < groups.size(); ++i)
      if (plan.isOfModel(*groups[i].group))
        for (unsigned k = 0; k <= model.getNumHyperparameters(); ++k) // and the step
          reader.of[model.getBody().getArgument(optim::ModelOp::kFirstScalarArgument + k)] =
              scalarArgument(terms, groups[i].rule, *groups[i].group, k);
    plan::View view = viewOf(*each.group, plan::ValueKind::Full);
    if (plan.isOfModel(*each.group))
      states = start.states;
    else
      elements += blockCountOf(*each.group) * view.rows * view.cols;
  }
  for (auto [index, segment] : llvm::enumerate(plan.segments))
    if (!plan.isOfModel(plan.groups[segment.group]) && (segment.all || !segment.blocks.empty()))
      segments.push_back(int64_t(index));
  for (Operation &op : body.without_terminator()) {
    for (RuleReader &reader : readers)
      reader.read(&op);
    auto number = op.getAttrOfType<IntegerAttr>(optim::kNumberAttr);
    if (!number)
      continue;
    Term &made = numbers[size_t(number.getInt())];
    Type f32 = Float32Type::get(op.getContext());
    if (auto splat = dyn_cast<optim::SplatOp>(op)) {
      made = terms.convert(readers.front().of.lookup(splat.getScalar()), f32);
    } else if (auto state = dyn_cast<optim::ModelStateOp>(op)) {
      made = states[size_t(state.getIndex())];
    } else {
      auto reduce = cast<optim::ReduceOp>(op);
      SmallVector<Term> sources;
      for (int64_t segment : segments)
        sources.push_back(readers[plan.segments[segment].group].of.lookup(reduce.getSource()));
      made = terms.modelNumber(reduce.getKind(), segments, sources, elements);
    }
    for (RuleReader &reader : readers)
      reader.of[op.getResult(0)] = made;
  }
  for (Value state : model.getNewStates())
    result.states.push_back(readers.front().of.lookup(state));
  if (Value skipped = model.getSkipped())
    result.skipped = readers.front().of.lookup(skipped);
  return result;
}

RuleTerms verify::ruleTerms(Terms &terms, optim::RuleOp rule, const plan::Group &group,
                            const plan::Rule &planned, const plan::Contributions &contributions,
                            ArrayRef<Term> numbers) {
  Type f32 = Float32Type::get(rule.getContext());
  Start start = startOf(terms, rule, group, planned, contributions);
  RuleTerms result;
  result.gradient = start.gradientShards;
  result.before.push_back(start.parameterShards);
  RuleReader reader(terms, group, numbers);
  reader.of[rule.getParameterArgument()] = start.parameter;
  reader.of[rule.getGradientArgument()] = start.gradient;
  for (auto [i, old] : llvm::enumerate(start.states)) {
    result.before.push_back(old);
    reader.of[rule.getStateArgument(i)] = terms.convert(old, f32);
  }
  for (unsigned i = 0, e = rule.getNumHyperparameters() + 4; i < e; ++i)
    reader.of[rule.getBody().getArgument(rule.getFirstScalarArgument() + i)] =
        scalarArgument(terms, rule, group, i);
  Block &body = rule.getBody().front();
  bool areSizes = true; // whether the group's sizes are what the rule computes
  for (Operation &op : body.without_terminator()) {
    reader.read(&op);
    if (auto size = dyn_cast<optim::SizeOp>(op)) {
      std::optional<double> value = terms.numberOf(reader.of.lookup(size.getValue()));
      auto number = size_t(size.getNumber());
      areSizes &= number < group.sizes.size() && value == double(group.sizes[number]);
      if (!areSizes)
        size.emitOpError("expected the size that the rule computes, ")
            << (value ? std::to_string(int64_t(*value)) : "which nobody knows") << ", found "
            << (number < group.sizes.size() ? std::to_string(group.sizes[number]) : "none")
            << " in group " << group.name;
    }
  }
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    // The new master is the new parameter before it is rounded.
    bool isMaster = start.master >= 0 && int64_t(i) == start.master + 1;
    Value given = isMaster ? body.getTerminator()->getOperand(0) : value;
    Type stored = terms.elementOf(result.before[i]);
    Term made = reader.of.lookup(given);
    if (i == 0 && stored.isF32())
      made = terms.beforeStochastic(made);
    result.after.push_back(areSizes ? terms.convert(made, stored) : terms.unknown(stored));
  }
  return result;
}
