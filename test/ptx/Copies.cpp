//===- Copies.cpp - Tensor loads and stores --------------------------------===//

#include "test/ptx/Error.h"
#include "test/ptx/Machine.h"

#include <algorithm>
#include <cstring>

namespace stepc::ptx {
namespace {

/// Calls `row` with each row of a box: its coordinates outside the innermost one, its address in the tensor if it lies
/// inside, and its offset in the box. `first` and `count` are the innermost elements that lie inside.
template <class Row> void eachRow(const TensorMap &map, const std::array<int32_t, 5> &at, Row row) {
  int64_t begin = std::max<int64_t>(0, -int64_t(at[0]));
  int64_t end = std::min<int64_t>(map.box[0], int64_t(map.dimensions[0]) - at[0]);
  std::array<uint32_t, 5> index{};
  for (uint32_t offset = 0, bytes = map.boxBytes(); offset < bytes; offset += map.rowBytes()) {
    bool isInside = begin < end;
    uint64_t address = map.address + uint64_t(int64_t(at[0]) + begin) * map.elementBytes;
    for (uint32_t d = 1; d < map.rank; ++d) {
      int64_t coordinate = int64_t(at[d]) + index[d];
      isInside &= coordinate >= 0 && coordinate < int64_t(map.dimensions[d]);
      address += uint64_t(coordinate) * map.strides[d - 1];
    }
    auto skipped = uint32_t(begin * map.elementBytes);
    row(isInside, address, offset, skipped,
        isInside ? uint32_t((end - begin) * map.elementBytes) : 0);
    for (uint32_t d = 1; d < map.rank && ++index[d] == map.box[d]; ++d)
      index[d] = 0;
  }
}

uint32_t placed(const TensorMap &map, uint32_t address) {
  return map.isSwizzled ? swizzle128(address) : address;
}

void checkPlace(const TensorMap &map, uint64_t address) {
  if (map.isSwizzled && map.rowBytes() != 128)
    fail("swizzled boxes whose rows have ", map.rowBytes(), " bytes are not modelled");
  uint32_t multiple = map.isSwizzled ? SharedMemory::kAtom : 128;
  if (address % multiple)
    fail("expected a box at a multiple of ", multiple, " in the block's memory, found ", address);
}

TensorMap mapAt(Warp &warp, uint64_t address, uint32_t lane, uint32_t rank) {
  TensorMap map;
  warp.expectWaited(lane);
  if (address >= kParameterWindow) {
    uint64_t offset = address - kParameterWindow;
    if (offset % 64 || offset + 128 > warp.cta->cluster->parameters->size())
      fail("expected a tensor map in the parameters, found offset ", offset);
    map = decode(warp.cta->cluster->parameters->data() + offset);
  } else {
    auto acquired = warp.acquired.find(address);
    if (acquired == warp.acquired.end() || !(acquired->second >> lane & 1))
      fail("a tensor map in memory is used by a thread that has not acquired it "
           "(fence.proxy.tensormap)");
    map = decode(warp.machine().memory.read(address, 128));
  }
  if (map.rank != rank)
    fail("expected a tensor map of ", rank, " dimensions, found ", map.rank);
  return map;
}

std::array<int32_t, 5> coordinates(Warp &warp, const Instruction &i, uint32_t lane, uint32_t rank) {
  std::array<int32_t, 5> at{};
  for (uint32_t d = 0; d < rank; ++d)
    at[d] = int32_t(warp.at<uint32_t>(i.sources[d])[lane]);
  return at;
}

/// a: dimensions, b: whether a mask names the blocks that get the box.
bool beginLoad(Warp &warp, const Instruction &i, uint32_t mask) {
  Cluster &cluster = *warp.cta->cluster;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint64_t to = warp.address(i.addresses[0], lane), barrier = warp.address(i.addresses[2], lane);
    TensorMap map = mapAt(warp, warp.address(i.addresses[1], lane), lane, i.a);
    checkPlace(map, to);
    uint32_t blocks = i.b ? warp.at<uint32_t>(i.sources[i.a])[lane] : uint32_t(1) << warp.cta->rank;
    if (blocks >> cluster.ctas.size() || !blocks)
      fail("expected a mask of the cluster's blocks, found ", blocks);
    if (to >> kRankShift || barrier >> kRankShift)
      fail("a tensor load to an address of another block is not modelled");
    for (auto &cta : cluster.ctas) {
      if (!(blocks >> cta->rank & 1))
        continue;
      if (!cta->liveWarps)
        fail("a tensor load to a block that has ended");
      if (!cta->barrier(barrier).isVisible)
        fail("a tensor load for a barrier that no fence.mbarrier_init has made visible");
      cta->shared.beginLoad(uint32_t(to), map.boxBytes());
      cluster.loads.push_back({warp.machine().dueTime(), cta.get(), uint32_t(to), uint32_t(barrier),
                               map, coordinates(warp, i, lane, i.a)});
    }
  }
  return true;
}

bool beginStore(Warp &warp, const Instruction &i, uint32_t mask) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint64_t from = warp.address(i.addresses[1], lane);
    TensorMap map = mapAt(warp, warp.address(i.addresses[0], lane), lane, i.a);
    checkPlace(map, from);
    warp.cta->shared.beginStore(uint32_t(from), map.boxBytes());
    warp.stores[lane].open.push_back({map, coordinates(warp, i, lane, i.a), uint32_t(from),
                                      warp.machine().dueTime(), false, false});
  }
  return true;
}

