//===- Check.cpp - stepc check: errors, and who takes which route ----------===//

#include "tools/stepc/Input.h"

#include "dialects/optim/Optim.h"
#include "frontends/import/Import.h"
#include "frontends/text/Text.h"
#include "passes/decide/Passes.h"
#include "runtime/text/Plural.h"
#include "tools/stepc/Pipeline.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;

namespace {

/// Prints hyperparameters with their defaults. JSON has no NaN: null is a value that the trainer must give.
void printDefaults(llvm::json::OStream &json, StringRef key, mlir::ArrayAttr names,
                   llvm::ArrayRef<double> defaults) {
  json.attributeObject(key, [&] {
    for (auto [name, value] : llvm::zip(names.getAsValueRange<mlir::StringAttr>(), defaults)) {
      if (std::isnan(value))
        json.attribute(name, nullptr);
      else
        json.attribute(name, value);
    }
  });
}

void printJson(mlir::ModuleOp module) {
  llvm::json::OStream json(llvm::outs(), /*IndentSize=*/1);
  llvm::StringMap<StringRef> ruleOf;
  for (auto route : module.getOps<optim::RouteOp>())
    ruleOf[route.getSymName()] = route.getRule();
  json.object([&] {
    json.attributeArray("parameters", [&] {
      for (auto parameter : module.getOps<optim::ParameterOp>())
        json.object([&] {
          json.attribute("name", parameter.getSymName());
          json.attribute("route", *parameter.getRoute());
          json.attribute("rule", ruleOf.lookup(*parameter.getRoute()));
          if (parameter.getBlocks())
            json.attribute("divided", true);
        });
    });
    json.attributeArray("routes", [&] {
      for (auto route : module.getOps<optim::RouteOp>()) {
        auto rule =
            mlir::SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(route, route.getRuleAttr());
        json.object([&] {
          json.attribute("name", route.getSymName());
          json.attribute("rule", ruleOf.lookup(route.getSymName()));
          json.attribute("elementwise", rule.isElementwise() && !rule.countsElements());
          printDefaults(json, "defaults", rule.getHyperparameters(), route.getDefaults());
        });
      }
    });
    if (optim::ModelOp model = optim::findModel(module)) {
      printDefaults(json, "model", model.getHyperparameters(), model.getDefaults());
      json.attributeObject("model_states", [&] {
        for (auto state : model.getStates().getAsRange<optim::StateAttr>())
          if (!state.getMetric())
            json.attribute(state.getName().getValue(), state.getInit().getValueAsDouble());
      });
    }
  });
  llvm::outs() << '\n';
}

void printSummary(StringRef path, const lang::File &file, mlir::ModuleOp module) {
  llvm::outs() << text::printable(path) << ": ";
  if (!file.allRules().empty() || file.defs.empty())
    llvm::outs() << plural(int64_t(file.allRules().size()), "optimizer");
  else
    llvm::outs() << plural(int64_t(file.defs.size()), "function");
  if (module) {
    llvm::MapVector<StringRef, int64_t> counts;
    int64_t total = 0;
    for (auto route : module.getOps<optim::RouteOp>())
      counts[route.getSymName()] = 0;
    for (auto parameter : module.getOps<optim::ParameterOp>()) {
      ++counts[*parameter.getRoute()];
      ++total;
    }
    llvm::outs() << ", " << plural(total, "parameter");
    StringRef separator = ": ";
    for (auto [name, count] : counts) {
      llvm::outs() << separator << count << " by " << name;
      separator = ", ";
    }
  }
  llvm::outs() << "; no errors\n";
}

} // namespace

int driver::runCheck(const CheckCommand &command) {
  Input input;
  if (command.manifest.empty() && (command.json || !command.ifPresent.empty())) {
    input.report.error(StringRef("expected --manifest beside ") +
                       (command.json ? "--json" : "--if-present") + ", found none");
    return kUsageError;
  }
  if (refuseModule(input.report, command.spec) ||
      refuseInputs(input.report, command.spec, command.manifest))
    return kUsageError;
  bool hasManifest = !command.manifest.empty();
  bool good = input.loadSpecification(command.spec, /*requireRoute=*/hasManifest);
  if (hasManifest)
    good &= input.loadManifest(command.manifest);
  if (!good)
    return kInputError;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (!hasManifest) {
    module = frontends::importRules(input.context(), *input.spec.file, "check");
    if (failed(mlir::verify(*module))) {
      input.report.internalError("the rules of a specification that was accepted are not legal");
      return kInternalError;
    }
    printSummary(inputName(command.spec), *input.spec.file, nullptr);
    return kSuccess;
  }
  CompileOptions options;
  options.input = command.spec;
  module = input.import(options);
  if (!module)
    return kInputError;
  if (!input.allowNoMatch(*module, command.ifPresent))
    return kUsageError;
  mlir::PassManager manager(&input.context());
  decide::buildRoutePipeline(manager);
  if (failed(manager.run(*module)))
    return kInputError;
  // What the model asks of parameters and routes. A copy, because the pass adds a parameter.
  mlir::OwningOpRef<mlir::ModuleOp> expanded = module->clone();
  mlir::PassManager expand(&input.context());
  expand.addPass(decide::createExpandModel());
  if (failed(expand.run(*expanded)))
    return kInputError;
  if (command.json)
    printJson(*module);
  else
    printSummary(inputName(command.spec), *input.spec.file, *module);
  return kSuccess;
}
