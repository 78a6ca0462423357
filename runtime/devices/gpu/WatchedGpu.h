//===- WatchedGpu.h - A GPU whose races are found ----------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_WATCHEDGPU_H
#define STEPC_RUNTIME_DEVICES_GPU_WATCHEDGPU_H

#include "runtime/devices/gpu/Gpu.h"

namespace stepc::runtime {

/// Wraps an emulated GPU. Between the commands on its streams it puts functions, which tell
/// runtime/emulated/Races.h what the commands touch. `takeProblem` returns the first race, if there is one.
std::unique_ptr<Gpu> watchForRaces(std::unique_ptr<Gpu> gpu, const plan::Plan &plan);

} // namespace stepc::runtime

#endif
