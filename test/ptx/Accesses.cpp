//===- Accesses.cpp - Loads and stores of threads --------------------------===//

#include "test/ptx/Error.h"
#include "test/ptx/Machine.h"

#include <cstring>

namespace stepc::ptx {
namespace {

enum Space : uint32_t { Global, Shared, Parameters, Generic };

/// Resolves a generic address, and refuses one that is not a multiple of the access.
Space resolve(uint32_t space, uint64_t &address, uint32_t bytes) {
  if (space == Generic) {
    space = address >= kParameterWindow ? Parameters : address >= kSharedWindow ? Shared : Global;
    if (space == Shared)
      address -= kSharedWindow;
  }
  if (space == Parameters && address >= kParameterWindow)
    address -= kParameterWindow;
  if (address % bytes)
    fail("expected an address that is a multiple of ", bytes, ", found ", address);
  return Space(space);
}

void put(Warp &warp, Slot slot, uint32_t lane, const uint8_t *from, uint32_t bytes, bool isSigned) {
  uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  if (bytes == 8) {
    warp.at<uint64_t>(slot)[lane] = value;
  } else {
    if (isSigned && bytes == 1)
      value = uint16_t(int16_t(int8_t(value)));
    warp.at<uint32_t>(slot)[lane] = uint32_t(value);
  }
}

/// a: bytes of an element, b: the space, c: whether a byte has a sign.
bool load(Warp &warp, const Instruction &i, uint32_t mask) {
  auto count = uint32_t(i.destinations.size()), bytes = count * i.a;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint64_t address = warp.address(i.addresses[0], lane);
    const uint8_t *from = nullptr;
    switch (resolve(i.b, address, bytes)) {
    case Global:
      warp.expectWaited(lane);
      from = warp.machine().memory.read(address, bytes);
      break;
    case Shared:
      warp.cta->shared.checkRead(uint32_t(address), bytes);
      warp.cta->shared.addUnfenced(uint32_t(address), bytes, false, 1);
      warp.reads.push_back({uint32_t(address), uint16_t(bytes), uint8_t(lane)});
      from = warp.cta->shared.data() + address;
      break;
    default:
      if (address + bytes > warp.cta->cluster->parameters->size())
        fail("a read behind the kernel's parameters");
      from = warp.cta->cluster->parameters->data() + address;
    }
    for (uint32_t e = 0; e < count; ++e)
      put(warp, i.destinations[e], lane, from + e * i.a, i.a, i.c);
  }
  return true;
}

void storeShared(Warp &warp, uint32_t address, const uint8_t *from, uint32_t bytes, uint32_t lane) {
  SharedMemory &shared = warp.cta->shared;
  shared.checkWrite(address, bytes);
  shared.addUnfenced(address, bytes, true, 1);
  warp.writes.push_back({address, uint16_t(bytes), uint8_t(lane)});
  std::memcpy(shared.data() + address, from, bytes);
}

bool store(Warp &warp, const Instruction &i, uint32_t mask) {
  auto count = uint32_t(i.sources.size()), bytes = count * i.a;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint64_t address = warp.address(i.addresses[0], lane);
    uint8_t all[32];
    for (uint32_t e = 0; e < count; ++e)
      if (i.a == 8)
        std::memcpy(all + e * 8, warp.at<uint64_t>(i.sources[e]) + lane, 8);
      else
        std::memcpy(all + e * i.a, warp.at<uint32_t>(i.sources[e]) + lane, i.a);
    switch (resolve(i.b, address, bytes)) {
    case Global:
      warp.expectWaited(lane);
      warp.machine().memory.write(address, all, bytes);
      break;
    case Shared:
      storeShared(warp, uint32_t(address), all, bytes, lane);
      break;
    default:
      fail("a write to the kernel's parameters");
    }
  }
  return true;
}

/// stmatrix: a matrix is 8 x 8 elements of 16 bits. Lanes 8 m to 8 m + 7 bring the addresses of matrix m's rows.
template <int Count> bool storeMatrices(Warp &warp, const Instruction &i, uint32_t) {
  bool isTransposed = i.a;
  for (uint32_t matrix = 0; matrix < Count; ++matrix) {
    const uint32_t *words = warp.at<uint32_t>(i.sources[matrix]);
    for (uint32_t row = 0; row < 8; ++row) {
      uint64_t address = warp.address(i.addresses[0], 8 * matrix + row);
      if (address % 16)
        fail("expected a row's address that is a multiple of 16, found ", address);
      for (uint32_t pair = 0; pair < 4; ++pair) {
        uint16_t both[2];
        uint32_t lane = 4 * row + pair;
        for (uint32_t e = 0; e < 2; ++e) {
          // Lane 4 r + c has the elements 2 c and 2 c + 1 of row r, or of column r.
          uint32_t column = 2 * pair + e;
          both[e] = isTransposed ? uint16_t(words[4 * column + row / 2] >> 16 * (row % 2))
                                 : uint16_t(words[lane] >> 16 * e);
        }
        storeShared(warp, uint32_t(address) + 4 * pair, reinterpret_cast<const uint8_t *>(both), 4,
                    lane);
      }
    }
  }
  return true;
}

