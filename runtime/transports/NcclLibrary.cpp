//===- NcclLibrary.cpp - NCCL, loaded when it is needed ---------------------===//

#include "runtime/transports/NcclLibrary.h"
#include "runtime/text/Text.h"

#include <dlfcn.h>
#include <type_traits>

namespace stepc::runtime::nccl {
namespace {

/// 2.27.3. Before it splitting a communicator that shares its resources could write over memory (2.27.3)
/// and hang (2.26.2), and a send that does not block could be lost (2.24.3), as NCCL's release notes say.
constexpr int kLeastVersion = 22703;
constexpr const char *kName = "libnccl.so.2";

std::string versionText(int code) {
  return format("%d.%d.%d", code / 10000, code % 10000 / 100, code % 100);
}

struct Loaded {
  Nccl nccl{};
  std::string problem;
  Loaded() {
    // NCCL's functions if the process shows them; otherwise the library of that name, which may be loaded
    // already.
    bool isVisible = dlsym(RTLD_DEFAULT, "ncclGetVersion");
    void *library = isVisible ? RTLD_DEFAULT : dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (!isVisible && !library) {
      problem = format("expected NCCL, found no %s (%s)", kName, dlerror());
      return;
    }
    auto load = [&](auto &function, const char *name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (!function && problem.empty())
        problem = format("expected the function %s in NCCL, found none", name);
    };
#define STEPC_LOAD(name) load(nccl.name, #name)
    STEPC_LOAD(ncclGetVersion);
    int version = 0;
    // Checked before the other functions, because an older NCCL may lack some.
    if (problem.empty() && (nccl.ncclGetVersion(&version) != 0 || version < kLeastVersion))
      problem = format("expected NCCL %s or later, found %s", versionText(kLeastVersion).c_str(),
                       versionText(version).c_str());
    STEPC_LOAD(ncclGetUniqueId);
    STEPC_LOAD(ncclGetErrorString);
    STEPC_LOAD(ncclGetLastError);
    STEPC_LOAD(ncclCommInitRankConfig);
    STEPC_LOAD(ncclCommSplit);
    STEPC_LOAD(ncclCommFinalize);
    STEPC_LOAD(ncclCommDestroy);
    STEPC_LOAD(ncclCommAbort);
    STEPC_LOAD(ncclCommGetAsyncError);
    STEPC_LOAD(ncclGroupStart);
    STEPC_LOAD(ncclGroupEnd);
    STEPC_LOAD(ncclSend);
    STEPC_LOAD(ncclRecv);
    STEPC_LOAD(ncclAllGather);
    STEPC_LOAD(ncclReduceScatter);
    STEPC_LOAD(ncclAllReduce);
#undef STEPC_LOAD
  }
};

} // namespace

const Nccl *nccl(std::string &problem) {
  static const Loaded loaded;
  problem = loaded.problem;
  return problem.empty() ? &loaded.nccl : nullptr;
}

std::string describe(const Nccl &nccl, Result result) {
  const char *text = nccl.ncclGetErrorString(result), *last = nccl.ncclGetLastError(nullptr);
  return format("%s%s%s", text ? text : "no text", last && *last ? ": " : "", last ? last : "");
}

} // namespace stepc::runtime::nccl
