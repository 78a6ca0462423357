//===- BodyCode.cpp - A body, ready to run ----------------------------------===//
//
// An operation has the meaning that LLVM gives it on the chip: one rounding per operation, and no function
// of a math library. An operation may give any NaN, because all NaNs are stored as one.
//
//===----------------------------------------------------------------------===//
#include "runtime/interpret/BodyCode.h"
#include "runtime/interpret/Storage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#pragma STDC FP_CONTRACT OFF

namespace stepc::interpret {
namespace {

/// The type of a word of so many bits in a register. A word of one bit takes a byte.
template <int64_t Bits> struct Word;
template <> struct Word<1> {
  using Lane = uint8_t;
  static constexpr uint8_t kMask = 1;
  static int8_t asSigned(uint8_t value) { return int8_t(-int8_t(value & 1)); }
};
template <> struct Word<16> {
  using Lane = uint16_t;
  static constexpr uint16_t kMask = 0xffff;
  static int16_t asSigned(uint16_t value) { return int16_t(value); }
};
template <> struct Word<32> {
  using Lane = uint32_t;
  static constexpr uint32_t kMask = ~uint32_t(0);
  static int32_t asSigned(uint32_t value) { return int32_t(value); }
};
template <> struct Word<64> {
  using Lane = uint64_t;
  static constexpr uint64_t kMask = ~uint64_t(0);
  static int64_t asSigned(uint64_t value) { return int64_t(value); }
};

template <typename T> T lane(const std::byte *from, int64_t i) {
  return load<T>(from + i * int64_t(sizeof(T)));
}
template <typename T> void setLane(std::byte *to, int64_t i, T value) {
  store(to + i * int64_t(sizeof(T)), value);
}

template <typename To, typename From, auto Function>
void unary(const Step &step, std::byte *registers, int64_t lanes) {
  const std::byte *first = registers + step.first;
  std::byte *result = registers + step.result;
  for (int64_t i = 0; i < lanes; ++i)
    setLane<To>(result, i, Function(lane<From>(first, i)));
}

template <typename T, auto Function>
void binary(const Step &step, std::byte *registers, int64_t lanes) {
  const std::byte *first = registers + step.first, *second = registers + step.second;
  std::byte *result = registers + step.result;
  for (int64_t i = 0; i < lanes; ++i)
    setLane<T>(result, i, Function(lane<T>(first, i), lane<T>(second, i)));
}

template <typename T> STEPC_FUSES void fuse(const Step &step, std::byte *registers, int64_t lanes) {
  const std::byte *first = registers + step.first, *second = registers + step.second,
                  *third = registers + step.third;
  std::byte *result = registers + step.result;
  for (int64_t i = 0; i < lanes; ++i) {
    T a, b, c;
    std::memcpy(&a, first + i * int64_t(sizeof(T)), sizeof(T));
    std::memcpy(&b, second + i * int64_t(sizeof(T)), sizeof(T));
    std::memcpy(&c, third + i * int64_t(sizeof(T)), sizeof(T));
    if constexpr (sizeof(T) == 4)
      c = __builtin_fmaf(a, b, c);
    else
      c = __builtin_fma(a, b, c);
    std::memcpy(result + i * int64_t(sizeof(T)), &c, sizeof(T));
  }
}

template <typename T> void select(const Step &step, std::byte *registers, int64_t lanes) {
  const std::byte *condition = registers + step.first, *yes = registers + step.second,
                  *no = registers + step.third;
  std::byte *result = registers + step.result;
  for (int64_t i = 0; i < lanes; ++i) {
    T one = lane<T>(yes, i), other = lane<T>(no, i);
    setLane<T>(result, i, lane<uint8_t>(condition, i) ? one : other);
  }
}

// The outcomes of a comparison, as bits. A predicate is the set of outcomes for which it is true.
constexpr uint32_t kEqual = 1, kGreater = 2, kLess = 4, kUnordered = 8;

template <typename T> void compareFloats(const Step &step, std::byte *registers, int64_t lanes) {
  // false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno, true
  constexpr uint32_t kSets[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 8, 15};
  const std::byte *first = registers + step.first, *second = registers + step.second;
  std::byte *result = registers + step.result;
  uint32_t set = kSets[step.predicate];
  for (int64_t i = 0; i < lanes; ++i) {
    T a = lane<T>(first, i), b = lane<T>(second, i);
    uint32_t found = (a == b ? kEqual : 0) | (a > b ? kGreater : 0) | (a < b ? kLess : 0);
    found = found ? found : kUnordered;
    setLane<uint8_t>(result, i, (found & set) != 0);
  }
}

template <int64_t Bits> void compareWords(const Step &step, std::byte *registers, int64_t lanes) {
  // eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge
  constexpr uint32_t kSets[] = {1, 6, 4, 5, 2, 3, 4, 5, 2, 3};
  using Lane = typename Word<Bits>::Lane;
  const std::byte *first = registers + step.first, *second = registers + step.second;
  std::byte *result = registers + step.result;
  uint32_t set = kSets[step.predicate];
  auto compare = [&](auto convert) {
    for (int64_t i = 0; i < lanes; ++i) {
      auto a = convert(lane<Lane>(first, i)), b = convert(lane<Lane>(second, i));
      uint32_t found = a == b ? kEqual : a > b ? kGreater : kLess;
      setLane<uint8_t>(result, i, (found & set) != 0);
    }
  };
  if (step.predicate < 6)
    compare([](Lane value) { return Word<Bits>::asSigned(value); });
  else
    compare([](Lane value) { return value; });
}

template <typename T> T squareRoot(T value) {
#if __has_builtin(__builtin_elementwise_sqrt)
  return __builtin_elementwise_sqrt(value); // without errno, which would need a function
#else
  return std::sqrt(value);
#endif
}

template <typename T> using WordOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

/// The larger or smaller of two numbers, where -0 is below +0. NaN if either number is NaN.
template <typename T, bool IsMax> T extreme(T a, T b) {
  if (a != a)
    return a;
  if (b != b)
    return b;
  if (a == b) {
    auto x = std::bit_cast<WordOf<T>>(a), y = std::bit_cast<WordOf<T>>(b);
    return std::bit_cast<T>(IsMax ? x & y : x | y);
  }
  return (a > b) == IsMax ? a : b;
}

/// Rounds towards zero. A number that does not fit gives the smallest integer, as on x86.
template <typename To, typename From> To toSigned(From value) {
  constexpr From kEnd = From(-2) * From(std::numeric_limits<To>::min() / 2);
  return value >= -kEnd && value < kEnd ? To(value) : std::numeric_limits<To>::min();
}

using Apply = void (*)(const Step &, std::byte *, int64_t);

template <typename T> Apply ofFloats(Operation operation) {
  constexpr WordOf<T> kSign = WordOf<T>(1) << (8 * sizeof(T) - 1);
  using W = WordOf<T>;
  switch (operation) {
  case Operation::AddF:
    return binary<T, [](T a, T b) { return a + b; }>;
  case Operation::SubF:
    return binary<T, [](T a, T b) { return a - b; }>;
  case Operation::MulF:
    return binary<T, [](T a, T b) { return a * b; }>;
  case Operation::DivF:
    return binary<T, [](T a, T b) { return a / b; }>;
  case Operation::NegF:
    return unary<W, W, [](W a) { return W(a ^ kSign); }>;
  case Operation::AbsF:
    return unary<W, W, [](W a) { return W(a & ~kSign); }>;
  case Operation::CopySign:
    return binary<W, [](W a, W b) { return W((a & ~kSign) | (b & kSign)); }>;
  case Operation::Floor:
    return unary<T, T, [](T a) { return std::floor(a); }>;
  case Operation::Sqrt:
    return unary<T, T, squareRoot<T>>;
  case Operation::Fma:
    return fuse<T>;
  case Operation::MaximumF:
    return binary<T, extreme<T, true>>;
  case Operation::MinimumF:
    return binary<T, extreme<T, false>>;
  case Operation::CompareF:
    return compareFloats<T>;
  default:
    return nullptr;
  }
}

template <int64_t Bits> Apply ofWords(Operation operation) {
  using W = Word<Bits>;
  using T = typename W::Lane;
  // A shift by the width or more has no meaning, so any result will do.
  switch (operation) {
  case Operation::AddI:
    return binary<T, [](T a, T b) { return T((a + b) & W::kMask); }>;
  case Operation::SubI:
    return binary<T, [](T a, T b) { return T((a - b) & W::kMask); }>;
  case Operation::MulI:
    return binary<T, [](T a, T b) { return T((uint64_t(a) * b) & W::kMask); }>;
  case Operation::AndI:
    return binary<T, [](T a, T b) { return T(a & b); }>;
  case Operation::OrI:
    return binary<T, [](T a, T b) { return T(a | b); }>;
  case Operation::XorI:
    return binary<T, [](T a, T b) { return T(a ^ b); }>;
  case Operation::ShiftLeft:
    return binary<T, [](T a, T b) { return T((uint64_t(a) << (b % Bits)) & W::kMask); }>;
  case Operation::ShiftRight:
    return binary<T, [](T a, T b) { return T(a >> (b % Bits)); }>;
  case Operation::ShiftRightSigned:
    return binary<T, [](T a, T b) { return T((W::asSigned(a) >> (b % Bits)) & W::kMask); }>;
  case Operation::CompareI:
    return compareWords<Bits>;
  default:
    return nullptr;
  }
}

template <typename Function> Apply byType(Type type, Function &&function) {
  switch (type) {
  case Type::I1:
    return function.template operator()<1>();
  case Type::I16:
    return function.template operator()<16>();
  case Type::I32:
  case Type::F32:
    return function.template operator()<32>();
  default:
    return function.template operator()<64>();
  }
}

template <int64_t From> Apply conversionOfWords(Operation operation, Type to) {
  return byType(to, [&]<int64_t To>() -> Apply {
    using F = Word<From>;
    using T = Word<To>;
    using FromLane = typename F::Lane;
    using ToLane = typename T::Lane;
    if (operation == Operation::ExtendSigned)
      return unary<ToLane, FromLane,
                   [](FromLane a) { return ToLane(int64_t(F::asSigned(a)) & T::kMask); }>;
    return unary<ToLane, FromLane, [](FromLane a) { return ToLane(a & T::kMask); }>;
  });
}

template <typename From> Apply toSignedOf(Type to) {
  if (to == Type::I32)
    return unary<int32_t, From, toSigned<int32_t, From>>;
  return unary<int64_t, From, toSigned<int64_t, From>>;
}
template <typename To> Apply fromSignedOf(Type from) {
  if (from == Type::I32)
    return unary<To, int32_t, [](int32_t a) { return To(a); }>;
  return unary<To, int64_t, [](int64_t a) { return To(a); }>;
}

Apply applyOf(const Instruction &each) {
  switch (each.operation) {
  case Operation::Select:
    return byType(each.type,
                  []<int64_t Bits>() -> Apply { return select<typename Word<Bits>::Lane>; });
  case Operation::ExtendF:
    return unary<double, float, [](float a) { return double(a); }>;
  case Operation::TruncateF:
    return unary<float, double, [](double a) { return float(a); }>;
  case Operation::ExtendUnsigned:
  case Operation::ExtendSigned:
  case Operation::TruncateI:
    return byType(each.type,
                  [&]<int64_t Bits>() { return conversionOfWords<Bits>(each.operation, each.to); });
  case Operation::FloatToSigned:
    return each.type == Type::F32 ? toSignedOf<float>(each.to) : toSignedOf<double>(each.to);
  case Operation::SignedToFloat:
    return each.to == Type::F32 ? fromSignedOf<float>(each.type) : fromSignedOf<double>(each.type);
  default:
    break;
  }
  if (each.type == Type::F32)
    return ofFloats<float>(each.operation);
  if (each.type == Type::F64)
    return ofFloats<double>(each.operation);
  return byType(each.type, [&]<int64_t Bits>() { return ofWords<Bits>(each.operation); });
}

template <typename T> void fill(std::byte *to, int64_t lanes, int64_t bits) {
  for (int64_t i = 0; i < lanes; ++i)
    setLane(to, i, T(bits));
}

} // namespace

BodyCode::BodyCode(const Body &body) : constants(body.constants) {
  constexpr int64_t kMostLanes = 256;
  mostLanes = std::min(kMostLanes, Registers::kBytes / 8 / std::max<int64_t>(1, body.registers));
  uniform = stepsOf(body.uniform);
  each = stepsOf(body.each);
}

std::vector<Step> BodyCode::stepsOf(const std::vector<Instruction> &list) const {
  std::vector<Step> steps;
  auto byte = [&](int64_t place) { return place * mostLanes * 8; };
  for (const Instruction &one : list)
    steps.push_back({applyOf(one), byte(one.result), byte(one.first), byte(one.second),
                     byte(one.third), one.predicate});
  return steps;
}

void BodyCode::begin(Registers &registers, int64_t lanes) const {
  for (const Constant &constant : constants) {
    std::byte *to = at(registers, constant.result);
    switch (constant.type) {
    case Type::I1:
      fill<uint8_t>(to, lanes, constant.bits & 1);
      break;
    case Type::I16:
      fill<uint16_t>(to, lanes, constant.bits);
      break;
    case Type::I32:
    case Type::F32:
      fill<uint32_t>(to, lanes, constant.bits);
      break;
    default:
      fill<uint64_t>(to, lanes, constant.bits);
    }
  }
}

} // namespace stepc::interpret
