#include "frontends/manifest/RunTensors.h"
#include "frontends/manifest/Names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <set>

namespace stepc::manifest {
namespace {

using Role = TensorName::Role;

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(shape))
    text += (i ? ", " : "") + std::to_string(size);
  return text + "]";
}

} // namespace

std::string wrongShape(const TensorView &view, const Parameter &parameter, int64_t contributions,
                       llvm::StringRef whose) {
  std::vector<int64_t> shape = parameter.shape;
  if (contributions > 1)
    shape.insert(shape.begin(), contributions);
  if (view.shape == shape)
    return "";
  return ("expected " + whose + " shape " + shapeText(parameter.shape)).str() +
         (contributions > 1 ? " for each of " + std::to_string(contributions) + " contributions, " +
                                  shapeText(shape) + ","
                            : "") +
         " in '" + view.name + "', found " + shapeText(view.shape);
}

std::optional<std::vector<RunTensors>> collectRunTensors(const SafetensorsFile &file,
                                                         const Manifest &manifest, int64_t numSteps,
                                                         bool allowMissingGradients,
                                                         ErrorList &errors, States *modelStates) {
  size_t before = errors.size();
  std::vector<RunTensors> result(manifest.parameters.size());
  llvm::StringMap<size_t> parameterAt;
  for (auto [i, parameter] : llvm::enumerate(manifest.parameters)) {
    parameterAt[canonicalName(parameter.name)] = i;
    for (const std::string &alias : parameter.aliases)
      parameterAt[canonicalName(alias)] = i;
  }
  auto check = [&](const TensorView &view, const Parameter &parameter, DType dtype,
                   bool isGradient) {
    const Mesh *mesh = manifest.findMesh(parameter.mesh);
    int64_t count = isGradient && mesh ? parameter.contributions(*mesh).count : 1;
    if (std::string wrong = wrongShape(view, parameter, count, "the manifest's"); !wrong.empty())
      errors.add(view.file, wrong, parameter.name);
    if (view.type != toTensorType(dtype))
      errors.add(view.file,
                 "expected the manifest's dtype " + toString(toTensorType(dtype)) + " in '" +
                     view.name + "', found " + view.typeName,
                 parameter.name);
  };

  // The key is the parameter's index and the optimizer step, which is 0 for a gradient of every step.
  std::map<std::pair<size_t, int64_t>, const TensorView *> gradients;
  std::set<std::pair<size_t, std::string>> statesSeen;
  std::vector<std::pair<const TensorView *, llvm::StringRef>>
      late; // given for steps after the last
  int64_t lastStep = 0;
  for (const TensorView &view : file.tensors()) {
    TensorName name = parseTensorName(view.name);
    // A run that goes on from the output of another ignores the metrics of steps before it.
    if (name.role == Role::Metric)
      continue;
    auto it = parameterAt.find(canonicalName(name.parameter));
    if (modelStates && it == parameterAt.end() && name.role == Role::State &&
        name.parameter == kModelName) {
      modelStates->emplace_back(name.state, &view);
      continue;
    }
    // "grad:w@2" may belong to a parameter that is really called "w@2".
    if (name.role == Role::Gradient && name.step > 0) {
      llvm::StringRef whole = llvm::StringRef(view.name).drop_front(5);
      if (auto exact = parameterAt.find(canonicalName(whole)); exact != parameterAt.end()) {
        if (it != parameterAt.end()) {
          errors.add(view.file, ambiguousGradient(view.name));
          continue;
        }
        it = exact;
        name.step = 0;
      }
    }
    if (name.role == Role::Other || it == parameterAt.end()) {
      errors.add(view.file, "expected param:NAME, grad:NAME, grad:NAME@STEP, state:NAME:STATE or "
                            "input:NAME:INPUT of a parameter of the manifest, found '" +
                                view.name + "'");
      continue;
    }
    size_t index = it->second;
    const Parameter &parameter = manifest.parameters[index];
    if (name.step > numSteps) {
      late.emplace_back(&view, parameter.name);
      lastStep = std::max(lastStep, name.step);
    }
    bool isFirst = true;
    if (name.role == Role::Parameter) {
      isFirst = !result[index].parameter;
      result[index].parameter = &view;
      check(view, parameter, parameter.dtype, false);
    } else if (name.role == Role::Gradient) {
      isFirst = gradients.try_emplace({index, name.step}, &view).second;
      check(view, parameter, parameter.gradDType, true);
    } else if (name.role == Role::Input) {
      isFirst = result[index].inputs.try_emplace({name.state, name.step}, &view).second;
    } else {
      isFirst = statesSeen.insert({index, name.state}).second;
      if (view.type == TensorType::Unsupported)
        errors.add(view.file,
                   "expected F64, F32, BF16, F16 or I64 in '" + view.name + "', found " +
                       view.typeName,
                   parameter.name);
      result[index].states.emplace_back(name.state, &view);
    }
    if (!isFirst)
      errors.add(view.file,
                 "expected one tensor for each name of the parameter, found a "
                 "second, '" +
                     view.name + "'",
                 parameter.name);
  }

  if (!late.empty()) {
    auto [view, parameter] = late.front();
    errors.add(view->file,
               "expected tensors of steps 1 to " + llvm::Twine(numSteps) + ", found '" +
                   view->name + "'" +
                   (late.size() > 1 ? " and " + std::to_string(late.size() - 1) + " more" : "") +
                   ": --steps " + llvm::Twine(lastStep) + " takes all steps that have some",
               parameter);
  }
  for (auto [i, parameter] : llvm::enumerate(manifest.parameters)) {
    if (!result[i].parameter)
      errors.add(file.path(), "expected a tensor 'param:" + parameter.name + "', found none",
                 parameter.name);
    bool mayMiss = allowMissingGradients || !parameter.requiresGrad;
    for (int64_t step = 1; step <= numSteps; ++step) {
      auto it = gradients.find({i, step});
      if (it == gradients.end())
        it = gradients.find({i, 0});
      result[i].gradients.push_back(it == gradients.end() ? nullptr : it->second);
      if (it == gradients.end() && !mayMiss) {
        errors.add(file.path(),
                   "expected a tensor 'grad:" + parameter.name + "' or 'grad:" + parameter.name +
                       "@" + llvm::Twine(step) + "', found none",
                   parameter.name);
        break; // later steps would give the same error
      }
    }
  }
  if (errors.size() != before)
    return std::nullopt;
  return result;
}

} // namespace stepc::manifest
