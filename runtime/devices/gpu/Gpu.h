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

  /// Memory of the GPU, aligned to 256 bytes; null if there is none.
  virtual void *allocate(int64_t bytes) = 0;
  virtual void release(void *memory) = 0;
  /// Memory of the host from which copies to the GPU read directly.
  virtual void *allocateStaging(int64_t bytes) = 0;
  virtual void releaseStaging(void *memory) = 0;
  /// Writes to staging memory what copies will read.
  virtual void stage(void *staging, const void *from, int64_t bytes) {
    std::memcpy(staging, from, size_t(bytes));
  }

  /// Why a pointer of the trainer's does not lead to memory of that kind (stepc_memory); empty if it does.
  virtual std::string checkPointer(const void *, int32_t /*memory*/) { return {}; }
  /// Why no launch like it can begin; empty if one can. `launch` takes only those.
  virtual std::string checkLaunch(const Launch &) const = 0;

  // Products by a library (LibraryProducts.h), if the GPU has one: which library it is and what it computes,
  // the preparation of a product, and its call.
  virtual ProductLibrary library() const { return {}; }
  virtual void prepare(BatchWork &) {}
  virtual void multiply(Stream, const BatchWork &) {}

  /// The stream as the driver's functions take it; null on this machine.
  virtual void *streamHandle(Stream) { return nullptr; }

  /// Tells those that look for races what the next commands use.
  virtual void declare(void (*)(void *, MemoryUses &), void *) {}

  // What stands on a stream happens in order.
  virtual void launch(Stream, const Launch &) = 0;
  virtual void fill(Stream, void *memory, int64_t bytes) = 0; // with zeros
  virtual void upload(Stream, void *to, const void *staging, int64_t bytes) = 0;
  virtual void download(Stream, void *staging, const void *from, int64_t bytes) = 0;
  virtual void move(Stream, void *to, const void *from, int64_t bytes) = 0;
  /// Calls a function of the host between the commands of a stream.
  virtual void call(Stream, void (*function)(void *), void *argument) = 0;

  virtual Event *makeEvent() = 0;
  virtual void destroy(Event *) = 0;
  virtual void record(Stream, Event *) = 0;
  virtual void wait(Stream, Event *) = 0;
  /// Returns when what stood before the event's last record is done.
  virtual void synchronize(Event *) = 0;

  /// `join` lets both streams begin after the work on the trainer's, before the first command of a step.
  /// `leave` lets the trainer's go on after both of them, once the last command is done. If a graph captures
  /// the trainer's stream, both are captured with it, and the graph counts as living.
  virtual void join(bool isCaptured) = 0;
  virtual void leave() = 0;
  /// Instead of `leave`: what has not begun does not begin, and nobody waits for it.
  virtual void abandon() noexcept = 0;
  /// `isDone` says whether all before the last `leave` is done; `drain` returns when it is.
  virtual bool isDone() = 0;
  virtual void drain() = 0;

  /// Records what is enqueued on the streams between the two as a graph. `replay` puts it on the stream of
  /// kernels as a whole.
  virtual void beginGraph() = 0;
  virtual void endGraph() = 0;
  virtual void replay() = 0;
  virtual void forgetGraph() noexcept = 0;
  /// The number of the trainer's capture of which its stream is part, 0: none. `livingGraphs` counts the
  /// graphs that captured steps and still exist.
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
