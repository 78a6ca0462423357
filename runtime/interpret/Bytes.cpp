//===- Bytes.cpp - Kernels as bytes ----------------------------------------===//
//
// One template walks the fields for both directions, so that writer and reader cannot disagree. A number is
// written seven bits at a time, with its sign as the lowest bit. Most numbers are small, and a kernel has
// hundreds of instructions.
//
//===----------------------------------------------------------------------===//
#include "runtime/interpret/Kernels.h"

namespace stepc::interpret {
namespace {

constexpr int64_t kMagic = 0x544e495350455453; // "STEPSINT"
constexpr int64_t kVersion = 6;

class Writer {
public:
  static constexpr bool reading = false;
  std::vector<uint8_t> bytes;

  void number(const int64_t &value) {
    uint64_t left = (uint64_t(value) << 1) ^ uint64_t(value >> 63);
    for (; left >= 0x80; left >>= 7)
      bytes.push_back(uint8_t(left | 0x80));
    bytes.push_back(uint8_t(left));
  }
  void text(const std::string &value) {
    number(int64_t(value.size()));
    bytes.insert(bytes.end(), value.begin(), value.end());
  }
  template <typename List> bool length(List &list) {
    number(int64_t(list.size()));
    return true;
  }
  bool failed() const { return false; }
  void fail(const std::string &) {}
};

class RecordReader {
public:
  static constexpr bool reading = true;
  RecordReader(const uint8_t *bytes, int64_t size) : bytes(bytes), left(size) {}

  void number(int64_t &value) {
    value = 0;
    uint64_t read = 0;
    for (int shift = 0;; shift += 7) {
      if (left == 0)
        return fail("expected more bytes, found their end");
      uint8_t one = *bytes++;
      --left;
      if (shift == 63 && one > 1)
        return fail("expected a number of 64 bits, found a longer one");
      read |= uint64_t(one & 0x7f) << shift;
      if (one < 0x80)
        break;
    }
    value = int64_t(read >> 1) ^ -int64_t(read & 1);
  }
  void text(std::string &value) {
    int64_t size = 0;
    number(size);
    if (size < 0 || size > left)
      return fail("expected a text within the bytes, found one of " + std::to_string(size));
    value.assign(reinterpret_cast<const char *>(bytes), size_t(size));
    bytes += size;
    left -= size;
  }
  template <typename List> bool length(List &list) {
    int64_t size = 0;
    number(size);
    // Every item takes at least one byte.
    if (size < 0 || size > left) {
      fail("expected a list within the bytes, found one of " + std::to_string(size));
      return false;
    }
    list.resize(size_t(size));
    return true;
  }
  bool failed() const { return !error.empty(); }
  void fail(const std::string &message) {
    if (error.empty())
      error = message;
    left = 0;
  }

  const uint8_t *bytes;
  int64_t left;
  std::string error;
};

/// Walks every field. `Stream` is Writer, for a const value, or RecordReader.
template <typename Stream> class Walk {
public:
  explicit Walk(Stream &stream) : stream(stream) {}

  template <typename T> void field(T &value) {
    using Plain = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Plain, int64_t>)
      stream.number(value);
    else if constexpr (std::is_same_v<Plain, std::string>)
      stream.text(value);
    else if constexpr (std::is_same_v<Plain, bool>)
      known<bool>(value, 2);
    else if constexpr (std::is_enum_v<Plain>)
      known<Plain>(value, plan::count<Plain>());
    else if constexpr (plan::HasFields<T>)
      Plain::fields(value, [&](const char *, auto &each) { field(each); });
    else if constexpr (plan::isOptional<Plain>)
      optional(value);
    else if constexpr (plan::isVariant<Plain>)
      alternative(value);
    else
      list(value);
  }

private:
  /// Writes or reads a value of type T as a number, which must be below `count`.
  template <typename T, typename Value> void known(Value &value, int64_t count) {
    auto number = int64_t(value);
    stream.number(number);
    if constexpr (Stream::reading) {
      if (number < 0 || number >= count) {
        stream.fail("expected a value below " + std::to_string(count) + ", found " +
                    std::to_string(number));
        number = 0;
      }
      value = T(number);
    }
  }
  template <typename Optional> void optional(Optional &value) {
    bool isThere = value.has_value();
    field(isThere);
    if constexpr (Stream::reading)
      isThere ? void(value.emplace()) : value.reset();
    if (value)
      field(*value);
  }
  template <typename Variant> void alternative(Variant &value) {
    auto kind = int64_t(value.index());
    stream.number(kind);
    if constexpr (Stream::reading)
      if (!plan::makeAlternative(value, uint64_t(kind)))
        return stream.fail("expected a kind of kernel below " +
                           std::to_string(std::variant_size_v<Variant>) + ", found " +
                           std::to_string(kind));
    std::visit([&](auto &each) { field(each); }, value);
  }
  template <typename List> void list(List &values) {
    if (!stream.length(values))
      return;
    for (size_t i = 0; i < values.size() && !stream.failed(); ++i) {
      if constexpr (std::is_same_v<std::remove_const_t<List>, std::vector<bool>>) {
        bool one = values[i];
        field(one);
        if constexpr (Stream::reading)
          values[i] = one;
      } else {
        field(values[i]);
      }
    }
  }

  Stream &stream;
};

} // namespace

std::vector<uint8_t> encode(const std::vector<NamedKernel> &kernels) {
  Writer writer;
  writer.number(kMagic);
  writer.number(kVersion);
  Walk<Writer>(writer).field(kernels);
  return std::move(writer.bytes);
}

std::string decode(const uint8_t *bytes, int64_t size, std::vector<NamedKernel> &kernels) {
  RecordReader reader(bytes, size);
  int64_t magic = 0, version = 0;
  reader.number(magic);
  reader.number(version);
  if (reader.failed() || magic != kMagic)
    return "expected kernels for the interpreter, found other bytes";
  if (version != kVersion)
    return "expected kernels of version " + std::to_string(kVersion) + ", found " +
           std::to_string(version);
  Walk<RecordReader>(reader).field(kernels);
  if (!reader.failed() && reader.left != 0)
    reader.fail("expected the end behind the last kernel, found " + std::to_string(reader.left) +
                " more bytes");
  if (reader.failed())
    return reader.error;
  for (const NamedKernel &each : kernels)
    if (std::string wrong = check(each.kernel); !wrong.empty())
      return "kernel '" + each.name + "': " + wrong;
  return {};
}

} // namespace stepc::interpret
