//===- Pinned.h - Algorithms that are pinned for products --------*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_PINNED_H
#define STEPC_RUNTIME_PLAN_PINNED_H

#include "runtime/plan/Plan.h"

namespace stepc::plan {

/// What is wrong with an algorithm by itself; empty if nothing is.
std::string checkAlgorithm(const PinnedAlgorithm &algorithm);
/// Why no algorithm of cuBLASLt can compute such a product: "a symmetric product, …". Empty if some may.
std::string checkMultiplies(DType lhs, DType rhs, std::optional<DType> addend, DType out,
                            bool isSymmetric);
/// The distance between rows of each operand, in elements, if rows touch each other, as they do in blocks.
/// In this order: the left operand, the right one, the addend if there is one, and the result.
std::vector<int64_t> denseLeading(int64_t m, int64_t n, int64_t k, bool transposeLhs,
                                  bool transposeRhs, bool hasAddend);
/// A number of cublasLtGetVersion() as people write it: "13.0.2".
std::string cublasLtVersion(int64_t number);

} // namespace stepc::plan

#endif
