//===- NcclStaging.cpp - The host's memory, by way of the GPU's --------------===//

#include "runtime/transports/NcclStaging.h"
#include "runtime/text/Text.h"

#include <cstring>

namespace stepc::runtime {
namespace {

constexpr int64_t kAlignment = 256; // at which NCCL and copies do best

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t bytesSent(const stepc_operation &operation, int32_t ranks) {
  if (operation.kind == STEPC_RECEIVE)
    return 0;
  return operation.bytes * (operation.kind == STEPC_REDUCE_SCATTER ? ranks : 1);
}

int64_t bytesReceived(const stepc_operation &operation, int32_t ranks) {
  if (operation.kind == STEPC_SEND)
    return 0;
  return operation.bytes * (operation.kind == STEPC_ALL_GATHER ? ranks : 1);
}

} // namespace

NcclStaging::~NcclStaging() {
  if (memory)
    driver.cuMemFree_v2(memory);
  if (pinned)
    driver.cuMemFreeHost(pinned);
  for (cuda::EventHandle event : {followed, arrived})
    if (event)
      driver.cuEventDestroy_v2(event);
  if (stream)
    driver.cuStreamDestroy_v2(stream);
}

std::string NcclStaging::check(const char *doing, cuda::Result result) const {
  return result ? format("%s failed: %s", doing, cuda::describe(driver, result).c_str()) : "";
}

std::string NcclStaging::open() {
  std::string wrong = check("making a stream", driver.cuStreamCreate(&stream, cuda::kNonBlocking));
  for (cuda::EventHandle *event : {&followed, &arrived})
    if (wrong.empty())
      wrong = check("making an event", driver.cuEventCreate(event, cuda::kDisableTiming));
  return wrong;
}

std::string NcclStaging::reserve(int64_t bytes) {
  if (bytes <= capacity)
    return {};
  if (memory)
    driver.cuMemFree_v2(memory);
  if (pinned)
    driver.cuMemFreeHost(pinned);
  memory = 0;
  pinned = nullptr;
  capacity = 0;
  void *host = nullptr;
  std::string wrong =
      check("allocating memory for messages", driver.cuMemAlloc_v2(&memory, size_t(bytes)));
  if (wrong.empty())
    wrong = check("allocating memory for messages", driver.cuMemAllocHost_v2(&host, size_t(bytes)));
  pinned = static_cast<char *>(host);
  if (wrong.empty())
    capacity = bytes;
  return wrong;
}

std::string NcclStaging::upload(NcclGroup &group, const cuda::StreamHandle *after) {
  int64_t bytes = 0;
  for (const stepc_operation &operation : group.operations)
    bytes +=
        aligned(bytesSent(operation, group.ranks)) + aligned(bytesReceived(operation, group.ranks));
  if (std::string wrong = reserve(bytes); !wrong.empty())
    return wrong;
  arrivals.clear();
  used = 0;
  for (stepc_operation &operation : group.operations) {
    if (int64_t sent = bytesSent(operation, group.ranks)) {
      std::memcpy(pinned + used, operation.send, size_t(sent));
      operation.send = reinterpret_cast<const void *>(memory + cuda::Address(used));
      used += aligned(sent);
    }
    if (int64_t received = bytesReceived(operation, group.ranks)) {
      arrivals.push_back({operation.receive, used, received});
      operation.receive = reinterpret_cast<void *>(memory + cuda::Address(used));
      used += aligned(received);
    }
  }
  std::string wrong;
  if (after)
    wrong = check("following a stream", driver.cuEventRecord(followed, *after));
  if (after && wrong.empty())
    wrong = check("following a stream", driver.cuStreamWaitEvent(stream, followed, 0));
  if (wrong.empty())
    wrong = check("copying messages to the GPU",
                  driver.cuMemcpyHtoDAsync_v2(memory, pinned, size_t(used), stream));
  return wrong;
}

std::string NcclStaging::download() {
  std::string wrong = check("copying messages from the GPU",
                            driver.cuMemcpyDtoHAsync_v2(pinned, memory, size_t(used), stream));
  if (wrong.empty())
    wrong = check("recording an event", driver.cuEventRecord(arrived, stream));
  return wrong;
}

std::string NcclStaging::isDone(bool &done) {
  cuda::Result result = driver.cuEventQuery(arrived);
  done = result == 0;
  if (result == cuda::kNotReady)
    return {};
  for (const Arrival &arrival : arrivals)
    if (done)
      std::memcpy(arrival.to, pinned + arrival.at, size_t(arrival.bytes));
  return check("sending messages", result);
}

} // namespace stepc::runtime
