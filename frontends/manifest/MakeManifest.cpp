#include "frontends/manifest/MakeManifest.h"
#include "frontends/manifest/ManifestCheck.h"
#include "frontends/manifest/Names.h"
#include "frontends/manifest/RunTensors.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <map>
#include <numeric>

namespace stepc::manifest {
namespace {

using Role = TensorName::Role;

struct Rule {
  std::string option;
  NamePattern pattern;
  std::vector<Placement> placements;
  bool used = false;
};

struct BatchPattern {
  NamePattern pattern;
  bool used = false;
};

class Maker {
public:
  Maker(const SafetensorsFile &file, const MakeManifestOptions &options, ErrorList &errors)
      : file(file), options(options), errors(errors) {}

  std::optional<Manifest> make() {
    size_t before = errors.size();
    readMesh();
    readRules("--place", options.place, /*ofGradients=*/false, rules);
    readRules("--place-grad", options.placeGrad, /*ofGradients=*/true, gradRules);
    for (const std::string &text : options.batch)
      if (std::optional<NamePattern> pattern = readPattern("--batch '" + text + "'", text))
        batch.push_back({*pattern});
    collectParameters();
    // If a rule has errors, placing parameters by it would only repeat them.
    if (errors.size() == before)
      for (Parameter &parameter : manifest.parameters)
        place(parameter);
    if (errors.size() == before)
      checkUse();
    if (errors.size() != before)
      return std::nullopt;
    return std::move(manifest);
  }

private:
  void readMesh();
  void readRules(const std::string &option, const std::vector<std::string> &texts, bool ofGradients,
                 std::vector<Rule> &list);
  std::optional<NamePattern> readPattern(const std::string &at, llvm::StringRef text);
  void collectParameters();
  void collectGradient(const TensorView &view, const TensorName &name);
  static Rule *lastMatch(std::vector<Rule> &list, const Parameter &parameter);
  void place(Parameter &parameter);
  void checkGradientShapes(const Parameter &parameter);
  void checkUse();

