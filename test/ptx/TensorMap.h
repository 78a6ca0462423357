//===- TensorMap.h - Tensors as tensor copies address them -------*- C++ -*-===//
//
// A GPU's maps are 128 bytes of a format that is the driver's own. The machine's maps have the same size, a format of
// their own, and the conditions that cuTensorMapEncodeTiled checks.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_PTX_TENSORMAP_H
#define STEPC_TEST_PTX_TENSORMAP_H

#include <array>
#include <cstdint>

namespace stepc::ptx {

struct TensorMap {
  static constexpr int kMostDimensions = 5;
  uint64_t address = 0;
  uint32_t elementBytes = 2;
  uint32_t rank = 0;
  bool isSwizzled = true; ///< with the 128-byte swizzle
  /// The innermost dimension first. strides[i] is that of dimension i + 1, in bytes.
  std::array<uint64_t, kMostDimensions> dimensions{}, strides{};
  std::array<uint32_t, kMostDimensions> box{};

  uint32_t boxBytes() const;
  uint32_t rowBytes() const { return box[0] * elementBytes; }
};

using MapBytes = std::array<uint8_t, 128>;

/// Throws an error where the driver would refuse.
MapBytes encode(const TensorMap &map);
TensorMap decode(const uint8_t *bytes);

} // namespace stepc::ptx

#endif
