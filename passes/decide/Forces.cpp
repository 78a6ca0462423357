//===- Forces.cpp - Strategies that the user forces ------------------------===//

#include "passes/decide/Forces.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;

InFlightDiagnostic decide::blameOptions(InFlightDiagnostic diagnostic) {
  diagnostic.getUnderlyingDiagnostic()->getMetadata().emplace_back(StringRef(kUsageErrorMark));
  return diagnostic;
}

FailureOr<std::vector<Force>> decide::parseForces(ModuleOp module, ArrayRef<std::string> texts) {
  std::vector<Force> forces;
  SmallVector<optim::StrategyAttrInterface> known = optim::strategies(module.getContext());
  for (const std::string &text : texts) {
    auto [pattern, name] = StringRef(text).rsplit('=');
    auto *strategy = llvm::find_if(known, [&](auto each) { return each.name() == name; });
    if (strategy == known.end()) {
      InFlightDiagnostic diag = blameOptions(module.emitError("expected a strategy as "));
      for (size_t i = 0; i < known.size(); ++i)
        diag << (i == 0                 ? ""
                 : i + 1 < known.size() ? ", "
                                        : " or ")
             << "PATTERN=" << known[i].name();
      diag << ", found \"" << text << "\"";
      if (StringRef renamed = optim::newNameOf(name); !renamed.empty())
        diag << ", whose strategy is now named " << renamed;
      return diag;
    }
    NamePatternError error;
    std::optional<NamePattern> parsed = NamePattern::parse(pattern, error);
    if (!parsed) {
      InFlightDiagnostic diag = blameOptions(module.emitError("expected a pattern, found \"")
                                             << pattern << "\": " << error.message);
      diag.attachNote() << error.hint;
      return diag;
    }
    forces.push_back({std::move(*parsed), *strategy});
  }
  return forces;
}

Force *decide::lastMatch(std::vector<Force> &forces, optim::ParameterOp parameter, bool matrix) {
  Force *last = nullptr;
  for (Force &force : forces)
    if (optim::matches(force.pattern, parameter)) {
      force.matched = true;
      force.applied |= matrix;
      last = &force;
    }
  return last;
}
