#include "frontends/manifest/Safetensors.h"
#include "frontends/manifest/JsonText.h"
#include "frontends/text/Text.h"
#include "runtime/text/Plural.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>

namespace json = llvm::json;

namespace stepc::manifest {
namespace {

struct TypeInfo {
  llvm::StringLiteral name;
  TensorType type;
  int bits;
};

constexpr TypeInfo kTypes[] = {
    {"F64", TensorType::F64, 64},
    {"F32", TensorType::F32, 32},
    {"BF16", TensorType::BF16, 16},
    {"F16", TensorType::F16, 16},
    {"I64", TensorType::I64, 64},
    {"U64", TensorType::Unsupported, 64},
    {"I32", TensorType::Unsupported, 32},
    {"U32", TensorType::Unsupported, 32},
    {"I16", TensorType::Unsupported, 16},
    {"U16", TensorType::Unsupported, 16},
    {"I8", TensorType::Unsupported, 8},
    {"U8", TensorType::Unsupported, 8},
    {"BOOL", TensorType::Unsupported, 8},
    {"C64", TensorType::Unsupported, 64},
    {"F8_E4M3", TensorType::Unsupported, 8},
    {"F8_E5M2", TensorType::Unsupported, 8},
    {"F8_E8M0", TensorType::Unsupported, 8},
    {"F6_E2M3", TensorType::Unsupported, 6},
    {"F6_E3M2", TensorType::Unsupported, 6},
    {"F4", TensorType::Unsupported, 4},
};

/// One tensor of the header. checkCoverage compares the offsets of all entries.
struct Entry {
  TensorView view;
  int64_t begin = 0;
  int64_t end = 0;
};

class HeaderReader {
public:
  /// `data` may be null: views then have no bytes.
  HeaderReader(llvm::StringRef header, uint64_t dataSize, const uint8_t *data, llvm::StringRef file,
               ErrorList &errors)
      : dataSize(dataSize), data(data), file(file), errors(errors), json(header, file, errors) {}

  bool read(std::vector<TensorView> &views,
            std::vector<std::pair<std::string, std::string>> &metadata);

private:
  void readEntry(llvm::StringRef name, const json::Value &value);
  void readMetadata(const json::Value &value,
                    std::vector<std::pair<std::string, std::string>> &metadata);
  void checkCoverage();

  int64_t dataSize;
  const uint8_t *data;
  llvm::StringRef file;
  ErrorList &errors;
  JsonText json;
  std::vector<Entry> entries;
};

bool HeaderReader::read(std::vector<TensorView> &views,
                        std::vector<std::pair<std::string, std::string>> &metadata) {
  size_t before = errors.size();
  bool isGood = json.read([&](const json::Value &root) {
    if (const json::Object *object = root.getAsObject()) {
      for (const auto &[key, value] : *object) {
        llvm::StringRef name = key;
        json.setParameter("");
        if (name == "__metadata__")
          readMetadata(value, metadata);
        else
          readEntry(name, value);
      }
      json.setParameter("");
    } else {
      json.mismatch("", "an object of tensors", root);
    }
    if (errors.size() == before)
      checkCoverage();
  });
  if (!isGood)
    return false;
  for (Entry &entry : entries)
    views.push_back(std::move(entry.view));
  return true;
}

void HeaderReader::readMetadata(const json::Value &value,
                                std::vector<std::pair<std::string, std::string>> &metadata) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return json.mismatch("/__metadata__", "an object of strings", value);
  for (const auto &[key, item] : *object) {
    llvm::StringRef name = key;
    if (std::optional<llvm::StringRef> text = item.getAsString())
      metadata.emplace_back(name.str(), text->str());
    else
      json.mismatch("/__metadata__" + pointerToken(name), "a string", item);
  }
}

void HeaderReader::readEntry(llvm::StringRef name, const json::Value &value) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  std::string at = pointerToken(name);
  json.setParameter(name);
  if (std::string wrong = text::checkName(name, "a tensor's name"); !wrong.empty())
    return json.error(at, wrong);
  const json::Object *object =
      json.object(value, at, "a tensor", {"dtype", "shape", "data_offsets"});
  if (!object)
    return;
  size_t before = errors.size();
  Entry entry;
  entry.view.name = name.str();
  entry.view.file = file.str();