bool toWindow(Warp &warp, const Instruction &i, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      warp.at<uint64_t>(i.destinations[0])[lane] =
          warp.at<uint64_t>(i.sources[0])[lane] + (i.a ? kSharedWindow : 0);
  return true;
}

bool fromWindow(Warp &warp, const Instruction &i, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) {
      uint64_t address = warp.at<uint64_t>(i.sources[0])[lane];
      if (i.a && (address < kSharedWindow || address >= kParameterWindow))
        fail("expected a generic address of a block's memory, found ", address);
      warp.at<uint64_t>(i.destinations[0])[lane] = address - (i.a ? kSharedWindow : 0);
    }
  return true;
}

bool toParameters(Warp &warp, const Instruction &i, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) {
      uint64_t address = warp.at<uint64_t>(i.sources[0])[lane];
      warp.at<uint64_t>(i.destinations[0])[lane] =
          address < kParameterWindow ? address + kParameterWindow : address;
    }
  return true;
}

} // namespace

void addAccesses(Table &table) {
  struct Type {
    const char *name, *registers;
    uint32_t bytes, isSigned;
  };
  const Type types[] = {{"b8", "16", 1, 0},  {"u8", "16", 1, 0},  {"s8", "16", 1, 1},
                        {"b16", "16", 2, 0}, {"u16", "16", 2, 0}, {"s16", "16", 2, 0},
                        {"b32", "32", 4, 0}, {"u32", "32", 4, 0}, {"s32", "32", 4, 0},
                        {"f32", "32", 4, 0}, {"b64", "64", 8, 0}, {"u64", "64", 8, 0},
                        {"s64", "64", 8, 0}, {"f64", "64", 8, 0}};
  const std::pair<const char *, Space> loads[] = {
      {"ld.global", Global}, {"ld.global.nc", Global},   {"ld.global.L1::no_allocate", Global},
      {"ld.shared", Shared}, {"ld.shared::cta", Shared}, {"ld.param", Parameters},
      {"ld", Generic}};
  const std::pair<const char *, Space> stores[] = {
      {"st.global", Global}, {"st.volatile.global", Global}, {"st.relaxed.sys.global", Global},
      {"st.shared", Shared}, {"st.shared::cta", Shared},     {"st", Generic}};
  for (const Type &type : types)
    for (uint32_t count : {1, 2, 4}) {
      std::string vector = count == 1 ? "" : "v" + std::to_string(count);
      std::string suffix = (count == 1 ? "." : "." + vector + ".") + type.name;
      if (count * type.bytes > 16)
        continue;
      for (auto &[name, space] : loads)
        table[name + suffix] = {vector + "d" + type.registers + " m", load, type.bytes, space,
                                type.isSigned};
      for (auto &[name, space] : stores)
        table[name + suffix] = {"m " + vector + "s" + type.registers, store, type.bytes, space};
    }
  for (bool isTransposed : {false, true})
    for (const char *space : {".shared", ".shared::cta"}) {
      std::string suffix = std::string(isTransposed ? ".trans" : "") + space + ".b16";
      auto add = [&](const char *count, const char *signature, Execute execute) {
        Meaning meaning{signature, execute, isTransposed};
        meaning.isAligned = true;
        table[std::string("stmatrix.sync.aligned.m8n8.") + count + suffix] = meaning;
      };
      add("x1", "m v1s32", storeMatrices<1>);
      add("x2", "m v2s32", storeMatrices<2>);
      add("x4", "m v4s32", storeMatrices<4>);
    }
  table["cvta.global.u64"] = table["cvta.to.global.u64"] = {"d64 s64", toWindow, 0};
  table["cvta.shared.u64"] = {"d64 s64", toWindow, 1};
  table["cvta.to.shared.u64"] = table["cvta.to.shared::cta.u64"] =
      table["cvta.to.shared::cluster.u64"] = {"d64 s64", fromWindow, 1};
  table["cvta.param.u64"] = {"d64 s64", toParameters};
}

} // namespace stepc::ptx
