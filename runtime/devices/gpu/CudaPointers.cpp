//===- CudaPointers.cpp - Whose memory pointers of the trainer's are --------===//

#include "runtime/devices/gpu/CudaPointers.h"
#include "runtime/text/Text.h"
#include "stepc/stepc.h"

namespace stepc::runtime::cuda {

/// Managed memory counts as the GPU's and as the host's. Other memory of the host is refused as the GPU's.
/// Some GPUs could read it, but slowly, so a trainer lends it only by mistake.
std::string CudaPointers::check(const void *pointer, int32_t memory, int ordinal) {
  auto address = reinterpret_cast<Address>(pointer);
  const void *&seen = known[address / kAlignment % known.size()];
  if (memory == STEPC_MEMORY_DEVICE && pointer && seen == pointer)
    return {};
  const int attributes[] = {kMemoryType, kIsManaged, kOrdinal};
  unsigned type = 0, isManaged = 0;
  int owner = -1;
  void *values[] = {&type, &isManaged, &owner};
  if (Result wrong = driver.cuPointerGetAttributes(3, attributes, values, address))
    return "asking whose a pointer is failed: " + describe(driver, wrong);
  bool isDevices = type == kDeviceMemory;
  if (isManaged || (memory == STEPC_MEMORY_HOST ? !isDevices : isDevices && owner == ordinal)) {
    if (memory == STEPC_MEMORY_DEVICE)
      seen = pointer;
    return {};
  }
  auto name = [](bool isOfGpu, int number) {
    return isOfGpu ? format("memory of GPU %d", number) : std::string("memory of the host");
  };
  return format("expected %s, found %s", name(memory != STEPC_MEMORY_HOST, ordinal).c_str(),
                name(isDevices, owner).c_str());
}

} // namespace stepc::runtime::cuda
