// `stepc manifest`: a manifest from the header of a safetensors file and
// placement rules.

#ifndef STEPC_FRONTENDS_MANIFEST_MAKEMANIFEST_H
#define STEPC_FRONTENDS_MANIFEST_MAKEMANIFEST_H

#include "frontends/manifest/Safetensors.h"

namespace stepc::manifest {

struct MakeManifestOptions {
  /// "dp=2,tp=2": axes, outermost first; ranks are 0, 1, ... row-major. The
  /// mesh is called "mesh".
  std::string mesh;
  /// "PATTERN=S(0),R": a pattern of parameter names (dialects/optim/NamePattern.h) and one
  /// placement per axis. The last rule whose pattern matches is used. A parameter
  /// that no rule matches is an error, and so is a rule that matches no parameter.
  std::vector<std::string> place;
  /// Patterns: in a matching parameter of three or more dimensions the last two
  /// are the matrix, and the leading ones are batch axes. Parameters of fewer
  /// dimensions have none. A pattern that gives no parameter batch axes is an error.
  std::vector<std::string> batch;
  /// The type of gradients for which the file has no `grad:` tensor; by default
  /// the parameter's type.
  std::optional<DType> gradDType;
  /// Like `place`, for gradients, which may be partial. If no pattern matches, a gradient is placed as its
  /// parameter.
  std::vector<std::string> placeGrad = {};
};

/// Makes a manifest. If a file has a tensor "param:NAME", these tensors are the parameters (their prefix
/// dropped). "grad:NAME" or "grad:NAME@STEP" then gives a gradient's type, and its shape is checked. The
/// tensor of a partial gradient holds the contributions of all ranks, as in collectRunTensors.
/// "state:NAME:STATE" is ignored, and any other name is an error. In a file without prefixed names every
/// tensor is a parameter. Parameters are ordered by name. Returns nothing if there was an error.
std::optional<Manifest> makeManifest(const SafetensorsFile &file,
                                     const MakeManifestOptions &options, ErrorList &errors);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_MAKEMANIFEST_H
