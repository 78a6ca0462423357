#include "runtime/text/Text.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace stepc::runtime {

std::string format(const char *pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  int length = std::vsnprintf(nullptr, 0, pattern, arguments);
  va_end(arguments);
  std::string text(std::max(length, 0), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

std::string shapeText(const int64_t *shape, size_t axes) {
  std::string text = "[";
  for (size_t i = 0; i < axes; ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void copyText(char *buffer, int64_t size, std::string_view text) {
  if (!buffer || size <= 0)
    return;
  size_t length = std::min<size_t>(text.size(), size - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
}

} // namespace stepc::runtime
