//===- LoadedLibrary.cpp - A compiled library and its values ---------------===//

#include "tools/stepc/LoadedLibrary.h"

#include "passes/kernels/Target.h"
#include "runtime/core/Chip.h"
#include "runtime/geometry/Geometry.h"
#include "tools/stepc/MatchDefinition.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;
using llvm::Twine;
using manifest::TensorType;

bool LoadedLibrary::refuse(const std::string &path, const Twine &message) {
  report.error(path, message);
  return false;
}

bool LoadedLibrary::load(const std::string &path) {
  if (!open(path))
    return false;
  if (run.specified && !matchDefinition(*run.specified, command.input, plan, path, report))
    return false;
  return matchParameters(path);
}

bool LoadedLibrary::open(const std::string &path) {
  file = LibraryFile::open(path, report);
  if (!file)
    return false;
  table = file->table;
  if (!chooseTarget(path))
    return false;
  auto read = file->planOf(*table, report);
  if (!read)
    return false;
  plan = std::move(*read);
  world = plan.world();
  return true;
}

/// Takes the table of the target that was asked for. If none was, or if this command has just compiled the
/// library, for one target, takes the table of the first target that steps on this machine.
bool LoadedLibrary::chooseTarget(const std::string &path) {
  const stepc_library *first = table;
  if (command.targets.empty() || command.library.empty()) {
    table = stepc_library_for(first, STEPC_DEVICE_CPU);
    return table ||
           refuse(path, "expected a target that steps on this machine, cpu, emulated or interpret, "
                        "found " +
                            Twine(first->target));
  }
  StringRef asked = command.targets.front(), kind = asked.split(':').first;
  while (table && table->target != kind)
    table = table->next;
  llvm::SetVector<StringRef> kinds; // a set, because several targets may be of kind cuda
  for (const stepc_library *one = first; one; one = one->next)
    kinds.insert(one->target);
  if (!table)
    return refuse(path, "expected one of the library's targets (" + llvm::join(kinds, ", ") +
                            ") after --target, found '" + asked + "'");
  if (kind == asked)
    return true;
  std::string own = table->chip, other = llvm::cantFail(chipOfTarget(asked), "it was checked");
  if (own == other)
    return true;
  // Features are only told if the chips have equal names.
  if (std::string a = runtime::shortChip(own), b = runtime::shortChip(other); a != b) {
    own = std::move(a);
    other = std::move(b);
  }
  return refuse(path, "expected the chip of the library's target (" + Twine(own) +
                          ") after --target, found " + other);
}

/// Finds the manifest's parameter for each of the library's parameters, and refuses any difference.
bool LoadedLibrary::matchParameters(const std::string &path) {
  std::vector<bool> used(run.names.size());
  if (plan.model >= 0 && plan.model + 1 != int64_t(plan.parameters.size()))
    return refuse(path, "expected the model behind all parameters, found it before some");
  for (const plan::Parameter &planned : plan.parameters) {
    if (&planned - plan.parameters.data() == plan.model)
      continue;
    auto found = run.indexOfName.find(planned.name);
    if (found == run.indexOfName.end())
      return refuse(path, "expected parameter '" + planned.name + "' in the manifest, found none");
    StepParameter &p = parameters.emplace_back();
    p.index = found->second;
    used[p.index] = true;
    p.group = &plan.groups[planned.group];
    p.rule = &plan.rules[p.group->rule];
    p.mesh = &plan.meshes[p.group->mesh];
    if (!matches(path, planned.name, *p.group, run.manifest->parameters[p.index]))
      return false;
    loadValues(p);
    std::vector<KnownState> known;
    for (size_t i = 0; i < p.states.size(); ++i)
      if (!isWatchState(p.stateNames[i]))
        known.push_back({p.stateNames[i], p.states[i].shape, p.states[i].type});
    if (!checkStates(run, p.index, known, report) || !checkInputs(run, p.index, p.inputs, report))
      return false;
    loadStates(p);
  }
  for (auto [index, parameter] : llvm::enumerate(run.manifest->parameters))
    if (parameter.requiresGrad && !used[index])
      return refuse(path, "expected parameter '" + parameter.name + "' in the library, found none");
  return true;
}

bool LoadedLibrary::matches(const std::string &path, const std::string &name,
                            const plan::Group &group, const manifest::Parameter &parameter) {
  auto differs = [&](StringRef what) {
    return refuse(path, "expected the manifest's " + what + " of parameter '" + name +
                            "', found another: the library was compiled for another manifest");
  };
  if (group.shape != parameter.shape || group.batchAxes != parameter.batchAxes)
    return differs("shape");
  // What the specification sets need not agree with the manifest.
  if (!group.flattenSpecified && group.flatten != parameter.flatten)
    return differs("flattened axes");
  if (!group.specified && group.division != parameter.blocks)
    return differs("blocks");
  if (group.parameterType != parameter.dtype || group.gradientType != parameter.gradDType)
    return differs("types");
  const plan::Mesh *mesh = run.manifest->findMesh(parameter.mesh);
  if (plan.meshes[group.mesh].sizes != mesh->sizes || plan.meshes[group.mesh].ranks != mesh->ranks)
    return differs("mesh");
  using plan::ShardsKind;
  for (auto [of, placements] : {std::pair(ShardsKind::Parameter, &parameter.placements),
                                std::pair(ShardsKind::Gradient, &parameter.gradPlacements),
                                std::pair(ShardsKind::State, &parameter.statePlacements)})
    if (group.placementsOf(of) != *placements)
      return differs(of == ShardsKind::Parameter  ? "placements"
                     : of == ShardsKind::Gradient ? "gradient placements"
                                                  : "state placements");
  return true;
}

void LoadedLibrary::loadValues(StepParameter &p) {
  const manifest::RunTensors &in = run.tensors[p.index];
  p.value = {
      plan::ValueKind::Full, in.parameter->type, p.group->shape, in.parameter->bytes.vec(), {}};
  p.steps = run.stepsTaken(p.index);
  for (const plan::State &state : p.rule->states) {
    if (!plan::stateExists(*p.group, state))
      continue;
    if (state.input) {
      p.inputs.push_back({state.name, geometry::stateShape(*p.group, state.kind),
                          manifest::toTensorType(state.dtype)});
      continue;
    }
    GlobalValue &value = (state.metric ? p.metrics : p.states).emplace_back();
    (state.metric ? p.metricNames : p.stateNames).push_back(state.name);
    value.kind = state.kind;
    value.type = manifest::toTensorType(state.dtype);
    value.shape = geometry::stateShape(*p.group, state.kind);
    value.bytes = filled(state.init, value.type, geometry::elements(value.shape));
    if (state.master) { // f32 of a bf16 or f16 parameter: exact
      std::vector<double> exact = toDoubles(*in.parameter);
      std::vector<float> copy(exact.begin(), exact.end());
      std::memcpy(value.bytes.data(), copy.data(), value.bytes.size());
    }
  }
}

void LoadedLibrary::loadStates(StepParameter &p) {
  for (size_t i = 0; i < p.states.size(); ++i)
    if (const manifest::TensorView *view = run.state(p.index, p.stateNames[i]))
      p.states[i].bytes = view->bytes.vec();
}
