//===- CublasLt.cpp - NVIDIA's cuBLASLt, loaded when it is needed -----------===//

#include "runtime/devices/gpu/CublasLt.h"

#include <dlfcn.h>
#include <optional>
#include <type_traits>

namespace stepc::runtime::cublaslt {
namespace {

constexpr const char *kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

/// Finds cuBLASLt: the one whose functions are visible, the one that the process has loaded under its name,
/// or a new one. Nothing if there is none.
std::optional<void *> find() {
  if (dlsym(RTLD_DEFAULT, "cublasLtGetVersion"))
    return RTLD_DEFAULT;
  for (int known : {RTLD_NOLOAD, 0})
    for (const char *name : kNames)
      if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | known))
        return library;
  return std::nullopt;
}

struct Loaded {
  CublasLt functions{};
  bool isComplete;
  Loaded() {
    std::optional<void *> library = find();
    isComplete = library.has_value();
    auto load = [&](auto &function, const char *name) {
      void *found = isComplete ? dlsym(*library, name) : nullptr;
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
      isComplete &= found != nullptr;
    };
#define STEPC_LOAD(name) load(functions.name, #name)
    STEPC_LOAD(cublasLtGetVersion);
    STEPC_LOAD(cublasLtGetStatusName);
    STEPC_LOAD(cublasLtCreate);
    STEPC_LOAD(cublasLtDestroy);
    STEPC_LOAD(cublasLtMatrixLayoutCreate);
    STEPC_LOAD(cublasLtMatrixLayoutDestroy);
    STEPC_LOAD(cublasLtMatrixLayoutSetAttribute);
    STEPC_LOAD(cublasLtMatmulDescCreate);
    STEPC_LOAD(cublasLtMatmulDescDestroy);
    STEPC_LOAD(cublasLtMatmulDescSetAttribute);
    STEPC_LOAD(cublasLtMatmulAlgoInit);
    STEPC_LOAD(cublasLtMatmulAlgoConfigSetAttribute);
    STEPC_LOAD(cublasLtMatmulAlgoCheck);
    STEPC_LOAD(cublasLtMatmul);
#undef STEPC_LOAD
  }
};

} // namespace

const CublasLt *cublasLt() {
  static const Loaded loaded;
  return loaded.isComplete ? &loaded.functions : nullptr;
}

} // namespace stepc::runtime::cublaslt
