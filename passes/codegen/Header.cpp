//===- Header.cpp - The C header of a library ------------------------------===//
//
// Parameters may have any names, C identifiers may not. Constants have identifiers made from the names, which
// are unique in the header. A comment behind each constant has the name itself.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/Codegen.h"
#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/TargetShape.h"
#include "stepc/stepc.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>

using namespace llvm;

namespace stepc::codegen {
namespace {

/// Identifiers that are unique in one header.
class Names {
public:
  explicit Names(StringRef prefix) : prefix(prefix) {}

  /// The identifier of a constant for `text`. `kind` stands before it: a word of the header and, for some
  /// constants, the name of the route or rule to which the constant belongs.
  std::string make(StringRef kind, StringRef text) {
    std::string name = prefix + "_";
    // A name without letters of its own (say "λ") still gets a constant.
    for (char c : (kind + text).str())
      name += isAlnum(c) ? c : '_';
    std::string unique = name;
    for (int64_t copy = 2; !used.insert(unique).second; ++copy)
      unique = name + "_" + std::to_string(copy);
    return unique;
  }

private:
  std::string prefix;
  llvm::StringSet<> used;
};

/// Changes text so that it cannot end a comment or begin another one.
std::string comment(StringRef text) {
  std::string safe;
  for (char c : text) {
    if (!safe.empty() && ((safe.back() == '*' && c == '/') || (safe.back() == '/' && c == '*')))
      safe += ' ';
    // A backslash at a line's end, or a trigraph, would be read by the preprocessor.
    safe += isPrint(c) && c != '\\' && c != '?' ? c : '.';
  }
  return safe;
}

/// The shortest text that reads back as the number.
std::string numberText(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

std::string shapeText(const plan::Group &group) {
  std::string text = "[";
  raw_string_ostream os(text);
  interleaveComma(group.shape, os);
  os << "] " << plan::name(group.parameterType);
  auto list = [&](const std::vector<plan::Placement> &placements) {
    for (const plan::Placement &placement : placements)
      os << ' ' << plan::toString(placement);
  };
  list(group.placements);
  if (!group.gradientPlacements.empty()) {
    os << ", gradient";
    list(group.gradientPlacements);
  }
  if (!group.statePlacements.empty()) {
    os << ", states";
    list(group.statePlacements);
  }
  return text;
}

/// One #define per entry, because an enumeration may not hold more than int in C11.
void define(raw_ostream &os, const std::string &name, int64_t value, StringRef note) {
  os << "#define " << name << ' ' << value;
  if (!note.empty())
    os << " /* " << comment(note) << " */";
  os << '\n';
}

/// A comment for the header that says for which targets `<name>_library()` and the libraries behind its
/// `next` are. Empty if the library has one target.
std::string entryComment(ArrayRef<Program> programs) {
  if (programs.size() == 1)
    return "";
  std::string text;
  for (const Program &program : programs.drop_front())
    text += (text.empty() ? "" : " and ") + programKey(program.plan.chip);
  return "/* For target " + programKey(programs[0].plan.chip) + "; for " + text +
         " by `next`. stepc_library_for() gives the first for a device. */\n";
}

} // namespace

std::string makeHeader(ArrayRef<Program> programs) {
  const plan::Plan &plan = programs[0].plan;
  std::string entry = kernels::entryName(plan.name);
  std::string prefix = kernels::symbolPrefix(plan.name);
  // Differs from the guards of stepc's own headers. Keeps the name's case: `Muon` and `muon` are two
  // libraries.
  std::string guard = "STEPC_GENERATED_" + prefix + "_H";
  Names names(prefix);

  std::string text;
  raw_string_ostream os(text);
  os << "/* " << comment(plan.name) << " - an optimizer step compiled by stepc; do not edit.\n"
     << " * ranks: " << plan.world().size() << '\n';
  for (const Program &program : programs)
    os << " * chip: " << comment(program.plan.chip)
       << "\n *   workspace per rank: " << program.plan.workspaceBytes() << " bytes, plan: 0x"
       << utohexstr(plan::hash(program.plan), /*LowerCase=*/true, 16) << '\n';
  os << " */\n#ifndef " << guard << "\n#define " << guard << "\n\n#include \"stepc/stepc.h\"\n\n"
     << "#if STEPC_ABI_VERSION != " << STEPC_ABI_VERSION
     << "\n#error \"expected a stepc.h of ABI version " << STEPC_ABI_VERSION << "\"\n#endif\n\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
     << entryComment(programs) << "const stepc_library *" << entry << "(void);\n\n"
     << "#ifdef __cplusplus\n}\n#endif\n\n";

  os << "/* Routes, and the hyperparameters of each in the order of a row of bind_hyperparameters. "
        "*/\n";
  for (auto [index, route] : enumerate(plan.routes)) {
    define(os, names.make("route_", route.name), int64_t(index), "");
    const plan::Rule &rule = plan.rules[route.rule];
    for (auto [i, name] : enumerate(rule.hyperparameters)) {
      std::string usual = "given by the trainer";
      if (i < route.defaults.size() && route.defaults[i] == route.defaults[i])
        usual = "default " + numberText(route.defaults[i]);
      define(os, names.make("route_" + route.name + "_", name), int64_t(i), usual);
    }
  }
  define(os, names.make("", "routes"), int64_t(plan.routes.size()), "");

  auto list = [&](auto belongs, StringRef prefix) {
    for (const plan::Rule &rule : plan.rules) {
      int64_t index = 0;
      for (const plan::State &state : rule.states)
        if (belongs(state))
          define(os, names.make(prefix.str() + rule.name + "_", state.name), index++,
                 (Twine(plan::name(state.dtype)) + " " + std::string(plan::name(state.kind)) +
                  (state.master ? ", none where the parameter is f32" : ""))
                     .str());
    }
  };
  os << "\n/* States, by rule, as state_info and bind_state count them where all exist. */\n";
  auto isMetric = [](const plan::State &state) { return state.metric; };
  auto isInput = [](const plan::State &state) { return state.input; };
  auto has = [&](auto belongs) {
    return any_of(plan.rules, [&](const plan::Rule &rule) { return any_of(rule.states, belongs); });
  };
  list([](const plan::State &state) { return state.isKept(); }, "state_");
  if (has(isMetric))
    os << "\n/* Metrics, by rule, as metric_info and metrics count them. */\n";
  list(isMetric, "metric_");
  if (has(isInput))
    os << "\n/* Inputs, by rule, as input_info and bind_input count them. */\n";
  list(isInput, "input_");

  os << "\n/* Parameters. */\n";
  for (auto [index, parameter] : enumerate(plan.parameters))
    define(os, names.make("parameter_", parameter.name), int64_t(index),
           parameter.name + ": " + shapeText(plan.groups[parameter.group]) + ", " +
               plan.routes[parameter.route].name);
  define(os, names.make("", "parameters"), int64_t(plan.parameters.size()), "");
  os << "\n#endif\n";
  return text;
}

} // namespace stepc::codegen
