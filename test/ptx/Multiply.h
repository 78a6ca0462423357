//===- Multiply.h - A quarter of a wgmma -------------------------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_MULTIPLY_H
#define STEPC_TEST_PTX_MULTIPLY_H

#include <cstdint>

namespace stepc::ptx {

/// Adds left · rightᵀ to sums: 16 rows, `columns` columns (a multiple of 8, at most 256), 16 steps of k. Elements are bf16,
/// or f16 with `half`. The bits are those of runtime/emulated/TensorCore.h, eight columns at a time.
void multiply(const uint16_t (*left)[16], const uint16_t (*right)[16], float *sums, int columns,
              bool half);

} // namespace stepc::ptx

#endif
