//===- ProductTable.h - Tables of pinned products, from JSON ----*- C++ -*-===//
//
// What benchmarks/pin_products.py writes on a GPU and `--products` names: algorithms of cuBLASLt, each
// for products of one shape on one GPU.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_PRODUCTS_PRODUCTTABLE_H
#define STEPC_FRONTENDS_PRODUCTS_PRODUCTTABLE_H

#include "frontends/manifest/InputError.h"
#include "runtime/plan/Plan.h"

namespace stepc::products {

/// The version that is read, and the one that is written.
inline constexpr int64_t kTableVersion = 1;

struct Entry {
  int64_t m = 0, n = 0, k = 0;
  plan::DType lhs = plan::DType::F32, rhs = plan::DType::F32, out = plan::DType::F32;
  std::optional<plan::DType> addend;
  bool transposeLhs = false, transposeRhs = false;
  std::vector<int64_t> leading; ///< of left, right, addend if there is one, and out
  plan::PinnedAlgorithm algorithm;

  /// Whether both are for the same products on the same GPU by the same library.
  bool hasKeyOf(const Entry &other) const;
};

/// The entries of a table; nothing after errors, which say where.
std::optional<std::vector<Entry>> readTable(llvm::StringRef text, llvm::StringRef file,
                                            manifest::ErrorList &errors);

} // namespace stepc::products

#endif
