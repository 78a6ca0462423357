//===- Arithmetic.cpp - What a lane computes by itself ---------------------===//

#include "test/ptx/Lanewise.h"

#include <cmath>
#include <limits>
#include <string>

#pragma STDC FP_CONTRACT OFF

namespace stepc::ptx {
namespace {

template <class T> std::string bitsOf() { return std::to_string(8 * sizeof(T)); }

/// `name` with each of the types' suffixes, on registers of T.
template <class T, auto F>
void addBinary(Table &table, const std::string &name,
               std::initializer_list<const char *> suffixes) {
  std::string b = bitsOf<T>();
  for (const char *suffix : suffixes)
    table[name + suffix] = {"d" + b + " s" + b + " s" + b, binary<T, T, T, F>};
}
template <class T, auto F>
void addUnary(Table &table, const std::string &name, std::initializer_list<const char *> suffixes) {
  std::string b = bitsOf<T>();
  for (const char *suffix : suffixes)
    table[name + suffix] = {"d" + b + " s" + b, unary<T, T, F>};
}

template <class T> constexpr auto plus = [](T a, T b) { return T(a + b); };
template <class T> constexpr auto minus = [](T a, T b) { return T(a - b); };
template <class T> constexpr auto times = [](T a, T b) { return T(a * b); };
template <class T> constexpr auto both = [](T a, T b) { return T(a & b); };
template <class T> constexpr auto either = [](T a, T b) { return T(a | b); };
template <class T> constexpr auto differ = [](T a, T b) { return T(a ^ b); };
template <class T> constexpr auto least = [](T a, T b) { return a < b ? a : b; };
template <class T> constexpr auto most = [](T a, T b) { return a < b ? b : a; };
template <class T>
constexpr auto quotient = [](T a, T b) {
  return b == 0                              ? T(-1)
         : std::is_signed_v<T> && b == T(-1) ? T(0 - std::make_unsigned_t<T>(a))
                                             : T(a / b);
};
template <class T>
constexpr auto remainder =
    [](T a, T b) { return b == 0 || (std::is_signed_v<T> && b == T(-1)) ? T(0) : T(a % b); };
template <class T>
constexpr auto high = [](T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return T((Wide(a) * Wide(b)) >> (8 * sizeof(T)));
};
template <class T>
constexpr auto left = [](T a, uint32_t by) { return by < 8 * sizeof(T) ? T(a << by) : T(0); };
template <class T>
constexpr auto right = [](T a, uint32_t by) {
  uint32_t most = 8 * sizeof(T) - 1;
  return by <= most ? T(a >> by) : std::is_signed_v<T> ? T(a >> most) : T(0);
};
template <class T> constexpr auto minimum = [](T a, T b) { return std::fmin(a, b); };
template <class T> constexpr auto maximum = [](T a, T b) { return std::fmax(a, b); };

/// bfe: `count` bits of a from bit `begin` on.
template <class T>
constexpr auto extract = [](T a, uint32_t begin, uint32_t count) {
  uint32_t width = 8 * sizeof(T);
  begin &= 0xff, count &= 0xff;
  if (count == 0)
    return T(0);
  using U = std::make_unsigned_t<T>;
  uint32_t last = std::min(begin + count - 1, width - 1);
  bool sign = std::is_signed_v<T> && (U(a) >> last & 1);
  U taken = begin < width ? U(U(a) >> begin) : U(0);
  U mask = count >= width ? U(~U(0)) : U((U(1) << count) - 1);
  // Bits past the end are copies of the sign.
  if (begin < width && last == width - 1 && begin + count > width && sign)
    taken |= U(~U(0)) << (width - begin);
  if (begin >= width && sign)
    taken = U(~U(0));
  return T((taken & mask) | (sign ? U(~mask) : U(0)));
};

/// bfi: a's lowest `count` bits in b, from bit `begin` on. These two stand in the source registers 2 and 3.
template <class T> bool insert(Warp &warp, const Instruction &i, uint32_t mask) {
  auto *d = warp.at<T>(i.destinations[0]);
  auto *a = warp.at<T>(i.sources[0]), *b = warp.at<T>(i.sources[1]);
  auto *begin = warp.at<uint32_t>(i.sources[2]), *count = warp.at<uint32_t>(i.sources[3]);
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) {
      uint32_t width = 8 * sizeof(T), first = begin[lane] & 0xff, bits = count[lane] & 0xff;
      T ones = bits >= width ? T(~T(0)) : T((T(1) << bits) - 1);
      d[lane] =
          first < width ? T((b[lane] & ~(ones << first)) | (a[lane] & ones) << first) : b[lane];
    }
  return true;
}

constexpr auto permute = [](uint32_t a, uint32_t b, uint32_t selection) {
  uint64_t all = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t pick = selection >> 4 * i & 15;
    auto byte = uint8_t(all >> 8 * (pick & 7));
    if (pick & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= uint32_t(byte) << 8 * i;
  }
  return result;
};

/// lop3: the truth table stands in the instruction.
bool lop3(Warp &warp, const Instruction &i, uint32_t mask) {
  auto *d = warp.at<uint32_t>(i.destinations[0]);
  auto *a = warp.at<uint32_t>(i.sources[0]), *b = warp.at<uint32_t>(i.sources[1]),
       *c = warp.at<uint32_t>(i.sources[2]);
  auto truth = uint32_t(i.immediates[0]);
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint32_t result = 0;
    for (int row = 0; row < 8; ++row)
      if (truth >> row & 1)
        result |= (row & 4 ? a[lane] : ~a[lane]) & (row & 2 ? b[lane] : ~b[lane]) &
                  (row & 1 ? c[lane] : ~c[lane]);
    d[lane] = result;
  }
  return true;
}

