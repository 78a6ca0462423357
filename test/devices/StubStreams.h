//===- StubStreams.h - Streams and events of a driver that is the host -------===//
//
// What stands on a stream is done when it is enqueued, or, with STEPC_STUB_ASYNC=<seed>, by a thread of the stream,
// later, after pauses that the seed draws: as on a GPU nothing orders two streams but events.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_DEVICES_STUBSTREAMS_H
#define STEPC_TEST_DEVICES_STUBSTREAMS_H

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

  void enqueue(const void *stream, Work work) {
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
    std::shared_ptr<Event> one = eventOf(event);
    int64_t number = ++one->recorded;
    enqueue(stream, [this, one, number] {
      std::lock_guard lock(mutex);
      one->done = std::max(one->done, number);
      changed.notify_all();
      return true;
    });
  }
  void wait(const void *stream, const void *event) {
    std::shared_ptr<Event> one = eventOf(event);
    int64_t number = one->recorded;
    enqueue(stream, [this, one, number] {
      std::lock_guard lock(mutex);
      return one->done >= number;
    });
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
  /// Of a stream or an event: another may stand at its address. Work that is left is still done.
  void forget(const void *handle) {
    std::lock_guard lock(mutex);
    events.erase(handle);
    queues.erase(handle);
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
};

#endif
