//===- Plural.h - Counts in messages ----------------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_TEXT_PLURAL_H
#define STEPC_RUNTIME_TEXT_PLURAL_H

#include <cstdint>
#include <string>
#include <string_view>

namespace stepc {

/// "1 rank", "2 ranks", "0 ranks"; `many` is the plural of a word that does not take an s, as
/// "indices" of "index".
inline std::string plural(int64_t count, std::string_view one, std::string_view many = {}) {
  std::string text = std::to_string(count) + " ";
  if (count == 1)
    return text.append(one);
  return many.empty() ? text.append(one) + "s" : text.append(many);
}

} // namespace stepc

#endif
