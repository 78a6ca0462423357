// The global tensors that `stepc run` feeds to a step, matched with the
// manifest.

#ifndef STEPC_FRONTENDS_MANIFEST_RUNTENSORS_H
#define STEPC_FRONTENDS_MANIFEST_RUNTENSORS_H

#include "frontends/manifest/Manifest.h"
#include "frontends/manifest/Safetensors.h"

namespace stepc::manifest {

/// What a file holds for one parameter. Views belong to the file.
struct RunTensors {
  /// "param:NAME": of the manifest's shape and dtype.
  const TensorView *parameter = nullptr;
  /// One per step, of the manifest's shape and gradient dtype: "grad:NAME@K" if there is one (K from 1),
  /// otherwise "grad:NAME", otherwise null.
  std::vector<const TensorView *> gradients;
  /// "state:NAME:STATE" by STATE, in the file's order; their types and shapes
  /// are for the caller, who knows the rule, to check.
  std::vector<std::pair<std::string, const TensorView *>> states;
};

/// One entry per manifest parameter, in its order. Names may be a parameter's
/// name or an alias, with or without wrappers' prefixes. Errors: a parameter
/// without its tensor, a shape or dtype other than the manifest's, two tensors
/// for one thing, a name that fits nothing or (a gradient's) two parameters, a
/// gradient for a step past `numSteps`; and a gradient that is absent,
/// unless `allowMissingGradients` or the parameter requires none. Returns
/// nothing if there was an error. `numSteps` is at least 0.
std::optional<std::vector<RunTensors>> collectRunTensors(const SafetensorsFile &file,
                                                         const Manifest &manifest, int64_t numSteps,
                                                         bool allowMissingGradients,
                                                         ErrorList &errors);

/// Empty, or that a tensor has another shape than its parameter; of a partial gradient it has all
/// contributions, one after the other. `whose` shape it is reads as "the manifest's".
std::string wrongShape(const TensorView &view, const Parameter &parameter, int64_t contributions,
                       llvm::StringRef whose);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_RUNTENSORS_H
