//===- ProductTable.h - Tables of pinned products, from JSON ----*- C++ -*-===//
//
// Reads the tables that benchmarks/pin_products.py writes on a GPU and that `--products` names. An entry is
// an algorithm of cuBLASLt for matrix products of one shape on one GPU.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_PRODUCTS_PRODUCTTABLE_H
#define STEPC_FRONTENDS_PRODUCTS_PRODUCTTABLE_H

#include "frontends/manifest/InputError.h"
#include "runtime/plan/Plan.h"

namespace stepc::products {

/// The version of the tables that stepc reads and that pin_products.py writes.
inline constexpr int64_t kTableVersion = 1;

struct Entry {
  int64_t m = 0, n = 0, k = 0;
  plan::DType lhs = plan::DType::F32, rhs = plan::DType::F32, out = plan::DType::F32;
  std::optional<plan::DType> addend;
  bool transposeLhs = false, transposeRhs = false;
  std::vector<int64_t> leading; ///< leading dimensions of lhs, rhs, addend if there is one, and out
  plan::PinnedAlgorithm algorithm;

  /// Whether both entries are for the same products on the same GPU with the same version of cuBLASLt.
  bool hasKeyOf(const Entry &other) const;
};

/// Reads the entries of a table. Returns nothing after an error; errors have lines and columns.
std::optional<std::vector<Entry>> readTable(llvm::StringRef text, llvm::StringRef file,
                                            manifest::ErrorList &errors);

} // namespace stepc::products

#endif
