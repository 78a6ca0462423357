//===- Alike.h - Whether two declarations are of one function ----*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_RUNTIME_ALIKE_H
#define STEPC_TEST_UNIT_RUNTIME_ALIKE_H

#include <cstddef>
#include <type_traits>

/// Whether arguments and results of two functions travel alike: enums are integers, handles are pointers.
template <typename One, typename Other> struct IsAlike;
template <typename R, typename... A, typename S, typename... B>
struct IsAlike<R (*)(A...), S (*)(B...)> {
  template <typename One, typename Other>
  static constexpr bool travel =
      sizeof(One) == sizeof(Other) && std::is_pointer_v<One> == std::is_pointer_v<Other> &&
      std::is_class_v<One> == std::is_class_v<Other>;
  static constexpr bool find() {
    if constexpr (sizeof...(A) == sizeof...(B))
      return travel<R, S> && (travel<A, B> && ...);
    return false;
  }
};

#endif
