//===- Safetensors.cpp - Any bytes as a safetensors file --------------------===//
//
// Tensors inside the file or errors; a manifest is made of what is accepted.
//
//===----------------------------------------------------------------------===//
#include "Fault.h"
#include "frontends/manifest/MakeManifest.h"
#include "frontends/manifest/Manifest.h"

using namespace stepc::manifest;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  plantedFault(data, size);
  ErrorList errors;
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  std::optional<SafetensorsFile> file =
      SafetensorsFile::read(llvm::MemoryBuffer::getMemBufferCopy(bytes), "f.safetensors", errors);
  if (file.has_value() != errors.empty())
    __builtin_trap();
  if (!file)
    return 0;
  volatile uint64_t sum = 0;
  for (const TensorView &view : file->tensors())
    for (uint8_t byte : view.bytes)
      sum = sum + byte;
  MakeManifestOptions options{"a=2", {"*=S(0)"}, {}, {}};
  std::optional<Manifest> manifest = makeManifest(*file, options, errors);
  if (manifest.has_value() != errors.empty())
    __builtin_trap();
  return 0;
}
