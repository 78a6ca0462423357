//===- DeviceSeals.h - Seals of messages that a device sends -----*- C++ -*-===//
//
// Where exchanges stand on a stream of a device, the host sees neither the numbers that a step reads
// there nor the messages. Two kernels (kernel_abi.h, "seals") do what Exchange.cpp does elsewhere. One
// puts seals on the messages of an exchange, one compares those of the messages that came. What it finds
// first stands in a report in the host's memory, where the next `poll`, `enqueue` or `step` looks.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_CORE_DEVICESEALS_H
#define STEPC_RUNTIME_CORE_DEVICESEALS_H

#include "runtime/devices/Device.h"

#include <vector>

namespace stepc::runtime {

/// One of these kernels, for one exchange. No items: there is nothing to do for it.
struct SealLaunch {
  Launch launch;
  std::vector<void *> arguments;
  size_t firstRow = 0;
};

struct DeviceSeals {
  std::vector<stepc_seal_row> rows; ///< of all launches
  std::vector<stepc_seal_term> terms;
  std::vector<stepc_seal> columns;
  std::vector<stepc_sealed_message> messages;
  std::vector<stepc_seal> seals; ///< by number; the last stays zero
  stepc_seal_report *report = nullptr;
};

} // namespace stepc::runtime

#endif
