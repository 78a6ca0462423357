//===- MatchDefinition.cpp - Is a library what a specification says? -------===//

#include "tools/stepc/MatchDefinition.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>
#include <optional>

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;

static std::string textOf(const std::vector<std::string> &names) {
  return names.empty() ? "none" : "(" + llvm::join(names, ", ") + ")";
}

static std::string textOf(double value) {
  if (value != value)
    return "no default";
  char text[32]; // the shortest that reads back as the number
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

static std::string textOf(const plan::State &state) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << (state.master ? "master " : state.input ? "input " : "") << state.name;
  if (!state.metric)
    os << " : " << plan::name(state.dtype) << ' ' << plan::name(state.kind) << " = "
       << textOf(state.init);
  return text;
}

/// The states of a rule, or its metrics.
static std::vector<std::string> textsOf(const plan::Rule &rule, bool metrics) {
  std::vector<std::string> texts;
  for (const plan::State &state : rule.states)
    if (state.metric == metrics)
      texts.push_back(textOf(state));
  return texts;
}

template <typename Items> static auto named(const Items &items, StringRef name) {
  auto found = llvm::find_if(items, [&](const auto &item) { return item.name == name; });
  return found == items.end() ? nullptr : &*found;
}

namespace {
/// What the specification says, and what the library has.
struct Difference {
  std::string specified, found;
};
} // namespace

static std::optional<Difference> compare(const plan::Rule &specified, const plan::Rule &found,
                                         bool isOfModel) {
  std::string of = isOfModel ? " of the model" : " of optimizer '" + specified.name + "'";
  if (specified.hyperparameters != found.hyperparameters)
    return Difference{"hyperparameters " + textOf(specified.hyperparameters) + of,
                      textOf(found.hyperparameters)};
  for (bool metrics : {false, true}) {
    std::vector<std::string> states = textsOf(specified, metrics), other = textsOf(found, metrics);
    if (states != other)
      return Difference{(metrics ? "metrics " : "states ") + textOf(states) + of, textOf(other)};
  }
  if (specified.definition != found.definition)
    return Difference{"the formulas" + of, "others"};
  return std::nullopt;
}

static std::optional<Difference> compare(const plan::Plan &specified, const plan::Route &route,
                                         const plan::Plan &library, const plan::Route &found) {
  const plan::Rule &rule = specified.rules[route.rule];
  const std::string &other = library.rules[found.rule].name;
  std::string of = " of route '" + route.name + "'";
  if (other != rule.name)
    return Difference{"optimizer '" + rule.name + "'" + of, "'" + other + "'"};
  for (auto [name, value, usual] :
       llvm::zip(rule.hyperparameters, route.defaults, found.defaults)) {
    bool none = value != value, otherNone = usual != usual; // NaN: the trainer must set it
    if (none != otherNone || (!none && value != usual))
      return Difference{name + " = " + textOf(value) + of, textOf(usual)};
  }
  if (route.missingGrad != found.missingGrad)
    return Difference{"missing_grad = " + std::string(plan::name(route.missingGrad)) + of,
                      std::string(plan::name(found.missingGrad))};
  return std::nullopt;
}

/// Compares rules and routes by name, both ways, and then the route and blocks of each parameter.
static std::optional<Difference> compare(const plan::Plan &specified, const plan::Plan &library) {
  for (const plan::Rule &rule : specified.rules) {
    const plan::Rule *found = named(library.rules, rule.name);
    bool isOfModel =
        specified.model >= 0 &&
        &rule ==
            &specified.rules[specified.routes[specified.parameters[specified.model].route].rule];
    if (!found)
      return Difference{isOfModel ? "a model" : "optimizer '" + rule.name + "'",
                        isOfModel ? "none" : "none of that name"};
    if (auto difference = compare(rule, *found, isOfModel))
      return difference;
  }
  for (const plan::Route &route : specified.routes) {
    const plan::Route *found = named(library.routes, route.name);
    if (!found)
      return Difference{"route '" + route.name + "'", "none of that name"};
    if (auto difference = compare(specified, route, library, *found))
      return difference;
  }
  for (const plan::Route &route : library.routes)
    if (!named(specified.routes, route.name))
      return Difference{"no route '" + route.name + "'", "one"};
  llvm::StringMap<const plan::Parameter *> others;
  for (const plan::Parameter &parameter : library.parameters)
    others[parameter.name] = &parameter;
  for (const plan::Parameter &parameter : specified.parameters) {
    auto found = others.find(parameter.name);
    // A parameter that only one plan has is compared with the manifest (LoadedLibrary).
    if (found == others.end())
      continue;
    const std::string &route = specified.routes[parameter.route].name,
                      &other = library.routes[found->second->route].name;
    if (other != route)
      return Difference{"route '" + route + "' for parameter '" + parameter.name + "'",
                        "'" + other + "'"};
    // Compares only blocks that a specification sets. LoadedLibrary compares the manifest's blocks.
    const plan::Group &group = specified.groups[parameter.group],
                      &compiled = library.groups[found->second->group];
    if (group.flattenSpecified != compiled.flattenSpecified ||
        (group.flattenSpecified && group.flatten != compiled.flatten))
      return Difference{
          std::string(group.flattenSpecified ? "its flattened axes" : "no flattened axes") +
              " for parameter '" + parameter.name + "'",
          group.flattenSpecified && compiled.flattenSpecified ? "others"
          : group.flattenSpecified                            ? "none of a specification"
                                                              : "those of a specification"};
    if (group.specified != compiled.specified ||
        (group.specified && group.division != compiled.division))
      return Difference{std::string(group.specified ? "its blocks" : "no blocks") +
                            " for parameter '" + parameter.name + "'",
                        group.specified && compiled.specified ? "others"
                        : group.specified                     ? "none of a specification"
                                                              : "those of a specification"};
  }
  return std::nullopt;
}

bool driver::matchDefinition(const plan::Plan &specified, StringRef specification,
                             const plan::Plan &library, StringRef path, Report &report) {
  std::optional<Difference> difference = compare(specified, library);
  if (!difference)
    return true;
  report.error(path, "expected " + difference->specified + " as in " + specification + ", found " +
                         difference->found +
                         ": the library was compiled from another specification");
  report.hint("compile the library again, or name the specification that it was compiled from");
  return false;
}
