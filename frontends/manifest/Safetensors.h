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
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepc::manifest {

/// The largest header that is read, in bytes; the format's own bound.
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
  /// numElements() * byteSize(type) bytes. A file need not align them: load
  /// elements by memcpy.
  llvm::ArrayRef<uint8_t> bytes;

  int64_t numElements() const;
};

/// An open file, memory-mapped. Views stay valid as long as it lives.
class SafetensorsFile {
public:
  /// Opens and validates a file: header length, JSON, types, shapes, and
  /// offsets that cover the data once without overlap or hole. Returns nothing
  /// if there was an error; several errors of one header are reported together,
  /// with the pointer inside the header.
  static std::optional<SafetensorsFile> open(llvm::StringRef path, ErrorList &errors);
  /// The same on bytes in memory; `name` stands for the file in errors.
  static std::optional<SafetensorsFile> read(std::unique_ptr<llvm::MemoryBuffer> buffer,
                                             llvm::StringRef name, ErrorList &errors);

  llvm::StringRef path() const { return fileName; }
  /// In the order of their bytes; tensors without elements among those at their
  /// offset by name.
  llvm::ArrayRef<TensorView> tensors() const { return views; }
  /// The file's "__metadata__", by key.
  llvm::ArrayRef<std::pair<std::string, std::string>> metadata() const { return meta; }
  /// The tensor of that name, or null.
  const TensorView *find(llvm::StringRef name) const;
  /// As find, but a tensor that is absent or of an unsupported type is an
  /// error.
  const TensorView *require(llvm::StringRef name, ErrorList &errors) const;

private:
  std::string fileName;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::vector<TensorView> views;
  std::vector<std::pair<std::string, std::string>> meta;
  llvm::StringMap<size_t> indexOfName;
};

/// Writes the tensors, larger element types first and otherwise in the given
/// order, so that each is aligned to its elements. The file appears whole or
/// not at all, and may replace one that is open. Returns false and reports on
/// unsupported types, doubled names, bytes that disagree with the shape, and
/// failures of the file system.
bool writeSafetensors(llvm::StringRef path, llvm::ArrayRef<TensorView> tensors,
                      llvm::ArrayRef<std::pair<std::string, std::string>> metadata,
                      ErrorList &errors);

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_SAFETENSORS_H
