//===- CudaGraph.h - Steps in graphs of NVIDIA's ------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_CUDAGRAPH_H
#define STEPC_RUNTIME_DEVICES_GPU_CUDAGRAPH_H

#include "runtime/devices/gpu/CudaDriver.h"

#include <atomic>
#include <memory>

namespace stepc::runtime::cuda {

/// The graph of an instance's step, and how many of the trainer's hold one. Functions return what the driver says,
/// and expect the context to be current.
class CudaGraph {
public:
  explicit CudaGraph(const Driver &driver) : driver(driver) {}

  /// Work that is enqueued between the two on the stream, and on those that wait for its events, is recorded.
  Result begin(StreamHandle);
  Result end(StreamHandle);
  Result replay(StreamHandle);
  void forget() noexcept;

  /// What captures a stream: 0 and null where nothing does.
  struct Capture {
    uint64_t number = 0;
    GraphHandle graph = nullptr;
  };
  Result ask(StreamHandle, Capture &);
  /// The graph that is captured counts as living until it and all that was made of it is gone.
  Result hold(const Capture &);
  int64_t living() const { return *held; }

  /// Within its life the thread may ask for events, though a graph is captured that allows it to no thread: none
  /// of ours is part of one that it asks for.
  class Relaxed {
  public:
    explicit Relaxed(const Driver &driver) : driver(driver) { exchange(); }
    ~Relaxed() { exchange(); }
    Relaxed(const Relaxed &) = delete;

  private:
    void exchange() { driver.cuThreadExchangeStreamCaptureMode(&mode); }
    const Driver &driver;
    int mode = kRelaxed;
  };

private:
  const Driver &driver;
  GraphExecHandle step = nullptr;
  // The driver lets go of them whenever it likes, in a thread of its own.
  std::shared_ptr<std::atomic<int64_t>> held = std::make_shared<std::atomic<int64_t>>(0);
};

} // namespace stepc::runtime::cuda

#endif
