//===- StubDevice.cpp - The device `cuda` on a driver that is the host -------===//
//
// Stands in an archive of the runtime in place of `emulated` (CMakeLists.txt), so that any program for
// `emulated` runs through the code that drives a GPU.
//
//   STEPC_STUB_DEVICE  cuda: to the trainer, too, it is a GPU that has streams, when the library is loaded
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/gpu/GpuDevice.h"

#include <cstdlib>
#include <string_view>

static int32_t stubKind() {
  const char *given = std::getenv("STEPC_STUB_DEVICE");
  return given && given == std::string_view("cuda") ? STEPC_DEVICE_CUDA : STEPC_DEVICE_CPU;
}

// What a library of `emulated` names, on the trainer's side a CPU unless it is told otherwise.
#define stepc_device_cuda stepc_device_emulated
#define STEPC_DEVICE_CUDA stubKind()
#include "runtime/devices/gpu/Cuda.cpp"
#undef STEPC_DEVICE_CUDA
#undef stepc_device_cuda

/// The driver takes the kernels themselves for machine code.
extern "C" const stepc_image stepc_program_images[] = {
    {"sm_80", 8, 0, 0, stepc_program_kernels, 0}};
extern "C" const int64_t stepc_program_image_count = 1;
