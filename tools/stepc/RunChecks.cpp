//===- RunChecks.cpp - What stepc run asks of a file before it compiles ----===//

#include "tools/stepc/Run.h"

#include "dialects/optim/Optim.h"
#include "passes/decide/Passes.h"
#include "tools/stepc/OptionChecks.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;
using llvm::Twine;

bool driver::checkHyperparameters(mlir::ModuleOp module, const RunCommand &command,
                                  Report &report) {
  std::vector<std::string> known;
  for (auto route : module.getOps<optim::RouteOp>()) {
    auto rule =
        mlir::SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(route, route.getRuleAttr());
    for (StringRef name : rule.getHyperparameters().getAsValueRange<mlir::StringAttr>())
      known.push_back((route.getSymName() + "." + name).str());
  }
  optim::ModelOp model = optim::findModel(module);
  if (model)
    for (StringRef name : model.getHyperparameters().getAsValueRange<mlir::StringAttr>())
      known.push_back((optim::kModelName + "." + name).str());
  llvm::StringSet<> given;
  for (const auto &[name, value] : command.hyperparameters) {
    if (!given.insert(name).second) {
      report.error("--hyper: expected one number for '" + name + "', found two");
      return false;
    }
    if (llvm::is_contained(known, name))
      continue;
    report.error(Twine("--hyper: expected a hyperparameter of a route ") +
                 (model ? "or of the model " : "") + "(" + llvm::join(known, ", ") + "), found '" +
                 name + "'");
    if (std::string meant = suggest(name, known); !meant.empty())
      report.hint(StringRef(meant).rtrim());
    return false;
  }
  for (size_t i = 0; model && i < model.getNumHyperparameters(); ++i) {
    StringRef name = cast<mlir::StringAttr>(model.getHyperparameters()[i]).getValue();
    std::string option = (optim::kModelName + "." + name).str();
    if (!std::isnan(model.getDefaults()[i]) || given.contains(option))
      continue;
    report.error("expected a value for hyperparameter '" + name +
                 "' of the model, which has no default, found none");
    report.hint("give it by --hyper " + option + "=VALUE");
    return false;
  }
  return true;
}

/// A copy of a module in which parameters have routes. Null after an error of routes, which is printed when
/// routes are taken for good.
static mlir::OwningOpRef<mlir::ModuleOp> routedCopy(mlir::ModuleOp module) {
  mlir::OwningOpRef<mlir::ModuleOp> routed = module.clone();
  mlir::ScopedDiagnosticHandler silent(module.getContext(),
                                       [](mlir::Diagnostic &) { return mlir::success(); });
  mlir::PassManager manager(module.getContext());
  decide::buildRoutePipeline(manager);
  if (failed(manager.run(*routed)))
    return nullptr;
  return routed;
}

bool driver::checkFirstStates(mlir::ModuleOp module, const RunInput &run, Report &report) {
  // Tensors of steps are checked later. One that is none says nothing here.
  auto startsHere = [&](size_t index) {
    const manifest::TensorView *steps = run.state(index, "step");
    bool isNumber = steps && steps->type == manifest::TensorType::I64 && steps->shape.empty();
    return !run.tensors[index].states.empty() &&
           (!steps || (isNumber && run.stepsTaken(index) == 0));
  };
  if (llvm::none_of(llvm::seq(run.tensors.size()), startsHere))
    return true;
  mlir::OwningOpRef<mlir::ModuleOp> routed = routedCopy(module);
  if (!routed)
    return true;
  for (auto op : routed->getOps<optim::ParameterOp>()) {
    size_t index = run.indexOfName.lookup(op.getSymName());
    if (!startsHere(index))
      continue;
    auto route = optim::lookupRoute(op, op.getRouteAttr());
    auto rule =
        mlir::SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(route, route.getRuleAttr());
    for (auto state : rule.getStates().getAsRange<optim::StateAttr>())
      if (const manifest::TensorView *view = run.state(index, state.getName().getValue());
          view && state.getStart() != plan::Initial::Number) {
        StringRef name = run.manifest->parameters[index].name;
        report.error(run.tensorFile, "expected no tensor '" + view->name +
                                         "' before the first step, because '" +
                                         state.getName().getValue() + "' starts at " +
                                         plan::describe(state.getStart()) + ", found one");
        report.hint("'state:" + name + ":step' says how many steps the parameter has taken");
        return false;
      }
  }
  return true;
}

bool driver::checkGradients(mlir::ModuleOp module, const RunInput &run, Report &report) {
  auto lacksSome = [](const auto &one) { return llvm::is_contained(one.gradients, nullptr); };
  if (llvm::none_of(run.tensors, lacksSome))
    return true;
  mlir::OwningOpRef<mlir::ModuleOp> routed = routedCopy(module);
  if (!routed)
    return true;
  std::string first;
  std::vector<StringRef> others;
  for (auto op : routed->getOps<optim::ParameterOp>()) {
    optim::RouteOp route = optim::lookupRoute(op, op.getRouteAttr());
    size_t index = run.indexOfName.lookup(op.getSymName());
    llvm::ArrayRef<const manifest::TensorView *> gradients = run.tensors[index].gradients;
    auto absent = llvm::count(gradients, nullptr);
    if (route.getMissingGrad() != optim::MissingGrad::Error || absent == 0)
      continue;
    StringRef name = run.manifest->parameters[index].name;
    if (!first.empty()) {
      others.push_back(name);
      continue;
    }
    std::string step = std::to_string(llvm::find(gradients, nullptr) - gradients.begin() + 1);
    first = ("expected a gradient of parameter '" + name + "' for step " + step +
             (absent > 1 ? " and " + std::to_string(absent - 1) + " more" : "") +
             ", a tensor 'grad:" + name + "' or 'grad:" + name + "@" + step +
             "', found none, and route " + route.getSymName() + " says missing_grad = error")
                .str();
  }
  if (first.empty())
    return true;
  report.error(run.tensorFile,
               others.empty() ? first : first + "; nor are there all of " + nameSome(others));
  return false;
}