/// Two numbers of f32 in a register of 64 bits.
template <auto F>
constexpr auto halves = [](uint64_t a, uint64_t b) {
  auto of = [](uint64_t x, int half) { return std::bit_cast<float>(uint32_t(x >> 32 * half)); };
  return uint64_t(std::bit_cast<uint32_t>(float(F(of(a, 1), of(b, 1))))) << 32 |
         std::bit_cast<uint32_t>(float(F(of(a, 0), of(b, 0))));
};
constexpr auto fusedHalves = [](uint64_t a, uint64_t b, uint64_t c) {
  auto of = [](uint64_t x, int half) { return std::bit_cast<float>(uint32_t(x >> 32 * half)); };
  return uint64_t(std::bit_cast<uint32_t>(std::fma(of(a, 1), of(b, 1), of(c, 1)))) << 32 |
         std::bit_cast<uint32_t>(std::fma(of(a, 0), of(b, 0), of(c, 0)));
};

template <class T, auto F> void addCompare(Table &table, const std::string &name) {
  table["setp." + name] = {"dp s" + bitsOf<T>() + " s" + bitsOf<T>(), compare<T, F>};
}
template <class T> void addOrder(Table &table, const std::string &type) {
  addCompare<T, [](T a, T b) { return a < b; }>(table, "lt." + type);
  addCompare<T, [](T a, T b) { return a <= b; }>(table, "le." + type);
  addCompare<T, [](T a, T b) { return a > b; }>(table, "gt." + type);
  addCompare<T, [](T a, T b) { return a >= b; }>(table, "ge." + type);
}
template <class T> void addEqual(Table &table, const std::string &type) {
  addCompare<T, [](T a, T b) { return a == b; }>(table, "eq." + type);
  // `ne` is false if one of two floating-point numbers is undefined.
  addCompare<T, [](T a, T b) { return a == a && b == b && a != b; }>(table, "ne." + type);
}

