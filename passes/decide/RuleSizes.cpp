//===- RuleSizes.cpp - Sizes of a rule's values, by parameter --------------===//

#include "passes/decide/RuleSizes.h"

#include "dialects/optim/Saturate.h"
#include "passes/decide/SizeEvaluator.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

static constexpr int64_t kMostStateBytes = int64_t(8) << 30; // of a block

/// A number for people: 2.5, 4.
static std::string spelled(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.10g", value);
  return text;
}

/// The bytes of a state for each block.
static int64_t stateBytes(const plan::Group &group, StateAttr state, plan::ValueKind kind) {
  plan::View each = plan::view(group, kind);
  return saturatingMul(saturatingMul(each.rows, each.cols),
                       state.getType().getIntOrFloatBitWidth() / 8);
}

/// Whether all states were small enough if the rule saw the transposed matrix.
static bool wouldFitTransposed(const plan::Group &group, RuleOp rule) {
  return llvm::all_of(rule.getStates().getAsRange<StateAttr>(), [&](StateAttr state) {
    return state.getKind().isStored() ||
           stateBytes(group, state, state.getKind().ofTransposed()) <= kMostStateBytes;
  });
}

/// Verifies a state that has sizes of its own, as which each block has a matrix.
static LogicalResult checkState(ParameterOp parameter, RuleOp rule, StateAttr state) {
  plan::Group group = parameter.toPlan();
  plan::View each = plan::view(group, state.getKind()), block = group.matrix();
  int64_t bytes = stateBytes(group, state, state.getKind());
  if (bytes <= kMostStateBytes)
    return success();
  auto diag = parameter.emitError("parameter '")
              << parameter.getSymName() << "': expected at most 8 GiB of state " << state.getName()
              << " of optimizer " << rule.getUserName() << ", found "
              << llvm::formatv("{0:f0}", std::ldexp(double(bytes), -30)).str() << " GiB for "
              << each.rows << " x " << each.cols << " beside a matrix of " << block.rows << " x "
              << block.cols;
  bool ofRows =
      state.getKind().rows == ValueKind::OfRows || state.getKind().cols == ValueKind::OfRows;
  if (!rule.getTall() && !rule.isTall() && block.rows > block.cols &&
      wouldFitTransposed(group, rule))
    diag.attachNote() << "'optimizer " << rule.getUserName()
                      << "(...) wide {' sees such matrices transposed";
  diag.attachNote() << "leave such matrices to another optimizer: 'for matrix where "
                    << (ofRows ? "rows" : "cols") << " <= 8192'";
  return diag;
}

bool decide::hasRuleSizes(RuleOp rule) {
  return rule.hasStatesOfOtherSizes() || !rule.getBody().getOps<SizeOp>().empty();
}

LogicalResult decide::setRuleSizes(ParameterOp parameter, RuleOp rule) {
  plan::Group group = parameter.toPlan();
  if (!plan::haveEqualParts(group.division)) {
    auto diag = parameter.emitError("parameter '")
                << parameter.getSymName() << "': expected blocks of one size, because optimizer "
                << rule.getUserName() << " has matrices of other sizes for each block, found ";
    llvm::SetVector<int64_t> sizes;
    for (const std::vector<plan::Span> &part : group.division.parts)
      sizes.insert(plan::extentOf(part));
    llvm::interleaveComma(sizes, diag);
    return diag << (group.division.axis == plan::Division::Rows ? " rows" : " columns");
  }
  for (size_t part = 0; part < group.division.parts.size(); ++part)
    group.parts.push_back(int64_t(part));
  SizeEvaluator evaluator(rule.getBody().front(), rule.getBody().getArguments().take_back(3),
                          group);
  SmallVector<int64_t> sizes;
  for (auto op : rule.getBody().getOps<SizeOp>()) {
    std::optional<double> value = evaluator.numberOf(op.getValue());
    if (!value)
      return op.emitError("expected a size that follows from rows, cols, numel and numbers alone");
    if (!(*value >= 1 && *value <= double(ValueKind::kMostSize) && *value == std::floor(*value))) {
      auto diag = op.emitError("expected a whole number from 1 to 2^20 as the size '")
                  << op.getName() << "', found " << spelled(*value)
                  << " for the blocks of parameter '" << parameter.getSymName() << "', "
                  << group.rows() << " x " << group.cols();
      diag.attachNote() << "'max(1, floor(x))' is a whole number of 1 at least";
      return diag;
    }
    sizes.push_back(int64_t(*value));
  }
  if (!sizes.empty())
    parameter.setSizes(sizes);
  for (auto state : rule.getStates().getAsRange<StateAttr>())
    if (!state.getKind().isStored() && failed(checkState(parameter, rule, state)))
      return failure();
  return success();
}
