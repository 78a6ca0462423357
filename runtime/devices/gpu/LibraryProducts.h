//===- LibraryProducts.h - Products by cuBLASLt, at pinned algorithms -*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_LIBRARYPRODUCTS_H
#define STEPC_RUNTIME_DEVICES_GPU_LIBRARYPRODUCTS_H

#include "runtime/devices/Device.h"
#include "runtime/devices/gpu/CublasLt.h"

#include <memory>
#include <vector>

namespace stepc::runtime {

/// What one instance needs of cuBLASLt. All of it is made with the instance, so that a step asks for nothing.
/// Functions expect the context to be current, and their texts say what went wrong.
class LibraryProducts {
public:
  LibraryProducts();
  ~LibraryProducts();

  /// Looks for a library if the plan has algorithms for this GPU.
  std::string open(const plan::Plan &, int64_t chip, int64_t multiprocessors);
  void close();
  /// The library and the GPU, and a hash of the plan's algorithms that are used.
  const ProductLibrary &found() const { return here; }
  /// Readies the algorithm of a product, if it has one, and carries it out once, so that the library loads
  /// and allocates now what it needs. Operands are zeros and stay zeros.
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
