//===- TileProducts.h - Products of lists of tiles, on this machine -*- C++ -*-===//
#ifndef STEPC_RUNTIME_EMULATED_TILEPRODUCTS_H
#define STEPC_RUNTIME_EMULATED_TILEPRODUCTS_H

#include "stepc/kernel_abi.h"

#include <array>

namespace stepc::runtime {

/// Writes the map of a stack of matrices, in the form that stepc_rt_emulated_tiles reads. `sizes`: columns,
/// rows and matrices.
void writeMap(const void *address, const std::array<int64_t, 3> &sizes, stepc_tensor_map &map);

} // namespace stepc::runtime

#endif
