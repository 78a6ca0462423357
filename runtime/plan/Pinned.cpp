//===- Pinned.cpp - Algorithms that are pinned for products --------------===//

#include "runtime/plan/Pinned.h"
#include "runtime/plan/Checks.h"
#include "runtime/plan/Tables.h"

#include <bit>
#include <limits>
#include <set>
#include <tuple>

namespace stepc::plan {

std::string cublasLtVersion(int64_t number) {
  return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

std::string checkAlgorithm(const PinnedAlgorithm &pinned) {
  constexpr int64_t kShort = std::numeric_limits<uint16_t>::max(),
                    kLong = std::numeric_limits<uint32_t>::max(),
                    kInt = std::numeric_limits<int32_t>::max();
  for (auto [what, found, least, most] :
       {std::tuple("a version of cuBLASLt", pinned.cublasLt, int64_t(1), kInt),
        std::tuple("a chip", pinned.chip, int64_t(80), int64_t(999)),
        std::tuple("a number of multiprocessors", pinned.multiprocessors, int64_t(1), kShort),
        std::tuple("an alignment", pinned.alignment, int64_t(1), int64_t(256)),
        std::tuple("an algorithm", pinned.algorithm, int64_t(0), kInt),
        std::tuple("a tile", pinned.tile, int64_t(0), kLong),
        std::tuple("stages", pinned.stages, int64_t(0), kLong),
        std::tuple("a swizzling", pinned.swizzling, int64_t(0), kLong),
        std::tuple("a custom option", pinned.customOption, int64_t(0), kLong),
        std::tuple("an inner shape", pinned.innerShape, int64_t(0), kShort),
        std::tuple("a cluster shape", pinned.clusterShape, int64_t(0), kShort),
        std::tuple("bytes of workspace", pinned.workspaceBytes, int64_t(0), kMostArenaBytes)})
    if (found < least || found > most)
      return "expected " + std::string(what) + " from " + std::to_string(least) + " to " +
             std::to_string(most) + ", found " + std::to_string(found);
  if (!std::has_single_bit(static_cast<uint64_t>(pinned.alignment)))
    return "expected an alignment that is a power of two, found " +
           std::to_string(pinned.alignment);
  return {};
}

std::vector<int64_t> denseLeading(int64_t m, int64_t n, int64_t k, bool transposeLhs,
                                  bool transposeRhs, bool hasAddend) {
  std::vector<int64_t> leading = {transposeLhs ? m : k, transposeRhs ? k : n};
  leading.resize(hasAddend ? 4 : 3, n);
  return leading;
}

std::string checkMultiplies(DType lhs, DType rhs, std::optional<DType> addend, DType out,
                            bool isSymmetric) {
  if (isSymmetric)
    return "a symmetric product, whose halves cuBLASLt does not promise to be equal";
  if (lhs != rhs || (out != lhs && out != DType::F32) || (addend && *addend != out))
    return "types that cuBLASLt does not multiply: " + std::string(name(lhs)) + " by " +
           std::string(name(rhs)) + (addend ? " plus " + std::string(name(*addend)) : "") + " to " +
           std::string(name(out));
  return {};
}

Check checkPinned(const Plan &plan, const Product &product) {
  if (product.pinned.empty())
    return {};
  std::optional<DType> addend;
  if (product.addend)
    addend = product.addend->type;
  if (std::string wrong = checkMultiplies(product.lhs.type, product.rhs.type, addend,
                                          product.out.type, product.symmetric);
      !wrong.empty())
    return "expected no algorithm of cuBLASLt, found one of " + wrong;
  std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
  for (const PinnedAlgorithm &each : product.pinned) {
    if (Check wrong = checkAlgorithm(each); !wrong.empty())
      return wrong;
    if (each.alignment > kAlignment)
      return "expected an algorithm for operands at multiples of " + std::to_string(kAlignment) +
             " bytes, found one for multiples of " + std::to_string(each.alignment);
    if (each.workspaceBytes > plan.scratchBytes)
      return "expected an algorithm that needs at most the " + std::to_string(plan.scratchBytes) +
             " bytes of scratch that the workspace has, found " +
             std::to_string(each.workspaceBytes);
    if (!seen.insert({each.cublasLt, each.chip, each.multiprocessors}).second)
      return "expected one algorithm for each library and GPU, found two for cuBLASLt " +
             cublasLtVersion(each.cublasLt) + " on sm_" + std::to_string(each.chip) + " with " +
             std::to_string(each.multiprocessors) + " multiprocessors";
  }
  return {};
}

} // namespace stepc::plan
