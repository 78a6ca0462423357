//===- ProductKernel.h - Kinds of kernels for products ----------*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_PRODUCTKERNEL_H
#define STEPC_RUNTIME_PLAN_PRODUCTKERNEL_H

#include "runtime/model/Enum.h"

namespace stepc::plan {

/// The fastest kernels for products that a target has. Stated: not known, so a device's figure is taken as it
/// is. Chain: chains of fused multiply-adds on a GPU. TensorCore: tensor cores by `mma.sync`. Warpgroup:
/// tensor cores of Hopper by `wgmma`.
enum class ProductKernel : int64_t { Stated = 0, Chain = 1, TensorCore = 2, Warpgroup = 3 };
template <>
inline constexpr auto kNames<ProductKernel> =
    std::to_array<std::string_view>({"stated", "chain", "tensorcore", "warpgroup"});

} // namespace stepc::plan

#endif
