//===- TargetShape.h - The chip that code is made for -----------*- C++ -*-===//
//
// A chip is text, "<llvm cpu>;<features, comma separated>": it stands in the
// plan, is part of its hash, and the runtime compares it with the CPU that it is on. A GPU's code on a
// CPU has the CPU's after its own, "emulated:sm_80 on <llvm cpu>;…". So does "interpret on <llvm cpu>;…".
// Kernels ask only for its shape.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_TARGETSHAPE_H
#define STEPC_PASSES_KERNELS_TARGETSHAPE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace stepc {

struct GpuTarget;

/// What kernels need to know of a chip. Never changes a number, only speed.
struct TargetShape {
  int64_t vectorBits = 256; ///< 512, 256 or 128: one register
  bool fma = true;          ///< fused multiply-add in hardware (otherwise a slow call)
  bool half = true;         ///< f16 ↔ f32 conversions in hardware
};

/// Set on the module from level 5 on, and on none before: the chip.
inline constexpr llvm::StringLiteral kChipAttr = "stepc.chip";

/// The chip of a target: "cpu" is this machine, "cpu:<llvm cpu>" a named one
/// with all that LLVM knows it to have; "emulated" and "emulated:sm_<number>" are a GPU's code on
/// this machine, with "cuda:sm_<number>" its own (GpuChips.h). "interpret" and "interpret:<llvm cpu>"
/// are kernels that this machine interprets, with the bits of a cpu. Anything else is an error that says
/// what is known.
llvm::Expected<std::string> chipOfTarget(llvm::StringRef target);

/// Which kind of target a chip is of: "cpu", "cuda", "emulated" or "interpret".
llvm::StringRef kindOfChip(llvm::StringRef chip);
/// What tells a program from the others of its library: the kind of its chip and, of the kind cuda, which
/// GPU, as "cuda.sm_90a".
std::string programKey(llvm::StringRef chip);
/// Whether a chip is a GPU's code on a CPU: its programs run on the device `emulated`.
bool isEmulated(llvm::StringRef chip);
/// Whether the kernels for a chip are interpreted: its programs run on the device `interpret`.
bool isInterpreted(llvm::StringRef chip);
/// Whether a chip is a GPU's code on a CPU, and its kernels say what they touch.
bool looksForRaces(llvm::StringRef chip);
/// What such a chip says of the GPU.
llvm::Expected<GpuTarget> emulatedTarget(llvm::StringRef chip);

/// "znver5;+avx,+avx2" → ("znver5", "+avx,+avx2"), as LLVM's target machine takes them. What is
/// emulated there is left out.
std::pair<std::string, std::string> splitChip(llvm::StringRef chip);

/// The shape of a chip; an error for a cpu that LLVM does not know.
llvm::Expected<TargetShape> shapeOfChip(llvm::StringRef chip);

} // namespace stepc

#endif
