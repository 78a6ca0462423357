// Reading and writing .safetensors files: 8 bytes of header length
// (little-endian), a JSON header {name: {dtype, shape, data_offsets}}, then the
// tensors' bytes, row-major and little-endian.

#ifndef STEPC_FRONTENDS_MANIFEST_SAFETENSORS_H
#define STEPC_FRONTENDS_MANIFEST_SAFETENSORS_H

#include "frontends/manifest/InputError.h"
#include "frontends/manifest/Manifest.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepc::manifest {

/// The largest header that is read, in bytes: the format's own bound. It also holds for an index.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Element types that stepc computes with. Unsupported stands for every other
/// type of the format (BOOL, U8, F8_E4M3, ...): such a tensor may be in a file
/// and is an error only when it is used.
enum class TensorType { F64, F32, BF16, F16, I64, Unsupported };

/// "F64", "F32", "BF16", "F16", "I64"; "unsupported".
llvm::StringRef toString(TensorType type);
/// Bytes of one element; 0 for Unsupported.
int64_t byteSize(TensorType type);
/// The manifest's type for F32, BF16 and F16.
std::optional<DType> toDType(TensorType type);
TensorType toTensorType(DType dtype);

/// A tensor in a file that is open, or bytes to be written. Does not own the
/// bytes.
struct TensorView {
  std::string name;
  TensorType type = TensorType::F32;
  /// The type as the file spells it; not read by the writer.
  std::string typeName = {};
  std::vector<int64_t> shape;
  /// numElements() * byteSize(type) bytes, or none where headers alone were read. A file need not align
  /// them: load elements by memcpy.
  llvm::ArrayRef<uint8_t> bytes;
  /// The file that has it, for errors; not read by the writer.
  std::string file = {};

  int64_t numElements() const;
};

/// The tensors of one file, or of several that hold one model (shards). Views stay valid as long as it lives.
class SafetensorsFile {
public:
  /// What is read: all, by mapping files into memory, or headers alone, so that views have no bytes.
  enum class Read { Whole, Headers };

  /// Opens files, each a safetensors file or the index of a sharded model, whose shards stand in its folder
  /// ("model.safetensors.index.json": {"weight_map": {TENSOR: FILE}}).
  ///
  /// Validates each file: header length, JSON, names, types, shapes, and offsets that cover the data once
  /// without overlap or hole. Several errors of one header are reported together, with the pointer inside the
  /// header. Also errors: a file that is no regular one, a file or tensor that comes twice; of an index, a
  /// shard outside of its folder or not there, and a tensor that stands in another shard than it says, or
  /// that it does not name. Returns nothing if there was an error.
  static std::optional<SafetensorsFile> open(llvm::ArrayRef<std::string> paths, Read read,
                                             ErrorList &errors);
  static std::optional<SafetensorsFile> open(llvm::StringRef path, ErrorList &errors) {
    return open(path.str(), Read::Whole, errors);
  }
  /// One file's bytes in memory; `name` stands for the file in errors.
  static std::optional<SafetensorsFile> read(std::unique_ptr<llvm::MemoryBuffer> buffer,
                                             llvm::StringRef name, ErrorList &errors);

  /// The first path that was given, which stands for all of them.
  llvm::StringRef path() const { return fileName; }
  /// All files that were read, including indexes and shards.
  llvm::ArrayRef<std::string> files() const { return fileNames; }
  /// By file; in a file in the order of their bytes; tensors without elements among those at their
  /// offset by name.
  llvm::ArrayRef<TensorView> tensors() const { return views; }
  /// The "__metadata__" of the files, by key.
  llvm::ArrayRef<std::pair<std::string, std::string>> metadata() const { return meta; }
  /// The tensor of that name, or null.
  const TensorView *find(llvm::StringRef name) const;
  /// As find, but a tensor that is absent or of an unsupported type is an
  /// error.
  const TensorView *require(llvm::StringRef name, ErrorList &errors) const;

private:
  friend class SafetensorsOpener;
  /// The header's length from the bytes in front of it; nothing after an error. `size` is the whole file's.
  static std::optional<uint64_t> headerLength(llvm::StringRef start, uint64_t size,
                                              llvm::StringRef name, ErrorList &errors);
  bool add(llvm::StringRef header, uint64_t dataSize, const uint8_t *data, llvm::StringRef name,
           ErrorList &errors);
  void finish();

  std::string fileName;
  std::vector<std::string> fileNames;
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> buffers;
  std::vector<TensorView> views;
  std::vector<std::pair<std::string, std::string>> meta;
  llvm::StringMap<size_t> indexOfName;
};

/// The shards of an index and the tensors that each of them has, by name. `text` is JSON; errors name `file`
/// and its lines. Nothing after an error: no weight_map, values that are no file names, and files outside of
/// the folder (absolute paths, and those with "..").
using ShardMap = std::map<std::string, std::vector<std::string>>;
std::optional<ShardMap> readShardIndex(llvm::StringRef text, llvm::StringRef file,
                                       ErrorList &errors);

/// Writes the tensors, larger element types first and otherwise in the given
/// order, so that each is aligned to its elements; as text::writeFile writes ("-" is standard output). The
/// file may replace one that is open. Returns false and reports on
/// unsupported types, doubled names, bytes that disagree with the shape, and
/// failures of the file system.
bool writeSafetensors(llvm::StringRef path, llvm::ArrayRef<TensorView> tensors,
                      llvm::ArrayRef<std::pair<std::string, std::string>> metadata,
                      ErrorList &errors);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_SAFETENSORS_H
