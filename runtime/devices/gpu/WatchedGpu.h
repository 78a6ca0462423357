//===- WatchedGpu.h - A GPU whose races are found ----------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_WATCHEDGPU_H
#define STEPC_RUNTIME_DEVICES_GPU_WATCHEDGPU_H

#include "runtime/devices/gpu/Gpu.h"

namespace stepc::runtime {

/// The same GPU, which is this machine: on its streams, between their commands, stand functions that tell
/// runtime/emulated/Races.h what these touch. Its problem is the first race, where there is one.
std::unique_ptr<Gpu> watchForRaces(std::unique_ptr<Gpu> gpu, const plan::Plan &plan);

} // namespace stepc::runtime

#endif
