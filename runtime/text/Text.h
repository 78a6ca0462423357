//===- Text.h - Messages ------------------------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_TEXT_TEXT_H
#define STEPC_RUNTIME_TEXT_TEXT_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepc::runtime {

/// printf into a string.
std::string format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));

/// The sizes of a shape, such as "[6, 4]".
std::string shapeText(const int64_t *shape, size_t axes);

/// Writes `text` and a terminating zero into a buffer of `size` bytes, which may be null. Text that does
/// not fit is cut.
void copyText(char *buffer, int64_t size, std::string_view text);

} // namespace stepc::runtime

#endif
