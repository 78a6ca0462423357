//===- Safetensors.cpp - Any bytes as a safetensors file --------------------===//
//
// Tensors inside the file or errors; a manifest is made of what is accepted. The same bytes as the index of a
// sharded model: shards inside its folder or errors.
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
  std::optional<ShardMap> shards = readShardIndex(bytes, "index.json", errors);
  if (shards.has_value() != errors.empty())
    __builtin_trap();
  for (const auto &[shard, names] : shards.value_or(ShardMap()))
    if (names.empty() || shard.empty() || shard[0] == '/' ||
        shard.find('\0') != std::string::npos ||
        ("/" + shard + "/").find("/../") != std::string::npos)
      __builtin_trap();
  errors = {};
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
