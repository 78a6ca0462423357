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

/// The largest header that stepc reads, in bytes: the format's own bound. Index files have the same bound.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Element types that stepc computes with. Unsupported stands for every other
/// type of the format (BOOL, U8, F8_E4M3, ...): such a tensor may be in a file
/// and is an error only when it is used.
enum class TensorType { F64, F32, BF16, F16, I64, Unsupported };

/// "F64", "F32", "BF16", "F16", "I64"; "unsupported".
llvm::StringRef toString(TensorType type);
/// Bytes of one element; 0 for Unsupported.
int64_t byteSize(TensorType type);
/// The manifest's type for F32, BF16 and F16; nothing for other types.
std::optional<DType> toDType(TensorType type);
TensorType toTensorType(DType dtype);

/// A tensor in a file that is open, or bytes to be written. Does not own the
/// bytes.
struct TensorView {
  std::string name;
  TensorType type = TensorType::F32;
  /// The type as the file spells it; the writer ignores it.
  std::string typeName = {};
  std::vector<int64_t> shape;
  /// numElements() * byteSize(type) bytes, or none if headers alone were read. They may be unaligned:
  /// load elements by memcpy.
  llvm::ArrayRef<uint8_t> bytes;
  /// The file that holds the tensor, for errors; the writer ignores it.
  std::string file = {};

  int64_t numElements() const;
};

/// The tensors of one file, or of several files that hold one model (shards). Views stay valid as long as
/// this object lives.
class SafetensorsFile {
public:
  /// Whole maps files into memory. Headers reads the headers alone, and the views have no bytes.
  enum class Read { Whole, Headers };

  /// Opens files. Each is a safetensors file, or the index of a sharded model whose shards lie in the index's
  /// folder ("model.safetensors.index.json": {"weight_map": {TENSOR: FILE}}).
  ///
  /// Validates each file: header length, JSON, names, types, shapes, and offsets that cover the data once
  /// without overlap or hole. Several errors of one header are reported together, with JSON pointers inside
  /// the header. Other errors: a file that is no regular file; a file or tensor that occurs twice; a shard
  /// that is missing or outside of the index's folder; a shard whose tensors are not those that the index
  /// lists. Returns nothing if there was an error.
  static std::optional<SafetensorsFile> open(llvm::ArrayRef<std::string> paths, Read read,
                                             ErrorList &errors);
  static std::optional<SafetensorsFile> open(llvm::StringRef path, ErrorList &errors) {
    return open(path.str(), Read::Whole, errors);
  }
  /// Reads one file from its bytes in memory; errors name it `name`.
  static std::optional<SafetensorsFile> read(std::unique_ptr<llvm::MemoryBuffer> buffer,
                                             llvm::StringRef name, ErrorList &errors);

  /// The first path that was given to open(). Errors about all files name it.
  llvm::StringRef path() const { return fileName; }
  /// All files that were read, including indexes and shards.
  llvm::ArrayRef<std::string> files() const { return fileNames; }
  /// All tensors, ordered by file, then by offset. At one offset tensors without elements come first, by
  /// name.
  llvm::ArrayRef<TensorView> tensors() const { return views; }
  /// The "__metadata__" of the files, by key.
  llvm::ArrayRef<std::pair<std::string, std::string>> metadata() const { return meta; }
  /// The tensor of that name. Null if there is none.
  const TensorView *find(llvm::StringRef name) const;
  /// Like find, but reports an error and returns null for a tensor that is
  /// absent or of an unsupported type.
  const TensorView *require(llvm::StringRef name, ErrorList &errors) const;

private:
  friend class SafetensorsOpener;
  /// Reads the header's length from the first bytes of a file. `size` is the size of the whole file. Returns
  /// nothing after an error.
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

/// Reads an index: the names of tensors by the file name of their shard. `text` is JSON; errors name `file`
/// and its lines. Errors: "weight_map" is missing, a value is no file name, or a file is outside of the
/// index's folder (an absolute path, or one with ".."). Returns nothing after an error.
using ShardMap = std::map<std::string, std::vector<std::string>>;
std::optional<ShardMap> readShardIndex(llvm::StringRef text, llvm::StringRef file,
                                       ErrorList &errors);

/// Writes the tensors, larger element types first and otherwise in the given
/// order, so that each tensor is aligned to its elements. text::writeFile writes
/// the file; "-" is standard output. A file that is open may be replaced.
/// Reports errors and returns false for unsupported types, doubled names, bytes
/// that disagree with the shape, and failures of the file system.
bool writeSafetensors(llvm::StringRef path, llvm::ArrayRef<TensorView> tensors,
                      llvm::ArrayRef<std::pair<std::string, std::string>> metadata,
                      ErrorList &errors);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_SAFETENSORS_H
