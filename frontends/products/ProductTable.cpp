//===- ProductTable.cpp - Tables of pinned products, from JSON ------------===//

#include "frontends/products/ProductTable.h"
#include "frontends/manifest/JsonText.h"
#include "runtime/plan/Pinned.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>
#include <tuple>

namespace json = llvm::json;

namespace stepc::products {
namespace {

using plan::DType;

constexpr int64_t kMostExtent = int64_t(1) << 31;
constexpr int64_t kMostNumber = std::numeric_limits<uint32_t>::max();
constexpr int64_t kMostBytes = int64_t(1) << 40;
constexpr llvm::StringLiteral kFormat = "stepc-products";

/// A key that describes an entry's algorithm, and the field for its number. If `only` is not negative, it is
/// the only number that is allowed.
struct Attribute {
  llvm::StringLiteral key;
  int64_t plan::PinnedAlgorithm::*field;
  int64_t only = -1;
};
constexpr Attribute kAttributes[] = {
    {"algorithm", &plan::PinnedAlgorithm::algorithm},
    {"tile", &plan::PinnedAlgorithm::tile},
    {"stages", &plan::PinnedAlgorithm::stages},
    {"split_k", nullptr, 1},
    {"reduction_scheme", nullptr, 0},
    {"swizzling", &plan::PinnedAlgorithm::swizzling},
    {"custom_option", &plan::PinnedAlgorithm::customOption},
    {"inner_shape", &plan::PinnedAlgorithm::innerShape},
    {"cluster_shape", &plan::PinnedAlgorithm::clusterShape},
};

class ProductTableReader {
public:
  ProductTableReader(llvm::StringRef text, llvm::StringRef file, manifest::ErrorList &errors)
      : errors(errors), json(text, file, errors) {}

  std::optional<std::vector<Entry>> read() {
    if (!json.read([&](const json::Value &root) { readRoot(root); }))
      return std::nullopt;
    return std::move(entries);
  }

private:
  void readRoot(const json::Value &root) {
    // Format and version are checked first: others have other keys, whose errors would mislead.
    if (const json::Object *raw = root.getAsObject()) {
      const json::Value *format = json.required(*raw, "format", "");
      if (format && format->getAsString() != llvm::StringRef(kFormat))
        return json.mismatch("/format", "the format \"" + kFormat + "\"", *format);
      const json::Value *version = json.required(*raw, "version", "");
      if (version && version->getAsInteger() != kTableVersion)
        return json.mismatch("/version",
                             "version " + llvm::Twine(kTableVersion) + ", the one this stepc reads",
                             *version);
      if (!format || !version)
        return;
    }
    const json::Object *object =
        json.object(root, "", "a table of products", {"format", "version", "entries"});
    const json::Value *list = object ? json.required(*object, "entries", "") : nullptr;
    const json::Array *array =
        list ? json.array(*list, "/entries", "an array of entries") : nullptr;
    for (size_t i = 0; array && i < array->size(); ++i)
      readEntry((*array)[i], "/entries/" + std::to_string(i));
  }

  void readEntry(const json::Value &value, const std::string &at) {
    size_t before = errors.size();
    llvm::SmallVector<llvm::StringRef> keys = {"cublaslt",
                                               "chip",
                                               "multiprocessors",
                                               "m",
                                               "n",
                                               "k",
                                               "types",
                                               "transpose_lhs",
                                               "transpose_rhs",
                                               "leading",
                                               "alignment",
                                               "workspace",
                                               "microseconds",
                                               "kernel_microseconds"};
    for (const Attribute &attribute : kAttributes)
      keys.push_back(attribute.key);
    const json::Object *object = json.object(value, at, "an entry", keys);
    if (!object)
      return;
    Entry entry;
    plan::PinnedAlgorithm &made = entry.algorithm;
    integer(*object, "cublaslt", at, "a version as cublasLtGetVersion() says it", 1,
            std::numeric_limits<int32_t>::max(), made.cublasLt);
    readChip(*object, at, made.chip);
    integer(*object, "multiprocessors", at, "a number of multiprocessors", 1, 65535,
            made.multiprocessors);
    for (auto [key, extent] : {std::pair("m", &entry.m), {"n", &entry.n}, {"k", &entry.k}})
      integer(*object, key, at, "an extent of at least 1", 1, kMostExtent, *extent);
    boolean(*object, "transpose_lhs", at, entry.transposeLhs);
    boolean(*object, "transpose_rhs", at, entry.transposeRhs);
    integer(*object, "alignment", at, "bytes that are a power of two up to 256", 1, 256,
            made.alignment);
    integer(*object, "workspace", at, "bytes of workspace", 0, kMostBytes, made.workspaceBytes);
    for (const Attribute &attribute : kAttributes) {
      bool isOnly = attribute.only >= 0;
      std::string what = attribute.key.str() + (isOnly ? " " + std::to_string(attribute.only) : "");
      int64_t unused = 0;
      integer(*object, attribute.key, at, what, isOnly ? attribute.only : 0,
              isOnly ? attribute.only : kMostNumber, isOnly ? unused : made.*attribute.field);
    }
    // The measured times show people why the entry is in the table. stepc does not use them.
    for (const char *key : {"microseconds", "kernel_microseconds"})
      if (const json::Value *time = object->get(key))
        if (std::optional<double> number = time->getAsNumber(); !number || *number <= 0)
          json.mismatch(at + "/" + key, "microseconds", *time);
    readTypes(*object, at, entry);
    readLeading(*object, at, entry);
    if (errors.size() == before)
      finish(std::move(entry), at);
  }

