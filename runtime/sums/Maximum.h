//===- Maximum.h - The greatest of some numbers -----------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_SUMS_MAXIMUM_H
#define STEPC_RUNTIME_SUMS_MAXIMUM_H

#include "runtime/sums/Columns.h"

namespace stepc::sums {

/// IEEE 754's maximum: it propagates NaN, which has the bits 0x7fc00000, and +0 is above −0. The maximum of
/// no numbers is −∞.
float maximum(float a, float b);
float maximum(const Line &line);
/// The maximum of each column.
void maximum(float *out, const Strip &strip);

} // namespace stepc::sums

#endif
