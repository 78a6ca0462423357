//===- Enum.h - Enumerations and their names --------------------*- C++ -*-===//
//
// Each enumeration lists its names once, beside itself, in the order of its values 0, 1, 2 … Printing,
// parsing and the check of a value that was read use this list.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_MODEL_ENUM_H
#define STEPC_RUNTIME_MODEL_ENUM_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace stepc::plan {

/// The names of an enumeration's values, which are the words of the IR. Each enumeration specializes this
/// array.
template <typename Enum> inline constexpr std::array<std::string_view, 0> kNames = {};

template <typename Enum>
concept Named = std::is_enum_v<Enum> && !kNames<Enum>.empty();

template <Named Enum> constexpr int64_t count() {
  return static_cast<int64_t>(kNames<Enum>.size());
}

template <Named Enum> constexpr Enum last() { return static_cast<Enum>(count<Enum>() - 1); }

/// Whether `value` is one of the enumeration's values. A number that was read from bytes may be none of
/// them.
template <Named Enum> constexpr bool isKnown(Enum value) {
  return static_cast<size_t>(value) < kNames<Enum>.size();
}

/// The name of a value; "?" if it is unknown.
template <Named Enum> constexpr std::string_view name(Enum value) {
  return isKnown(value) ? kNames<Enum>[static_cast<size_t>(value)] : "?";
}

template <Named Enum> constexpr std::optional<Enum> parse(std::string_view word) {
  for (size_t i = 0; i < kNames<Enum>.size(); ++i)
    if (kNames<Enum>[i] == word)
      return static_cast<Enum>(i);
  return std::nullopt;
}

/// Joins names for a message that says what was expected: "error, skip or zero".
inline std::string oneOf(std::span<const std::string_view> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ").append(names[i]);
  return text;
}

} // namespace stepc::plan

#endif
