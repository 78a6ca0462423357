//===- TensorMap.cpp - Tensors as tensor copies address them ---------------===//

#include "test/ptx/TensorMap.h"
#include "test/ptx/Error.h"

#include <cstring>

namespace stepc::ptx {
namespace {

constexpr uint64_t kMagic = 0x50414d2058545053; // "SPTX MAP"

/// Fields in a row, so that all of them fit into 128 bytes.
template <class Bytes, class Copy>
void walk(TensorMap &map, uint64_t &magic, Bytes *bytes, Copy copy) {
  size_t at = 0;
  auto field = [&](auto &value) {
    copy(bytes + at, &value, sizeof value);
    at += sizeof value;
  };
  field(magic);
  field(map.address);
  uint8_t small[3] = {uint8_t(map.elementBytes), uint8_t(map.rank), uint8_t(map.isSwizzled)};
  field(small);
  map.elementBytes = small[0], map.rank = small[1], map.isSwizzled = small[2];
  for (int i = 0; i < TensorMap::kMostDimensions; ++i) {
    field(map.dimensions[i]);
    uint64_t &stride = map.strides[i];
    if (i + 1 < TensorMap::kMostDimensions)
      field(stride);
    uint16_t box = uint16_t(map.box[i]);
    field(box);
    map.box[i] = box;
  }
  if (at > sizeof(MapBytes))
    fail("a tensor map takes ", at, " bytes");
}

} // namespace

uint32_t TensorMap::boxBytes() const {
  uint32_t bytes = elementBytes;
  for (uint32_t i = 0; i < rank; ++i)
    bytes *= box[i];
  return bytes;
}

MapBytes encode(const TensorMap &given) {
  TensorMap map = given;
  if (map.rank < 1 || map.rank > TensorMap::kMostDimensions)
    fail("expected 1 to 5 dimensions of a tensor map, found ", map.rank);
  if (map.elementBytes != 2 && map.elementBytes != 4)
    fail("expected elements of 2 or 4 bytes in a tensor map, found ", map.elementBytes);
  if (map.address % 16)
    fail("expected a tensor's address to be a multiple of 16, found ", map.address);
  for (uint32_t i = 0; i < map.rank; ++i) {
    if (map.dimensions[i] < 1 || map.dimensions[i] > uint64_t(1) << 32)
      fail("expected 1 to 2^32 elements of a tensor map's dimension ", i, ", found ",
           map.dimensions[i]);
    if (map.box[i] < 1 || map.box[i] > 256)
      fail("expected 1 to 256 elements of a box's dimension ", i, ", found ", map.box[i]);
    if (i + 1 == map.rank)
      break;
    if (map.strides[i] % 16 || map.strides[i] >= uint64_t(1) << 40)
      fail("expected a stride that is a multiple of 16 and below 2^40, found ", map.strides[i]);
    uint64_t inner =
        i ? map.strides[i - 1] * map.dimensions[i] : map.dimensions[0] * map.elementBytes;
    if (map.dimensions[i + 1] > 1 && map.strides[i] < inner)
      fail("expected a stride of at least ", inner, " bytes, found ", map.strides[i]);
  }
  if (map.rowBytes() % 16)
    fail("expected a box whose rows are a multiple of 16 bytes, found ", map.rowBytes());
  if (map.isSwizzled && map.rowBytes() > 128)
    fail("expected a box whose rows are at most the swizzle's 128 bytes, found ", map.rowBytes());
  MapBytes bytes{};
  uint64_t magic = kMagic;
  walk(map, magic, bytes.data(),
       [](uint8_t *to, const void *from, size_t count) { std::memcpy(to, from, count); });
  return bytes;
}

TensorMap decode(const uint8_t *bytes) {
  TensorMap map;
  uint64_t magic = 0;
  walk(map, magic, bytes,
       [](const uint8_t *from, void *to, size_t count) { std::memcpy(to, from, count); });
  if (magic != kMagic)
    fail("expected a tensor map, found other bytes");
  return map;
}

} // namespace stepc::ptx
