//===- Machine.cpp - A GPU that runs PTX in drawn orders -------------------===//

#include "test/ptx/Machine.h"
#include "test/ptx/Error.h"

#include <algorithm>

namespace stepc::ptx {

Machine::Machine(uint64_t seed) : random(seed) {
  const uint32_t latencies[] = {1, 40, 400, 4000, 200000}, turns[] = {1, 8, 60, 400};
  latency = latencies[random.below(5)];
  most = turns[random.below(4)];
  election = random.below(32);
}

uint64_t Machine::dueTime() { return clock + 1 + random.below(latency); }

uint32_t Machine::electedLane(uint32_t mask) const {
  uint32_t lane = election;
  while (!(mask >> lane & 1))
    lane = (lane + 1) % 32;
  return lane;
}

void Warp::expectWaited(uint32_t lane) {
  if (machine().isDependent && !(hasWaited >> lane & 1))
    fail("an access of the GPU's memory by a thread that has not waited for the kernels before "
         "(griddepcontrol.wait)");
}

uint32_t Warp::liveLanes() const {
  uint32_t mask = 0;
  for (const Lanes &each : lanes)
    mask |= each.mask;
  return mask;
}

std::unique_ptr<Cluster> Machine::begin(const Launch &launch, uint32_t number) {
  const Program &program = *launch.program;
  auto cluster = std::make_unique<Cluster>();
  cluster->machine = this;
  cluster->program = &program;
  cluster->number = number;
  cluster->parameters = &launch.parameters;
  cluster->clusters = launch.clusters;
  uint32_t blocks = program.kernel.clusterBlocks;
  for (uint32_t rank = 0; rank < blocks; ++rank) {
    uint32_t bytes = program.dynamicBegin - SharedMemory::kBegin + launch.dynamicBytes;
    auto &cta = cluster->ctas.emplace_back(std::make_unique<Cta>(bytes));
    cta->cluster = cluster.get();
    cta->rank = rank;
    cta->number = number * blocks + rank;
    cta->warps.resize(program.kernel.threads / 32);
    cta->liveWarps = uint32_t(cta->warps.size());
    cluster->liveWarps += cta->liveWarps;
    for (uint32_t w = 0; w < cta->warps.size(); ++w) {
      Warp &warp = cta->warps[w];
      warp.cta = cta.get();
      warp.number = w;
      // Registers begin with what no kernel may rely on.
      warp.file.assign(program.fileWords, 0xa5a5a5a5);
      warp.busy.assign(program.registerCount, 0);
      warp.written.assign(program.registerCount, 0);
      warp.read.assign(program.registerCount, 0);
      warp.lanes.push_back({~uint32_t(0), 0, {}});
      warp.slowness = random.below(4) ? 1 : 1 + random.below(12);
      for (const Program::Constant &each : program.constants) {
        warp.written[each.slot.index] = 1;
        if (each.kind == RegisterKind::Predicate)
          warp.predicate(each.slot) = uint32_t(each.value);
        else if (each.kind == RegisterKind::Bits64)
          std::fill_n(warp.at<uint64_t>(each.slot), 32,
                      each.value + (each.global >= 0 ? variables[size_t(each.global)] : 0));
        else
          std::fill_n(warp.at<uint32_t>(each.slot), 32, uint32_t(each.value));
      }
      for (auto &[slot, special] : program.specials) {
        warp.written[slot.index] = 1;
        for (uint32_t lane = 0; lane < 32; ++lane) {
          uint32_t value = 0;
          switch (special) {
          case Special::Lane:
            value = lane;
            break;
          case Special::Warp:
            value = w;
            break;
          case Special::Thread:
            value = 32 * w + lane;
            break;
          case Special::Block:
            value = cta->number;
            break;
          case Special::Blocks:
            value = launch.clusters * blocks;
            break;
          case Special::ClusterRank:
            value = rank;
            break;
          case Special::ClusterBlocks:
            value = blocks;
            break;
          case Special::ClusterNumber:
            value = number;
            break;
          case Special::Threads:
            value = program.kernel.threads;
            break;
          }
          warp.at<uint32_t>(slot)[lane] = value;
        }
      }
    }
  }
  return cluster;
}

bool Machine::isReady(const Warp &warp, const Lanes &lanes) const {
  const Wait &wait = lanes.wait;
  switch (wait.kind) {
  case Wait::Kind::None:
    return true;
  case Wait::Kind::Mbarrier: {
    auto found = warp.cta->barriers.find(wait.at);
    return found == warp.cta->barriers.end() || (found->second.phase & 1) != wait.phase;
  }
  case Wait::Kind::Named:
    return warp.cta->named[wait.at].generation != wait.phase;
  case Wait::Kind::Cluster:
    return warp.cta->cluster->generation != wait.phase;
  case Wait::Kind::Meeting:
    return false;
  }
  return true;
}

bool Machine::isRunnable(const Warp &warp) const {
  return std::any_of(warp.lanes.begin(), warp.lanes.end(),
                     [&](const Lanes &each) { return isReady(warp, each); });
}

void Machine::landLoads(Cluster &cluster, bool isForced) {
  for (size_t n = cluster.loads.size(); n-- > 0;)
    if (isForced || cluster.loads[n].due <= clock) {
      Load load = cluster.loads[n];
      cluster.loads.erase(cluster.loads.begin() + ptrdiff_t(n));
      try {
        carryOut(*this, load);
      } catch (const Error &error) {
        fail("block ", load.cta->number, ", a tensor load to ", load.to, " for the barrier at ",
             load.barrier, ": ", error.what());
      }
    }
}

void Machine::finishProducts(Warp &warp, bool isForced) {
  for (ProductGroup &group : warp.products) {
    if (group.isDone)
      continue;
    if (!isForced && group.due > clock)
      break;
    for (const Product &product : group.products)
      carryOut(warp, product);
    group.isDone = true;
  }
}

void Machine::finishStores(Warp &warp) {
  for (StoreGroups &stores : warp.stores)
    for (auto &group : stores.groups)
      for (Store &store : group)
        if (!store.isDone && store.due <= clock)
          carryOut(*this, *warp.cta, store);
}

void Machine::checkRegisters(Warp &warp, const Instruction &i) {
  bool isDefined = true;
  auto source = [&](Slot slot) {
    if (warp.busy[slot.index])
      fail("a read of an accumulator of a wgmma that no wgmma.wait_group has waited for");
    if (!warp.written[slot.index]) {
      if (!i.passesUndefined)
        fail("a read of a register that nothing has written");
      isDefined = false;
    }
    warp.read[slot.index] = warp.fences;
  };
  for (Slot slot : i.sources)
    source(slot);
  for (const Address &address : i.addresses)
    source(address.base);
  for (Slot slot : i.destinations) {
    if (warp.busy[slot.index])
      fail("a write of an accumulator of a wgmma that no wgmma.wait_group has waited for");
    warp.written[slot.index] = isDefined ? warp.fences : 0;
  }
}

bool Machine::meet(Warp &warp, size_t group, uint32_t required) {
  Lanes &here = warp.lanes[group];
  if (!(here.mask & required))
    fail("lanes meet that the mask of the meeting does not name");
  uint32_t there = 0;
  for (const Lanes &each : warp.lanes)
    if (each.pc == here.pc && (&each == &here || each.wait.kind == Wait::Kind::Meeting))
      there |= each.mask;
  if ((there & required) != required) {
    here.wait = {Wait::Kind::Meeting, here.pc, 0,
                 warp.cta->cluster->program->instructions[here.pc].line};
    return false;
  }
  Lanes joined{there, here.pc, {}};
  std::erase_if(warp.lanes, [&](const Lanes &each) { return (each.mask & there) != 0; });
  warp.lanes.push_back(joined);
  return true;
}

void Machine::endOf(Warp &warp) {
  if (!warp.openProducts.empty() || !warp.products.empty())
    fail("a warp ends with a wgmma in flight");
  for (StoreGroups &stores : warp.stores) {
    if (!stores.open.empty())
      fail("a thread ends with a tensor store of no group");
    for (auto &group : stores.groups)
      for (Store &store : group)
        if (!store.isWaited)
          fail("a thread ends before its tensor stores have read the block's memory");
  }
  Cta &cta = *warp.cta;
  --cta.cluster->liveWarps;
  if (--cta.liveWarps)
    return;
  for (const Load &load : cta.cluster->loads)
    if (load.cta == &cta)
      fail("a block ends before a tensor load to it has landed");
  uint32_t registers = 0;
  for (size_t w = 0; w < cta.warps.size(); ++w) {
    const Warp &each = cta.warps[w], &first = cta.warps[w / 4 * 4];
    if (each.productCount != first.productCount || each.productHash != first.productHash)
      fail("the warps of a warpgroup have not carried out the same wgmma");
    if (each.registers != first.registers)
      fail("the warps of a warpgroup have not set the same number of registers");
    if (!each.registers != !cta.warps[0].registers)
      fail("some warps of a block have set their number of registers, and others have not");
    registers += 32 * each.registers;
  }
  if (registers > 65536)
    fail("expected at most 65536 registers of a block, found ", registers);
}

void Machine::leave(Warp &warp, size_t group, uint32_t mask) {
  Lanes &lanes = warp.lanes[group];
  lanes.mask &= ~mask;
  if (lanes.mask)
    ++lanes.pc;
  else
    warp.lanes.erase(warp.lanes.begin() + ptrdiff_t(group));
  if (warp.lanes.empty())
    endOf(warp);
}

bool Machine::step(Warp &warp, size_t group) {
  const Program &program = *warp.cta->cluster->program;
  Lanes *lanes = &warp.lanes[group];
  if (lanes->wait.kind != Wait::Kind::None) {
    if (!isReady(warp, *lanes))
      return false;
    lanes->wait = {};
  }
  const Instruction &i = program.instructions[lanes->pc];
  ++clock;
  uint32_t mask = lanes->mask;
  if (i.hasGuard) {
    if (!warp.written[i.guard.index])
      fail("a guard that nothing has written");
    uint32_t guard = warp.predicate(i.guard);
    mask &= i.isGuardNegated ? ~guard : guard;
  }
  if (i.control == Instruction::Control::Branch) {
    if (mask == lanes->mask) {
      lanes->pc = uint32_t(i.target);
    } else if (!mask) {
      ++lanes->pc;
    } else {
      lanes->mask &= ~mask;
      ++lanes->pc;
      warp.lanes.push_back({mask, uint32_t(i.target), {}});
    }
    return true;
  }
  if (i.control == Instruction::Control::Exit) {
    if (!mask) {
      ++lanes->pc;
      return true;
    }
    leave(warp, group, mask);
    return false;
  }
  if ((i.isAligned || i.isMeeting) && mask && mask != lanes->mask)
    fail("expected all lanes of the warp, a guard leaves some out");
  if (mask && i.isAligned && (warp.lanes.size() != 1 || mask != ~uint32_t(0)))
    fail("expected all lanes of the warp together; after a branch bar.warp.sync joins them");
  if (mask && i.isMeeting) {
    uint32_t first = uint32_t(std::countr_zero(mask));
    if (!meet(warp, group, warp.at<uint32_t>(i.sources.back())[first] & warp.liveLanes()))
      return false;
    lanes = &warp.lanes.back();
    mask = lanes->mask;
  }
  if (mask) {
    if (!i.ownsRegisters)
      checkRegisters(warp, i);
    warp.current = lanes;
    if (!i.execute(warp, i, mask))
      return false;
  }
  ++lanes->pc;
  return lanes->wait.kind == Wait::Kind::None;
}

void Machine::turn(Warp &warp) {
  finishProducts(warp, false);
  finishStores(warp);
  for (uint32_t left = 1 + random.below(most); left > 0 && !warp.lanes.empty(); --left) {
    size_t group = warp.lanes.size() == 1 ? 0 : random.below(uint32_t(warp.lanes.size()));
    size_t pc = warp.lanes[group].pc;
    try {
      if (!step(warp, group) && warp.lanes.size() <= 1)
        return;
    } catch (const Error &error) {
      const Program &program = *warp.cta->cluster->program;
      const Instruction &at = program.instructions[pc];
      fail("line ", at.line, ", block ", warp.cta->number, ", warp ", warp.number, ": ",
           error.what(), "\n  ",
           pc < program.kernel.statements.size() ? program.kernel.statements[pc].text
                                                 : "the end of the kernel");
    }
  }
}

/// If a kernel reads the time, waits for mbarriers end after a while, and the kernel looks whether that is too long. Returns
/// false if there is no such wait.
bool Machine::passTime(const Launch &launch,
                       const std::vector<std::unique_ptr<Cluster>> &clusters) {
  constexpr uint64_t kMost = 10'000'000; // nanoseconds of a try_wait
  bool isWaiting = false;
  if (!launch.program->readsTime)
    return false;
  for (auto &cluster : clusters)
    for (auto &cta : cluster->ctas)
      for (Warp &warp : cta->warps)
        for (Lanes &lanes : warp.lanes)
          if (lanes.wait.kind == Wait::Kind::Mbarrier) {
            lanes.wait = {};
            lanes.givesUp = isWaiting = true;
          }
  slept += kMost;
  return isWaiting;
}

void Machine::deadlock(const std::vector<std::unique_ptr<Cluster>> &clusters) {
  std::ostringstream text;
  for (auto &cluster : clusters)
    for (auto &cta : cluster->ctas)
      for (Warp &warp : cta->warps)
        for (const Lanes &lanes : warp.lanes) {
          const Wait &wait = lanes.wait;
          text << "\n  block " << cta->number << ", warp " << warp.number << ", line " << wait.line
               << ": ";
          if (wait.kind == Wait::Kind::Mbarrier) {
            const Mbarrier &barrier = cta->barriers.at(wait.at);
            text << "the barrier at " << wait.at << " stays in its phase " << barrier.phase
                 << ", with " << barrier.pending << " arrivals of " << barrier.expected << " and "
                 << barrier.bytes << " bytes to come";
          } else if (wait.kind == Wait::Kind::Named) {
            const NamedBarrier &barrier = cta->named[wait.at];
            text << "barrier " << wait.at << " has " << barrier.arrived << " threads of "
                 << barrier.expected;
          } else if (wait.kind == Wait::Kind::Cluster) {
            text << "the cluster's barrier has " << cluster->arrived << " warps";
          } else {
            text << "lanes wait for others of their warp";
          }
        }
  fail("no warp can go on", text.str());
}

void Machine::run(const Launch &launch) {
  std::vector<std::unique_ptr<Cluster>> clusters;
  std::vector<Warp *> warps;
  uint32_t next = 0;
  uint64_t limit = clock + mostInstructions;
  isDependent = launch.isDependent;
  variables.clear();
  for (const GlobalArray &each : launch.program->kernel.globalArrays) {
    std::vector<uint8_t> bytes = each.initial;
    bytes.resize(each.bytes);
    variables.push_back(memory.allocate(each.name, bytes.data(), bytes.size(), true));
  }
  for (;;) {
    std::erase_if(clusters, [](auto &each) { return each->liveWarps == 0; });
    bool isNew = false;
    while (clusters.size() < residentClusters && next < launch.clusters) {
      clusters.push_back(begin(launch, next++));
      isNew = true;
    }
    if (clusters.empty())
      return;
    if (isNew || warps.empty() ||
        std::any_of(warps.begin(), warps.end(), [](Warp *w) { return w->lanes.empty(); })) {
      warps.clear();
      for (auto &cluster : clusters)
        for (auto &cta : cluster->ctas)
          for (Warp &warp : cta->warps)
            if (!warp.lanes.empty())
              warps.push_back(&warp);
    }
    Warp *chosen = nullptr, *any = nullptr;
    for (size_t n = 0, begin = random.below(uint32_t(warps.size())); n < warps.size() && !chosen;
         ++n) {
      Warp *warp = warps[(begin + n) % warps.size()];
      if (!isRunnable(*warp))
        continue;
      any = warp;
      if (warp->slowness == 1 || random.below(warp->slowness) == 0)
        chosen = warp;
    }
    if (!chosen)
      chosen = any;
    if (chosen) {
      // A warp whose cluster has ended is gone with it, so its last turn comes before.
      turn(*chosen);
    } else {
      // Time goes on to the next load.
      const Load *first = nullptr;
      for (auto &cluster : clusters)
        for (const Load &load : cluster->loads)
          if (!first || load.due < first->due)
            first = &load;
      if (first)
        clock = std::max(clock, first->due);
      else if (!passTime(launch, clusters))
        deadlock(clusters);
    }
    if (clock > limit)
      fail("a kernel has not ended after ", mostInstructions, " instructions");
    for (auto &cluster : clusters)
      landLoads(*cluster, false);
    if (std::any_of(clusters.begin(), clusters.end(),
                    [](auto &each) { return each->liveWarps == 0; }))
      warps.clear();
  }
}

} // namespace stepc::ptx
