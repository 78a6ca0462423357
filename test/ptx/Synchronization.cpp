//===- Synchronization.cpp - Barriers, fences and meetings -----------------===//

#include "test/ptx/Error.h"
#include "test/ptx/Machine.h"

#include <algorithm>

namespace stepc::ptx {

Mbarrier &Cta::barrier(uint64_t address) {
  auto found = barriers.find(uint32_t(address));
  if (found == barriers.end())
    fail("no barrier was begun at ", address);
  return found->second;
}

void Cta::arrive(Mbarrier &barrier, uint32_t count) {
  if (barrier.pending < count)
    fail("a barrier gets ", count, " arrivals where ", barrier.pending,
         " are expected in this phase");
  barrier.pending -= count;
  advance(barrier);
}

void Cta::expect(Mbarrier &barrier, int64_t bytes) {
  barrier.bytes += bytes;
  if (std::abs(barrier.bytes) >= 1 << 20)
    fail("expected fewer than 2^20 bytes at a barrier, found ", barrier.bytes);
}

void Cta::advance(Mbarrier &barrier) {
  if (barrier.pending)
    return;
  if (barrier.bytes < 0)
    fail("a barrier gets ", -barrier.bytes, " bytes more than it expects");
  if (barrier.bytes == 0) {
    ++barrier.phase;
    barrier.pending = barrier.expected;
  }
}

Cta &Cluster::blockOf(Cta &own, uint64_t &address) {
  uint64_t rank = address >> kRankShift;
  address &= (uint64_t(1) << kRankShift) - 1;
  if (rank > ctas.size())
    fail("expected the address of a block of the cluster, found rank ", rank - 1);
  return rank ? *ctas[rank - 1] : own;
}

namespace {

template <class F> void eachLane(uint32_t mask, F f) {
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      f(lane);
}

uint32_t word(Warp &warp, const Instruction &i, size_t source, uint32_t lane) {
  return warp.at<uint32_t>(i.sources[source])[lane];
}

bool initialize(Warp &warp, const Instruction &i, uint32_t mask) {
  eachLane(mask, [&](uint32_t lane) {
    uint64_t address = warp.address(i.addresses[0], lane);
    uint32_t count = word(warp, i, 0, lane);
    if (address % 8 || !count)
      fail("expected a barrier at a multiple of 8 with at least one arrival");
    if (warp.cta->barriers.count(uint32_t(address)))
      fail("a barrier begins at ", address, ", where one is in use");
    warp.cta->shared.addBarrier(uint32_t(address));
    warp.cta->barriers[uint32_t(address)] = {count, count, 0, 0, false, warp.number};
  });
  return true;
}

bool invalidate(Warp &warp, const Instruction &i, uint32_t mask) {
  eachLane(mask, [&](uint32_t lane) {
    auto address = uint32_t(warp.address(i.addresses[0], lane));
    Mbarrier &barrier = warp.cta->barrier(address);
    if (barrier.pending != barrier.expected || barrier.bytes)
      fail("a barrier ends within a phase");
    warp.cta->barriers.erase(address);
    warp.cta->shared.removeBarrier(address);
  });
  return true;
}

/// a: 1 if bytes are expected first, 2 if nothing arrives, 3 if the number of arrivals is an operand.
bool arrive(Warp &warp, const Instruction &i, uint32_t mask) {
  eachLane(mask, [&](uint32_t lane) {
    uint64_t address = warp.address(i.addresses[0], lane);
    Cta &cta = warp.cta->cluster->blockOf(*warp.cta, address);
    if (!cta.liveWarps)
      fail("an arrival at a barrier of a block that has ended");
    Mbarrier &barrier = cta.barrier(address);
    if (&cta != warp.cta && !barrier.isVisible)
      fail("an arrival at another block's barrier that no fence.mbarrier_init has made visible");
    if (i.a == 1 || i.a == 2)
      cta.expect(barrier, word(warp, i, 0, lane));
    if (!i.destinations.empty())
      warp.at<uint64_t>(i.destinations[0])[lane] = barrier.phase;
    if (i.a != 2)
      cta.arrive(barrier, i.a == 3 ? word(warp, i, 0, lane) : 1);
  });
  return true;
}

/// The parity of a phase that must have ended. a: whether the instruction waits for it.
bool waitParity(Warp &warp, const Instruction &i, uint32_t mask) {
  uint32_t done = 0;
  bool mustWait = false;
  eachLane(mask, [&](uint32_t lane) {
    auto address = uint32_t(warp.address(i.addresses[0], lane));
    uint32_t parity = word(warp, i, 0, lane);
    if (parity > 1)
      fail("expected the parity 0 or 1, found ", parity);
    if ((warp.cta->barrier(address).phase & 1) != parity) {
      done |= uint32_t(1) << lane;
    } else if (i.a && !mustWait && !warp.current->givesUp) {
      mustWait = true;
      warp.current->wait = {Wait::Kind::Mbarrier, address, parity, i.line};
    }
  });
  if (mustWait)
    return false;
  warp.current->givesUp = false;
  uint32_t &result = warp.predicate(i.destinations[0]);
  result = (result & ~mask) | done;
  return true;
}

bool mapAddress(Warp &warp, const Instruction &i, uint32_t mask) {
  eachLane(mask, [&](uint32_t lane) {
    uint64_t address = i.a == 64 ? warp.at<uint64_t>(i.sources[0])[lane] : word(warp, i, 0, lane);
    uint32_t rank = word(warp, i, 1, lane);
    if (rank >= warp.cta->cluster->ctas.size() || address >> kRankShift)
      fail("expected an address of the own block and a rank of the cluster, found ", address,
           " and ", rank);
    address |= uint64_t(rank + 1) << kRankShift;
    if (i.a == 64)
      warp.at<uint64_t>(i.destinations[0])[lane] = address;
    else
      warp.at<uint32_t>(i.destinations[0])[lane] = uint32_t(address);
  });
  return true;
}

/// a: whether it waits. Without a number of threads all of the block's meet.
bool namedBarrier(Warp &warp, const Instruction &i, uint32_t mask) {
  uint32_t number = word(warp, i, 0, 0);
  uint32_t threads =
      i.sources.size() > 1 ? word(warp, i, 1, 0) : 32 * uint32_t(warp.cta->warps.size());
  if (number > 15 || threads % 32 || !threads)
    fail("expected a barrier from 0 to 15 for whole warps, found ", number, " for ", threads,
         " threads");
  NamedBarrier &barrier = warp.cta->named[number];
  if (barrier.arrived && barrier.expected != threads)
    fail("barrier ", number, " is for ", barrier.expected, " and for ", threads, " threads");
  barrier.expected = threads;
  barrier.arrived += 32;
  uint32_t generation = barrier.generation;
  if (barrier.arrived == threads) {
    barrier.arrived = 0;
    ++barrier.generation;
  } else if (i.a) {
    warp.current->wait = {Wait::Kind::Named, number, generation, i.line};
  }
  return true;
}

bool clusterArrive(Warp &warp, const Instruction &i, uint32_t) {
  Cluster &cluster = *warp.cta->cluster;
  if (warp.clusterArrival)
    fail("a second barrier.cluster.arrive without a wait");
  warp.clusterArrival = cluster.generation;
  if (++cluster.arrived == cluster.ctas.size() * warp.cta->warps.size()) {
    cluster.arrived = 0;
    ++cluster.generation;
  }
  return true;
}

bool clusterWait(Warp &warp, const Instruction &i, uint32_t) {
  if (!warp.clusterArrival)
    fail("barrier.cluster.wait without an arrive");
  warp.current->wait = {Wait::Kind::Cluster, 0, *warp.clusterArrival, i.line};
  warp.clusterArrival.reset();
  return true;
}

void forget(Warp &warp, std::vector<Unfenced> &list, uint32_t mask, bool isWrite) {
  std::erase_if(list, [&](const Unfenced &each) {
    if (!(mask >> each.lane & 1))
      return false;
    warp.cta->shared.addUnfenced(each.address, each.bytes, isWrite, -1);
    return true;
  });
}

void showBarriers(Warp &warp) {
  for (auto &[address, barrier] : warp.cta->barriers)
    if (barrier.initializer == warp.number)
      barrier.isVisible = true;
}

bool fenceProxy(Warp &warp, const Instruction &i, uint32_t mask) {
  forget(warp, warp.reads, mask, false);
  forget(warp, warp.writes, mask, true);
  showBarriers(warp);
  return true;
}

bool fenceBarriers(Warp &warp, const Instruction &i, uint32_t) {
  showBarriers(warp);
  return true;
}

bool acquireMap(Warp &warp, const Instruction &i, uint32_t mask) {
  if (i.immediates[0] != 128)
    fail("expected a tensor map of 128 bytes, found ", i.immediates[0]);
  eachLane(mask, [&](uint32_t lane) {
    uint64_t address = warp.address(i.addresses[0], lane);
    if (address % 64)
      fail("expected a tensor map at a multiple of 64, found ", address);
    warp.expectWaited(lane);
    if (address < kSharedWindow)
      warp.machine().memory.read(address, 128);
    warp.acquired[address] |= uint32_t(1) << lane;
  });
  return true;
}

bool waitForKernels(Warp &warp, const Instruction &, uint32_t mask) {
  warp.hasWaited |= mask;
  return true;
}

bool nothing(Warp &, const Instruction &, uint32_t) { return true; }

bool trap(Warp &, const Instruction &, uint32_t) { fail("the kernel stops by a trap"); }

bool elect(Warp &warp, const Instruction &i, uint32_t mask) {
  uint32_t lane = warp.machine().electedLane(mask);
  eachLane(mask, [&](uint32_t each) { warp.at<uint32_t>(i.destinations[0])[each] = lane; });
  uint32_t &result = warp.predicate(i.destinations[1]);
  result = (result & ~mask) | uint32_t(1) << lane;
  return true;
}

/// a: 0 an index, 1 upwards, 2 downwards, 3 a butterfly.
bool shuffle(Warp &warp, const Instruction &i, uint32_t mask) {
  uint32_t given[32], found = 0;
  std::copy_n(warp.at<uint32_t>(i.sources[0]), 32, given);
  eachLane(mask, [&](uint32_t lane) {
    uint32_t by = word(warp, i, 1, lane) & 31, c = word(warp, i, 2, lane);
    uint32_t segment = c >> 8 & 31, last = c & 31;
    uint32_t most = (lane & segment) | (last & ~segment & 31), least = lane & segment;
    uint32_t from = i.a == 0   ? (least | (by & ~segment & 31))
                    : i.a == 1 ? lane - by
                    : i.a == 2 ? lane + by
                               : lane ^ by;
    bool isInside = i.a == 1 ? int32_t(from) >= int32_t(most) : from <= most;
    if (!isInside)
      from = lane;
    if (!(mask >> from & 1))
      fail("a shuffle reads lane ", from, ", which does not take part");
    found |= uint32_t(isInside) << lane;
    warp.at<uint32_t>(i.destinations[0])[lane] = given[from];
  });
  uint32_t &result = warp.predicate(i.destinations[1]);
  result = (result & ~mask) | found;
  return true;
}

/// a: whether registers are added.
bool setRegisters(Warp &warp, const Instruction &i, uint32_t) {
  int64_t count = i.immediates[0];
  if (count < 24 || count > 256 || count % 8)
    fail("expected 24 to 256 registers, a multiple of 8, found ", count);
  warp.registers = uint32_t(count);
  return true;
}

} // namespace

void addSynchronization(Table &table) {
  auto aligned = [](Meaning meaning) {
    meaning.isAligned = true;
    return meaning;
  };
  auto meeting = [](Meaning meaning) {
    meaning.isMeeting = true;
    return meaning;
  };
  for (const std::string space : {".shared", ".shared::cta"}) {
    table["mbarrier.init" + space + ".b64"] = {"m s32", initialize};
    table["mbarrier.inval" + space + ".b64"] = {"m", invalidate};
    for (const std::string order : {"", ".relaxed.cta", ".relaxed.cluster"})
      table["mbarrier.expect_tx" + order + space + ".b64"] = {"m s32", arrive, 2};
    for (const std::string order :
         {"", ".acquire.cta", ".acquire.cluster", ".relaxed.cta", ".relaxed.cluster"})
      for (const std::string kind : {"try_wait", "test_wait"}) {
        std::string name = "mbarrier." + kind + ".parity" + order + space + ".b64";
        table[name + "/3"] = {"dp m s32", waitParity, kind == "try_wait"};
        if (kind == "try_wait")
          table[name + "/4"] = {"dp m s32 s32", waitParity, 1};
      }
  }
  for (const std::string order :
       {"", ".release.cta", ".release.cluster", ".relaxed.cta", ".relaxed.cluster"})
    for (const std::string space : {".shared", ".shared::cta", ".shared::cluster"}) {
      table["mbarrier.arrive" + order + space + ".b64/2"] = {"d64 m", arrive, 0};
      table["mbarrier.arrive" + order + space + ".b64/3"] = {"d64 m s32", arrive, 3};
      table["mbarrier.arrive.expect_tx" + order + space + ".b64"] = {"d64 m s32", arrive, 1};
    }
  table["mapa.shared::cluster.u32"] = {"d32 s32 s32", mapAddress, 32};
  table["mapa.shared::cluster.u64"] = {"d64 s64 s32", mapAddress, 64};
  for (const std::string name :
       {"bar.sync", "barrier.sync", "barrier.cta.sync", "barrier.sync.aligned", "bar.cta.sync",
        "barrier.cta.sync.aligned"}) {
    table[name + "/1"] = aligned({"s32", namedBarrier, 1});
    table[name + "/2"] = aligned({"s32 s32", namedBarrier, 1});
  }
  for (const std::string name :
       {"bar.arrive", "barrier.arrive.aligned", "bar.cta.arrive", "barrier.cta.arrive.aligned"})
    table[name] = aligned({"s32 s32", namedBarrier, 0});
  for (const std::string order : {"", ".release", ".relaxed"})
    table["barrier.cluster.arrive" + order + ".aligned"] = aligned({"", clusterArrive});
  for (const std::string order : {"", ".acquire"})
    table["barrier.cluster.wait" + order + ".aligned"] = aligned({"", clusterWait});
  table["bar.warp.sync"] = meeting({"s32", nothing});
  table["elect.sync"] = meeting({"d32| s32", elect});
  const char *shuffles[] = {"idx", "up", "down", "bfly"};
  for (uint32_t kind = 0; kind < 4; ++kind)
    table[std::string("shfl.sync.") + shuffles[kind] + ".b32"] =
        meeting({"d32| s32 s32 s32 s32", shuffle, kind});
  for (const char *name :
       {"fence.proxy.async", "fence.proxy.async.shared::cta", "fence.proxy.async.shared::cluster"})
    table[name] = {"", fenceProxy};
  table["fence.mbarrier_init.release.cluster"] = {"", fenceBarriers};
  table["fence.proxy.tensormap::generic.acquire.gpu"] = {"m i", acquireMap};
  table["fence.proxy.tensormap::generic.acquire.sys"] = {"m i", acquireMap};
  for (const char *name : {"fence.acq_rel.cta", "fence.acq_rel.cluster", "fence.acq_rel.gpu",
                           "fence.sc.cta", "fence.sc.cluster", "fence.sc.gpu", "membar.cta",
                           "membar.gl", "membar.sys", "griddepcontrol.launch_dependents"})
    table[name] = {"", nothing};
  table["griddepcontrol.wait"] = {"", waitForKernels};
  table["nanosleep.u32"] = {"s32", nothing};
  table["trap"] = {"", trap};
  table["setmaxnreg.inc.sync.aligned.u32"] = aligned({"i", setRegisters});
  table["setmaxnreg.dec.sync.aligned.u32"] = aligned({"i", setRegisters});
}

} // namespace stepc::ptx
