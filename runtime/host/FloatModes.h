//===- FloatModes.h - The floating-point modes of generated code -*- C++ -*-===//
//
// Kernels rely on round to nearest, denormals kept and exceptions masked. A trainer may have set other
// modes (torch.set_flush_denormal, a signalling debugger), on its own threads and on threads that it lends.
// So each entry into the library sets these modes, and restores the trainer's when it returns.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_HOST_FLOATMODES_H
#define STEPC_RUNTIME_HOST_FLOATMODES_H

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace stepc::runtime {

class FloatModes {
public:
#if defined(__x86_64__)
  FloatModes() : saved(_mm_getcsr()) {
    if (saved != kModes)
      _mm_setcsr(kModes);
  }
  // Restores the whole register: the trainer must not see the flags that kernels raised.
  ~FloatModes() { _mm_setcsr(saved); }

private:
  static constexpr unsigned kModes = 0x1f80; // all masked, nearest, no FTZ, no DAZ, no flags
  unsigned saved;
#else
  FloatModes() {
    std::fegetenv(&saved);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatModes() { std::fesetenv(&saved); }

private:
  std::fenv_t saved;
#endif
public:
  FloatModes(const FloatModes &) = delete;
  FloatModes &operator=(const FloatModes &) = delete;
};

} // namespace stepc::runtime

#endif
