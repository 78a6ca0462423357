//===- Gpu.h - What a device of the kind asks of a GPU -----------*- C++ -*-===//
//
// The few calls by which a step reaches a GPU, so that the device above them (GpuDevice.h) is the same
// on NVIDIA's driver and on this machine. Nothing here waits but what says so. Calls that may fail say
// why in `takeProblem()`.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_GPU_H
#define STEPC_RUNTIME_DEVICES_GPU_GPU_H

#include "runtime/devices/Device.h"

#include <cstring>
#include <utility>

namespace stepc::runtime {

class Gpu {
public:
  struct Event;

  virtual ~Gpu() = default;

  /// What went wrong first since it was last asked.
  std::string takeProblem() { return std::exchange(firstProblem, {}); }

  /// Memory of the GPU, aligned to 256 bytes; null where there is none.
  virtual void *allocate(int64_t bytes) = 0;
  virtual void release(void *memory) = 0;
  /// Memory of the host that copies to the GPU read without a copy of their own.
  virtual void *allocateStaging(int64_t bytes) = 0;
  virtual void releaseStaging(void *memory) = 0;
  /// The host writes to it what copies will read.
  virtual void stage(void *staging, const void *from, int64_t bytes) {
    std::memcpy(staging, from, size_t(bytes));
  }

  /// Why a pointer of the trainer's does not lead to memory of that kind (stepc_memory), where it does not.
  virtual std::string checkPointer(const void *, int32_t /*memory*/) { return {}; }
  /// Why no launch like it can begin; `launch` takes none of which this says something.
  virtual std::string checkLaunch(const Launch &) const = 0;

  // Products by a library (LibraryProducts.h), where the GPU has one: which it is and makes; one of them made
  // ready; and its call.
  virtual ProductLibrary library() const { return {}; }
  virtual void prepare(BatchWork &) {}
  virtual void multiply(Stream, const BatchWork &) {}

  /// As the driver's functions take it; null on this machine.
  virtual void *streamHandle(Stream) { return nullptr; }

  /// What the next commands use is for those to know who look for races.
  virtual void declare(void (*)(void *, MemoryUses &), void *) {}

  // What stands on a stream happens in order.
  virtual void launch(Stream, const Launch &) = 0;
  virtual void fill(Stream, void *memory, int64_t bytes) = 0; // with zeros
  virtual void upload(Stream, void *to, const void *staging, int64_t bytes) = 0;
  virtual void download(Stream, void *staging, const void *from, int64_t bytes) = 0;
  virtual void move(Stream, void *to, const void *from, int64_t bytes) = 0;
  /// A function of the host that stands between them.
  virtual void call(Stream, void (*function)(void *), void *argument) = 0;

  virtual Event *makeEvent() = 0;
  virtual void destroy(Event *) = 0;
  virtual void record(Stream, Event *) = 0;
  virtual void wait(Stream, Event *) = 0;
  /// Returns when what stood before the event's last record is done.
  virtual void synchronize(Event *) = 0;

  /// Both streams begin behind what is on the trainer's, before the first command of a step; the
  /// trainer's goes on behind both, after the last. Where a graph captures the trainer's they are captured
  /// with it, and the graph counts as living.
  virtual void join(bool isCaptured) = 0;
  virtual void leave() = 0;
  /// Instead of `leave`: what has not begun does not begin, and nobody waits for it.
  virtual void abandon() noexcept = 0;
  /// Whether what stood before the last `leave` is done; returns when it is.
  virtual bool isDone() = 0;
  virtual void drain() = 0;

  /// What stands on the streams between the two is recorded as a graph; `replay` puts it on the stream of
  /// kernels as a whole.
  virtual void beginGraph() = 0;
  virtual void endGraph() = 0;
  virtual void replay() = 0;
  virtual void forgetGraph() noexcept = 0;
  /// Which capture of the trainer's its stream is part of, 0: none; and how many graphs hold steps, of those that
  /// captured some and are still there.
  virtual uint64_t captureNumber() { return 0; }
  virtual int64_t livingGraphs() const { return 0; }

protected:
  /// Keeps the first thing that went wrong; an empty text says that nothing did.
  void fail(const std::string &text) {
    if (firstProblem.empty())
      firstProblem = text;
  }

private:
  std::string firstProblem;
};

} // namespace stepc::runtime

#endif
