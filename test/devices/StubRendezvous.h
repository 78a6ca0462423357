//===- StubRendezvous.h - Where ranks that are threads meet ------*- C++ -*-===//
//
// What StubNccl.cpp knows of communicators, and how groups of different ranks come together. All of it under
// one lock.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_DEVICES_STUBRENDEZVOUS_H
#define STEPC_TEST_DEVICES_STUBRENDEZVOUS_H

#include "runtime/text/Text.h"
#include "runtime/transports/NcclLibrary.h"

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace stub_nccl {

using namespace stepc::runtime;
using namespace stepc::runtime::nccl;

inline constexpr Result kUnhandledCuda = 1, kInvalidArgument = 4, kInvalidUsage = 5, kRemote = 6;

struct Communicator;

enum class Kind { Send, Receive, AllGather, ReduceScatter, AllReduce };

struct Operation {
  Kind kind;
  const void *send;
  void *receive;
  size_t count;
  DataType type;
  int peer;
  Communicator *communicator;
  bool isDone = false;
};

/// A group of one rank.
struct Job {
  std::vector<std::unique_ptr<Operation>> operations;
  bool isDropped = false;
  std::shared_ptr<Job> copy() const {
    auto made = std::make_shared<Job>();
    for (auto &operation : operations)
      made->operations.push_back(std::make_unique<Operation>(*operation));
    return made;
  }
  bool isDone() const {
    for (auto &operation : operations)
      if (!operation->isDone && !isDropped)
        return false;
    return true;
  }
};

/// Ranks that share a communicator.
struct Clique {
  std::vector<Communicator *> ranks;
  int present = 0;
  std::map<std::pair<int, int>, std::deque<Operation *>> sends, receives; // by source and target
  std::map<int64_t, std::vector<Operation *>> collectives;                // by number, then rank
  struct Split {
    int color, key;
    Communicator **made;
  };
  std::map<int64_t, std::vector<std::optional<Split>>> splits;
};

struct Communicator {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  Communicator *world = nullptr; // that it was split from, or itself
  int64_t collectives = 0, splits = 0;
  bool isSplitting = false, isFinalized = false, isGone = false;
  Result failure = 0;
  // Of a world: what this rank has under way, on any communicator, and how many groups it began.
  std::shared_ptr<Job> job;
  int64_t groups = 0;
};

// Never freed: what is used too late is found out, and a thread that aborts a world may outlive the end of main.
inline std::mutex &mutex = *new std::mutex; // of all
inline auto &worlds = *new std::map<uint64_t, std::shared_ptr<Clique>>;
inline uint64_t ids = 0;
inline auto &all = *new std::vector<std::unique_ptr<Communicator>>;
inline auto &lastError = *new std::string;

inline size_t sizeOf(DataType type) {
  return type == kFloat64 ? 8 : type == kFloat32 ? 4 : type == kBytes ? 1 : 2;
}

inline void fail(Operation &one, Operation &other, const std::string &text) {
  lastError = text;
  one.communicator->failure = other.communicator->failure = kInvalidUsage;
}

inline void match(Operation &send, Operation &receive) {
  if (send.count != receive.count || send.type != receive.type)
    return fail(send, receive,
                format("rank %d sends %zu of type %d to rank %d, which expects %zu of type %d",
                       receive.peer, send.count, send.type, send.peer, receive.count,
                       receive.type));
  std::memcpy(receive.receive, send.send, send.count * sizeOf(send.type));
  send.isDone = receive.isDone = true;
}

inline void postMessage(Operation &operation) {
  Communicator &self = *operation.communicator;
  bool sends = operation.kind == Kind::Send;
  std::pair key =
      sends ? std::pair(self.rank, operation.peer) : std::pair(operation.peer, self.rank);
  auto &others = (sends ? self.clique->receives : self.clique->sends)[key];
  if (others.empty()) {
    (sends ? self.clique->sends : self.clique->receives)[key].push_back(&operation);
    return;
  }
  Operation &other = *others.front();
  others.pop_front();
  match(sends ? operation : other, sends ? other : operation);
}

template <typename T>
inline void addUp(const std::vector<Operation *> &ranks, size_t first, size_t count, T *out) {
  for (size_t i = 0; i < count; ++i) {
    T sum = 0;
    for (Operation *one : ranks)
      sum += static_cast<const T *>(one->send)[first + i];
    out[i] = sum;
  }
}

inline void carryOut(const std::vector<Operation *> &ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    Operation &mine = *ranks[rank];
    size_t bytes = mine.count * sizeOf(mine.type);
    for (size_t from = 0; from < ranks.size() && mine.kind == Kind::AllGather; ++from)
      // The sender's part may be its own place in what it receives.
      std::memmove(static_cast<char *>(mine.receive) + from * bytes, ranks[from]->send, bytes);
    size_t first = mine.kind == Kind::ReduceScatter ? rank * mine.count : 0;
    if (mine.kind != Kind::AllGather && mine.type == kFloat32)
      addUp(ranks, first, mine.count, static_cast<float *>(mine.receive));
    mine.isDone = true;
  }
}

