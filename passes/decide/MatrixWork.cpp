//===- MatrixWork.cpp - What a rule's matrix operations are made of ----------===//

#include "passes/decide/MatrixWork.h"

#include "dialects/optim/Saturate.h"
#include "passes/cost/ScratchBound.h"
#include "runtime/plan/TileLists.h"

#include <map>
#include <set>

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

namespace {

/// Records each product and function as a step, and builds no operations.
class Counter : public MatrixBuilder {
public:
  Counter(const MatrixExtents &extents, plan::Division::Axis cut, std::vector<MatrixStep> &steps)
      : MatrixBuilder(extents), cut(cut), steps(steps) {}

  MatrixValue apply(BlockFunctionAttrInterface function, ArrayRef<MatrixValue> sources,
                    ValueKind kind, Type element) override {
    MatrixStep step;
    auto blocks =
        llvm::map_to_vector(sources, [&](const MatrixValue &value) { return blockOf(value); });
    MatrixValue out = make(kind, element, sources);
    step.flops = function.flops(blocks, blockOf(out));
    step.scratch = function.scratchBound(blocks, blockOf(out));
    step.bytes = element.getIntOrFloatBitWidth() / 8;
    step.result = kind;
    steps.push_back(step);
    record(sources, out, /*isProduct=*/false);
    return out;
  }
  MatrixValue norm(MatrixValue source, int64_t exponent, double) override {
    MLIRContext *context = source.element.getContext();
    MatrixValue made = apply(BlockReduceAttr::get(context, Reduction::Norm, exponent), source,
                             ValueKind::One, Float32Type::get(context));
    steps.back().isSummed = extents.areSlabs;
    return made;
  }

  MatrixValue product(const MatrixProduct &product) override {
    MatrixStep step;
    step.isProduct = true;
    auto [rows, cols] = extents.of(product.lhs.kind);
    auto [m, n] = extents.of(product.kind);
    Type lhs = product.lhs.element, rhs = product.rhs.element;
    step.shape = {m,
                  n,
                  product.transposeLhs ? rows : cols,
                  product.isSymmetric,
                  product.addend.has_value(),
                  lhs == rhs && lhs.getIntOrFloatBitWidth() == 16,
                  isTiled(product)};
    step.form = {{*optim::toPlan(lhs), *optim::toPlan(rhs), *optim::toPlan(product.element),
                  product.transposeLhs, product.transposeRhs, product.isSymmetric},
                 cost::isForWarpgroups(step.shape)};
    step.flops = cost::executedFlops(step.shape);
    step.scratch = cost::productScratchBound(m, n, step.shape.k);
    step.bytes = product.element.getIntOrFloatBitWidth() / 8;
    step.result = product.kind;
    auto inner = product.transposeLhs ? plan::Division::Rows : plan::Division::Columns;
    step.isSummed = extents.areSlabs && product.lhs.kind == ValueKind::Full && inner == cut;
    SmallVector<MatrixValue> values = {product.lhs, product.rhs};
    if (product.addend)
      values.push_back(*product.addend);
    MatrixValue result = make(product.kind, product.element, values);
    std::set<size_t> &behind = productsBehind[result.number];
    step.after.assign(behind.begin(), behind.end());
    behind = {steps.size()};
    values.push_back(result);
    llvm::SmallDenseSet<int64_t> seen;
    for (const MatrixValue &value : values) {
      if (!seen.insert(value.number).second)
        continue;
      auto [r, c] = extents.of(value.kind);
      // A kind may have a large constant as an extent, so these sums saturate.
      step.elements = saturatingAdd(step.elements, saturatingMul(r, c));
      step.elementsOfBlock += value.kind == ValueKind::Full ? r * c : 0;
    }
    steps.push_back(step);
    record(ArrayRef(values).drop_back(), result, /*isProduct=*/true);
    if (product.replaced)
      lives[result.number].replaces = product.replaced->number;
    return result;
  }

