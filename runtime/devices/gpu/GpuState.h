//===- GpuState.h - What a GPU keeps for an instance -------------*- C++ -*-===//
//
// Lists that the host writes and kernels read are in one piece of the GPU's memory: first the lists that
// binds and steps change, then the others. Each step uploads the first lists by one copy. The GPU reads the
// staging memory of this copy later. Therefore there is a ring of slots, and a slot is used again when its
// copy is done. All that changes is in lists, so the commands of a step are always the same, and a graph can
// hold them.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_GPUSTATE_H
#define STEPC_RUNTIME_DEVICES_GPU_GPUSTATE_H

#include "runtime/devices/gpu/Gpu.h"

#include <array>
#include <cstring>

namespace stepc::runtime {

/// How many steps may be under way before the host waits for the oldest.
inline constexpr size_t kRing = 8;

class GpuState : public DeviceState {
public:
  explicit GpuState(std::unique_ptr<Gpu> given, size_t events) : gpu(std::move(given)) {
    for (size_t i = 0; i < events; ++i)
      this->events.push_back(gpu->makeEvent());
    for (Slot &slot : ring)
      slot.uploaded = gpu->makeEvent();
  }

  ~GpuState() override {
    for (Slot &slot : ring) {
      if (slot.isUsed)
        gpu->synchronize(slot.uploaded);
      gpu->destroy(slot.uploaded);
      gpu->releaseStaging(slot.staging);
    }
    for (Gpu::Event *event : events)
      gpu->destroy(event);
    gpu->releaseStaging(marks);
    for (void *report : reports)
      gpu->releaseStaging(report);
    gpu->release(numbers);
    gpu->release(mirror);
  }

  bool lend(std::vector<HostList> &lists) {
    int64_t bytes = 0;
    std::vector<int64_t> offsets(lists.size());
    for (bool changes : {true, false}) {
      for (size_t i = 0; i < lists.size(); ++i)
        if (lists[i].changes == changes) {
          offsets[i] = bytes;
          // The fence before a kernel uses a tensor map takes 128 bytes at a multiple of 128.
          constexpr int64_t kMapBytes = sizeof(stepc_tensor_map);
          bytes = (bytes + lists[i].bytes + kMapBytes - 1) / kMapBytes * kMapBytes;
        }
      if (changes)
        changing = bytes;
    }
    mirror = static_cast<char *>(gpu->allocate(bytes));
    auto *all = static_cast<char *>(gpu->allocateStaging(bytes));
    if (!mirror || !all) {
      gpu->releaseStaging(all);
      return false;
    }
    std::memset(all, 0, bytes);
    for (size_t i = 0; i < lists.size(); ++i) {
      lists[i].address = mirror + offsets[i];
      if (lists[i].bytes > 0)
        std::memcpy(all + offsets[i], lists[i].data, lists[i].bytes);
      if (lists[i].changes)
        sources.push_back({lists[i], offsets[i]});
    }
    uploadAndWait(mirror, all, bytes);
    gpu->releaseStaging(all);
    for (Slot &slot : ring)
      if (!(slot.staging = static_cast<char *>(gpu->allocateStaging(changing))))
        return false;
    return true;
  }

  void begin(bool isCaptured) {
    gpu->join(isCaptured);
    if (!isCaptured)
      upload();
  }

  /// All steps that one graph holds read the lists as the last upload left them. Therefore later steps of a
  /// graph must find the same lists as the first. Returns a text if they do not. `problem` says what failed.
  std::string prepareCapture(std::string &problem) {
    uint64_t number = gpu->captureNumber();
    if (number == lastCapture)
      return isUploaded() ? ""
                          : "expected what was bound for the step before, which the same graph "
                            "holds, found other memory bound";
    gpu->synchronize(upload().uploaded);
    problem = gpu->takeProblem();
    if (problem.empty())
      lastCapture = number;
    return {};
  }

  void refresh() {
    gpu->join(false);
    upload();
    gpu->leave();
  }

  /// Allocates `marks`, and every number below `values` twice in the GPU's memory. A graph can hold copies of
  /// them.
  int32_t *openMarks(int64_t values) {
    int64_t bytes = 2 * values * int64_t(sizeof(int32_t));
    marks = static_cast<int32_t *>(gpu->allocateStaging(2 * sizeof(int32_t)));
    numbers = static_cast<int32_t *>(gpu->allocate(bytes));
    auto *all = static_cast<int32_t *>(gpu->allocateStaging(bytes));
    if (marks && numbers && all) {
      marks[0] = marks[1] = 0;
      for (int64_t i = 0; i < 2 * values; ++i)
        all[i] = int32_t(i / 2);
      uploadAndWait(numbers, all, bytes);
    }
    gpu->releaseStaging(all);
    return numbers && all ? marks : nullptr;
  }
  /// Staging memory has one address on the host and on the GPU, so kernels can write to it.
  void *openReport(int64_t bytes) {
    void *report = gpu->allocateStaging(bytes);
    if (report) {
      std::memset(report, 0, size_t(bytes));
      reports.push_back(report);
    }
    return report;
  }
  void mark(Stream stream, int32_t value) {
    gpu->download(stream, marks, numbers + 2 * value, 2 * sizeof(int32_t));
  }

  std::unique_ptr<Gpu> gpu;
  std::vector<Gpu::Event *> events; // the program's, two per exchange

private:
  void uploadAndWait(void *to, const void *staging, int64_t bytes) {
    gpu->upload(Stream::Compute, to, staging, bytes);
    gpu->record(Stream::Compute, ring[0].uploaded);
    gpu->synchronize(ring[0].uploaded);
  }

  struct Slot {
    char *staging = nullptr;
    Gpu::Event *uploaded = nullptr;
    bool isUsed = false;
  };
  struct Source {
    HostList list;
    int64_t offset;
  };

  /// Uploads the lists that change, as they are now. Waits if their slot is in use.
  const Slot &upload() {
    Slot &slot = ring[next++ % kRing];
    if (slot.isUsed)
      gpu->synchronize(slot.uploaded);
    for (const Source &source : sources)
      if (source.list.bytes > 0)
        gpu->stage(slot.staging + source.offset, source.list.data, source.list.bytes);
    gpu->upload(Stream::Compute, mirror, slot.staging, changing);
    gpu->record(Stream::Compute, slot.uploaded);
    slot.isUsed = true;
    return slot;
  }
  bool isUploaded() const {
    const Slot &last = ring[(next - 1) % kRing];
    for (const Source &source : sources)
      if (source.list.bytes > 0 &&
          std::memcmp(last.staging + source.offset, source.list.data, source.list.bytes) != 0)
        return false;
    return true;
  }

  std::array<Slot, kRing> ring;
  size_t next = 0;
  uint64_t lastCapture = 0;
  std::vector<Source> sources; // the lists that change
  int64_t changing = 0;        // bytes of these lists
  char *mirror = nullptr;      // the GPU's copy of all lists
  int32_t *marks = nullptr, *numbers = nullptr;
  std::vector<void *> reports;
};

} // namespace stepc::runtime

#endif
