//===- ProbeRanks.cpp - What messages between ranks take -------------------===//

#include "runtime/text/Plural.h"
#include "tools/stepc/Probe.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <cstring>
#include <thread>

using namespace stepc;
using namespace stepc::driver;
using llvm::Error;

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(60);
constexpr int64_t kNameBytes = 256, kMostBytes = 32 << 20;
constexpr int64_t kSizes[] = {1 << 10, 16 << 10, 256 << 10, 4 << 20};
constexpr int kWarmUps = 2, kTurns = 7;

Error failure(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// "2 ranks that are there"
std::string thatAreThere(int64_t size) {
  return plural(size, "rank") + (size == 1 ? " that is there" : " that are there");
}

stepc_operation operation(int32_t kind, int64_t peer, const void *send, void *receive,
                          int64_t bytes) {
  return {kind, int32_t(peer), nullptr, send, receive, bytes, 1, 0, 0};
}

} // namespace

llvm::Expected<std::vector<ProbedLevel>>
driver::levelsOf(const std::vector<std::string> &hosts,
                 const std::vector<std::pair<std::string, int64_t>> &given) {
  auto size = int64_t(hosts.size());
  std::vector<ProbedLevel> levels;
  for (const auto &[name, ranks] : given) {
    int64_t inner = levels.empty() ? 1 : levels.back().ranks;
    if (ranks < 2)
      return failure("expected a level of 2 ranks or more, found " + llvm::Twine(ranks) + " of '" +
                     name + "'");
    for (const ProbedLevel &other : levels)
      if (other.name == name)
        return failure("expected a name that no other level has, found '" + name + "' twice");
    if (ranks % inner != 0 || (!levels.empty() && ranks == inner))
      return failure("expected levels that grow by whole factors, found " + plural(ranks, "rank") +
                     " of '" + name + "' after " + llvm::Twine(inner));
    if (ranks > size)
      return failure("expected a level of at most the " + thatAreThere(size) + ", found " +
                     llvm::Twine(ranks) + " of '" + name + "'");
    levels.push_back({name, ranks});
  }
  // Otherwise there are no links between domains of the last level that could be measured.
  if (!levels.empty() && levels.back().ranks != size && levels.back().ranks * 2 > size)
    return failure("expected a level of which several fit into the " + thatAreThere(size) +
                   ", found " + llvm::Twine(levels.back().ranks) + " of '" + levels.back().name +
                   "'");
  if (given.empty()) {
    int64_t first = 1; // ranks of the first host
    while (first < size && hosts[first] == hosts[0])
      ++first;
    for (int64_t rank = 0; rank < size; ++rank)
      if (size % first != 0 || hosts[rank] != hosts[rank - rank % first] ||
          (rank % first == 0 && rank > 0 && hosts[rank] == hosts[rank - 1]))
        return failure("expected as many ranks with consecutive numbers on each host, as on the "
                       "first one (" +
                       llvm::Twine(first) + "), found another host at rank " + llvm::Twine(rank));
    if (first > 1)
      levels.push_back({"node", first});
  }
  if (!levels.empty() && levels.back().ranks == size)
    levels.back().ranks = cost::Level::kAll;
  else
    levels.push_back({"network", cost::Level::kAll});
  return levels;
}

double ProbeRanks::steadySeconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

Error ProbeRanks::run(const std::vector<stepc_operation> &operations) {
  stepc_operations group{sizeof(stepc_operations), sizeof(stepc_operation), operations.data(),
                         int64_t(operations.size()), nullptr};
  char text[512] = "";
  void *handle = nullptr;
  if (operations.empty())
    return Error::success();
  if (transport.start(transport.context, &group, &handle, text, sizeof text))
    return failure(text);
  auto end = Clock::now() + kPatience;
  for (;;) {
    int32_t status = transport.test(transport.context, handle, text, sizeof text);
    if (status > 0)
      return Error::success();
    if (status < 0)
      return failure(text);
    if (Clock::now() > end) {
      std::string reason = llvm::formatv("no answer from {0} in {1} seconds", text,
                                         std::chrono::seconds(kPatience).count());
      transport.abort(transport.context, reason.c_str());
      return failure(reason);
    }
    std::this_thread::yield(); // ranks may share cores
  }
}