  const TypeInfo *type = nullptr;
  if (const json::Value *dtype = json.required(*object, "dtype", at)) {
    entry.view.typeName = dtype->getAsString().value_or("").str();
    type = llvm::find_if(kTypes,
                         [&](const TypeInfo &info) { return info.name == entry.view.typeName; });
    if (type == std::end(kTypes))
      json.mismatch(at + "/dtype", "a dtype of the safetensors format", *dtype);
    else
      entry.view.type = type->type;
  }
  const json::Value *shapeValue = json.required(*object, "shape", at);
  const json::Array *shape =
      shapeValue ? json.array(*shapeValue, at + "/shape", "an array of sizes") : nullptr;
  for (size_t i = 0; shape && i < shape->size(); ++i)
    entry.view.shape.push_back(json.integer((*shape)[i], at + "/shape/" + std::to_string(i),
                                            "a size from 0 to 2^63 - 1", 0, kMax)
                                   .value_or(0));
  const json::Value *offsetsValue = json.required(*object, "data_offsets", at);
  const json::Array *offsets =
      offsetsValue ? json.array(*offsetsValue, at + "/data_offsets", "an array [begin, end]")
                   : nullptr;
  if (offsets && offsets->size() != 2)
    json.error(at + "/data_offsets", "expected two offsets, found " + llvm::Twine(offsets->size()));
  for (size_t i = 0; offsets && offsets->size() == 2 && i < 2; ++i)
    (i ? entry.end : entry.begin) =
        json.integer((*offsets)[i], at + "/data_offsets/" + std::to_string(i),
                     "an offset from 0 to 2^63 - 1", 0, kMax)
            .value_or(0);
  if (errors.size() != before)
    return;

  if (entry.begin > entry.end || entry.end > dataSize)
    return json.error(at + "/data_offsets", "expected offsets that ascend within the " +
                                                llvm::Twine(dataSize) + " bytes of data, found [" +
                                                llvm::Twine(entry.begin) + ", " +
                                                llvm::Twine(entry.end) + "]");
  int64_t elements = 1;
  for (int64_t size : entry.view.shape) {
    if (size != 0 && elements > kMaxTensorElements / size)
      return json.error(at + "/shape", "expected at most 2^59 elements, found "
                                       "a product of sizes beyond that");
    elements *= size;
  }
  // There are at most 2^59 elements of at most 64 bits. Eights of elements and
  // the rest are counted apart, so that int64 does not overflow.
  int64_t bytes = elements / 8 * type->bits + (elements % 8 * type->bits + 7) / 8;
  if (bytes != entry.end - entry.begin)
    return json.error(at + "/data_offsets", "expected " + llvm::Twine(bytes) + " bytes for " +
                                                plural(elements, "element") + " of " + type->name +
                                                ", found " + llvm::Twine(entry.end - entry.begin));
  if (data)
    entry.view.bytes = llvm::ArrayRef(data + entry.begin, bytes);
  entries.push_back(std::move(entry));
}

/// Checks that every byte of data is in exactly one tensor, as the format demands.
void HeaderReader::checkCoverage() {
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    return std::tie(a.begin, a.end, a.view.name) < std::tie(b.begin, b.end, b.view.name);
  });
  size_t before = errors.size();
  int64_t covered = 0;
  std::string previous;
  for (const Entry &entry : entries) {
    json.setParameter(entry.view.name);
    std::string at = pointerToken(entry.view.name) + "/data_offsets";
    if (entry.begin != covered) {
      llvm::StringRef fault = entry.begin < covered ? "an overlap" : "a hole";
      json.error(at, "expected the tensor's bytes to begin at " + llvm::Twine(covered) +
                         (previous.empty() ? "" : ", where '" + previous + "' ends") + ", found " +
                         fault + ": they begin at " + llvm::Twine(entry.begin));
    }
    covered = std::max(covered, entry.end);
    previous = entry.view.name;
  }
  json.setParameter("");
  if (errors.size() == before && covered != dataSize)
    json.error("", "expected tensors that cover the " + llvm::Twine(dataSize) +
                       " bytes of data, found " + llvm::Twine(covered) + " bytes covered");
}

} // namespace

llvm::StringRef toString(TensorType type) {
  for (const TypeInfo &info : kTypes)
    if (info.type == type && type != TensorType::Unsupported)
      return info.name;
  return "unsupported";
}

int64_t byteSize(TensorType type) {
  for (const TypeInfo &info : kTypes)
    if (info.type == type && type != TensorType::Unsupported)
      return info.bits / 8;
  return 0;
}

