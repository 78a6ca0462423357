//===- GpuChips.cpp - NVIDIA's chips, by name --------------------------------===//

#include "passes/kernels/GpuChips.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace stepc {

/// The chips that ptxas 13.1 assembles for and that have what our PTX needs.
constexpr StringLiteral kChips[] = {"sm_80",   "sm_86",  "sm_87",   "sm_88",  "sm_89",   "sm_90",
                                    "sm_90a",  "sm_100", "sm_100a", "sm_103", "sm_103a", "sm_110",
                                    "sm_110a", "sm_120", "sm_120a", "sm_121", "sm_121a"};
constexpr StringLiteral kHopper = "sm_90", kOnlyHopper = "sm_90a";
constexpr StringLiteral kCuda = "cuda:", kTensorCore = "tensorcore", kChain = "chain", kPtx = "ptx",
                        kRaces = "races", kBounded = "bounded";

/// The chip of which "SM_90", "sm90" or "90" is another spelling; otherwise empty.
static StringRef spelledOtherwise(StringRef name) {
  std::string lower = name.lower();
  StringRef digits = lower;
  digits.consume_front("sm");
  digits.consume_front("_");
  auto *chip = find_if(kChips, [&](StringRef known) { return known.drop_front(3) == digits; });
  return chip == std::end(kChips) ? StringRef() : StringRef(*chip);
}

Expected<GpuChip> gpuChip(StringRef name) {
  if (!is_contained(kChips, name)) {
    StringRef meant = spelledOtherwise(name);
    return createStringError("expected a GPU of " + join(ArrayRef(kChips), ", ") + ", found '" +
                             name + "'" +
                             (meant.empty() ? "" : ", did you mean '" + meant.str() + "'?"));
  }
  GpuChip chip{name.str(), 0, 0, name.ends_with("a")};
  StringRef digits = name.drop_front(3);
  digits = chip.isExact ? digits.drop_back() : digits;
  if (digits.drop_back().getAsInteger(10, chip.major) ||
      digits.take_back().getAsInteger(10, chip.minor))
    llvm_unreachable("known names end in digits");
  return chip;
}

plan::BlockLimits limitsOf(const GpuChip &chip) {
  constexpr int64_t kThreads = 1024, kKiB = 1024;
  if (chip.major >= 9)
    return {kThreads, (chip.major == 12 ? 99 : 227) * kKiB, 8};
  bool isLarge = chip.minor == 0 || chip.minor == 7; // of generation 8
  return {kThreads, (isLarge ? 163 : 99) * kKiB, 1};
}

StringRef ptxChipOf(const GpuChip &chip) { return chip.major >= 9 ? "sm_90" : "sm_80"; }

bool isCuda(StringRef chip) { return chip.starts_with(kCuda); }

Expected<GpuTarget> parseGpuTarget(StringRef text, bool tensorCores) {
  GpuTarget target{{}, tensorCores, false};
  StringRef products, found;
  SmallVector<StringRef> words;
  text.split(words, ',');
  if (is_contained(words, ""))
    return createStringError("expected a name on both sides of each comma, found '" + text + "'");
  for (StringRef word : words) {
    if (word == kPtx) {
      target.ptx = true;
      continue;
    }
    if (word == kTensorCore || word == kChain) {
      if (!products.empty() && products != word)
        return createStringError("expected one way to multiply, found '" + products + "' and '" +
                                 word + "'");
      products = word;
      target.tensorCores = word == kTensorCore;
      continue;
    }
    if (word == kRaces) {
      target.races = true;
      continue;
    }
    if (word == kBounded) {
      target.bounded = true;
      continue;
    }
    Expected<GpuChip> chip = gpuChip(word);
    if (!chip)
      return chip.takeError();
    if (!found.empty() && found != word)
      return createStringError("expected one GPU, found '" + found + "' and '" + word + "'");
    found = word;
    target.chip = *chip;
  }
  if (found.empty())
    return createStringError("expected a GPU, say 'sm_80" + ("," + text).str() + "', found '" +
                             text + "'");
  return target;
}

std::string GpuTarget::text(bool tensorCoresUnlessSaid) const {
  std::string text = chip.name;
  if (tensorCores != tensorCoresUnlessSaid)
    text += "," + (tensorCores ? kTensorCore : kChain).str();
  if (ptx)
    text += "," + kPtx.str();
  if (races)
    text += "," + kRaces.str();
  if (bounded)
    text += "," + kBounded.str();
  return text;
}

Error refuseRaces(StringRef target) {
  return createStringError(
      "expected 'races' behind 'emulated', where they are looked for, found '" + target + "'");
}

Expected<GpuTarget> cudaTarget(StringRef chip) {
  Expected<GpuTarget> target = parseGpuTarget(chip.drop_front(kCuda.size()), /*tensorCores=*/true);
  if (target && target->races)
    return refuseRaces(chip);
  if (target && target->bounded && !target->hasWarpgroups())
    return createStringError("expected kernels on warpgroups, which sm_90a has, for waits that are "
                             "bounded, found '" +
                             chip + "'");
  return target;
}

Expected<std::string> cudaChip(StringRef names) {
  if (!names.starts_with(":") || names.size() == 1)
    return createStringError("expected target 'cuda:<gpu>,…' with the GPUs to make code for, "
                             "say cuda:sm_80,sm_90a, found 'cuda" +
                             names + "'");
  Expected<GpuTarget> target = cudaTarget((kCuda + names.drop_front()).str());
  if (!target)
    return target.takeError();
  return (kCuda + target->text(/*tensorCoresUnlessSaid=*/true)).str();
}

std::vector<std::string> targetsByChip(StringRef target) {
  StringRef names = target;
  if (!names.consume_front(kCuda))
    return {target.str()};
  SmallVector<StringRef> words;
  names.split(words, ',');
  SetVector<StringRef> chips;
  std::string options;
  bool isPtx = is_contained(words, kPtx), isBounded = is_contained(words, kBounded);
  for (StringRef word : words) {
    if (word == kBounded)
      continue;
    if (is_contained({kTensorCore, kChain, kRaces}, word))
      options += ("," + word).str();
    else if (word != kPtx)
      chips.insert(word);
  }
  bool isCut = isPtx && !is_contained(words, kChain) && chips.contains(kOnlyHopper);
  if (isCut)
    chips.insert(kHopper);
  if (chips.size() < 2 || chips.contains(""))
    return {target.str()};
  std::vector<std::string> targets;
  StringSet<> written; // the PTX of several chips is the same
  for (StringRef name : chips) {
    std::string target = (kCuda + name + options).str();
    // If only some GPUs have kernels with waits that can be bounded, the word is for these.
    if (isBounded && (name == kOnlyHopper || !chips.contains(kOnlyHopper)))
      target += "," + kBounded.str();
    Expected<GpuChip> chip = gpuChip(name);
    if (isPtx && !(isCut && name == kOnlyHopper) &&
        (!chip || written.insert(ptxChipOf(*chip)).second))
      target += "," + kPtx.str();
    if (!chip)
      consumeError(chip.takeError()); // reported when the target is parsed
    targets.push_back(target);
  }
  return targets;
}

} // namespace stepc
