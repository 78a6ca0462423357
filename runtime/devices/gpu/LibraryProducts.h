//===- LibraryProducts.h - Products by cuBLASLt, at pinned algorithms -*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_LIBRARYPRODUCTS_H
#define STEPC_RUNTIME_DEVICES_GPU_LIBRARYPRODUCTS_H

#include "runtime/devices/Device.h"
#include "runtime/devices/gpu/CublasLt.h"

#include <memory>
#include <vector>

namespace stepc::runtime {

/// What one instance needs of cuBLASLt. All of it is made with the instance, so that a step makes nothing.
/// The context must be current in all functions. Texts say what went wrong; they are empty if nothing did.
class LibraryProducts {
public:
  LibraryProducts();
  ~LibraryProducts();

  /// Loads cuBLASLt if the plan pins algorithms for this GPU.
  std::string open(const plan::Plan &, int64_t chip, int64_t multiprocessors);
  void close();
  /// The library and the GPU, and a hash of the plan's algorithms that are used.
  const ProductLibrary &found() const { return here; }
  /// Prepares the pinned algorithm of a product, if it has one, and computes the product once. In this call
  /// the library loads and allocates what it needs. The operands must be zeros, and stay zeros.
  std::string prepare(BatchWork &, cublaslt::StreamHandle);
  std::string multiply(const BatchWork &, cublaslt::StreamHandle) const;

private:
  struct Product;

  const plan::PinnedAlgorithm *find(const plan::Product &) const;
  std::string make(Product &, const BatchWork &, const plan::PinnedAlgorithm &);
  std::string describe(cublaslt::Status) const;

  const cublaslt::CublasLt *lt = nullptr;
  cublaslt::Handle handle = nullptr;
  ProductLibrary here;
  std::vector<std::unique_ptr<Product>> products;
};

} // namespace stepc::runtime

#endif