bool commitStores(Warp &warp, const Instruction &i, uint32_t mask) {
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) {
      StoreGroups &stores = warp.stores[lane];
      stores.groups.push_back(std::move(stores.open));
      stores.open.clear();
    }
  return true;
}

/// a: whether the wait is only for the reads of the block's memory.
bool waitStores(Warp &warp, const Instruction &i, uint32_t mask) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    auto &groups = warp.stores[lane].groups;
    auto left = size_t(i.immediates[0]);
    // A group whose reads have been waited for stays until its writes have been.
    for (size_t g = 0; g + left < groups.size(); ++g)
      for (Store &store : groups[g]) {
        if (!store.isDone)
          carryOut(warp.machine(), *warp.cta, store);
        if (!store.isWaited) {
          store.isWaited = true;
          warp.cta->shared.endStore(store.from, store.map.boxBytes());
        }
      }
    if (!i.a)
      while (groups.size() > left)
        groups.pop_front();
  }
  return true;
}

bool prefetchMap(Warp &, const Instruction &, uint32_t) { return true; }

} // namespace

void carryOut(Machine &machine, Cta &cta, Store &store) {
  uint8_t row[256];
  store.isDone = true;
  eachRow(store.map, store.at,
          [&](bool isInside, uint64_t address, uint32_t offset, uint32_t skipped, uint32_t count) {
            if (!isInside)
              return;
            for (uint32_t chunk = 0; chunk < store.map.rowBytes(); chunk += 16)
              std::memcpy(row + chunk,
                          cta.shared.data() + placed(store.map, store.from + offset + chunk), 16);
            machine.memory.write(address, row + skipped, count);
          });
}

void carryOut(Machine &machine, const Load &load) {
  Cta &cta = *load.cta;
  if (!cta.liveWarps)
    fail("a tensor load lands in a block that has ended");
  uint8_t row[1024];
  eachRow(load.map, load.at,
          [&](bool isInside, uint64_t address, uint32_t offset, uint32_t skipped, uint32_t count) {
            std::memset(row, 0, load.map.rowBytes());
            if (isInside)
              std::memcpy(row + skipped, machine.memory.read(address, count), count);
            for (uint32_t chunk = 0; chunk < load.map.rowBytes(); chunk += 16)
              std::memcpy(cta.shared.data() + placed(load.map, load.to + offset + chunk),
                          row + chunk, 16);
          });
  cta.shared.land(load.to, load.map.boxBytes());
  Mbarrier &barrier = cta.barrier(load.barrier);
  cta.expect(barrier, -int64_t(load.map.boxBytes()));
  cta.advance(barrier);
}

void addCopies(Table &table) {
  for (uint32_t rank = 1; rank <= 5; ++rank) {
    std::string copy = "cp.async.bulk.tensor." + std::to_string(rank) + "d";
    for (const std::string to : {".shared::cta", ".shared::cluster"}) {
      std::string load = copy + to + ".global.tile.mbarrier::complete_tx::bytes";
      table[load] = {"m mc m", beginLoad, rank, 0};
      table[load + ".multicast::cluster"] = {"m mc m s16", beginLoad, rank, 1};
    }
    table[copy + ".global.shared::cta.tile.bulk_group"] = {"mc m", beginStore, rank};
  }
  table["cp.async.bulk.commit_group"] = {"", commitStores};
  table["cp.async.bulk.wait_group"] = {"i", waitStores, 0};
  table["cp.async.bulk.wait_group.read"] = {"i", waitStores, 1};
  table["prefetch.tensormap"] = table["prefetch.param.tensormap"] = {"m", prefetchMap};
}

} // namespace stepc::ptx