  MatrixValue stage(ArrayRef<MatrixValue> ins, ValueKind kind, Type element, Body) override {
    MatrixValue out = make(kind, element, ins);
    record(ins, out, /*isProduct=*/false);
    return out;
  }

  /// Notes an operation: the values that it reads, and the one that it makes.
  void record(ArrayRef<MatrixValue> sources, const MatrixValue &out, bool isProduct) {
    for (const MatrixValue &source : sources) {
      Life &life = lives.try_emplace(source.number, Life{bytesOf(source)}).first->second;
      life.last = time;
    }
    lives[out.number] = {bytesOf(out), time, time};
    if (isProduct && firstProduct < 0)
      firstProduct = time;
    ++time;
  }

  /// Notes that a value goes to the shards, or that another operation of level 2 reads it there.
  void leave(const MatrixValue &value) {
    if (auto known = lives.find(value.number); known != lives.end())
      known->second.isResult = true;
  }

  /// The bytes of the chain that was counted.
  ChainBytes chain() const {
    ChainBytes bytes;
    int64_t first = firstProduct < 0 ? time : firstProduct; // product
    int64_t preparedEnd = -1, resultsBegin = time;
    auto isPrepared = [&](const Life &life) {
      return life.made < first && (life.last >= first || life.isResult);
    };
    for (const auto &[number, life] : lives) {
      if (life.made < 0)
        bytes.arrived = saturatingAdd(bytes.arrived, life.bytes);
      if (isPrepared(life)) {
        bytes.prepared = saturatingAdd(bytes.prepared, life.bytes);
        preparedEnd = std::max(preparedEnd, life.isResult ? time : life.last);
      } else if (life.isResult) {
        bytes.results = saturatingAdd(bytes.results, life.bytes);
        resultsBegin = std::min(resultsBegin, life.made);
        auto replaced = lives.find(life.replaces);
        bytes.reuses |= replaced != lives.end() && isPrepared(replaced->second);
      }
    }
    for (int64_t now = first; now < time; ++now) {
      int64_t others = 0;
      for (const auto &[number, life] : lives)
        if (life.made >= first && !life.isResult && life.made <= now && now <= life.last)
          others = saturatingAdd(others, life.bytes);
      int64_t &most = bytes.others[(now <= preparedEnd ? 1 : 0) | (now >= resultsBegin ? 2 : 0)];
      most = std::max(most, others);
    }
    return bytes;
  }

  /// A new value that is computed from others.
  MatrixValue make(ValueKind kind, Type element, ArrayRef<MatrixValue> from) {
    std::set<size_t> behind;
    for (const MatrixValue &value : from)
      if (auto found = productsBehind.find(value.number); found != productsBehind.end())
        behind.insert(found->second.begin(), found->second.end());
    productsBehind[++made] = std::move(behind);
    return {Value(), kind, element, made};
  }

  bool isTiled(const MatrixProduct &product) const {
    auto stored = [&](const MatrixValue &value) {
      auto [rows, cols] = extents.of(value.kind);
      return plan::StoredMatrix{*optim::toPlan(value.element), rows, cols};
    };
    plan::TiledOperands operands{stored(product.lhs), stored(product.rhs), {}, {}};
    auto [rows, cols] = extents.of(product.kind);
    operands.out = {*optim::toPlan(product.element), rows, cols};
    if (product.addend)
      operands.addend = stored(*product.addend);
    return plan::checkTiles(operands).empty();
  }

private:
  /// When a value is made and read last, as numbers of operations. A value of the shards is made at -1.
  struct Life {
    int64_t bytes = 0, made = -1, last = -1;
    bool isResult = false;
    int64_t replaces = 0; // the number of the value whose memory this one may take
  };
  int64_t bytesOf(const MatrixValue &value) const {
    auto [rows, cols] = extents.of(value.kind);
    return saturatingMul(saturatingMul(rows, cols), value.element.getIntOrFloatBitWidth() / 8);
  }
  RankedTensorType blockOf(const MatrixValue &value) const {
    auto [rows, cols] = extents.of(value.kind);
    return RankedTensorType::get({rows, cols}, value.element);
  }

