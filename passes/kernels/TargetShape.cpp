//===- TargetShape.cpp - The chip that code is made for --------------------===//

#include "passes/kernels/TargetShape.h"
#include "passes/kernels/GpuChips.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <algorithm>
#include <memory>
#include <vector>

using namespace llvm;

namespace stepc {
namespace {

/// LLVM's description of a cpu with features, of this machine's architecture.
Expected<std::unique_ptr<MCSubtargetInfo>> subtarget(StringRef cpu, StringRef features) {
  InitializeNativeTarget();
  Triple triple(sys::getDefaultTargetTriple());
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError("expected code generation for this machine, found none: " + error);
  std::unique_ptr<MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, "", ""));
  // Checked first, because LLVM itself only prints a warning for an unknown cpu.
  if (!info->isCPUStringValid(cpu))
    return createStringError("expected a cpu that LLVM knows for " + triple.getArchName() +
                             ", found '" + cpu + "' (`llc-22 -mcpu=help` lists them)");
  info.reset(target->createMCSubtargetInfo(triple, cpu, features));
  return info;
}

bool has(const MCSubtargetInfo &info, StringRef feature) {
  return info.checkFeatures(("+" + feature).str());
}

/// Names of the features that decide which instructions exist, sorted. LLVM's detection of the host lists
/// them; LLVM's own lists mix them with tuning hints.
std::vector<std::string> knownFeatures() {
  std::vector<std::string> names;
  for (const auto &entry : sys::getHostCPUFeatures())
    names.push_back(entry.getKey().str());
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace

constexpr StringLiteral kEmulated = "emulated", kInterpret = "interpret", kHost = " on ";

bool isEmulated(StringRef chip) { return chip.starts_with(kEmulated); }
bool isInterpreted(StringRef chip) { return chip.starts_with(kInterpret); }
bool standsForGpu(StringRef chip) {
  StringRef kind = kindOfChip(chip);
  return (isEmulated(chip) || isInterpreted(chip)) && chip.drop_front(kind.size()).starts_with(":");
}

std::string programKey(StringRef chip) {
  StringRef kind = kindOfChip(chip), gpu = chip.substr(kind.size() + 1);
  return isCuda(chip) ? (kind + "." + gpu.split(',').first).str() : kind.str();
}

StringRef kindOfChip(StringRef chip) {
  return isCuda(chip)          ? "cuda"
         : isEmulated(chip)    ? StringRef(kEmulated)
         : isInterpreted(chip) ? StringRef(kInterpret)
                               : "cpu";
}

bool looksForRaces(StringRef chip) {
  if (!isEmulated(chip))
    return false;
  Expected<GpuTarget> gpu = gpuOnHost(chip);
  if (gpu)
    return gpu->races;
  consumeError(gpu.takeError());
  return false;
}

/// The chip of a CPU in the place of a GPU, from the GPU as users write it.
static Expected<std::string> chipInPlaceOf(StringRef gpu, StringRef kind) {
  Expected<GpuTarget> known = parseGpuTarget(gpu, /*tensorCores=*/false);
  if (!known)
    return known.takeError();
  std::string target = (kind + ":" + gpu).str();
  if (known->ptx || known->bounded)
    return createStringError(Twine("expected ") + (known->ptx ? "ptx" : "bounded") +
                             " for target cuda alone, found '" + target + "'");
  if (known->races && kind != kEmulated)
    return refuseRaces(target);
  Expected<std::string> chip = chipOfTarget("cpu");
  if (!chip)
    return chip;
  return (kind + ":" + known->text(/*tensorCoresUnlessSaid=*/false) + kHost + *chip).str();
}

/// Whether a text names a GPU, right or wrong. No CPU of LLVM begins so or has a comma.
static bool meansGpu(StringRef text) {
  return text.starts_with_insensitive("sm") || text.contains(',');
}

Expected<std::string> chipOfTarget(StringRef target) {
  if (StringRef names = target; names.consume_front("cuda"))
    return cudaChip(names);
  if (StringRef gpu = target; gpu.consume_front(kEmulated)) {
    if (gpu.empty())
      gpu = ":sm_80";
    if (!gpu.consume_front(":") || gpu.empty())
      return createStringError("expected target 'emulated' or 'emulated:<gpu>', found '" + target +
                               "'");
    return chipInPlaceOf(gpu, kEmulated);
  }
  if (StringRef cpu = target;
      cpu.consume_front(kInterpret) && (cpu.empty() || (cpu.front() == ':' && cpu.size() > 1))) {
    if (StringRef gpu = cpu; gpu.consume_front(":") && meansGpu(gpu))
      return chipInPlaceOf(gpu, kInterpret);
    Expected<std::string> chip = chipOfTarget(("cpu" + cpu).str());
    if (!chip)
      return chip;
    return kInterpret.str() + kHost.str() + *chip;
  }
  bool host = target == "cpu";
  if (StringRef found = target; !host && (!target.consume_front("cpu:") || target.empty()))
    return createStringError("expected cpu, cpu:<llvm cpu>, cuda:<gpu>,…, emulated, "
                             "emulated:<gpu>,…, interpret, interpret:<llvm cpu> or "
                             "interpret:<gpu>,…, found '" +
                             found + "'");
  std::string cpu = host ? sys::getHostCPUName().str() : target.str();
  auto info = subtarget(cpu, "");
  if (!info)
    return info.takeError();
  if ((*info)->getTargetTriple().getArch() == Triple::x86_64 && !has(**info, "64bit"))
    return createStringError("expected a cpu with a 64-bit mode, found '" + cpu + "'");
  StringMap<bool> found = sys::getHostCPUFeatures();
  SmallVector<std::string> features;
  for (const std::string &name : knownFeatures()) {
    bool usual = has(**info, name), present = host ? found.lookup(name) : usual;
    if (present)
      features.push_back("+" + name);
    else if (usual) // a virtual machine may hide what the cpu has
      features.push_back("-" + name);
  }
  return cpu + ";" + join(features, ",");
}

Expected<GpuTarget> gpuOnHost(StringRef chip) {
  StringRef gpu = chip.take_front(chip.find(kHost)).drop_front(kindOfChip(chip).size());
  if (!standsForGpu(chip) || !gpu.consume_front(":"))
    return createStringError("expected a chip '" + kindOfChip(chip) + ":<gpu> on <cpu>', found '" +
                             chip + "'");
  return parseGpuTarget(gpu, /*tensorCores=*/false);
}

std::optional<GpuTarget> gpuOfChip(StringRef chip) {
  if (isCuda(chip))
    return cantFail(cudaTarget(chip));
  if (standsForGpu(chip))
    return cantFail(gpuOnHost(chip));
  return std::nullopt;
}

std::string gpuTargetOfChip(StringRef chip) { return chip.take_front(chip.find(kHost)).str(); }

std::pair<std::string, std::string> splitChip(StringRef chip) {
  // A library for GPUs has only plain calls in its code for the host.
  if (isCuda(chip))
    return {Triple(sys::getDefaultTargetTriple()).isX86() ? "x86-64" : "generic", ""};
  if (isEmulated(chip) || isInterpreted(chip))
    chip = chip.split(kHost).second;
  auto [cpu, features] = chip.split(';');
  return {cpu.str(), features.str()};
}

Expected<StringRef> hostOfChip(StringRef chip) {
  if (!chip.contains(kHost))
    return createStringError("expected a chip '" + chip + kHost + "<cpu>', found '" + chip + "'");
  return chip.split(kHost).second;
}

Expected<TargetShape> shapeOfChip(StringRef chip) {
  auto [cpu, features] = splitChip(chip);
  auto info = subtarget(cpu, features);
  if (!info)
    return info.takeError();
  TargetShape shape;
  if ((*info)->getTargetTriple().getArch() != Triple::x86_64) {
    shape.vectorBits = 128;
    return shape;
  }
  shape.vectorBits = has(**info, "avx512f") ? 512 : has(**info, "avx") ? 256 : 128;
  shape.fma = has(**info, "fma");
  shape.half = has(**info, "f16c");
  return shape;
}

} // namespace stepc
