//===- Manifest.cpp - Any bytes as a manifest -------------------------------===//
//
// A manifest or errors; what is accepted is written and read back equal.
//
//===----------------------------------------------------------------------===//
#include "frontends/manifest/Manifest.h"
#include "Fault.h"

using namespace stepc::manifest;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  plantedFault(data, size);
  ErrorList errors;
  std::string text(data, data + size);
  std::optional<Manifest> manifest = readManifest(text, "m.json", errors);
  if (manifest.has_value() != errors.empty())
    __builtin_trap();
  if (!manifest)
    return 0;
  ErrorList again;
  if (readManifest(writeManifest(*manifest), "m.json", again) != manifest)
    __builtin_trap();
  return 0;
}
