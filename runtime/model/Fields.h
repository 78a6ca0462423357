//===- Fields.h - Structs that name their fields ----------------*- C++ -*-===//
//
// A struct lists its fields once, in a static function `fields(self, visit)` that calls `visit(name,
// field)` for each field in turn. Serialized bytes, JSON and the text of attributes follow this list.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_MODEL_FIELDS_H
#define STEPC_RUNTIME_MODEL_FIELDS_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

namespace stepc::plan {

template <typename T>
concept HasFields =
    requires(T &value) { std::remove_const_t<T>::fields(value, [](const char *, auto &) {}); };

template <typename T> inline constexpr bool isVector = false;
template <typename T> inline constexpr bool isVector<std::vector<T>> = true;
template <typename T> inline constexpr bool isOptional = false;
template <typename T> inline constexpr bool isOptional<std::optional<T>> = true;
template <typename T> inline constexpr bool isVariant = false;
template <typename... T> inline constexpr bool isVariant<std::variant<T...>> = true;

/// Gives the variant its alternative number `number`, default-constructed. Returns false if there is no
/// such alternative.
template <typename... Each> bool makeAlternative(std::variant<Each...> &value, uint64_t number) {
  uint64_t at = 0;
  return ((at++ == number && (value.template emplace<Each>(), true)) || ...);
}

/// Visits all fields of type T in a value, or in a part of it, in the order of the fields.
template <typename T, typename Value, typename Visit> void forEach(Value &value, Visit &&visit) {
  using Plain = std::remove_const_t<Value>;
  auto inner = [&](auto &part) { forEach<T>(part, visit); };
  if constexpr (std::is_same_v<Plain, T>)
    visit(value);
  else if constexpr (isVariant<Plain>)
    std::visit(inner, value);
  else if constexpr (HasFields<Value>)
    Plain::fields(value, [&](const char *, auto &field) { inner(field); });
  else if constexpr (isVector<Plain>)
    std::for_each(value.begin(), value.end(), inner);
  else if constexpr (isOptional<Plain>)
    value ? inner(*value) : void();
}

} // namespace stepc::plan

#endif