  plan::Division::Axis cut;
  std::vector<MatrixStep> &steps;
  int64_t made = 0;
  std::map<int64_t, Life> lives; // by value's number
  int64_t time = 0, firstProduct = -1;
  // By value's number: the last products from whose results it is computed, as numbers of steps.
  std::map<int64_t, std::set<size_t>> productsBehind;
};

} // namespace

MatrixWork::MatrixWork(RuleOp rule, const MatrixExtents &extents, plan::Division::Axis cut) {
  Counter counter(extents, cut, steps);
  llvm::DenseMap<Value, MatrixValue> known;
  auto kind = [](Value value) { return kindOf(value.getType()).value_or(ValueKind::Full); };
  rule.walk([&](Operation *op) {
    auto valueOf = [&](Value of) {
      MatrixValue &value = known[of];
      if (value.number == 0) // an argument of the rule
        value = counter.make(kind(of), getElementTypeOrSelf(of), {});
      return value;
    };
    SmallVector<MatrixValue> operands = llvm::map_to_vector(op->getOperands(), valueOf);
    SmallVector<MatrixValue> placed = llvm::map_to_vector(placedOperands(op), valueOf);
    auto matrixOp = dyn_cast<MatrixOpInterface>(op);
    bool isOnShards = spaceOf(op).value_or(Space::Matrix) != Space::Matrix;
    if (!matrixOp || isOnShards) {
      bool isInMatrixSpace = spaceOf(op) == Space::Matrix;
      if (isa<YieldOp>(op) || (hasSpace(op) && !isInMatrixSpace))
        for (const MatrixValue &operand : placed)
          counter.leave(operand);
      for (Value result : op->getResults()) {
        MatrixValue value = counter.make(kind(result), getElementTypeOrSelf(result), operands);
        known[result] = value;
        if (isInMatrixSpace)
          counter.record(placed, value, /*isProduct=*/false);
      }
      return;
    }
    // A value without a space becomes a buffer if a matrix operation reads it.
    for (auto [operand, value] : llvm::zip(op->getOperands(), operands))
      if (Operation *source = operand.getDefiningOp();
          source && !hasSpace(source) && isa<RankedTensorType>(operand.getType()))
        counter.record(llvm::map_to_vector(placedOperands(operand), valueOf), value,
                       /*isProduct=*/false);
    Value result = op->getResult(0);
    size_t before = steps.size();
    MatrixValue made = matrixOp.expand(counter, operands, kind(result));
    known[result] = {Value(), kind(result), getElementTypeOrSelf(result), made.number};
    if (std::any_of(steps.begin() + before, steps.end(), isProduct))
      sourceBytes = operands[0].element.getIntOrFloatBitWidth() / 8;
  });
  chain = counter.chain();
}

int64_t ChainBytes::most(int64_t blocks, int64_t prepared, int64_t results, bool follows,
                         bool precedes) const {
  int64_t most = 0;
  for (auto [phase, other] : llvm::enumerate(others)) {
    if (other < 0)
      continue;
    int64_t bytes = saturatingMul(blocks, other);
    if (phase & 1 || precedes)
      bytes = saturatingAdd(bytes, prepared);
    if (phase & 2 || follows)
      bytes = saturatingAdd(bytes, results);
    most = std::max(most, bytes);
  }
  return most;
}

int64_t MatrixWork::flops() const {
  int64_t total = 0;
  for (const MatrixStep &step : steps)
    total = saturatingAdd(total, step.flops);
  return total;
}

int64_t MatrixWork::fullFlops() const {
  int64_t total = 0;
  for (const MatrixStep &step : steps)
    total = saturatingAdd(total, step.isProduct ? cost::fullFlops(step.shape) : step.flops);
  return total;
}

int64_t MatrixWork::scratch() const {
  int64_t most = 0;
  for (const MatrixStep &step : steps)
    most = std::max(most, step.scratch);
  return most;
}