template <class S, class U> void addIntegers(Table &table) {
  const std::string b = bitsOf<U>();
  const std::string s = ".s" + b, u = ".u" + b, x = ".b" + b;
  addBinary<U, plus<U>>(table, "add", {s.c_str(), u.c_str()});
  addBinary<U, minus<U>>(table, "sub", {s.c_str(), u.c_str()});
  addBinary<U, both<U>>(table, "and", {x.c_str()});
  addBinary<U, either<U>>(table, "or", {x.c_str()});
  addBinary<U, differ<U>>(table, "xor", {x.c_str()});
  addUnary<U, [](U a) { return U(~a); }>(table, "not", {x.c_str()});
  addUnary<U, [](U a) { return U(0 - a); }>(table, "neg", {s.c_str()});
  addUnary<U, [](U a) { return S(a) < 0 ? U(0 - a) : a; }>(table, "abs", {s.c_str()});
  addBinary<S, least<S>>(table, "min", {s.c_str()});
  addBinary<U, least<U>>(table, "min", {u.c_str()});
  addBinary<S, most<S>>(table, "max", {s.c_str()});
  addBinary<U, most<U>>(table, "max", {u.c_str()});
  addBinary<S, quotient<S>>(table, "div", {s.c_str()});
  addBinary<U, quotient<U>>(table, "div", {u.c_str()});
  addBinary<S, remainder<S>>(table, "rem", {s.c_str()});
  addBinary<U, remainder<U>>(table, "rem", {u.c_str()});
  addBinary<U, times<U>>(table, "mul.lo", {s.c_str(), u.c_str()});
  addBinary<S, high<S>>(table, "mul.hi", {s.c_str()});
  addBinary<U, high<U>>(table, "mul.hi", {u.c_str()});
  const std::string shift = "d" + b + " s" + b + " s32";
  table["shl" + x] = {shift, binary<U, U, uint32_t, left<U>>};
  table["shr" + s] = {shift, binary<S, S, uint32_t, right<S>>};
  table["shr" + u] = table["shr" + x] = {shift, binary<U, U, uint32_t, right<U>>};
  const std::string three = "d" + b + " s" + b + " s" + b + " s" + b;
  table["mad.lo" + s] = table["mad.lo" + u] = {
      three, ternary<U, U, U, U, [](U p, U q, U r) { return U(p * q + r); }>};
  const std::string choice = "d" + b + " s" + b + " s" + b + " sp";
  for (const std::string &suffix : {s, u, x})
    table["selp" + suffix] = {choice, select<U>};
  for (const std::string &suffix : {s, u, x}) {
    table["mov" + suffix] = {"d" + b + " s" + b, unary<U, U, [](U a) { return a; }>};
    table["mov" + suffix].passesUndefined = true;
  }
  addEqual<U>(table, "s" + b), addEqual<U>(table, "u" + b), addEqual<U>(table, "b" + b);
  addOrder<S>(table, "s" + b), addOrder<U>(table, "u" + b);
}

template <class T> void addWide(Table &table, const std::string &type) {
  using Wide =
      std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                         std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  const std::string b = bitsOf<T>(), w = bitsOf<Wide>();
  table["mul.wide." + type] = {
      "d" + w + " s" + b + " s" + b,
      binary<Wide, T, T, [](T a, T c) { return Wide(Wide(a) * Wide(c)); }>};
  table["mad.wide." + type] = {
      "d" + w + " s" + b + " s" + b + " s" + w,
      ternary<Wide, T, T, Wide, [](T a, T c, Wide d) { return Wide(Wide(a) * Wide(c) + d); }>};
}

void addFloats(Table &table) {
  addBinary<float, plus<float>>(table, "add", {".rn.f32", ".f32"});
  addBinary<float, minus<float>>(table, "sub", {".rn.f32", ".f32"});
  addBinary<float, times<float>>(table, "mul", {".rn.f32", ".f32"});
  addBinary<float, [](float a, float b) { return a / b; }>(table, "div", {".rn.f32"});
  addBinary<float, minimum<float>>(table, "min", {".f32"});
  addBinary<float, maximum<float>>(table, "max", {".f32"});
  addUnary<float, [](float a) { return -a; }>(table, "neg", {".f32"});
  addUnary<float, [](float a) { return std::fabs(a); }>(table, "abs", {".f32"});
  table["fma.rn.f32"] = {"d32 s32 s32 s32",
                         ternary<float, float, float, float,
                                 [](float a, float b, float c) { return std::fma(a, b, c); }>};
  table["selp.f32"] = table["selp.b32"];
  table["selp.f64"] = table["selp.b64"];
  table["mov.f32"] = table["mov.b32"];
  table["mov.f64"] = table["mov.b64"];
  addEqual<float>(table, "f32");
  addOrder<float>(table, "f32");
  addCompare<float, [](float a, float b) { return a != a || b != b; }>(table, "nan.f32");
  addCompare<float, [](float a, float b) { return a == a && b == b; }>(table, "num.f32");
  addCompare<float, [](float a, float b) { return !(a == b); }>(table, "neu.f32");
  addCompare<float, [](float a, float b) { return !(a >= b); }>(table, "ltu.f32");
  addCompare<float, [](float a, float b) { return !(a > b); }>(table, "leu.f32");
  addCompare<float, [](float a, float b) { return !(a <= b); }>(table, "gtu.f32");
  addCompare<float, [](float a, float b) { return !(a < b); }>(table, "geu.f32");
  addCompare<float, [](float a, float b) { return !(a < b || a > b); }>(table, "equ.f32");
  table["add.rn.f32x2"] = {"d64 s64 s64",
                           binary<uint64_t, uint64_t, uint64_t, halves<plus<float>>>};
  table["mul.rn.f32x2"] = {"d64 s64 s64",
                           binary<uint64_t, uint64_t, uint64_t, halves<times<float>>>};
  table["fma.rn.f32x2"] = {"d64 s64 s64 s64",
                           ternary<uint64_t, uint64_t, uint64_t, uint64_t, fusedHalves>};
}

