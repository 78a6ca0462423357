//===- Images.h - The hashes of a program's images --------------*- C++ -*-===//
//
// The compiler writes these hashes, and devices compare them before they use an image (kernel_abi.h).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_IMAGES_H
#define STEPC_RUNTIME_PLAN_IMAGES_H

#include "runtime/plan/Fnv1a.h"
#include "stepc/kernel_abi.h"

namespace stepc::plan {

inline uint64_t codeHash(const stepc_image &image) { return fnv1a({}, image.code, image.bytes); }

/// The hash of an image's numbers, which include the hash of its code.
inline uint64_t numbersHash(const stepc_image &image) {
  return fnv1a({uint64_t(image.major), uint64_t(image.minor), uint64_t(image.kind),
                uint64_t(image.bytes), image.code_hash});
}

} // namespace stepc::plan

#endif
