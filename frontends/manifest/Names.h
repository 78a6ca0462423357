// Names of parameters, with and without the components that wrappers add, and
// names of tensors in files.

#ifndef STEPC_FRONTENDS_MANIFEST_NAMES_H
#define STEPC_FRONTENDS_MANIFEST_NAMES_H

#include "dialects/optim/NamePattern.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace stepc::manifest {

/// The name without the components that wrappers add, wherever they stand in
/// the dotted path: `module.` (DDP), `_orig_mod.` (torch.compile),
/// `_checkpoint_wrapped_module.`, `_fsdp_wrapped_module.` (FSDP1) and
/// `_forward_module.` (Lightning Fabric). The last component is never a
/// wrapper: "module" stays "module".
std::string canonicalName(llvm::StringRef name);

/// Whether the pattern matches the name as written or its canonical form.
bool matchesParameter(const NamePattern &pattern, llvm::StringRef name);

/// The name of a tensor in a file for `stepc run` or `stepc manifest`, taken apart.
struct TensorName {
  enum class Role { Parameter, Gradient, State, Metric, Input, Other };
  Role role = Role::Other;
  /// The parameter's name; for Other the whole name.
  std::string parameter;
  /// For Gradient: the number of its optimizer step, from 1; 0 if it serves every step ("grad:w").
  int64_t step = 0;
  /// For State and Metric: the name of the state or metric.
  std::string state;

  bool operator==(const TensorName &) const = default;
};

/// Splits "param:NAME", "grad:NAME", "grad:NAME@STEP", "state:NAME:STATE" and "metric:NAME:METRIC";
/// STATE and METRIC are what follows the last colon, STEP the digits after the last '@'.
/// Anything else is Other.
TensorName parseTensorName(llvm::StringRef name);

/// The error for a gradient "grad:w@2" if parameters "w" and "w@2" both exist:
/// stepc does not guess which is meant.
std::string ambiguousGradient(llvm::StringRef tensor);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_NAMES_H
