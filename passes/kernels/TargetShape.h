//===- TargetShape.h - The chip that code is made for -----------*- C++ -*-===//
//
// A chip is text: "<llvm cpu>;<features, comma separated>". It is in the plan and part of the plan's hash,
// and the runtime compares it with the CPU that it runs on. If a CPU runs a GPU's code, the GPU comes first:
// "emulated:sm_80 on <llvm cpu>;…". If a CPU interprets kernels, the text is "interpret on <llvm cpu>;…" or,
// for a GPU's plans, "interpret:sm_80 on <llvm cpu>;…". Kernels depend only on the chip's TargetShape.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_TARGETSHAPE_H
#define STEPC_PASSES_KERNELS_TARGETSHAPE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace stepc {

struct GpuTarget;

/// What kernels need to know of a chip. Only `fma` changes results: without it, products round after each
/// multiplication (Target::accumulation). All else decides speed alone.
struct TargetShape {
  int64_t vectorBits = 256; ///< 512, 256 or 128: one register
  bool fma = true;          ///< fused multiply-add in hardware (otherwise a slow call)
  bool half = true;         ///< f16 ↔ f32 conversions in hardware
};

/// The attribute of a module that holds the chip. Modules have it from level 5 on, and not before.
inline constexpr llvm::StringLiteral kChipAttr = "stepc.chip";

/// Returns the chip of a target. "cpu" is this machine, "cpu:<llvm cpu>" a named CPU with all that LLVM knows
/// it to have. "emulated" and "emulated:sm_<number>" are a GPU's code on this machine, "cuda:sm_<number>" is
/// its code on the GPU (GpuChips.h). "interpret" and "interpret:<llvm cpu>" are kernels that this machine
/// interprets, with the bits of that CPU. "interpret:sm_<number>" has the plans and bits of "emulated" for
/// that GPU. Any other text is an error that lists the known ones.
llvm::Expected<std::string> chipOfTarget(llvm::StringRef target);

/// Which kind of target a chip is of: "cpu", "cuda", "emulated" or "interpret".
llvm::StringRef kindOfChip(llvm::StringRef chip);
/// The key of a program in its library: the kind of its chip and, if the kind is cuda, the GPU, as
/// "cuda.sm_90a".
std::string programKey(llvm::StringRef chip);
/// Whether a chip is a GPU's code on a CPU: its programs run on the device `emulated`.
bool isEmulated(llvm::StringRef chip);
/// Whether the kernels for a chip are interpreted: its programs run on the device `interpret`.
bool isInterpreted(llvm::StringRef chip);
/// Whether a chip is a GPU's code on a CPU, and its kernels announce each load and store.
bool looksForRaces(llvm::StringRef chip);
/// Whether a chip is a CPU in the place of a GPU, whose kernels it runs or whose plans it interprets.
bool standsForGpu(llvm::StringRef chip);
/// The GPU of a chip for which standsForGpu holds.
llvm::Expected<GpuTarget> gpuOnHost(llvm::StringRef chip);
/// The GPU of a target's chip, or in whose place the chip is. Nullopt if there is none.
std::optional<GpuTarget> gpuOfChip(llvm::StringRef chip);
/// The target of such a chip, as users write it.
std::string gpuTargetOfChip(llvm::StringRef chip);

/// The CPU of a chip that is a GPU's code on a CPU, or whose kernels a CPU interprets. An error if the text,
/// which may have been edited by hand, names none.
llvm::Expected<llvm::StringRef> hostOfChip(llvm::StringRef chip);

/// "znver5;+avx,+avx2" → ("znver5", "+avx,+avx2"), as LLVM's target machine takes them. The part about a
/// GPU or the interpreter is left out. For a chip of kind cuda, returns a plain CPU of the host.
std::pair<std::string, std::string> splitChip(llvm::StringRef chip);

/// The shape of a chip; an error for a cpu that LLVM does not know.
llvm::Expected<TargetShape> shapeOfChip(llvm::StringRef chip);

} // namespace stepc

#endif
