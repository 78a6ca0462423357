#include "runtime/core/Chip.h"

#include <cstdint>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace stepc::runtime {
namespace {

#if defined(__x86_64__)
// cpuid itself rather than __builtin_cpu_supports: a generated library is linked without the
// compiler's own runtime library, which holds that function's tables.
enum Register { EAX, EBX, ECX, EDX };
// What the system must save on a context switch, as bits of XCR0.
constexpr uint64_t kNone = 0, kAvx = 0x6, kAvx512 = 0xe6, kTiles = 0x60000;

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  uint64_t saved;
};

constexpr Feature kFeatures[] = {
    {"sse3", 1, 0, ECX, 0, kNone},
    {"pclmul", 1, 0, ECX, 1, kNone},
    {"ssse3", 1, 0, ECX, 9, kNone},
    {"fma", 1, 0, ECX, 12, kAvx},
    {"sse4.1", 1, 0, ECX, 19, kNone},
    {"sse4.2", 1, 0, ECX, 20, kNone},
    {"movbe", 1, 0, ECX, 22, kNone},
    {"popcnt", 1, 0, ECX, 23, kNone},
    {"aes", 1, 0, ECX, 25, kNone},
    {"avx", 1, 0, ECX, 28, kAvx},
    {"f16c", 1, 0, ECX, 29, kAvx},
    {"sse", 1, 0, EDX, 25, kNone},
    {"sse2", 1, 0, EDX, 26, kNone},
    {"lzcnt", 0x80000001, 0, ECX, 5, kNone},
    {"sse4a", 0x80000001, 0, ECX, 6, kNone},
    {"xop", 0x80000001, 0, ECX, 11, kAvx},
    {"fma4", 0x80000001, 0, ECX, 16, kAvx},
    {"tbm", 0x80000001, 0, ECX, 21, kNone},
    {"bmi", 7, 0, EBX, 3, kNone},
    {"avx2", 7, 0, EBX, 5, kAvx},
    {"bmi2", 7, 0, EBX, 8, kNone},
    {"avx512f", 7, 0, EBX, 16, kAvx512},
    {"avx512dq", 7, 0, EBX, 17, kAvx512},
    {"adx", 7, 0, EBX, 19, kNone},
    {"avx512ifma", 7, 0, EBX, 21, kAvx512},
    {"avx512cd", 7, 0, EBX, 28, kAvx512},
    {"avx512bw", 7, 0, EBX, 30, kAvx512},
    {"avx512vl", 7, 0, EBX, 31, kAvx512},
    {"avx512vbmi", 7, 0, ECX, 1, kAvx512},
    {"avx512vbmi2", 7, 0, ECX, 6, kAvx512},
    {"gfni", 7, 0, ECX, 8, kNone},
    {"vaes", 7, 0, ECX, 9, kAvx},
    {"vpclmulqdq", 7, 0, ECX, 10, kAvx},
    {"avx512vnni", 7, 0, ECX, 11, kAvx512},
    {"avx512bitalg", 7, 0, ECX, 12, kAvx512},
    {"avx512vpopcntdq", 7, 0, ECX, 14, kAvx512},
    {"avx512vp2intersect", 7, 0, EDX, 8, kAvx512},
    {"amx-bf16", 7, 0, EDX, 22, kTiles},
    {"avx512fp16", 7, 0, EDX, 23, kAvx512},
    {"amx-tile", 7, 0, EDX, 24, kTiles},
    {"amx-int8", 7, 0, EDX, 25, kTiles},
    {"avxvnni", 7, 1, EAX, 4, kAvx},
    {"avx512bf16", 7, 1, EAX, 5, kAvx512},
    {"amx-fp16", 7, 1, EAX, 21, kTiles},
    {"avxifma", 7, 1, EAX, 23, kAvx},
    {"avxvnniint8", 7, 1, EDX, 4, kAvx},
    {"avxneconvert", 7, 1, EDX, 5, kAvx},
    {"avxvnniint16", 7, 1, EDX, 10, kAvx},
    {"avx10.1", 7, 1, EDX, 19, kAvx512},
    {"avx10.1-512", 7, 1, EDX, 19, kAvx512},
};

uint64_t savedBySystem() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27)))
    return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}

bool hasFeature(const Feature &feature, uint64_t saved) {
  uint32_t registers[4];
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &registers[EAX], &registers[EBX],
                         &registers[ECX], &registers[EDX]))
    return false;
  return ((registers[feature.reg] >> feature.bit) & 1) && (saved & feature.saved) == feature.saved;
}

bool lacks(std::string_view name, uint64_t saved) {
  for (const Feature &feature : kFeatures)
    if (feature.name == name)
      return !hasFeature(feature, saved);
  for (std::string_view vector : {"avx", "amx", "sse", "fma"})
    if (name.substr(0, vector.size()) == vector)
      return true;
  return false;
}
#endif

} // namespace

std::string missingFeature(std::string_view chip) {
#if defined(__x86_64__)
  size_t semicolon = chip.find(';');
  if (semicolon == std::string_view::npos)
    return {};
  uint64_t saved = savedBySystem();
  std::string_view rest = chip.substr(semicolon + 1);
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string_view name = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (name.size() > 1 && name[0] == '+' && lacks(name.substr(1), saved))
      return std::string(name.substr(1));
  }
#endif
  return {};
}

} // namespace stepc::runtime
