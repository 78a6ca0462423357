//===- Watch.cpp - States for the values that are watched ------------------===//

#include "tools/stepc/Watch.h"

#include "dialects/optim/Optim.h"
#include "tools/stepc/OptionChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;

/// Names in specifications have no dot, so no state of a specification begins like this.
static constexpr StringRef kWatchPrefix = "watch.";

bool driver::isWatchState(StringRef name) { return name.starts_with(kWatchPrefix); }

namespace {

/// A value that can be watched.
struct Candidate {
  WatchedValue watched;
  optim::RuleOp rule;
  mlir::Value value; // null if a state or the parameter holds it anyway

  bool matches(const NamePattern &pattern) const {
    return pattern.matches(watched.name) || pattern.matches(watched.fullName());
  }
};

} // namespace

std::string WatchedValue::fullName() const {
  StringRef user = rule;
  user.consume_back(optim::kTallSuffix);
  return (user + "." + name).str();
}

static void addCandidates(optim::RuleOp rule, std::vector<Candidate> &candidates) {
  std::string name = rule.getSymName().str();
  auto addLets = [&](mlir::Value value) {
    size_t before = candidates.size();
    mlir::Location location = value.getLoc();
    while (auto let = llvm::dyn_cast<mlir::NameLoc>(location)) { // the newest name first
      candidates.insert(candidates.begin() + before,
                        {{name, let.getName().str(), ""}, rule, value});
      location = let.getChildLoc();
    }
  };
  candidates.push_back({{name, "grad", ""}, rule, rule.getGradientArgument()});
  llvm::for_each(rule.getBody().getArguments(), addLets);
  for (mlir::Operation &op : rule.getBody().getOps())
    llvm::for_each(op.getResults(), addLets);
  mlir::Operation *yield = rule.getBody().front().getTerminator();
  for (auto [number, state] : llvm::enumerate(rule.getStates().getAsRange<optim::StateAttr>())) {
    std::string stateName = state.getName().str();
    if (state.getInput())
      candidates.push_back({{name, stateName, ""}, rule, rule.getStateArgument(unsigned(number))});
    else if (!state.getMetric())
      candidates.push_back({{name, stateName, stateName}, rule, nullptr});
    // A metric may be called like a let, which then is what is watched.
    else if (llvm::none_of(candidates, [&](const Candidate &one) {
               return one.rule == rule && one.watched.name == stateName;
             }))
      candidates.push_back({{name, stateName, ""}, rule, yield->getOperand(1 + unsigned(number))});
  }
  candidates.push_back({{name, "param", ""}, rule, nullptr});
}

/// The value as numbers of an f32 tensor type. A condition becomes 1 or 0, and a scalar is rounded.
static mlir::Value toNumbers(mlir::OpBuilder &builder, mlir::Value value,
                             mlir::RankedTensorType type) {
  mlir::Location loc = value.getLoc();
  if (mlir::getElementTypeOrSelf(value).isInteger(1)) {
    auto constant = [&](double number) -> mlir::Value {
      mlir::Value scalar =
          mlir::arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(number));
      bool isTensor = llvm::isa<mlir::RankedTensorType>(value.getType());
      return isTensor ? optim::SplatOp::create(builder, loc, type, scalar) : scalar;
    };
    mlir::Value one = constant(1), zero = constant(0);
    value = mlir::arith::SelectOp::create(builder, loc, value, one, zero);
  }
  if (value.getType().isF64())
    return optim::SplatOp::create(builder, loc, type, value);
  return value.getType() == type ? value : mlir::arith::ExtFOp::create(builder, loc, type, value);
}

/// Adds a state that starts at 0, and that the rule yields with the candidate's value.
static void addState(Candidate &candidate) {
  optim::RuleOp rule = candidate.rule;
  WatchedValue &watched = candidate.watched;
  mlir::Type element = mlir::getElementTypeOrSelf(candidate.value);
  watched.state = kWatchPrefix.str() + watched.name;
  watched.isScalar = !llvm::isa<mlir::RankedTensorType>(candidate.value.getType());
  watched.isCondition = element.isInteger(1);
  // A state of kind one would make an elementwise rule need whole matrices.
  auto forScalar = rule.isElementwise() ? plan::ValueKind::Full : plan::ValueKind::One;
  plan::ValueKind kind = watched.isScalar ? forScalar : *optim::kindOf(candidate.value.getType());
  mlir::Operation *yield = rule.getBody().front().getTerminator();
  mlir::OpBuilder builder(yield);
  auto type = optim::tensorType(kind, builder.getF32Type());
  yield->insertOperands(yield->getNumOperands(), toNumbers(builder, candidate.value, type));
  rule.getBody().insertArgument(2 + rule.getNumStates(), type, rule.getLoc());
  // bf16 and f16 are stored as they are. All else is f32.
  auto states = llvm::to_vector(rule.getStates());
  states.push_back(optim::StateAttr::get(
      rule.getContext(), builder.getStringAttr(watched.state),
      element.getIntOrFloatBitWidth() == 16 ? element : builder.getF32Type(), kind,
      builder.getF64FloatAttr(0), /*master=*/false, plan::Initial::Number, /*metric=*/false,
      /*input=*/false));
  rule.setStatesAttr(builder.getArrayAttr(states));
}

std::optional<WatchedValues>
driver::watchValues(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns, Report &report) {
  std::vector<Candidate> candidates;
  for (auto rule : module.getOps<optim::RuleOp>())
    addCandidates(rule, candidates);
  std::vector<std::string> names;
  for (const Candidate &candidate : candidates)
    if (!llvm::is_contained(names, candidate.watched.fullName()))
      names.push_back(candidate.watched.fullName());
  std::vector<NamePattern> parsed;
  for (const std::string &text : patterns) {
    NamePatternError error;
    std::optional<NamePattern> pattern = NamePattern::parse(text, error);
    if (!pattern) {
      report.error("--watch: " + error.message + ", of '" + text + "'");
      report.hint(error.hint);
      return std::nullopt;
    }
    parsed.push_back(*pattern);
    if (llvm::any_of(candidates, [&](const Candidate &one) { return one.matches(*pattern); }))
      continue;
    report.error("--watch: expected a pattern of names of values (" + llvm::join(names, ", ") +
                 "), found '" + text + "'");
    for (const Candidate &candidate : candidates)
      if (!llvm::is_contained(names, candidate.watched.name))
        names.push_back(candidate.watched.name);
    if (std::string meant = suggest(text, names); !meant.empty())
      report.hint(StringRef(meant).rtrim());
    return std::nullopt;
  }
  WatchedValues values;
  for (Candidate &one : candidates)
    if (llvm::any_of(parsed, [&](const NamePattern &pattern) { return one.matches(pattern); })) {
      if (one.value)
        addState(one);
      values[one.watched.rule].push_back(one.watched);
    }
  return values;
}
