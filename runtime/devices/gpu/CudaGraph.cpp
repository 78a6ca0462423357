//===- CudaGraph.cpp - Steps in graphs of NVIDIA's ---------------------------===//

#include "runtime/devices/gpu/CudaGraph.h"

namespace stepc::runtime::cuda {

// In relaxed mode, because other threads of the trainer's may allocate during the capture.
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
  int status = kNone;
  Capture found;
  Result result = driver.cuStreamGetCaptureInfo_v2(stream, &status, &found.number, &found.graph,
                                                   nullptr, nullptr);
  capture = result == 0 && status != kNone ? found : Capture{};
  capture.isBroken = status == kInvalidated;
  return result;
}

Result CudaGraph::hold(const Capture &capture) {
  using Held = std::shared_ptr<std::atomic<int64_t>>;
  auto own = std::make_unique<Held>(held);
  UserObject object = nullptr;
  // The driver forbids this function to call the driver, and it does not.
  auto letGo = [](void *given) {
    std::unique_ptr<Held> last(static_cast<Held *>(given));
    --**last;
  };
  if (Result wrong = driver.cuUserObjectCreate(&object, own.get(), letGo, 1, kNoDestructorSync))
    return wrong;
  ++*held;
  own.release(); // the user object owns it now
  Result wrong = driver.cuGraphRetainUserObject(capture.graph, object, 1, kMove);
  if (wrong)
    driver.cuUserObjectRelease(object, 1);
  return wrong;
}

} // namespace stepc::runtime::cuda
