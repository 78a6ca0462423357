//===- LibraryProducts.h - Products by cuBLASLt, at pinned algorithms -*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_LIBRARYPRODUCTS_H
#define STEPC_RUNTIME_DEVICES_GPU_LIBRARYPRODUCTS_H

#include "runtime/devices/Device.h"
#include "runtime/devices/gpu/CublasLt.h"

#include <memory>
#include <vector>

namespace stepc::runtime {

/// What one instance needs of cuBLASLt, made when the instance is: a step asks for nothing. Functions expect
/// the context to be current; texts say what went wrong.
class LibraryProducts {
public:
  LibraryProducts();
  ~LibraryProducts();

  /// Looks for a library where the plan has algorithms for such a GPU.
  std::string open(const plan::Plan &, int64_t chip, int64_t multiprocessors);
  void close();
  /// Which library and GPU this is, and which of the plan's algorithms stand.
  const ProductLibrary &found() const { return here; }
  /// Makes the algorithm of a product ready, where one stands, and carries it out once: what the library loads
  /// and allocates for it, it does then. Operands are zeros, and stay so.
  std::string prepare(BatchWork &, cublaslt::StreamHandle);
  std::string multiply(const BatchWork &, cublaslt::StreamHandle) const;

private:
  struct Product;

  const plan::PinnedAlgorithm *find(const plan::Batch &) const;
  std::string make(Product &, const BatchWork &, const plan::PinnedAlgorithm &);
  std::string describe(cublaslt::Status) const;

  const cublaslt::CublasLt *lt = nullptr;
  cublaslt::Handle handle = nullptr;
  ProductLibrary here;
  std::vector<std::unique_ptr<Product>> products;
};

} // namespace stepc::runtime

#endif
