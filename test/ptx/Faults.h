//===- Faults.h - Faults to plant in a kernel's text -------------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_FAULTS_H
#define STEPC_TEST_PTX_FAULTS_H

#include "test/ptx/Kernels.h"

namespace stepc::ptx {

struct Fault {
  const char *name;
  /// The changed PTX, or nothing for a kernel that has no such place.
  std::string (*plant)(const ProductKernel &kernel);
};

/// Faults of the protocol, each of which the machine must find.
const std::vector<Fault> &faults();

/// Kernels with one instruction less, whose absence the machine must find: each copy, store of matrices, arrival, wait for a
/// group, fence of the proxy, barrier and setmaxnreg. Not those that may be missing: waits that others imply, wgmma.fence
/// within a row of products, and meetings of warps that have not parted. The number of the line comes first.
std::vector<std::pair<size_t, std::string>> deletions(const ProductKernel &kernel);

/// The kernel with other PTX.
ProductKernel withText(const ProductKernel &kernel, const std::string &text);

} // namespace stepc::ptx

#endif
