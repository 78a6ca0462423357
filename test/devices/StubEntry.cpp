//===- StubEntry.cpp - Finds the driver that is the host ---------------------===//
//
// In place of runtime/devices/gpu/CudaDriver.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Text.h"
#include "test/devices/Stub.h"

#include <dlfcn.h>

namespace stepc::runtime::cuda {

const Driver *driver(std::string &problem) {
  void *library = dlopen(STEPC_STUB_DRIVER, RTLD_NOW | RTLD_LOCAL);
  auto entry = reinterpret_cast<const StubDriver *(*)()>(
      library ? dlsym(library, "stepc_stub_driver") : nullptr);
  problem = entry ? "" : dlerror();
  return entry ? entry()->functions : nullptr;
}

std::string describe(const Driver &driver, Result result) {
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  return format("%s, %s", name, text);
}

} // namespace stepc::runtime::cuda
