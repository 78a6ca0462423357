//===- DeviceSeals.h - Seals of messages that a device sends -----*- C++ -*-===//
//
// If exchanges are on a stream of a device, the host can read neither the messages nor the numbers of a step
// there. Two kernels (kernel_abi.h, "seals") then do what Exchange.cpp does for exchanges on the host. One
// kernel puts seals on the messages of an exchange. The other compares the seals of received messages, and
// writes the first difference to a report in the host's memory. The next `poll`, `enqueue` or `step` reads
// the report.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_CORE_DEVICESEALS_H
#define STEPC_RUNTIME_CORE_DEVICESEALS_H

#include "runtime/devices/Device.h"

#include <vector>

namespace stepc::runtime {

/// A launch of one of these kernels, for one exchange. If it has no items, it is not launched.
struct SealLaunch {
  Launch launch;
  std::vector<void *> arguments;
  size_t firstRow = 0;
};

struct DeviceSeals {
  std::vector<stepc_seal_row> rows; ///< rows of all launches; each launch has its firstRow
  std::vector<stepc_seal_term> terms;
  std::vector<stepc_seal> columns;
  std::vector<stepc_sealed_message> messages;
  std::vector<stepc_seal> seals; ///< by number in sealedMeshes; one more stays zero
  stepc_seal_report *report = nullptr;
};

} // namespace stepc::runtime

#endif