std::optional<DType> toDType(TensorType type) {
  switch (type) {
  case TensorType::F32:
    return DType::F32;
  case TensorType::BF16:
    return DType::BF16;
  case TensorType::F16:
    return DType::F16;
  default:
    return std::nullopt;
  }
}

TensorType toTensorType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return TensorType::F32;
  case DType::BF16:
    return TensorType::BF16;
  case DType::F16:
    return TensorType::F16;
  case DType::F64:
    return TensorType::F64;
  }
  return TensorType::Unsupported;
}

int64_t TensorView::numElements() const {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

/// Says by its first bytes what a file is that is no safetensors file.
static std::string describeBeginning(llvm::StringRef bytes) {
  struct Format {
    llvm::StringRef start, what;
  };
  static constexpr Format formats[] = {
      {"PK\x03\x04", "a zip archive, as torch.save writes"},
      {"\x80\x02", "a pickle, as torch.save wrote before PyTorch 1.6"},
      {"\x80\x04", "a pickle"},
      {"GGUF", "a GGUF file"},
      {"\x89HDF", "an HDF5 file"},
      {"\x93NUMPY", "a NumPy file"},
      {"\x1F\x8B", "a gzip file"},
      {"version https://git-lfs", "a pointer of Git LFS, whose file was not fetched"},
      {"{", "JSON text without a header length"},
  };
  if (bytes.empty())
    return "an empty file";
  for (const Format &format : formats)
    if (bytes.starts_with(format.start))
      return format.what.str();
  std::string start;
  llvm::raw_string_ostream os(start);
  llvm::printEscapedString(bytes.take_front(16), os);
  return "a file that starts with \"" + start + "\"";
}

std::optional<uint64_t> SafetensorsFile::headerLength(llvm::StringRef start, uint64_t size,
                                                      llvm::StringRef name, ErrorList &errors) {
  // The header, a JSON object, follows the 8 bytes of its length.
  if (start.size() < 9 || start[8] != '{') {
    errors.add(name, "expected a safetensors file, found " + describeBeginning(start));
    return std::nullopt;
  }
  uint64_t length = llvm::support::endian::read64le(start.data());
  uint64_t most = std::min<uint64_t>(size - 8, kMaxSafetensorsHeader);
  if (length > most) {
    errors.add(name, "expected a safetensors header of at most " + llvm::Twine(most) +
                         " bytes, found the length " + llvm::Twine(length));
    return std::nullopt;
  }
  return length;
}

bool SafetensorsFile::add(llvm::StringRef header, uint64_t dataSize, const uint8_t *data,
                          llvm::StringRef name, ErrorList &errors) {
  return HeaderReader(header, dataSize, data, name, errors).read(views, meta);
}

void SafetensorsFile::finish() {
  llvm::sort(meta);
  meta.erase(llvm::unique(meta), meta.end());
  for (auto [i, view] : llvm::enumerate(views))
    indexOfName[view.name] = i;
}

std::optional<SafetensorsFile> SafetensorsFile::read(std::unique_ptr<llvm::MemoryBuffer> buffer,
                                                     llvm::StringRef name, ErrorList &errors) {
  llvm::StringRef bytes = buffer->getBuffer();
  std::optional<uint64_t> length = headerLength(bytes, bytes.size(), name, errors);
  if (!length)
    return std::nullopt;
  SafetensorsFile file;
  file.fileName = name.str();
  file.fileNames = {file.fileName};
  llvm::StringRef data = bytes.drop_front(8 + *length);
  if (!file.add(bytes.substr(8, *length), data.size(),
                reinterpret_cast<const uint8_t *>(data.data()), name, errors))
    return std::nullopt;
  file.buffers.push_back(std::move(buffer));
  file.finish();
  return file;
}

const TensorView *SafetensorsFile::find(llvm::StringRef name) const {
  auto it = indexOfName.find(name);
  return it == indexOfName.end() ? nullptr : &views[it->second];
}

const TensorView *SafetensorsFile::require(llvm::StringRef name, ErrorList &errors) const {
  const TensorView *view = find(name);
  if (!view) {
    std::vector<llvm::StringRef> names;
    for (const TensorView &known : views)
      names.push_back(known.name);
    errors.add(path(), "expected a tensor '" + name + "', found none" + nearestHint(name, names));
  } else if (view->type == TensorType::Unsupported) {
    errors.add(path(), "expected F64, F32, BF16, F16 or I64, found " + view->typeName, name);
    view = nullptr;
  }
  return view;
}

} // namespace stepc::manifest
