#include "runtime/transports/InProcess.h"
#include "runtime/text/Text.h"
#include "runtime/transports/Messages.h"
#include "stepc/stepc.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace stepc::runtime {
namespace {

struct Handle;

enum class PostState { Waiting, Matched, Done };

/// One side of a message: a send or a receive.
struct Post : Message {
  PostState state = PostState::Waiting;
  Post *partner = nullptr; // once matched
  Handle *handle = nullptr;
  Post *next = nullptr; // in its queue
};

struct Handle {
  std::vector<Post> posts;
  int64_t remaining = 0;
  std::string error;
  bool inUse = false;
};

struct World;

struct Rank {
  World *world = nullptr;
  int32_t rank = 0;
  Messages messages;                            // the messages of the group in `start`
  std::vector<std::unique_ptr<Handle>> handles; // used again, so that steps do not allocate
  std::vector<Post *> ready;                    // matched receives, to be copied by this rank
  std::vector<uint8_t> listed;
  int64_t readers = 0;             // peers that copy from this rank's buffers right now
  std::condition_variable changed; // a message of this rank may go on, or failed
  bool left = false;
  stepc_traffic traffic{};
};

struct Key {
  int32_t source, target;
  int64_t tag;
  bool operator==(const Key &) const = default;
};
struct KeyHash {
  size_t operator()(const Key &key) const {
    uint64_t mixed = uint64_t(key.tag) * 0x9e3779b97f4a7c15ull;
    mixed ^= (uint64_t(uint32_t(key.source)) << 32 | uint32_t(key.target)) + (mixed >> 29);
    return size_t(mixed * 0xbf58476d1ce4e5b9ull);
  }
};
/// Posts of one key that wait for the other side: all are sends, or all are receives.
struct Queue {
  Post *first = nullptr, *last = nullptr;
};

/// How long `test` waits for a peer. Ranks of one process often share cores, and a rank that only polls would
/// take the core of the one that it waits for.
constexpr auto kPatience = std::chrono::microseconds(200);

struct World {
  explicit World(int32_t size) : ranks(size) {}
  std::mutex mutex;
  std::condition_variable copied;
  std::vector<Rank> ranks;
  std::unordered_map<Key, Queue, KeyHash> queues;
  bool aborted = false;
  char abortText[512] = ""; // fixed: an abort must work without memory
  int32_t alive = 0;
};

/// The world is aborted, or a rank has left it.
void tellAll(World &world) {
  for (Rank &rank : world.ranks)
    rank.changed.notify_one();
}

Key keyOf(const Rank &self, const Post &post) {
  return post.isSend ? Key{self.rank, post.peer, post.tag} : Key{post.peer, self.rank, post.tag};
}

void enqueue(Queue &queue, Post &post) {
  post.next = nullptr;
  (queue.last ? queue.last->next : queue.first) = &post;
  queue.last = &post;
}

Post *dequeue(Queue &queue) {
  Post *post = queue.first;
  queue.first = post->next;
  if (!queue.first)
    queue.last = nullptr;
  return post;
}

/// Matches a post with its other side. If the other side has not come, the post waits in the queue.
void match(Rank &self, Post &post) {
  World &world = *self.world;
  Queue &queue = world.queues[keyOf(self, post)];
  if (!queue.first || queue.first->isSend == post.isSend)
    return enqueue(queue, post);
  Post *other = dequeue(queue);
  Post &send = post.isSend ? post : *other, &receive = post.isSend ? *other : post;
  if (send.bytes != receive.bytes) {
    std::string text = format("rank %d sends %lld bytes with tag %lld to rank %d, which expects "
                              "%lld",
                              receive.peer, (long long)send.bytes, (long long)send.tag, send.peer,
                              (long long)receive.bytes);
    send.handle->error = receive.handle->error = text;
    world.ranks[send.peer].changed.notify_one();
    world.ranks[receive.peer].changed.notify_one();
    return;
  }
  send.partner = &receive;
  receive.partner = &send;
  send.state = receive.state = PostState::Matched;
  world.ranks[send.peer].ready.push_back(&receive);
  world.ranks[send.peer].changed.notify_one();
}

Handle &freeHandle(Rank &self) {
  for (auto &handle : self.handles)
    if (!handle->inUse)
      return *handle;
  return *self.handles.emplace_back(std::make_unique<Handle>());
}

int32_t start(void *context, const stepc_operations *group, void **out, char *error,
              int64_t errorSize) try {
  Rank &self = *static_cast<Rank *>(context);
  World &world = *self.world;
  std::string wrong = self.messages.read(*group, self.rank, int32_t(world.ranks.size()));
  if (!wrong.empty()) {
    copyText(error, errorSize, wrong);
    return STEPC_ERROR_ARGUMENT;
  }
  std::lock_guard<std::mutex> lock(world.mutex);
  if (world.aborted) {
    copyText(error, errorSize, world.abortText);
    return STEPC_ERROR_TRANSPORT;
  }
  const std::vector<Message> &messages = self.messages.messages();
  Handle &handle = freeHandle(self);
  handle.posts.assign(messages.size(), Post());
  handle.remaining = int64_t(messages.size());
  handle.error.clear();
  handle.inUse = true;
  for (size_t i = 0; i < messages.size(); ++i) {
    Post &post = handle.posts[i];
    static_cast<Message &>(post) = messages[i];
    post.handle = &handle;
    match(self, post);
  }
  self.messages.copyOwnParts();
  *out = &handle;
  return STEPC_OK;
} catch (...) {
  // Posts that were begun stay in the handle, and `abort` takes them back.
  copyText(error, errorSize, "out of memory");
  return STEPC_ERROR_TRANSPORT;
}

/// Copies what others have sent to this rank. Does not hold the lock while it copies.
void copyReady(Rank &self, std::unique_lock<std::mutex> &lock) {
  World &world = *self.world;
  while (!self.ready.empty() && !world.aborted) {
    Post *receive = self.ready.back();
    self.ready.pop_back();
    Rank &sender = world.ranks[receive->peer];
    ++sender.readers;
    lock.unlock();
    std::memcpy(receive->buffer, receive->partner->buffer, receive->bytes);
    lock.lock();
    // The sender still has its side, because `drop` waits until nobody reads from the sender's buffers.
    receive->state = receive->partner->state = PostState::Done;
    ++self.traffic.messages_received;
    ++sender.traffic.messages_sent;
    self.traffic.bytes_received += receive->bytes;
    sender.traffic.bytes_sent += receive->bytes;
    --receive->handle->remaining;
    --receive->partner->handle->remaining;
    if (--sender.readers == 0)
      world.copied.notify_all();
    if (receive->partner->handle->remaining == 0)
      sender.changed.notify_one();
  }
}

/// Names the peers that a handle waits for: "rank 1, rank 3".
void listPending(Rank &self, const Handle &handle, char *error, int64_t errorSize) {
  if (!error || errorSize <= 0)
    return;
  std::fill(self.listed.begin(), self.listed.end(), uint8_t(0));
  for (const Post &post : handle.posts)
    self.listed[post.peer] |= post.state != PostState::Done;
  int64_t at = 0;
  *error = '\0';
  for (size_t peer = 0; peer < self.listed.size(); ++peer) {
    if (!self.listed[peer] || at + 16 > errorSize)
      continue;
    at += std::snprintf(error + at, errorSize - at, "%srank %zu", at ? ", " : "", peer);
  }
}

/// Takes back all messages that a rank has started, once no peer reads its buffers.
void drop(Rank &self, std::unique_lock<std::mutex> &lock) {
  World &world = *self.world;
  world.copied.wait(lock, [&] { return self.readers == 0; });
  for (auto &[key, queue] : world.queues) {
    Queue kept;
    for (Post *post = queue.first, *next; post; post = next) {
      next = post->next;
      if ((post->isSend ? key.source : key.target) != self.rank)
        enqueue(kept, *post);
    }
    queue = kept;
  }
  self.ready.clear();
  for (auto &handle : self.handles)
    handle->inUse = false;
}

int32_t test(void *context, void *opaque, char *error, int64_t errorSize) try {
  Rank &self = *static_cast<Rank *>(context);
  World &world = *self.world;
  Handle &handle = *static_cast<Handle *>(opaque);
  std::unique_lock<std::mutex> lock(world.mutex);
  char left[48];
  const char *failure = "";
  for (bool hasWaited = false;; hasWaited = true) {
    copyReady(self, lock);
    // A complete group counts as done, even if a peer has aborted since.
    if (handle.remaining == 0) {
      handle.inUse = false;
      return 1;
    }
    failure = world.aborted ? world.abortText : handle.error.c_str();
    for (size_t i = 0; !*failure && i < handle.posts.size(); ++i)
      if (handle.posts[i].state == PostState::Waiting && world.ranks[handle.posts[i].peer].left) {
        std::snprintf(left, sizeof(left), "rank %d has left the world", handle.posts[i].peer);
        failure = left;
      }
    if (*failure)
      break;
    if (hasWaited) {
      listPending(self, handle, error, errorSize);
      return 0;
    }
    self.changed.wait_for(lock, kPatience);
  }
  copyText(error, errorSize, failure);
  // The other side of a broken exchange cannot go on either, so the world is aborted. After `drop` nobody
  // follows pointers into this handle.
  if (!world.aborted) {
    world.aborted = true;
    copyText(world.abortText, sizeof(world.abortText), failure);
    tellAll(world);
  }
  drop(self, lock);
  return -STEPC_ERROR_TRANSPORT;
} catch (...) {
  copyText(error, errorSize, "the in-process transport failed");
  return -STEPC_ERROR_TRANSPORT;
}

void abort(void *context, const char *reason) try {
  Rank &self = *static_cast<Rank *>(context);
  std::unique_lock<std::mutex> lock(self.world->mutex);
  if (!self.world->aborted) {
    self.world->aborted = true;
    std::snprintf(self.world->abortText, sizeof(self.world->abortText), "rank %d aborted: %s",
                  self.rank, reason ? reason : "");
    tellAll(*self.world);
  }
  drop(self, lock);
} catch (...) {
  // The lock failed: nobody can be told.
}

void destroy(void *context) try {
  Rank &self = *static_cast<Rank *>(context);
  World *world = self.world;
  std::unique_lock<std::mutex> lock(world->mutex);
  bool pending = std::any_of(self.handles.begin(), self.handles.end(),
                             [](const auto &handle) { return handle->inUse; });
  if (pending && !world->aborted) {
    world->aborted = true;
    std::snprintf(world->abortText, sizeof(world->abortText),
                  "rank %d has left the world in an exchange", self.rank);
  }
  drop(self, lock);
  self.left = true;
  tellAll(*world);
  bool last = --world->alive == 0;
  lock.unlock();
  if (last)
    delete world;
} catch (...) {
  // The lock failed: the world stays.
}

int32_t open(void *context, const int32_t *members, int32_t count, void **communicator,
             void **handle, char *error, int64_t errorSize) {
  Rank &self = *static_cast<Rank *>(context);
  return openCommunicator(self.rank, int32_t(self.world->ranks.size()), members, count,
                          communicator, handle, error, errorSize);
}

/// Takes no lock. All that the rank has started was done or dropped before this call, and both take the lock.
/// One more lock would order ranks, and so hide their races from ThreadSanitizer.
void traffic(void *context, stepc_traffic *out) { *out = static_cast<Rank *>(context)->traffic; }

} // namespace

void inProcessWorld(int32_t size, stepc_transport *transports) {
  auto world = std::make_unique<World>(size);
  world->alive = size;
  int32_t stride = transports->struct_size;
  auto *at = reinterpret_cast<char *>(transports);
  for (int32_t rank = 0; rank < size; ++rank, at += stride) {
    Rank &self = world->ranks[rank];
    self.world = world.get();
    self.rank = rank;
    self.listed.resize(size);
    *reinterpret_cast<stepc_transport *>(at) = {STEPC_TRANSPORT_VERSION,
                                                int32_t(sizeof(stepc_transport)),
                                                rank,
                                                size,
                                                kMessageKinds,
                                                STEPC_TRANSPORT_TAKES_BACK,
                                                &self,
                                                start,
                                                test,
                                                abort,
                                                destroy,
                                                open,
                                                closeCommunicator,
                                                traffic};
  }
  world.release();
}

} // namespace stepc::runtime
