// The global tensors that `stepc run` feeds to a step, matched with the
// manifest.

#ifndef STEPC_FRONTENDS_MANIFEST_RUNTENSORS_H
#define STEPC_FRONTENDS_MANIFEST_RUNTENSORS_H

#include "frontends/manifest/Manifest.h"
#include "frontends/manifest/Safetensors.h"

#include <map>

namespace stepc::manifest {

/// "state:NAME:STATE" by STATE, in the file's order.
using States = std::vector<std::pair<std::string, const TensorView *>>;

/// The tensors of a file for one parameter. The file owns the views.
struct RunTensors {
  /// "param:NAME". It has the manifest's shape and dtype.
  const TensorView *parameter = nullptr;
  /// One per optimizer step K from 1: "grad:NAME@K" if the file has it, otherwise "grad:NAME", otherwise
  /// null. They have the manifest's gradient dtype and the shape that wrongShape accepts.
  std::vector<const TensorView *> gradients;
  /// The caller, who knows the rule, must check their types and shapes.
  States states;
  /// "input:NAME:INPUT@K" by INPUT and K; K is 0 for "input:NAME:INPUT", which is that of every other step.
  /// The caller must check their types and shapes, as those of states.
  std::map<std::pair<std::string, int64_t>, const TensorView *> inputs;

  /// The tensor of an input for optimizer step K, from 1. Null if there is none.
  const TensorView *input(const std::string &name, int64_t step) const {
    auto found = inputs.find({name, step});
    if (found == inputs.end())
      found = inputs.find({name, 0});
    return found == inputs.end() ? nullptr : found->second;
  }
};

/// The name of the model among tensors: "state:model:step".
inline constexpr llvm::StringLiteral kModelName = "model";

/// Returns one entry per parameter of the manifest, in the manifest's order.
/// Tensors may be named by the parameter's name or an alias, with or without
/// wrappers' prefixes. Errors: a parameter without its tensor; a shape or dtype
/// other than the manifest's; two tensors of one meaning; a tensor of no known
/// parameter; a gradient's name that fits two parameters; a gradient for a step
/// past `numSteps`. A missing gradient is an error unless `allowMissingGradients`
/// is set or the parameter is frozen. States of the model go to `modelStates`;
/// with null they are tensors of no known parameter. Returns nothing if there was
/// an error. `numSteps` must be at least 0.
std::optional<std::vector<RunTensors>>
collectRunTensors(const SafetensorsFile &file, const Manifest &manifest, int64_t numSteps,
                  bool allowMissingGradients, ErrorList &errors, States *modelStates = nullptr);

/// Returns "" if a tensor has its parameter's shape, otherwise the error. With more than one contribution the
/// tensor must hold all of them along a new first axis. `whose` reads as "the manifest's" (shape).
std::string wrongShape(const TensorView &view, const Parameter &parameter, int64_t contributions,
                       llvm::StringRef whose);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_RUNTENSORS_H
