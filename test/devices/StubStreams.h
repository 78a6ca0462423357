//===- StubStreams.h - Streams and events of a driver that is the host -------===//
//
// What stands on a stream is done when it is enqueued, or, with STEPC_STUB_ASYNC=<seed>, by a thread of the stream,
// later, after pauses that the seed draws: as on a GPU nothing orders two streams but events.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_DEVICES_STUBSTREAMS_H
#define STEPC_TEST_DEVICES_STUBSTREAMS_H

#include "test/devices/StubGraph.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

class StubStreams {
public:
  /// False: not yet, ask again.
  using Work = std::function<bool()>;

  bool isAsync() const { return seed != nullptr; }

  /// The codes of the driver for what a capture does not allow.
  static constexpr int kUnsupported = 900, kUnjoined = 904, kIsolation = 905, kCaptured = 907;

  void enqueue(const void *stream, Work work) {
    if (auto graph = captureOf(stream)) {
      graph->nodes.push_back({stream, std::move(work)});
      return;
    }
    if (!isAsync()) {
      while (!work())
        std::this_thread::yield();
      return;
    }
    std::lock_guard lock(mutex);
    queueOf(stream).works.push_back(std::move(work));
    changed.notify_all();
  }

  void record(const void *event, const void *stream) {
    std::shared_ptr<StubGraph> graph = captureOf(stream);
    {
      std::lock_guard lock(mutex);
      captured.erase(event);
      if (graph) {
        captured[event] = graph;
        graph->records[event] = int64_t(graph->nodes.size());
        graph->nodes.push_back({stream, nullptr});
        return;
      }
    }
    std::shared_ptr<Event> one = eventOf(event);
    int64_t number = ++one->recorded;
    enqueue(stream, [this, one, number] {
      std::lock_guard lock(mutex);
      one->done = std::max(one->done, number);
      changed.notify_all();
      return true;
    });
  }
  int wait(const void *stream, const void *event) {
    {
      std::lock_guard lock(mutex);
      auto graph = captured.find(event);
      auto own = captures.find(stream);
      if (graph != captured.end() || own != captures.end()) {
        if (graph == captured.end() || (own != captures.end() && own->second != graph->second))
          return kIsolation;
        captures[stream] = graph->second;
        graph->second->nodes.push_back({stream, nullptr, graph->second->records.at(event)});
        return 0;
      }
    }
    std::shared_ptr<Event> one = eventOf(event);
    int64_t number = one->recorded;
    enqueue(stream, [this, one, number] {
      std::lock_guard lock(mutex);
      return one->done >= number;
    });
    return 0;
  }
  bool isDone(const void *event) {
    std::shared_ptr<Event> one = eventOf(event);
    std::lock_guard lock(mutex);
    return one->done >= one->recorded;
  }
  void synchronizeEvent(const void *event) {
    std::shared_ptr<Event> one = eventOf(event);
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return one->done >= one->recorded; });
  }
  void synchronize(const void *stream) {
    std::unique_lock lock(mutex);
    Queue &queue = queueOf(stream);
    changed.wait(lock, [&] { return queue.works.empty(); });
  }
  bool isCaptured(const void *event) {
    std::lock_guard lock(mutex);
    return captured.count(event) > 0;
  }

  /// The graph that captures a stream.
  std::shared_ptr<StubGraph> captureOf(const void *stream) {
    std::lock_guard lock(mutex);
    auto found = captures.find(stream);
    return found == captures.end() ? nullptr : found->second;
  }
  /// Whether a capture goes on that forbids all threads what may wait.
  bool isForbidden() {
    std::lock_guard lock(mutex);
    return std::any_of(captures.begin(), captures.end(),
                       [](auto &one) { return one.second->mode == 0; });
  }
  int beginCapture(const void *stream, int mode) {
    if (!stream || captureOf(stream))
      return kUnsupported;
    std::lock_guard lock(mutex);
    captures[stream] = std::make_shared<StubGraph>();
    captures[stream]->origin = stream;
    captures[stream]->mode = mode;
    captures[stream]->number = ++made;
    return 0;
  }
  /// Null with a code.
  int endCapture(const void *stream, std::shared_ptr<StubGraph> &graph) {
    graph = captureOf(stream);
    if (!graph || graph->origin != stream)
      return kUnsupported;
    std::lock_guard lock(mutex);
    std::erase_if(captures, [&](auto &one) { return one.second == graph; });
    std::erase_if(captured, [&](auto &one) { return one.second == graph; });
    return graph->isJoined() ? 0 : kUnjoined;
  }

  /// Of a stream or an event: another may stand at its address. Work that is left is still done.
  void forget(const void *handle) {
    std::lock_guard lock(mutex);
    events.erase(handle);
    queues.erase(handle);
    captures.erase(handle);
    captured.erase(handle);
  }

private:
  struct Event {
    int64_t recorded = 0, done = 0;
  };
  struct Queue {
    std::deque<Work> works;
  };

  std::shared_ptr<Event> eventOf(const void *event) {
    std::lock_guard lock(mutex);
    std::shared_ptr<Event> &one = events[event];
    if (!one)
      one = std::make_shared<Event>();
    return one;
  }

  /// Each rank, which is a thread, has a default stream of its own, as ranks on GPUs have.
  Queue &queueOf(const void *stream) {
    static thread_local char own;
    std::shared_ptr<Queue> &queue = queues[stream ? stream : &own];
    if (!queue) {
      queue = std::make_shared<Queue>();
      if (isAsync())
        std::thread([this, queue,
                     random =
                         std::mt19937_64(std::strtoull(seed, nullptr, 10) + ++made)]() mutable {
          carryOut(*queue, random);
        }).detach();
    }
    return *queue;
  }

  /// As long as the process lives.
  void carryOut(Queue &queue, std::mt19937_64 &random) {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return !queue.works.empty(); });
      Work &work = queue.works.front();
      lock.unlock();
      if (random() % 4 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      bool isDone = work();
      lock.lock();
      if (isDone) {
        queue.works.pop_front();
        changed.notify_all();
      } else {
        changed.wait_for(lock, std::chrono::microseconds(200));
      }
    }
  }

  const char *const seed = std::getenv("STEPC_STUB_ASYNC");
  uint64_t made = 0;
  std::mutex mutex; // of all
  std::condition_variable changed;
  std::map<const void *, std::shared_ptr<Event>> events;
  std::map<const void *, std::shared_ptr<Queue>> queues;
  std::map<const void *, std::shared_ptr<StubGraph>> captures; // by stream
  std::map<const void *, std::shared_ptr<StubGraph>> captured; // by event
};

#endif
