//===- CudaGraph.cpp - Steps in graphs of NVIDIA's ---------------------------===//

#include "runtime/devices/gpu/CudaGraph.h"

namespace stepc::runtime::cuda {

// Relaxed: other threads of the trainer's may allocate meanwhile.
Result CudaGraph::begin(StreamHandle stream) {
  return driver.cuStreamBeginCapture_v2(stream, kRelaxed);
}

Result CudaGraph::end(StreamHandle stream) {
  GraphHandle graph = nullptr;
  if (Result wrong = driver.cuStreamEndCapture(stream, &graph))
    return wrong;
  Result result = driver.cuGraphInstantiateWithFlags(&step, graph, 0);
  driver.cuGraphDestroy(graph);
  return result;
}

Result CudaGraph::replay(StreamHandle stream) { return driver.cuGraphLaunch(step, stream); }

void CudaGraph::forget() noexcept {
  if (step)
    driver.cuGraphExecDestroy(step);
  step = nullptr;
}

Result CudaGraph::ask(StreamHandle stream, Capture &capture) {
  int status = 0;
  capture = {};
  Result result = driver.cuStreamGetCaptureInfo_v2(stream, &status, &capture.number, &capture.graph,
                                                   nullptr, nullptr);
  if (status != kActive)
    capture = {};
  return result;
}

Result CudaGraph::hold(const Capture &capture) {
  using Held = std::shared_ptr<std::atomic<int64_t>>;
  auto own = std::make_unique<Held>(held);
  UserObject object = nullptr;
  // Calls nothing of the driver's, which is what it must not do there.
  auto letGo = [](void *given) {
    std::unique_ptr<Held> last(static_cast<Held *>(given));
    --**last;
  };
  if (Result wrong = driver.cuUserObjectCreate(&object, own.get(), letGo, 1, kNoDestructorSync))
    return wrong;
  ++*held;
  own.release(); // the object's
  Result wrong = driver.cuGraphRetainUserObject(capture.graph, object, 1, kMove);
  if (wrong)
    driver.cuUserObjectRelease(object, 1);
  return wrong;
}

} // namespace stepc::runtime::cuda
