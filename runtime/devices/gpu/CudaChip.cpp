//===- CudaChip.cpp - Which GPU it is, and the code for it -------------------===//
#include "runtime/devices/gpu/CudaChip.h"
#include "runtime/plan/Images.h"
#include "runtime/text/Text.h"

#include <tuple>

namespace stepc::runtime::cuda {

std::string askChip(const Driver &driver, int32_t ordinal, Chip &chip) {
  auto failed = [&](const char *doing, Result result) {
    return format("%s failed: %s", doing, describe(driver, result).c_str());
  };
  int count = 0;
  if (Result wrong = driver.cuDeviceGetCount(&count))
    return failed("counting GPUs", wrong);
  if (ordinal < 0 || ordinal >= count)
    return format("expected the number of a GPU below %d, found %d", count, ordinal);
  if (Result wrong = driver.cuDeviceGet(&chip.device, ordinal))
    return failed("naming a GPU", wrong);
  for (auto [value, attribute] : {std::pair(&chip.major, kMajor), std::pair(&chip.minor, kMinor),
                                  std::pair(&chip.blockThreads, kBlockThreads),
                                  std::pair(&chip.blockSharedBytes, kBlockSharedBytes),
                                  std::pair(&chip.multiprocessors, kMultiprocessors)})
    if (Result wrong = driver.cuDeviceGetAttribute(value, attribute, chip.device))
      return failed("asking a GPU", wrong);
  char name[100] = "";
  if (Result wrong = driver.cuDeviceGetName(name, sizeof(name), chip.device))
    return failed("asking a GPU", wrong);
  chip.name = name;
  return "";
}

static std::string damaged(const LibraryPrograms &library, const std::string &what) {
  return format("library '%s' is damaged: expected %s as the compiler wrote it, found other "
                "bytes; compile the library again",
                library.name.c_str(), what.c_str());
}

std::string chooseImage(const Chip &chip, const LibraryPrograms &library, ChosenImage &chosen) {
  std::string known;
  // Prefers machine code to PTX, then code for the newest chip, then code for this chip alone.
  using Rank = std::tuple<bool, int64_t, int64_t, bool>;
  Rank best;
  for (size_t program = 0; program < library.programs.size(); ++program)
    for (const stepc_image *at = library.programs[program]->images; at->chip; ++at) {
      const stepc_image &image = *at;
      if (plan::numbersHash(image) != image.numbers_hash)
        return damaged(library, "the numbers of an image");
      bool isPtx = image.kind == STEPC_IMAGE_PTX, isExact = image.kind == STEPC_IMAGE_OF_ONE;
      known +=
          (known.empty() ? "" : ", ") + (isPtx ? "PTX for " + std::string(image.chip) : image.chip);
      bool runs = isPtx ? std::pair(image.major, image.minor) <=
                              std::pair<int64_t, int64_t>(chip.major, chip.minor)
                        : image.major == chip.major &&
                              (isExact ? image.minor == chip.minor : image.minor <= chip.minor);
      Rank rank(!isPtx, image.major, image.minor, isExact);
      if (runs && (!chosen.image || best < rank)) {
        best = rank;
        chosen = {program, &image};
      }
    }
  if (!chosen.image)
    return format("library '%s' has code for %s, found '%s', which is sm_%d%d",
                  library.name.c_str(), known.c_str(), chip.name.c_str(), chip.major, chip.minor);
  if (plan::codeHash(*chosen.image) != chosen.image->code_hash)
    return damaged(library, "its code for " + std::string(chosen.image->chip));
  return "";
}

} // namespace stepc::runtime::cuda