  const SafetensorsFile &file;
  const MakeManifestOptions &options;
  ErrorList &errors;
  Manifest manifest;
  std::vector<Rule> rules, gradRules;
  std::map<std::string, size_t> parameterAt;
  std::map<std::string, std::string> fileOf; ///< by name of the parameter
  /// By name of the parameter: the tensors of its gradients. All must have the type of the first.
  std::map<std::string, std::vector<const TensorView *>> gradients;
  std::vector<BatchPattern> batch;
};

void Maker::readMesh() {
  std::string at = "--mesh '" + options.mesh + "'";
  Mesh &mesh = manifest.meshes.emplace_back();
  mesh.name = "mesh";
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(options.mesh).split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [name, size] = part.split('=');
    mesh.axes.push_back(name.trim(" ").str());
    int64_t &extent = mesh.sizes.emplace_back(0);
    if (mesh.axes.back().empty() || size.trim(" ").getAsInteger(10, extent) || extent < 1 ||
        extent > kMaxMeshRanks)
      return errors.addUsage(
          at, "expected axes as NAME=SIZE with sizes from 1 to 1048576, found '" + part + "'");
    if (std::string wrong = text::checkName(mesh.axes.back(), "an axis's name"); !wrong.empty())
      return errors.addUsage(at, wrong);
  }
  if (mesh.axes.size() <= kMaxMeshAxes) {
    int64_t ranks = 1;
    for (int64_t extent : mesh.sizes)
      ranks = ranks > kMaxMeshRanks ? ranks : ranks * extent;
    mesh.ranks.resize(std::min(ranks, kMaxMeshRanks));
    std::iota(mesh.ranks.begin(), mesh.ranks.end(), 0);
  }
  checkMesh(mesh,
            [&](const std::string &, const std::string &message) { errors.addUsage(at, message); });
}

void Maker::readRules(const std::string &option, const std::vector<std::string> &texts,
                      bool ofGradients, std::vector<Rule> &list) {
  for (const std::string &text : texts) {
    std::string at = option + " '" + text + "'";
    // A pattern may contain '=', placements do not.
    size_t split = text.rfind('=');
    if (split == std::string::npos || split == 0) {
      errors.addUsage(at, "expected PATTERN=PLACEMENT,..., found no pattern and '='");
      continue;
    }
    std::optional<NamePattern> pattern = readPattern(at, llvm::StringRef(text).take_front(split));
    if (!pattern)
      continue;
    Rule rule{at, *pattern, {}};
    std::string error;
    for (const std::string &one : splitPlacements(llvm::StringRef(text).drop_front(split + 1)))
      if (std::optional<Placement> placement = parsePlacement(one, ofGradients, error))
        rule.placements.push_back(*placement);
      else
        errors.addUsage(at, error);
    size_t axes = manifest.meshes[0].axes.size();
    if (error.empty() && rule.placements.size() != axes)
      errors.addUsage(at, "expected " + llvm::Twine(axes) +
                              " placements, one for each axis of --mesh, "
                              "found " +
                              llvm::Twine(rule.placements.size()));
    list.push_back(std::move(rule));
  }
}

std::optional<NamePattern> Maker::readPattern(const std::string &at, llvm::StringRef text) {
  NamePatternError error;
  std::optional<NamePattern> pattern = NamePattern::parse(text, error);
  if (!pattern)
    errors.addUsage(at, error.text());
  return pattern;
}

void Maker::collectParameters() {
  std::vector<const TensorView *> views;
  for (const TensorView &view : file.tensors())
    views.push_back(&view);
  llvm::sort(views, [](auto *a, auto *b) { return a->name < b->name; });
  bool prefixed = llvm::any_of(
      views, [](auto *view) { return parseTensorName(view->name).role != Role::Other; });

  for (const TensorView *view : views) {
    TensorName name = parseTensorName(view->name);
    if (prefixed && name.role == Role::Other)
      errors.add(view->file,
                 "expected a name that starts with param:, grad:, state:, input: or metric:, "
                 "as others in the file do, found '" +
                     view->name + "'");
    if (prefixed && name.role != Role::Parameter)
      continue;
    if (name.parameter.empty()) {
      errors.add(view->file, "expected a parameter's name, found '" + view->name + "'");
      continue;
    }
    std::optional<DType> dtype = toDType(view->type);
    if (!dtype)
      errors.add(view->file, "expected F32, BF16 or F16, found " + view->typeName, name.parameter);
    if (llvm::is_contained(view->shape, 0))
      errors.add(view->file, "expected a parameter with elements, found a dimension of size 0",
                 name.parameter);
    Parameter parameter;
    parameter.name = name.parameter;
    parameter.shape = view->shape;
    parameter.dtype = dtype.value_or(DType::F32);
    parameter.gradDType = options.gradDType.value_or(parameter.dtype);
    parameter.mesh = manifest.meshes[0].name;
    parameterAt[parameter.name] = manifest.parameters.size();
    fileOf[parameter.name] = view->file;
    manifest.parameters.push_back(std::move(parameter));
  }
  for (const TensorView *view : views)
    if (TensorName name = parseTensorName(view->name); name.role == Role::Gradient)
      collectGradient(*view, name);
  if (manifest.parameters.empty())
    errors.add(file.path(), prefixed ? "expected a tensor named param:NAME, found none"
                                     : "expected at least one tensor, found none");
  checkNames(manifest,
             [&](const std::string &, const std::string &message, const std::string &parameter) {
               errors.add(fileOf[parameter], message, parameter);
             });
}

void Maker::collectGradient(const TensorView &view, const TensorName &name) {
  // "grad:w@2" is the gradient of "w" at step 2. It may also be the gradient of
  // a parameter that is named "w@2".
  auto it = parameterAt.find(name.parameter);
  if (name.step > 0)
    if (auto whole = parameterAt.find(llvm::StringRef(view.name).drop_front(5).str());
        whole != parameterAt.end()) {
      if (it != parameterAt.end())
        return errors.add(view.file, ambiguousGradient(view.name));
      it = whole;
    }
  if (it == parameterAt.end())
    return errors.add(view.file, "expected a tensor 'param:" + name.parameter + "' for '" +
                                     view.name + "', found none");
  Parameter &parameter = manifest.parameters[it->second];
  std::optional<DType> dtype = toDType(view.type);
  if (!dtype)
    return errors.add(view.file,
                      "expected F32, BF16 or F16 in '" + view.name + "', found " + view.typeName,
                      parameter.name);
  std::vector<const TensorView *> &all = gradients[parameter.name];
  all.push_back(&view);
  if (all.size() > 1 && parameter.gradDType != *dtype)
    return errors.add(view.file,
                      "expected one dtype in all gradients (" +
                          llvm::StringRef(plan::name(parameter.gradDType)) + " in '" +
                          all.front()->name + "'), found " + llvm::StringRef(plan::name(*dtype)) +
                          " in '" + view.name + "'",
                      parameter.name);
  parameter.gradDType = *dtype;
}

Rule *Maker::lastMatch(std::vector<Rule> &list, const Parameter &parameter) {
  Rule *last = nullptr;
  for (Rule &rule : list)
    if (matchesParameter(rule.pattern, parameter.name)) {
      rule.used = true;
      last = &rule;
    }
  return last;
}

void Maker::place(Parameter &parameter) {
  Rule *holding = lastMatch(rules, parameter), *ofGradient = lastMatch(gradRules, parameter);
  if (!holding)
    return errors.addUsage(fileOf[parameter.name],
                           "expected a --place pattern that matches each parameter "
                           "(--place '*=R' with one R per axis keeps the rest whole), "
                           "found none",
                           parameter.name);
  for (BatchPattern &stack : batch)
    if (parameter.shape.size() >= 3 && matchesParameter(stack.pattern, parameter.name)) {
      stack.used = true;
      parameter.batchAxes = parameter.shape.size() - 2;
    }
  size_t before = errors.size();
  parameter.placements = parameter.statePlacements = holding->placements;
  parameter.gradPlacements = (ofGradient ? ofGradient : holding)->placements;
  checkShape(parameter, [&](const std::string &, const std::string &message) {
    errors.add(fileOf[parameter.name], message, parameter.name);
  });
  checkPlacements(parameter, manifest.meshes[0], /*buckets=*/nullptr,
                  [&](const std::string &at, const std::string &message) {
                    bool isGradient = ofGradient && llvm::StringRef(at).starts_with("/grad");
                    errors.addUsage((isGradient ? ofGradient : holding)->option, message,
                                    parameter.name);
                  });
  // The contributions are unknown if a placement is wrong.
  if (errors.size() == before)
    checkGradientShapes(parameter);
}

void Maker::checkGradientShapes(const Parameter &parameter) {
  int64_t count = parameter.contributions(manifest.meshes[0]).count;
  for (const TensorView *view : gradients[parameter.name]) {
    std::string wrong = wrongShape(*view, parameter, count, "the parameter's");
    if (wrong.empty())
      continue;
    if (count == 1 && llvm::ArrayRef(view->shape).drop_front(!view->shape.empty()) ==
                          llvm::ArrayRef(parameter.shape))
      wrong += "; --place-grad 'PATTERN=P(sum)', with a placement for each axis, says that ranks "
               "have contributions";
    errors.add(view->file, wrong, parameter.name);
  }
}

void Maker::checkUse() {
  for (const std::vector<Rule> *list : {&rules, &gradRules})
    for (const Rule &rule : *list)
      if (!rule.used)
        errors.addUsage(rule.option,
                        "expected a pattern that matches a parameter, found none for '" +
                            rule.pattern.text() + "'");
  for (const BatchPattern &stack : batch)
    if (!stack.used)
      errors.addUsage(("--batch '" + stack.pattern.text() + "'").str(),
                      "expected a pattern that matches a parameter of three or more "
                      "dimensions, found "
                      "none");
}

} // namespace

std::optional<Manifest> makeManifest(const SafetensorsFile &file,
                                     const MakeManifestOptions &options, ErrorList &errors) {
  return Maker(file, options, errors).make();
}

} // namespace stepc::manifest
