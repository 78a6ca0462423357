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
  const StubDriver *found = loadStubDriver(STEPC_STUB_DRIVER);
  problem = found ? "" : dlerror();
  return found ? found->functions : nullptr;
}

std::string describe(const Driver &driver, Result result) {
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  return format("%s, %s", name, text);
}

} // namespace stepc::runtime::cuda