  /// Checks what concerns several fields, and adds the entry.
  void finish(Entry entry, const std::string &at) {
    if (std::string wrong = plan::checkAlgorithm(entry.algorithm); !wrong.empty())
      return json.error(at, wrong);
    if (std::string wrong = plan::checkMultiplies(entry.lhs, entry.rhs, entry.addend, entry.out,
                                                  /*isSymmetric=*/false);
        !wrong.empty())
      return json.error(at + "/types", "expected what cuBLASLt multiplies, found " + wrong);
    auto same = llvm::find_if(entries, [&](const Entry &e) { return e.hasKeyOf(entry); });
    if (same != entries.end())
      return json.error(at, "expected one entry of a product for a library and GPU, found another, "
                            "/entries/" +
                                llvm::Twine(places[size_t(same - entries.begin())]));
    places.push_back(at.substr(at.rfind('/') + 1));
    entries.push_back(std::move(entry));
  }

  void readChip(const json::Object &object, const std::string &at, int64_t &chip) {
    const json::Value *value = json.required(object, "chip", at);
    if (!value)
      return;
    llvm::StringRef text = value->getAsString().value_or("");
    if (!text.consume_front("sm_") || text.getAsInteger(10, chip) || chip < 80 || chip > 999)
      json.mismatch(at + "/chip", "a GPU, as \"sm_90\"", *value);
  }

  std::optional<DType> type(const json::Value &value, const std::string &at) {
    for (DType type : {DType::F32, DType::BF16, DType::F16})
      if (value.getAsString() == llvm::StringRef(plan::name(type)))
        return type;
    json.mismatch(at, "f32, bf16 or f16", value);
    return std::nullopt;
  }

  void readTypes(const json::Object &object, const std::string &at, Entry &entry) {
    const json::Value *value = json.required(object, "types", at);
    const json::Object *types = value ? json.object(*value, at + "/types", "the operands' types",
                                                    {"lhs", "rhs", "addend", "out"})
                                      : nullptr;
    if (!types)
      return;
    for (auto [key, made] :
         {std::pair("lhs", &entry.lhs), {"rhs", &entry.rhs}, {"out", &entry.out}})
      if (const json::Value *one = json.required(*types, key, at + "/types"))
        *made = type(*one, at + "/types/" + key).value_or(DType::F32);
    const json::Value *addend = json.required(*types, "addend", at + "/types");
    if (addend && addend->kind() != json::Value::Null)
      entry.addend = type(*addend, at + "/types/addend");
  }

  void readLeading(const json::Object &object, const std::string &at, Entry &entry) {
    const json::Value *value = json.required(object, "leading", at);
    const json::Array *list =
        value ? json.array(*value, at + "/leading", "an array of leading dimensions") : nullptr;
    if (!list)
      return;
    std::vector<int64_t> least = plan::denseLeading(entry.m, entry.n, entry.k, entry.transposeLhs,
                                                    entry.transposeRhs, entry.addend.has_value());
    if (list->size() != least.size())
      return json.error(at + "/leading", "expected a leading dimension of each of " +
                                             llvm::Twine(least.size()) + " operands, found " +
                                             llvm::Twine(list->size()));
    for (auto [i, one] : llvm::enumerate(*list))
      entry.leading.push_back(
          json.integer(one, at + "/leading/" + std::to_string(i),
                       "at least " + std::to_string(least[i]) + ", a row of the operand", least[i],
                       kMostExtent)
              .value_or(0));
  }

  void integer(const json::Object &object, llvm::StringRef key, const std::string &at,
               const std::string &what, int64_t low, int64_t high, int64_t &made) {
    if (const json::Value *value = json.required(object, key, at))
      made = json.integer(*value, at + "/" + key, what, low, high).value_or(low);
  }
  void boolean(const json::Object &object, llvm::StringRef key, const std::string &at, bool &made) {
    const json::Value *value = json.required(object, key, at);
    if (value && value->kind() != json::Value::Boolean)
      json.mismatch(at + "/" + key, "true or false", *value);
    made = value && value->getAsBoolean().value_or(false);
  }

  manifest::ErrorList &errors;
  manifest::JsonText json;
  std::vector<Entry> entries;
  std::vector<std::string> places; // the indices that `entries` have in the file
};

} // namespace

bool Entry::hasKeyOf(const Entry &other) const {
  auto key = [](const Entry &e) {
    return std::tie(e.m, e.n, e.k, e.lhs, e.rhs, e.addend, e.out, e.transposeLhs, e.transposeRhs,
                    e.leading, e.algorithm.cublasLt, e.algorithm.chip, e.algorithm.multiprocessors,
                    e.algorithm.alignment);
  };
  return key(*this) == key(other);
}

std::optional<std::vector<Entry>> readTable(llvm::StringRef text, llvm::StringRef file,
                                            manifest::ErrorList &errors) {
  return ProductTableReader(text, file, errors).read();
}

} // namespace stepc::products
