//===- CudaGraph.h - Steps in graphs of NVIDIA's ------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_CUDAGRAPH_H
#define STEPC_RUNTIME_DEVICES_GPU_CUDAGRAPH_H

#include "runtime/devices/gpu/CudaDriver.h"

#include <atomic>
#include <memory>

namespace stepc::runtime::cuda {

/// The graph of an instance's step, and the number of the trainer's graphs that hold such steps. Functions
/// return the driver's result. The context must be current.
class CudaGraph {
public:
  explicit CudaGraph(const Driver &driver) : driver(driver) {}

  /// Records the work that is enqueued between `begin` and `end` on the stream, and on streams that wait for
  /// its events.
  Result begin(StreamHandle);
  Result end(StreamHandle);
  Result replay(StreamHandle);
  void forget() noexcept;

  /// The capture of which a stream is part. Number 0 and a null graph if there is none.
  struct Capture {
    uint64_t number = 0;
    GraphHandle graph = nullptr;
    bool isBroken = false; ///< a forbidden call has broken it, and it can only end
  };
  Result ask(StreamHandle, Capture &);
  /// Counts the captured graph as living until the graph, and all that was made from it, is destroyed.
  Result hold(const Capture &);
  int64_t living() const { return *held; }

  /// While this object lives, its thread may query events, even if a capture forbids that to all threads. The
  /// queried events must not be part of a capture.
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
  // Shared, because the driver releases graphs at any time, in a thread of its own.
  std::shared_ptr<std::atomic<int64_t>> held = std::make_shared<std::atomic<int64_t>>(0);
};

} // namespace stepc::runtime::cuda

#endif
