//===- Lanewise.h - Instructions that do the same in each lane ---*- C++ -*-===//
#ifndef STEPC_TEST_PTX_LANEWISE_H
#define STEPC_TEST_PTX_LANEWISE_H

#include "test/ptx/Machine.h"

namespace stepc::ptx {

/// A lane's room for a value: 32 or 64 bits, zeros above shorter ones.
template <class T> using Room = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T> T fromRoom(Room<T> room) {
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<T>(room);
  else
    return T(room);
}
template <class T> Room<T> toRoom(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<Room<T>>(value);
  else
    return Room<T>(std::make_unsigned_t<T>(value));
}

/// The destination's lane is F of the sources' lanes.
template <class D, class A, auto F> bool unary(Warp &warp, const Instruction &i, uint32_t mask) {
  auto *d = warp.at<Room<D>>(i.destinations[0]);
  auto *a = warp.at<Room<A>>(i.sources[0]);
  for (int lane = 0; lane < 32; ++lane)
    if (mask == ~uint32_t(0) || mask >> lane & 1)
      d[lane] = toRoom<D>(F(fromRoom<A>(a[lane])));
  return true;
}

template <class D, class A, class B, auto F>
bool binary(Warp &warp, const Instruction &i, uint32_t mask) {
  auto *d = warp.at<Room<D>>(i.destinations[0]);
  auto *a = warp.at<Room<A>>(i.sources[0]);
  auto *b = warp.at<Room<B>>(i.sources[1]);
  for (int lane = 0; lane < 32; ++lane)
    if (mask == ~uint32_t(0) || mask >> lane & 1)
      d[lane] = toRoom<D>(F(fromRoom<A>(a[lane]), fromRoom<B>(b[lane])));
  return true;
}

template <class D, class A, class B, class C, auto F>
bool ternary(Warp &warp, const Instruction &i, uint32_t mask) {
  auto *d = warp.at<Room<D>>(i.destinations[0]);
  auto *a = warp.at<Room<A>>(i.sources[0]);
  auto *b = warp.at<Room<B>>(i.sources[1]);
  auto *c = warp.at<Room<C>>(i.sources[2]);
  for (int lane = 0; lane < 32; ++lane)
    if (mask == ~uint32_t(0) || mask >> lane & 1)
      d[lane] = toRoom<D>(F(fromRoom<A>(a[lane]), fromRoom<B>(b[lane]), fromRoom<C>(c[lane])));
  return true;
}

/// A predicate: the bit of each lane is F of the sources' lanes.
template <class T, auto F> bool compare(Warp &warp, const Instruction &i, uint32_t mask) {
  auto *a = warp.at<Room<T>>(i.sources[0]);
  auto *b = warp.at<Room<T>>(i.sources[1]);
  uint32_t result = 0;
  for (int lane = 0; lane < 32; ++lane)
    result |= uint32_t(F(fromRoom<T>(a[lane]), fromRoom<T>(b[lane]))) << lane;
  uint32_t &d = warp.predicate(i.destinations[0]);
  d = (d & ~mask) | (result & mask);
  return true;
}

template <class T> bool select(Warp &warp, const Instruction &i, uint32_t mask) {
  auto *d = warp.at<Room<T>>(i.destinations[0]);
  auto *a = warp.at<Room<T>>(i.sources[0]);
  auto *b = warp.at<Room<T>>(i.sources[1]);
  uint32_t choice = warp.predicate(i.sources[2]);
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      d[lane] = choice >> lane & 1 ? a[lane] : b[lane];
  return true;
}

template <auto F> bool predicates(Warp &warp, const Instruction &i, uint32_t mask) {
  uint32_t result = F(warp.predicate(i.sources[0]), warp.predicate(i.sources[1]));
  uint32_t &d = warp.predicate(i.destinations[0]);
  d = (d & ~mask) | (result & mask);
  return true;
}

} // namespace stepc::ptx

#endif