llvm::Expected<std::vector<std::string>> ProbeRanks::exchangeNames(const std::string &mine) {
  std::vector<char> own(kNameBytes), all(kNameBytes * size());
  std::memcpy(own.data(), mine.data(), std::min<size_t>(mine.size(), kNameBytes - 1));
  std::vector<stepc_operation> operations;
  for (int peer = 0; peer < size(); ++peer) {
    char *place = all.data() + kNameBytes * peer;
    if (peer == rank()) {
      std::memcpy(place, own.data(), kNameBytes);
      continue;
    }
    operations.push_back(operation(STEPC_SEND, peer, own.data(), nullptr, kNameBytes));
    operations.push_back(operation(STEPC_RECEIVE, peer, nullptr, place, kNameBytes));
  }
  if (Error error = run(operations))
    return error;
  std::vector<std::string> names;
  for (int peer = 0; peer < size(); ++peer)
    names.emplace_back(all.data() + kNameBytes * peer);
  return names;
}

llvm::Expected<double> ProbeRanks::largest(double mine) {
  std::vector<double> all(size());
  double result = mine;
  std::vector<stepc_operation> there, back;
  for (int peer = 1; peer < size(); ++peer)
    if (rank() == 0) {
      there.push_back(operation(STEPC_RECEIVE, peer, nullptr, &all[peer], sizeof(double)));
      back.push_back(operation(STEPC_SEND, peer, &result, nullptr, sizeof(double)));
    } else if (rank() == peer) {
      there.push_back(operation(STEPC_SEND, 0, &mine, nullptr, sizeof(double)));
      back.push_back(operation(STEPC_RECEIVE, 0, nullptr, &result, sizeof(double)));
    }
  if (Error error = run(there))
    return error;
  if (rank() == 0)
    result = std::max(result, *llvm::max_element(all));
  if (Error error = run(back))
    return error;
  return result;
}

Error ProbeRanks::measure(ProbedLevel &level, int64_t inner) {
  // This rank's domain consists of `domains` whole inner domains. Ranks that are left over take no part.
  int64_t first = rank() / level.ranks * level.ranks;
  int64_t count = std::min<int64_t>(level.ranks, size() - first), domains = count / inner;
  int64_t domain = (rank() - first) / inner, place = (rank() - first) % inner;
  bool takesPart = domains > 1 && domain < domains;
  auto peer = [&](int64_t domainAway, int64_t placeAway) {
    return first + (domain + domainAway + domains) % domains * inner +
           (place + placeAway + inner) % inner;
  };
  llvm::Expected<double> most = largest(takesPart ? double((domains - 1) * inner) : 0);
  if (!most)
    return most.takeError();
  std::vector<char> sent(*std::max_element(std::begin(kSizes), std::end(kSizes)), 1);
  for (int64_t messages = 1; messages <= int64_t(*most) && messages <= 16; messages *= 2)
    for (int64_t bytes : kSizes) {
      if (messages * bytes > kMostBytes)
        continue;
      std::vector<char> received(messages * bytes);
      std::vector<stepc_operation> operations;
      // Each rank sends to ranks ahead of it and receives from ranks as far behind it, so all ranks have as
      // much to do.
      for (int64_t i = 0; takesPart && i < std::min(messages, (domains - 1) * inner); ++i) {
        int64_t away = 1 + i % (domains - 1), turn = i / (domains - 1);
        operations.push_back(operation(STEPC_SEND, peer(away, turn), sent.data(), nullptr, bytes));
        operations.push_back(operation(STEPC_RECEIVE, peer(-away, -turn), nullptr,
                                       received.data() + i * bytes, bytes));
      }
      std::vector<double> times;
      for (int turn = 0; turn < kWarmUps + kTurns; ++turn) {
        if (llvm::Expected<double> together = largest(0); !together)
          return together.takeError();
        double begin = clock();
        if (Error error = run(operations))
          return error;
        llvm::Expected<double> slowest = largest(clock() - begin);
        if (!slowest)
          return slowest.takeError();
        if (turn >= kWarmUps)
          times.push_back(*slowest);
      }
      llvm::sort(times);
      level.samples.push_back(
          {double(messages), double(bytes), std::max(times[times.size() / 2], 1e-9)});
    }
  return Error::success();
}

Error ProbeRanks::measure(std::vector<ProbedLevel> &levels) {
  int64_t inner = 1;
  for (ProbedLevel &level : levels) {
    if (Error error = measure(level, inner))
      return error;
    inner = level.ranks;
  }
  return Error::success();
}
