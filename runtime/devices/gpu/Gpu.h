//===- Gpu.h - What a device of the kind asks of a GPU -----------*- C++ -*-===//
//
// The few calls by which a step reaches a GPU. The device above them (GpuDevice.h) is the same on NVIDIA's
// driver and on this machine. A function waits only if its comment says so. If a call fails, `takeProblem()`
// says why.
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

  /// The first problem since the last call; empty if there was none.
  std::string takeProblem() { return std::exchange(firstProblem, {}); }

  /// Memory of the GPU, aligned to 256 bytes. Null if none is left.
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
  /// Returns why no such launch can begin; empty if it can. `launch` may be called only for launches that
  /// can.
  virtual std::string checkLaunch(const Launch &) const = 0;

  // Products by a library (LibraryProducts.h), if the GPU has one. `library` names the library and what it
  // computes, `prepare` prepares a product, and `multiply` computes it.
  virtual ProductLibrary library() const { return {}; }
  virtual void prepare(BatchWork &) {}
  virtual void multiply(Stream, const BatchWork &) {}

  // Launches over lists of tiles (Device.h). `lists` is how many the GPU works off at a time.
  // `mapMatrices` makes a map of matrices by `makeMap`, if no tensor load would refuse them.
  virtual int64_t lists(const Launch &) const = 0;
  void mapMatrices(const MatrixStack &, stepc_tensor_map &);
  virtual void makeMap(const MatrixStack &, stepc_tensor_map &) = 0;

  /// The stream as the driver's functions take it; null on this machine.
  virtual void *streamHandle(Stream) { return nullptr; }

  /// Tells GPUs that look for races what the next command uses (Device.h).
  virtual void declare(void (*)(void *, MemoryUses &), void *) {}

  // Commands on a stream happen in order.
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
  /// Waits until all is done that stood before the event's last record.
  virtual void synchronize(Event *) = 0;

  /// `join` makes both streams wait for the trainer's stream, before the first command of a step. `leave`
  /// makes the trainer's stream wait for both, after the last command. If a graph captures the trainer's
  /// stream, it captures both streams too, and counts as living.
  virtual void join(bool isCaptured) = 0;
  virtual void leave() = 0;
  /// Called instead of `leave`. Commands that have not begun do not begin, and nobody waits for them.
  virtual void abandon() noexcept = 0;
  /// `isDone` says whether all before the last `leave` is done. `drain` waits until it is.
  virtual bool isDone() = 0;
  virtual void drain() = 0;

  /// Records what is enqueued between `beginGraph` and `endGraph` as a graph. `replay` puts the whole graph
  /// on the stream of kernels.
  virtual void beginGraph() = 0;
  virtual void endGraph() = 0;
  virtual void replay() = 0;
  virtual void forgetGraph() noexcept = 0;
  /// The number of the capture of which the trainer's stream is part; 0 if none. `livingGraphs` counts the
  /// trainer's graphs that hold steps and still exist.
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
