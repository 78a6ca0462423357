//===- Forces.cpp - Strategies that the user forces ------------------------===//

#include "passes/decide/Forces.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using optim::Strategy;

FailureOr<std::vector<Force>> decide::parseForces(ModuleOp module, ArrayRef<std::string> texts) {
  std::vector<Force> forces;
  for (const std::string &text : texts) {
    auto [pattern, name] = StringRef(text).rsplit('=');
    std::optional<Strategy> strategy = optim::symbolizeStrategy(name);
    if (name.empty() || !strategy || *strategy == Strategy::Elementwise)
      return module.emitError(
                 "expected a strategy as PATTERN=local, PATTERN=owner or PATTERN=gather, "
                 "found \"")
             << text << "\"";
    // A GlobPattern refers to its text: the context's copy lives long enough.
    StringRef kept = StringAttr::get(module.getContext(), pattern).getValue();
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(kept);
    if (!glob)
      return module.emitError("expected a pattern, found \"")
             << pattern << "\": " << llvm::toString(glob.takeError());
    forces.push_back({kept, std::move(*glob), *strategy});
  }
  return forces;
}

Force *decide::lastMatch(std::vector<Force> &forces, StringRef parameter, bool matrix) {
  Force *last = nullptr;
  for (Force &force : forces)
    if (force.glob.match(parameter)) {
      force.matched = true;
      force.applied |= matrix;
      last = &force;
    }
  return last;
}
