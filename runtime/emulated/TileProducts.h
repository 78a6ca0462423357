//===- TileProducts.h - Products of lists of tiles, on this machine -*- C++ -*-===//
#ifndef STEPC_RUNTIME_EMULATED_TILEPRODUCTS_H
#define STEPC_RUNTIME_EMULATED_TILEPRODUCTS_H

#include "runtime/model/Model.h"
#include "stepc/kernel_abi.h"

#include <array>
#include <optional>

namespace stepc::runtime {

/// The properties of a kernel of tiles. Operands have one type, bf16 or f16.
struct TileForm {
  plan::DType type;
  bool transposeLhs, transposeRhs, symmetric;
  bool toF32; ///< results are f32; otherwise they have the operands' type

  plan::DType result() const { return toF32 ? plan::DType::F32 : type; }
};

/// Works off the lists [first, last) of a launch. `arguments` are those of lists of tiles in kernel_abi.h.
void multiplyTiles(const TileForm &form, void *const *arguments, int64_t first, int64_t last);

/// The number of clusters among which tiles are shared out: one to eight, drawn from a seed, otherwise three.
int64_t drawnClusters(std::optional<uint64_t> seed);

/// Writes the map of a stack of matrices, in the form that multiplyTiles reads. `sizes`: columns, rows and
/// matrices.
void writeMap(const void *address, const std::array<int64_t, 3> &sizes, stepc_tensor_map &map);

} // namespace stepc::runtime

#endif