inline void postCollective(Operation &operation) {
  Communicator &self = *operation.communicator;
  int64_t number = self.collectives++;
  auto &ranks = self.clique->collectives[number];
  ranks.resize(self.clique->ranks.size());
  for (Operation *other : ranks)
    if (other && (other->kind != operation.kind || other->count != operation.count ||
                  other->type != operation.type))
      return fail(operation, *other,
                  format("collective %lld: rank %d does kind %d of %zu, rank %d kind %d of %zu",
                         (long long)number, self.rank, int(operation.kind), operation.count,
                         other->communicator->rank, int(other->kind), other->count));
  ranks[size_t(self.rank)] = &operation;
  for (Operation *other : ranks)
    if (!other)
      return;
  carryOut(ranks);
  self.clique->collectives.erase(number);
}

/// Ranks that all wait would wait for ever.
inline void findDeadlock(Communicator &world) {
  Clique &clique = *world.clique;
  std::string text = "all ranks wait:";
  for (Communicator *rank : clique.ranks) {
    if (!rank || rank->failure || !rank->job || rank->job->isDone())
      return;
    for (auto &operation : rank->job->operations)
      if (!operation->isDone) {
        text += format(" rank %d for kind %d with rank %d of %zu;", rank->rank,
                       int(operation->kind), operation->peer, operation->count);
        break;
      }
  }
  lastError = text;
  for (Communicator *rank : clique.ranks)
    rank->failure = rank->job->operations.front()->communicator->failure = kInvalidUsage;
}

inline void forget(Communicator &world) {
  if (!world.job)
    return;
  for (auto &operation : world.job->operations) {
    Clique &clique = *operation->communicator->clique;
    for (auto *queues : {&clique.sends, &clique.receives})
      for (auto &[key, queue] : *queues)
        std::erase(queue, operation.get());
    for (auto &[number, ranks] : clique.collectives)
      for (Operation *&one : ranks)
        if (one == operation.get())
          one = nullptr;
  }
  world.job->isDropped = true; // what stands behind it on its stream goes on
  world.job.reset();
}

/// A group whose turn has come on its stream.
inline void post(Communicator &world, std::shared_ptr<Job> job) {
  if (world.isGone) {
    job->isDropped = true;
    return;
  }
  world.job = std::move(job);
  for (auto &operation : world.job->operations)
    (operation->kind <= Kind::Receive ? postMessage : postCollective)(*operation);
  findDeadlock(world);
}

inline void completeSplit(Clique &parent, int64_t number) {
  auto &given = parent.splits[number];
  std::map<int, std::map<std::pair<int, int>, size_t>> colors; // by key and rank
  for (size_t rank = 0; rank < given.size(); ++rank)
    if (given[rank]->color >= 0)
      colors[given[rank]->color][{given[rank]->key, int(rank)}] = rank;
  for (auto &[color, members] : colors) {
    auto clique = std::make_shared<Clique>();
    for (auto &[key, rank] : members) {
      auto made = std::make_unique<Communicator>();
      made->clique = clique;
      made->rank = int(clique->ranks.size());
      made->world = parent.ranks[rank]->world;
      clique->ranks.push_back(made.get());
      *given[rank]->made = made.get();
      all.push_back(std::move(made));
    }
    clique->present = int(clique->ranks.size());
  }
  for (Communicator *rank : parent.ranks)
    rank->isSplitting = false;
  parent.splits.erase(number);
}

} // namespace stub_nccl

#endif
