//===- Interpret.cpp - Kernels that are interpreted, on the CPU -------------------===//
//
// Runs kernels as records. A kernel is found by its number in the plan. All else is as on the CPU.
//
//===----------------------------------------------------------------------===//
#include "runtime/devices/InOrder.h"
#include "runtime/emulated/Seed.h"
#include "runtime/emulated/TileProducts.h"
#include "runtime/interpret/Code.h"
#include "runtime/plan/Images.h"
#include "runtime/text/Text.h"

#include <algorithm>

namespace stepc::runtime {
namespace {

struct InterpretState : DeviceState {
  std::vector<std::unique_ptr<interpret::Code>> kernels; ///< in the order of the plan's kernels
  int64_t clusters = 0; ///< that share out tiles, where the machine stands for a GPU
};

std::string damaged(const DeviceContext &context, const char *what) {
  return format("library '%s' is damaged: expected %s as the compiler wrote them, found others; "
                "compile the library again",
                context.plan.name.c_str(), what);
}

/// Compares the program's kernels with their hash, and makes them ready.
std::string openKernels(DeviceContext &context, const stepc_options &) {
  const stepc_image *image = context.program.images;
  if (!image || !image->chip || image->kind != STEPC_IMAGE_RECORDS)
    return format("library '%s' has no kernels for the interpreter", context.plan.name.c_str());
  if (plan::numbersHash(*image) != image->numbers_hash)
    return damaged(context, "the numbers of its kernels");
  if (plan::codeHash(*image) != image->code_hash)
    return damaged(context, "its kernels");
  std::vector<interpret::NamedKernel> kernels;
  std::string wrong =
      interpret::decode(static_cast<const uint8_t *>(image->code), image->bytes, kernels);
  if (!wrong.empty())
    return format("library '%s': %s", context.plan.name.c_str(), wrong.c_str());
  if (kernels.size() != context.plan.kernels.size())
    return format("library '%s': expected a kernel for each of the plan's %zu, found %zu",
                  context.plan.name.c_str(), context.plan.kernels.size(), kernels.size());
  auto state = std::make_unique<InterpretState>();
  for (const interpret::NamedKernel &each : kernels)
    state->kernels.push_back(makeCode(each.kernel));
  bool hasTiles = std::ranges::any_of(kernels, [](const interpret::NamedKernel &each) {
    return std::holds_alternative<interpret::TilesKernel>(each.kernel);
  });
  std::string problem;
  if (hasTiles)
    state->clusters = drawnClusters(emulatedSeed(problem));
  if (!problem.empty())
    return problem;
  context.state = std::move(state);
  return {};
}

const interpret::Code &codeOf(const DeviceContext &context, const Launch &launch) {
  return *static_cast<const InterpretState &>(*context.state).kernels[size_t(launch.number)];
}

std::string checkArguments(DeviceContext &context, const Launch &launch) {
  if (launch.number < 0) // a copy, which has no kernel
    return {};
  int64_t expected = codeOf(context, launch).arguments();
  if (launch.argumentCount == expected)
    return {};
  return format("kernel '%s': expected %lld arguments, found %lld",
                context.plan.kernels[size_t(launch.number)].name.c_str(), (long long)expected,
                (long long)launch.argumentCount);
}

int64_t listsOf(DeviceContext &context, const Launch &) {
  return static_cast<const InterpretState &>(*context.state).clusters;
}

std::string mapStack(DeviceContext &, const MatrixStack &stack, stepc_tensor_map &map) {
  std::string wrong = checkStack(stack);
  if (wrong.empty())
    writeMap(stack.address, {stack.columns, stack.rows, stack.matrices}, map);
  return wrong;
}

void runInterpreted(const DeviceContext &context, const Launch &launch, int64_t first,
                    int64_t last) {
  codeOf(context, launch).run(launch.arguments, first, last);
}

} // namespace
} // namespace stepc::runtime

using namespace stepc::runtime;

extern "C" constinit const stepc_device_table stepc_device_interpret = [] {
  stepc_device_table table =
      InOrder<runInterpreted>::table("interpret", openKernels, checkArguments);
  table.lists = listsOf;
  table.mapMatrices = mapStack;
  return table;
}();