void addPredicates(Table &table) {
  table["and.pred"] = {"dp sp sp", predicates<[](uint32_t a, uint32_t b) { return a & b; }>};
  table["or.pred"] = {"dp sp sp", predicates<[](uint32_t a, uint32_t b) { return a | b; }>};
  table["xor.pred"] = {"dp sp sp", predicates<[](uint32_t a, uint32_t b) { return a ^ b; }>};
  auto one = [](Warp &warp, const Instruction &i, uint32_t mask) {
    uint32_t from = warp.predicate(i.sources[0]) ^ i.a;
    uint32_t &to = warp.predicate(i.destinations[0]);
    to = (to & ~mask) | (from & mask);
    return true;
  };
  table["not.pred"] = {"dp sp", one, ~uint32_t(0)};
  table["mov.pred"] = {"dp sp", one, 0};
}

/// A clock in nanoseconds: an instruction of any warp takes one.
bool readClock(Warp &warp, const Instruction &i, uint32_t mask) {
  uint64_t now = warp.machine().clock + warp.machine().slept;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) {
      if (i.a == 64)
        warp.at<uint64_t>(i.destinations[0])[lane] = now;
      else
        warp.at<uint32_t>(i.destinations[0])[lane] = uint32_t(now);
    }
  return true;
}

} // namespace

void addArithmetic(Table &table) {
  addIntegers<int16_t, uint16_t>(table);
  addIntegers<int32_t, uint32_t>(table);
  addIntegers<int64_t, uint64_t>(table);
  addWide<int16_t>(table, "s16"), addWide<uint16_t>(table, "u16");
  addWide<int32_t>(table, "s32"), addWide<uint32_t>(table, "u32");
  addFloats(table);
  addPredicates(table);
  table["bfe.u32"] = {"d32 s32 s32 s32",
                      ternary<uint32_t, uint32_t, uint32_t, uint32_t, extract<uint32_t>>};
  table["bfe.s32"] = {"d32 s32 s32 s32",
                      ternary<int32_t, int32_t, uint32_t, uint32_t, extract<int32_t>>};
  table["bfe.u64"] = {"d64 s64 s32 s32",
                      ternary<uint64_t, uint64_t, uint32_t, uint32_t, extract<uint64_t>>};
  table["bfe.s64"] = {"d64 s64 s32 s32",
                      ternary<int64_t, int64_t, uint32_t, uint32_t, extract<int64_t>>};
  table["bfi.b32"] = {"d32 s32 s32 s32 s32", insert<uint32_t>};
  table["bfi.b64"] = {"d64 s64 s64 s32 s32", insert<uint64_t>};
  table["prmt.b32"] = {"d32 s32 s32 s32", ternary<uint32_t, uint32_t, uint32_t, uint32_t, permute>};
  table["lop3.b32"] = {"d32 s32 s32 s32 i", lop3};
  table["popc.b32"] = {
      "d32 s32", unary<uint32_t, uint32_t, [](uint32_t a) { return uint32_t(std::popcount(a)); }>};
  table["clz.b32"] = {
      "d32 s32",
      unary<uint32_t, uint32_t, [](uint32_t a) { return uint32_t(std::countl_zero(a)); }>};
  table["shf.l.wrap.b32"] = {
      "d32 s32 s32 s32",
      ternary<uint32_t, uint32_t, uint32_t, uint32_t, [](uint32_t low, uint32_t top, uint32_t by) {
        return uint32_t((uint64_t(top) << 32 | low) << (by & 31) >> 32);
      }>};
  table["shf.r.wrap.b32"] = {
      "d32 s32 s32 s32",
      ternary<uint32_t, uint32_t, uint32_t, uint32_t, [](uint32_t low, uint32_t top, uint32_t by) {
        return uint32_t((uint64_t(top) << 32 | low) >> (by & 31));
      }>};
  for (const char *clock : {"%globaltimer", "%clock64"})
    for (const char *type : {"mov.u64 ", "mov.b64 "})
      table[std::string(type) + clock] = {"d64 -", readClock, 64};
  for (const char *clock : {"%globaltimer_lo", "%clock"})
    for (const char *type : {"mov.u32 ", "mov.b32 "})
      table[std::string(type) + clock] = {"d32 -", readClock, 32};
}

} // namespace stepc::ptx
