//===- TileProducts.h - Products of lists of tiles, on this machine -*- C++ -*-===//
#ifndef STEPC_RUNTIME_EMULATED_TILEPRODUCTS_H
#define STEPC_RUNTIME_EMULATED_TILEPRODUCTS_H

#include "runtime/plan/ProductForm.h"
#include "stepc/kernel_abi.h"

#include <array>
#include <optional>

namespace stepc::runtime {

/// Works off the lists [first, last) of a launch. `arguments` are those of lists of tiles in kernel_abi.h.
void multiplyTiles(const plan::ProductForm &form, void *const *arguments, int64_t first,
                   int64_t last);

/// The number of clusters among which tiles are shared out: one to eight, drawn from a seed, otherwise three.
int64_t drawnClusters(std::optional<uint64_t> seed);

/// Writes the map of a stack of matrices, in the form that multiplyTiles reads. `sizes`: columns, rows and
/// matrices.
void writeMap(const void *address, const std::array<int64_t, 3> &sizes, stepc_tensor_map &map);

} // namespace stepc::runtime

#endif
