//===- Pinned.h - Algorithms that are pinned for products --------*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_PINNED_H
#define STEPC_RUNTIME_PLAN_PINNED_H

#include "runtime/plan/Plan.h"

namespace stepc::plan {

/// What is wrong with an algorithm by itself; empty if nothing is.
std::string checkAlgorithm(const PinnedAlgorithm &algorithm);
/// Why no algorithm of cuBLASLt can make such a product, if none can: "a symmetric product, …".
std::string checkMultiplies(DType lhs, DType rhs, std::optional<DType> addend, DType out,
                            bool isSymmetric);
/// The least distance between rows of the operands, in elements, which is the distance in blocks. In this
/// order: the left operand, the right one, the addend if there is one, and the out.
std::vector<int64_t> denseLeading(int64_t m, int64_t n, int64_t k, bool transposeLhs,
                                  bool transposeRhs, bool hasAddend);
/// A number of cublasLtGetVersion() as people write it: "13.0.2".
std::string cublasLtVersion(int64_t number);

} // namespace stepc::plan

#endif
