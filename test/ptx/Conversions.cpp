//===- Conversions.cpp - From one type to another --------------------------===//

#include "test/ptx/Lanewise.h"
#include "test/ptx/Numbers.h"

#include <cmath>
#include <limits>
#include <string>

namespace stepc::ptx {
namespace {

std::string signature(size_t to, size_t from) {
  return "d" + std::to_string(to) + " s" + std::to_string(from);
}

/// Whole numbers: cut off or extended as the source's sign says. Numbers of 8 bits lie in registers of 16 or 32.
template <class D, class S>
void addInteger(Table &table, const std::string &to, const std::string &from) {
  constexpr size_t most = std::max<size_t>(2, sizeof(D)), source = std::max<size_t>(2, sizeof(S));
  using Wide = std::conditional_t<sizeof(D) == 1,
                                  std::conditional_t<std::is_signed_v<D>, int16_t, uint16_t>, D>;
  table["cvt." + to + "." + from] = {signature(8 * most, 8 * source),
                                     unary<Wide, S, [](S value) { return Wide(D(value)); }>};
}
template <class D> void addIntegerFromAll(Table &table, const std::string &to) {
  addInteger<D, uint8_t>(table, to, "u8"), addInteger<D, int8_t>(table, to, "s8");
  addInteger<D, uint16_t>(table, to, "u16"), addInteger<D, int16_t>(table, to, "s16");
  addInteger<D, uint32_t>(table, to, "u32"), addInteger<D, int32_t>(table, to, "s32");
  addInteger<D, uint64_t>(table, to, "u64"), addInteger<D, int64_t>(table, to, "s64");
}

/// To a whole number towards zero, with the type's ends for what lies past them and 0 for what is undefined.
template <class D>
constexpr auto towardsZero = [](float value) {
  if (value != value)
    return D(0);
  if (double(value) >= double(std::numeric_limits<D>::max()))
    return std::numeric_limits<D>::max();
  if (double(value) <= double(std::numeric_limits<D>::min()))
    return std::numeric_limits<D>::min();
  return D(value);
};

template <auto F> void addPair(Table &table, const std::string &type) {
  table["cvt.rn." + type + "x2.f32"] = {"d32 s32 s32",
                                        binary<uint32_t, float, float, [](float high, float low) {
                                          return uint32_t(F(high)) << 16 | F(low);
                                        }>};
  table["cvt.rn." + type + ".f32"] = {"d16 s32",
                                      unary<uint16_t, float, [](float value) { return F(value); }>};
}

template <int Count> bool pack(Warp &warp, const Instruction &i, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint64_t value = 0;
    for (int part = 0; part < Count; ++part)
      value |= uint64_t(warp.at<uint32_t>(i.sources[part])[lane]) << (part * i.a);
    if (i.a * Count == 64)
      warp.at<uint64_t>(i.destinations[0])[lane] = value;
    else
      warp.at<uint32_t>(i.destinations[0])[lane] = uint32_t(value);
  }
  return true;
}

template <int Count> bool unpack(Warp &warp, const Instruction &i, uint32_t mask) {
  uint64_t ones = (uint64_t(1) << i.a) - 1;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint64_t value = i.a * Count == 64 ? warp.at<uint64_t>(i.sources[0])[lane]
                                       : warp.at<uint32_t>(i.sources[0])[lane];
    for (int part = 0; part < Count; ++part)
      warp.at<uint32_t>(i.destinations[part])[lane] = uint32_t(value >> (part * i.a) & ones);
  }
  return true;
}

} // namespace

void addConversions(Table &table) {
  addIntegerFromAll<uint8_t>(table, "u8"), addIntegerFromAll<int8_t>(table, "s8");
  addIntegerFromAll<uint16_t>(table, "u16"), addIntegerFromAll<int16_t>(table, "s16");
  addIntegerFromAll<uint32_t>(table, "u32"), addIntegerFromAll<int32_t>(table, "s32");
  addIntegerFromAll<uint64_t>(table, "u64"), addIntegerFromAll<int64_t>(table, "s64");
  table["cvt.rn.f32.u32"] = {"d32 s32",
                             unary<float, uint32_t, [](uint32_t a) { return float(a); }>};
  table["cvt.rn.f32.s32"] = {"d32 s32", unary<float, int32_t, [](int32_t a) { return float(a); }>};
  table["cvt.rn.f32.u64"] = {"d32 s64",
                             unary<float, uint64_t, [](uint64_t a) { return float(a); }>};
  table["cvt.rn.f32.s64"] = {"d32 s64", unary<float, int64_t, [](int64_t a) { return float(a); }>};
  table["cvt.rzi.u32.f32"] = {"d32 s32", unary<uint32_t, float, towardsZero<uint32_t>>};
  table["cvt.rzi.s32.f32"] = {"d32 s32", unary<int32_t, float, towardsZero<int32_t>>};
  addPair<toBf16>(table, "bf16");
  addPair<toF16>(table, "f16");
  table["cvt.f32.bf16"] = {"d32 s16",
                           unary<float, uint16_t, [](uint16_t a) { return fromBf16(a); }>};
  table["cvt.f32.f16"] = {"d32 s16", unary<float, uint16_t, [](uint16_t a) { return fromF16(a); }>};
  for (const char *type : {"b32", "u32"}) {
    std::string mov = std::string("mov.") + type;
    table[mov + " pack2"] = {"d32 v2s16", pack<2>, 16};
    table[mov + " unpack2"] = {"v2d16 s32", unpack<2>, 16};
  }
  for (const char *type : {"b64", "u64"}) {
    std::string mov = std::string("mov.") + type;
    table[mov + " pack2"] = {"d64 v2s32", pack<2>, 32};
    table[mov + " unpack2"] = {"v2d32 s64", unpack<2>, 32};
    table[mov + " pack4"] = {"d64 v4s16", pack<4>, 16};
    table[mov + " unpack4"] = {"v4d16 s64", unpack<4>, 16};
  }
}

} // namespace stepc::ptx
