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

// The device `cuda`. Its kernels cannot run here, but instances of it can be made.
#include "runtime/devices/gpu/Cuda.cpp"
#include "runtime/plan/Fnv1a.h"

namespace stepc::runtime {
namespace {

/// The driver takes the kernels themselves for machine code.
std::string openStub(DeviceContext &context, const stepc_options &options) {
  return openGpuDevice(
      context, options,
      [](const DeviceContext &opened, const stepc_options &given, std::string &problem) {
        stepc_program program = opened.program;
        // "emulated:sm_90a on …": the code is for sm_90 and later chips of its generation.
        size_t at = opened.plan.chip.find("sm_");
        int64_t chip = at == std::string::npos ? 80 : std::atoi(opened.plan.chip.c_str() + at + 3);
        std::string name = "sm_" + std::to_string(chip);
        uint64_t code = plan::fnv1a({}),
                 numbers = plan::fnv1a({uint64_t(chip / 10), uint64_t(chip % 10), 0, 0, code});
        const stepc_image images[] = {
            {name.c_str(), chip / 10, chip % 10, 0, program.kernels, 0, code, numbers}, {}};
        program.images = images;
        return openDriver({opened.parallel, opened.executed, opened.plan, program, opened.records,
                           opened.someInactive},
                          given, problem);
      });
}

} // namespace
} // namespace stepc::runtime

// What a library of `emulated` names, on the trainer's side a CPU unless it is told otherwise.
extern "C" const stepc_device_table stepc_device_emulated =
    stepc::runtime::gpuDeviceTable("cuda", stubKind(), true, stepc::runtime::openStub);
